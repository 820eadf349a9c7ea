//! Where a script or `setup` failed, from what pgbench or the server says.

use super::script_settings::{Piece::Sign, piece};
use super::scripts::ScriptSource;
use crate::error::Error;

/// The failure with its place: "run /srv/mine.sql (line 3)"; of SQL in the plan, with its name. Of `setup`, some
/// statements were `done`.
pub fn named(failed: Error, verb: &str, source: &ScriptSource, name: &str, done: Option<usize>) -> Error {
    let text = String::from_utf8_lossy(&source.text().unwrap_or_default()).into_owned();
    let line = line(&failed.to_string(), &text, done).map_or_else(String::new, |line| format!(" (line {line})"));
    let is_outside = failed.to_string().contains("SQLSTATE 25001");
    let failed = failed.while_doing(match source {
        ScriptSource::File(path) => format!("{verb} {}{line}", path.display()),
        _ => format!("{verb} `{name}`{line}"),
    });
    let hint = "`setup` is sent as one transaction: leave `VACUUM` and the like out; `ANALYZE` works";
    if is_outside { failed.hint(hint) } else { failed }
}

/// The line of `text`: pgbench says "script-1-NAME:7" of what it cannot read, and "command 3" with "LINE 2" in it of what
/// the server refuses; a server says "in line 7", or nothing.
fn line(said: &str, text: &str, done: Option<usize>) -> Option<usize> {
    let number = |from: &str, after: &str| {
        let rest = said.split_once(from)?.1.split_once(after)?.1;
        rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse::<usize>().ok()
    };
    let of_command = || {
        // pgbench goes on with a command after a backslash at the end of a line.
        let commands = Some(commands(text, done.is_none())).filter(|_| !text.contains("\\\n"))?;
        let begin = commands.get(done.or_else(|| number("", "aborted in command "))?)?;
        // In a function, it is the line of a query there.
        let inside = number("", "LINE ").filter(|_| !said.contains("QUERY:"));
        Some(begin + inside.map_or(0, |line| line.saturating_sub(1)))
    };
    number("script-1-", ":").or_else(|| number("", " in line ")).or_else(of_command)
}

/// The lines in which the commands of a script begin, as pgbench counts them (psqlscan.l, `ParseScript` in pgbench.c). A
/// server does not count empty ones.
fn commands(text: &str, has_empty: bool) -> Vec<usize> {
    let (mut begins, mut rest, mut line, mut is_open, mut depth) = (Vec::new(), text, 1, false, 0);
    while !rest.is_empty() {
        // `\;` joins statements, `\gset` and `\aset` belong to the one before.
        let (bytes, found) = if rest.starts_with("\\;") { (2, Some(Sign('\\'))) } else { piece(rest) };
        let (this, after) = rest.split_at(bytes);
        let is_meta = this.starts_with('\\') && found.is_none();
        let is_end = found == Some(Sign(';')) && depth == 0;
        let is_code = found.is_some() || this.starts_with("/*");
        let is_statement = is_code && !is_open && (has_empty || !is_end);
        let is_own = is_meta && !["\\gset", "\\aset"].iter().any(|name| this.starts_with(name));
        begins.extend((is_statement || is_own).then_some(line));
        depth += i32::from(found == Some(Sign('('))) - i32::from(found == Some(Sign(')')));
        is_open = (is_open || is_code) && !is_end && !is_meta;
        line += this.matches('\n').count();
        rest = after;
    }
    begins
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
\\set id random(1, 1000)
-- a remark; with a semicolon
BEGIN; SELECT f(';',
  (1)) AS a \\gset
\\if :a
UPDATE job /* ; */
   SET id = $$;$$ \\; SELECT 1;
\\endif
;
END";

    #[test]
    fn commands_are_counted_as_pgbench_counts_them() {
        assert_eq!(commands(SCRIPT, true), [1, 3, 3, 5, 6, 8, 9, 10]);
        assert_eq!(commands("SELECT 1;;\nSELECT 2;", false), [1, 2]);
    }

    #[test]
    fn what_pgbench_says_leads_to_the_line() {
        let of = |said: &str| line(said, SCRIPT, None);
        assert_eq!(of("client 0 script 0 aborted in command 4 query 0: ERROR:  x\nLINE 2:    SET id"), Some(7));
        assert_eq!(of("client 0 aborted in command 3 (if) of script 0; evaluation failed"), Some(5));
        assert_eq!(of("aborted in command 1 query 0: ERROR:  x\nLINE 1: x\nQUERY:  x"), Some(3));
        assert_eq!(of("pgbench: error: /run/x/script-1-mine.sql:2: invalid command in command \"sett\""), Some(2));
        assert_eq!(of("aborted in command 4 query 0: ERROR:  x\nLINE 0: x"), Some(6));
        assert_eq!(of("aborted in command 99 query 0"), None);
        assert_eq!(of("could not connect"), None);
        assert_eq!(line("aborted in command 1 query 0", "\\set id 1 + \\\n 1\nSELECT 1 / 0;", None), None);
    }

    #[test]
    fn a_failure_of_setup_names_its_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.sql");
        std::fs::write(&path, "CREATE TABLE a (id int);\n\nVACUUM a;\n").unwrap();
        let place = format!("failed to run {} (line", path.display());
        let source = ScriptSource::File(path);
        let of = |said: &str, done| named(Error::tool(said), "run", &source, "setup", Some(done));
        let vacuum = of("ERROR: VACUUM cannot run (SQLSTATE 25001)", 1);
        assert_eq!(vacuum.to_string(), format!("{place} 3): ERROR: VACUUM cannot run (SQLSTATE 25001)"));
        assert!(vacuum.hint_text().unwrap().contains("one transaction"));
        let syntax = of("ERROR: syntax error (SQLSTATE 42601) in line 2", 0);
        assert_eq!(syntax.to_string(), format!("{place} 2): ERROR: syntax error (SQLSTATE 42601) in line 2"));
        let of_plan = named(Error::tool("ERROR"), "run", &ScriptSource::Sql("x;".to_owned()), "sql#2", Some(0));
        assert_eq!(of_plan.to_string(), "failed to run `sql#2` (line 1): ERROR");
    }
}
