//! What scripts of the user's own set in their sessions: a commit under `SET LOCAL synchronous_commit = off` is not the
//! commit that the server's settings speak of. Pure.

use crate::record::facts::FoundSetting;

/// Settings that a session may change and that decide what its commits mean.
const OF_SESSIONS: [&str; 1] = ["synchronous_commit"];

/// Each place of a script that sets one of them; `script` is what the script is called.
pub fn settings_in(text: &str, script: &str) -> Vec<FoundSetting> {
    let code = without_comments(text).to_lowercase();
    let mut found = Vec::new();
    for name in OF_SESSIONS {
        for (at, _) in code.match_indices(name) {
            let Some(value) = value_after(&code[at + name.len()..]) else { continue };
            let line = code[..at].matches('\n').count() + 1;
            let place = format!("line {line} of {script}");
            found.push(FoundSetting { name: name.to_owned(), value, place });
        }
    }
    found
}

/// What follows a setting's name: `= off`, `TO 'off'`, `', 'off'`. `None` where nothing is set; `Some(None)` where what
/// it is set to cannot be told.
fn value_after(rest: &str) -> Option<Option<String>> {
    let quote = |c: char| c == '\'' || c == '"';
    let rest = rest.trim_start_matches(quote).trim_start();
    let rest = match rest.strip_prefix(['=', ',']) {
        Some(rest) => rest,
        None => rest.strip_prefix("to").filter(|rest| rest.starts_with(|c: char| c.is_whitespace() || quote(c)))?,
    };
    let value = rest.trim_start().trim_start_matches(quote);
    let value: String = value.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    match value.as_str() {
        "default" => None,
        "off" | "false" | "no" | "0" => Some(Some("off".to_owned())),
        "on" | "true" | "yes" | "1" => Some(Some("on".to_owned())),
        "local" | "remote_write" | "remote_apply" => Some(Some(value)),
        _ => Some(None),
    }
}

/// The text with its comments blanked out, line by line as it was. Quotes are followed, so that `'--'` is no comment.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let (mut quoted, mut line_comment, mut block_comment) = (false, false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        match c {
            '\n' => (line_comment, _) = (false, code.push('\n')),
            _ if line_comment => {}
            '*' if block_comment && next == Some('/') => (block_comment, _) = (false, chars.next()),
            _ if block_comment => {}
            '\'' => (quoted, _) = (!quoted, code.push(c)),
            '-' if !quoted && next == Some('-') => line_comment = true,
            '/' if !quoted && next == Some('*') => (block_comment, _) = (true, chars.next()),
            _ => code.push(c),
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Vec<(Option<String>, String)> {
        settings_in(text, "own.sql").into_iter().map(|found| (found.value, found.place)).collect()
    }

    #[test]
    fn every_way_to_set_it_is_found_with_its_line() {
        for way in [
            "SET LOCAL synchronous_commit = off;",
            "set synchronous_commit to 'off';",
            "SET SESSION synchronous_commit TO FALSE;",
            "SELECT set_config('synchronous_commit', 'off', true);",
            "ALTER ROLE app SET synchronous_commit = 0;",
            "CREATE FUNCTION f() RETURNS void LANGUAGE sql SET \"synchronous_commit\"=no AS $$ $$;",
            "DO $$ BEGIN SET LOCAL synchronous_commit=off; END $$;",
        ] {
            let found = set(&format!("BEGIN;\n\n{way}\nEND;"));
            assert_eq!(found, [(Some("off".to_owned()), "line 3 of own.sql".to_owned())], "{way}");
        }
    }

    #[test]
    fn other_values_are_told_and_what_is_no_constant_is_not_known() {
        assert_eq!(set("SET synchronous_commit = local;")[0].0.as_deref(), Some("local"));
        assert_eq!(set("SET synchronous_commit = on;")[0].0.as_deref(), Some("on"));
        assert_eq!(set("SET synchronous_commit = :mode;")[0].0, None);
        assert_eq!(set("SET synchronous_commit = 'of' 'f';")[0].0, None);
    }

    #[test]
    fn comments_and_what_sets_nothing_are_left_out() {
        for text in [
            "-- SET synchronous_commit = off;\nSELECT 1;",
            "/* SET\nsynchronous_commit = off; */ SELECT 1;",
            "SHOW synchronous_commit;",
            "RESET synchronous_commit;",
            "SET synchronous_commit TO DEFAULT;",
            "SELECT current_setting('synchronous_commit');",
        ] {
            assert_eq!(set(text), [], "{text}");
        }
        assert_eq!(set("SELECT '--'; SET synchronous_commit = off;").len(), 1);
    }
}
