//! Output of the script to a profile: pure.

use crate::error::{Context, Error, Result};
use crate::record::profile::{FORMAT, Numbers, Profile};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Start of every line of ours; others are blank or psql's.
const MARK: &str = "pgstrata ";

/// Name of what only WAL segments show.
pub const WITHOUT_WAL: &str = "wal_distribution";

/// Reads what the script printed.
///
/// # Errors
/// If it is not the output of one whole run of the script in a version that is known.
pub fn read(text: &str) -> Result<Profile> {
    let lines = text.lines().filter_map(|line| line.trim_end().strip_prefix(MARK));
    let lines: Vec<(&str, &str)> = lines.map(|line| line.split_once(' ').unwrap_or((line, ""))).collect();
    check_ends(&lines)?;
    let tool_version = env!("CARGO_PKG_VERSION").to_owned();
    let mut profile = Profile { version: FORMAT, tool_version, ..Profile::default() };
    let (mut views, mut redos) = (BTreeMap::<&str, Vec<Map<String, Value>>>::new(), Vec::new());
    for (word, rest) in lines {
        let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
        match word {
            "settings" => profile.settings = json(rest)?,
            "state" => _ = profile.state.insert(name.to_owned(), numbers(&json(value)?)),
            "counts" => views.entry(name).or_default().push(json(value)?),
            "unseen" => _ = profile.unseen.insert(name.to_owned(), reason(value)),
            "sample" => {
                let (redo, sessions): (Option<i64>, Option<Numbers>) = json(rest)?;
                profile.samples += 1;
                redos.extend(redo);
                for (what, count) in sessions.unwrap_or_default() {
                    *profile.sessions.entry(what).or_default() += count;
                }
            }
            _ => {}
        }
    }
    for (name, readings) in views {
        match difference(&readings) {
            Ok(counts) => _ = profile.counts.insert(name.to_owned(), counts),
            Err(why) => _ = profile.unseen.insert(name.to_owned(), why.to_owned()),
        }
    }
    // A checkpoint is complete when the control file has another redo position.
    let completed = redos.windows(2).filter(|pair| pair[1] > pair[0]).count() as i64;
    if let Some((last, first)) = redos.last().zip(redos.first()) {
        let checkpoints = [("completed".to_owned(), completed), ("distance_bytes".to_owned(), last - first)];
        profile.counts.insert("checkpoints".to_owned(), checkpoints.into());
    }
    name_unseen(&mut profile);
    if !profile.state.contains_key("server") || !profile.counts.contains_key("moment") {
        let error = Error::user("the server answered no basic question of the script");
        return Err(error.hint("psql printed the reasons to standard error"));
    }
    Ok(profile)
}

/// From its start to its end in the format that is read here.
fn check_ends(lines: &[(&str, &str)]) -> Result<()> {
    let runs = lines.iter().filter(|(word, _)| *word == "profile").count();
    let wrong = match (lines.first(), lines.last()) {
        _ if runs > 1 => format!("this has the output of {runs} runs of the script: keep one"),
        (Some(("profile", format)), _) if *format != FORMAT.to_string() => {
            format!("the output has format {format}, and this pgstrata reads format {FORMAT}")
        }
        (Some(("profile", _)), Some(("end", _))) => return Ok(()),
        (Some(("profile", _)), _) => "the output is cut off: psql or its connection ended early".to_owned(),
        _ => "this is not the output of `pgstrata profile --script`".to_owned(),
    };
    Err(Error::user(wrong).hint("run the script to its end: psql -X -f p.sql > out"))
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).or_user(|| format!("read `{text}`"))
}

/// The numbers of a row, as whole ones.
fn numbers(row: &Map<String, Value>) -> Numbers {
    let whole = |value: &Value| match value {
        Value::Bool(holds) => Some(i64::from(*holds)),
        value => value.as_i64().or_else(|| value.as_f64().map(|value| value.round() as i64)),
    };
    row.iter().filter_map(|(name, value)| Some((name.clone(), whole(value)?))).collect()
}

/// Last reading minus first, or why there is none.
fn difference(readings: &[Map<String, Value>]) -> Result<Numbers, &'static str> {
    let [first, last] = readings else { return Err("one of the two readings failed") };
    let differs = |name: &str| first.get(name) != last.get(name);
    let (was_reset, lost_some) = (differs("stats_reset"), differs("dealloc"));
    let (first, last) = (numbers(first), numbers(last));
    let grown = last.into_iter().filter_map(|(name, value)| Some((value - first.get(&name)?, name)));
    let grown: Numbers = grown.map(|(value, name)| (name, value)).collect();
    match () {
        () if was_reset => Err("its statistics were reset between the two readings"),
        () if lost_some => Err("statements were dropped between the two readings: raise pg_stat_statements.max"),
        () if grown.values().any(|value| *value < 0) => Err("its counters fell: a part was reset or dropped"),
        () => Ok(grown),
    }
}

/// What an SQLSTATE of the script means.
fn reason(state: &str) -> String {
    let known = match state {
        "42501" => "the role may not see it",
        "42P01" => "this version of PostgreSQL does not have it",
        "57014" => "it took longer than 5 seconds and was canceled",
        "55000" => "it is not loaded (shared_preload_libraries)",
        "absent" => "pg_stat_statements is not installed in this database",
        state => return format!("the server refused it (SQLSTATE {state})"),
    };
    known.to_owned()
}

/// Names what the answers themselves do not tell, and drops what they tell of something else.
fn name_unseen(profile: &mut Profile) {
    let is = |name: &str, value: i64| profile.state.get("server").and_then(|server| server.get(name)) == Some(&value);
    let (standby, blind) = (is("standby", 1), is("sees_sessions", 0));
    let none = profile.counts.get("checkpoints").is_some_and(|counts| counts.get("completed") == Some(&0));
    let untold = [
        (blind, "sessions", "the role is not a member of pg_monitor"),
        (none, "checkpoints", "none was completed while reading: read for longer than checkpoint_timeout"),
        (standby, "wal", "a standby writes no WAL; shown are the bytes and transactions that it replayed"),
        (standby, "statements", "on a standby, replay dirties pages and no statement does"),
        (standby, "rows", "on a standby, replay changes rows and no statement does"),
        (true, WITHOUT_WAL, "only WAL segments show it (--wal): without, means, and full pages count as whole ones"),
    ];
    for (_, name, why) in untold.into_iter().filter(|(holds, ..)| *holds) {
        profile.counts.remove(name);
        profile.unseen.insert(name.to_owned(), why.to_owned());
    }
    if let Some(databases) = profile.counts.get_mut("databases").filter(|_| standby) {
        databases.retain(|name, _| !name.starts_with("tup_"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the script prints, as short as it can be; `last` is the second reading of pg_stat_wal.
    fn printed(last: &str) -> String {
        let moment = |microseconds: u64| {
            format!(
                "pgstrata counts moment {{\"microseconds\": {microseconds}, \"transaction_ids\": {microseconds}}}\n"
            )
        };
        let wal = |row: &str| format!("pgstrata counts wal {row}\n");
        [
            "pgstrata profile 1\npgstrata state server {\"standby\" : false, \"sees_sessions\" : true}\n",
            "pgstrata settings { \"block_size\" : \"8192\", \"track_io_timing\" : \"on\" }\n",
            &(moment(5) + &wal("{\"wal_bytes\":100,\"stats_reset\":\"2026\"}")),
            "pgstrata unseen sizes 57014\n",
            "pgstrata sample [100, {\"active\" : 1, \"idle\" : 3}]\n\n",
            "pgstrata sample [100, {\"active IO WALSync\" : 2}]\n",
            "pgstrata sample [300, null]\r\n",
            &(moment(15) + &wal(last)),
            "pgstrata end\n",
        ]
        .concat()
    }

    const GROWN: &str = "{\"wal_bytes\":350,\"stats_reset\":\"2026\"}";

    #[test]
    fn counters_are_differences_and_sessions_are_sums() {
        let profile = read(&printed(GROWN)).unwrap();
        assert_eq!(profile.counts["wal"], Numbers::from([("wal_bytes".to_owned(), 250)]));
        assert_eq!(profile.counts["moment"]["microseconds"], 10);
        let checkpoints = &profile.counts["checkpoints"];
        assert_eq!((checkpoints["completed"], checkpoints["distance_bytes"]), (1, 200));
        assert_eq!((profile.samples, profile.sessions["active IO WALSync"], profile.sessions["idle"]), (3, 2, 3));
        assert_eq!(profile.unseen["sizes"], "it took longer than 5 seconds and was canceled");
        assert!(profile.unseen.contains_key(WITHOUT_WAL) && !profile.unseen.contains_key("checkpoints"));
        let same = read(&printed(GROWN).replace("[300", "[100")).unwrap();
        assert!(!same.counts.contains_key("checkpoints") && same.unseen["checkpoints"].contains("none was completed"));
    }

    #[test]
    fn outputs_of_real_servers_are_read_whole() {
        let outputs = [
            (include_str!("../../tests/fixtures/profile/15.out"), ["io", WITHOUT_WAL].as_slice()),
            (include_str!("../../tests/fixtures/profile/18.out"), &[WITHOUT_WAL]),
        ];
        for (text, unseen) in outputs {
            let profile = read(text).unwrap();
            assert_eq!(profile.unseen.keys().collect::<Vec<_>>(), unseen);
            assert_eq!((profile.samples, profile.counts["checkpoints"]["completed"]), (3, 1));
            let [grown, moved] = [profile.counts["wal"]["wal_bytes"], profile.counts["moment"]["wal_position_bytes"]];
            assert!(grown > 5_000_000 && (moved as f64 / grown as f64 - 1.0).abs() < 0.01, "{grown} {moved}");
            assert!(!text.to_lowercase().contains("secret"), "{text}");
        }
    }

    #[test]
    fn what_is_lost_between_the_readings_is_named() {
        for (last, why) in [
            ("{\"wal_bytes\":350,\"stats_reset\":\"2027\"}", "were reset"),
            ("{\"wal_bytes\":50,\"stats_reset\":\"2026\"}", "fell"),
            ("{\"wal_bytes\":350,\"stats_reset\":\"2026\",\"dealloc\":1}", "pg_stat_statements.max"),
        ] {
            let profile = read(&printed(last)).unwrap();
            assert!(!profile.counts.contains_key("wal") && profile.unseen["wal"].contains(why), "{last}");
        }
    }

    #[test]
    fn a_standby_and_a_blind_role_are_said() {
        let databases = "pgstrata counts databases {\"xact_commit\":7,\"tup_updated\":0}\npgstrata counts moment";
        let text = printed(GROWN).replace("\"standby\" : false", "\"standby\" : true");
        let text = text.replace("pgstrata counts moment", databases);
        let profile = read(&text.replace("\"sees_sessions\" : true", "\"sees_sessions\" : false")).unwrap();
        assert!(!profile.counts.contains_key("wal") && profile.unseen["wal"].contains("standby"));
        assert!(profile.unseen["sessions"].contains("pg_monitor"));
        assert_eq!(profile.counts["databases"].keys().collect::<Vec<_>>(), ["xact_commit"]);
    }

    #[test]
    fn an_output_that_is_not_whole_is_refused() {
        let why = |text: &str| read(text).unwrap_err().to_string();
        let whole = printed(GROWN);
        for end in ["pgstrata end", "4 15", "pgstrata sample [300"] {
            let at = whole.find(end).unwrap_or(whole.len() / 2);
            assert!(why(&whole[..at]).contains("cut off"), "{end}");
        }
        assert!(why("psql: error").contains("not the output"));
        assert!(why(&whole.replace("profile 1", "profile 2")).contains("format 2"));
        assert!(why(&whole.repeat(2)).contains("2 runs of the script"));
        assert!(why("pgstrata profile 1\npgstrata end\n").contains("no basic question"));
    }
}
