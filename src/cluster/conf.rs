//! The settings file that pgstrata adds to `postgresql.conf`: its settings, and how values are quoted.

use super::spec::ServerSpec;
use crate::error::{Error, Result};
use crate::host::files;
use std::collections::BTreeMap;
use std::path::Path;

const FILE: &str = "pgstrata.conf";

/// Settings that pgstrata needs itself, each with the reason shown to users who ask for another value.
const OURS: [(&str, &str); 9] = [
    ("listen_addresses", "servers listen on a private socket only"),
    ("port", "the socket name depends on it"),
    ("unix_socket_directories unix_socket_permissions unix_socket_group", "servers listen in a private folder"),
    ("data_directory", "the data are stored on the stack under test"),
    ("config_file", "pgstrata writes the settings itself"),
    ("hba_file ident_file", "clients on the private socket are trusted"),
    ("external_pid_file", "pgstrata manages the server process itself"),
    ("logging_collector log_destination", "the log goes to the run folder, not onto the stack"),
    ("log_line_prefix log_timezone log_checkpoints lc_messages", "pgstrata reads checkpoints from the log"),
];

/// Why a plan may not set `name`; `None` if it may.
pub fn reserved(name: &str) -> Option<&'static str> {
    // include, include_if_exists, include_dir: directives of the file, which could bring in any setting.
    if name.to_ascii_lowercase().starts_with("include") {
        return Some(
            "an included file could change settings without the report showing it; put the settings in the plan",
        );
    }
    OURS.iter().find(|(ours, _)| ours.split(' ').any(|ours| ours.eq_ignore_ascii_case(name))).map(|(_, reason)| *reason)
}

/// Arguments of initdb reserved for pgstrata: location of the cluster, and authentication.
const OUR_ARGUMENTS: [(&str, &str); 5] = [
    ("-D --pgdata", "the stack determines the data directory"),
    ("-X --waldir --xlogdir", "the stack's `wal` determines the location of pg_wal"),
    ("-U --username", "pgstrata connects as the role postgres"),
    ("-A --auth -W --pwprompt --pwfile", "pgstrata connects without a password, through a private socket"),
    ("-S --sync-only", "it does not create a cluster"),
];

/// Why a plan may not pass `argument` to initdb; `None` if it may.
pub fn reserved_argument(argument: &str) -> Option<&'static str> {
    let set = ["--set=", "-c", ""].iter().find_map(|lead| argument.strip_prefix(lead)?.split_once('='));
    if let Some(reason) = set.and_then(|(name, _)| reserved(name)) {
        return Some(reason);
    }
    let known = OUR_ARGUMENTS.iter().find(|(ours, _)| ours.split(' ').any(|ours| is_argument(argument, ours)));
    known.map(|(_, reason)| *reason)
}

fn is_argument(argument: &str, ours: &str) -> bool {
    if !ours.starts_with("--") {
        return short_options(argument).any(|option| ours.ends_with(option));
    }
    // initdb accepts any unambiguous prefix of a long option, followed by `=` or `-`: --auth-local.
    let name = argument.split('=').next().unwrap_or_default();
    name.starts_with("--") && name.len() > 3 && (ours.starts_with(name) || name.starts_with(&format!("{ours}-")))
}

/// The short options in an argument: several without a value may be combined, the last with its value (`-kD/x`).
fn short_options(argument: &str) -> impl Iterator<Item = char> {
    const TAKE_NO_VALUE: &str = "dgknNsSW?V";
    let letters = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
    let bare = letters.chars().take_while(|letter| TAKE_NO_VALUE.contains(*letter)).count();
    letters.chars().take(bare + 1)
}

/// Settings passed on the server's command line, which neither files nor ALTER SYSTEM can override.
///
/// # Errors
/// When a path is not UTF-8.
pub fn command_line(spec: &ServerSpec) -> Result<Vec<String>> {
    // The value is a list of folders: quote it as an item.
    let socket_folder = format!("\"{}\"", utf8(&spec.socket_folder)?.replace('"', "\"\""));
    let ours = [
        ("listen_addresses", String::new()),
        ("unix_socket_directories", socket_folder),
        ("unix_socket_permissions", "0700".to_owned()),
        ("hba_file", utf8(&spec.data.join("pg_hba.conf"))?.to_owned()),
        ("ident_file", utf8(&spec.data.join("pg_ident.conf"))?.to_owned()),
        ("external_pid_file", String::new()),
        ("logging_collector", "off".to_owned()),
        ("log_destination", "stderr".to_owned()),
    ];
    Ok(ours.into_iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]).collect())
}

/// # Errors
/// When the path is not UTF-8.
pub(super) fn utf8(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::user(format!("the path {} is not UTF-8", path.display())))
}

/// Writes the settings of `spec` into its data folder and makes `postgresql.conf` include them last.
pub fn write(spec: &ServerSpec) -> Result<()> {
    let text = text(spec)?;
    let file = spec.data.join(FILE);
    files::write_for(&file, text.as_bytes(), 0o600, &spec.user)?;
    let main = spec.data.join("postgresql.conf");
    let include = format!("include '{FILE}'");
    let had = files::read_text(&main)?;
    if had.lines().any(|line| line.trim() == include) {
        return Ok(());
    }
    files::write_for(&main, format!("{}\n{include}\n", had.trim_end()).as_bytes(), 0o600, &spec.user)
}

fn text(spec: &ServerSpec) -> Result<String> {
    let mut text = String::from("# Written by pgstrata at every start.\n");
    let ours = [
        ("log_line_prefix", "%m [%p] "),
        // The one time zone that needs no files.
        ("log_timezone", "GMT"),
        ("log_checkpoints", "on"),
        ("lc_messages", "C"),
        // A plan may override it: then autovacuum is reported only in part.
        ("log_autovacuum_min_duration", "0"),
    ];
    text.extend(ours.into_iter().map(|(name, value)| format!("{name} = {}\n", quoted(value))));
    Ok(text + &lines(&spec.settings)?)
}

/// Lines of postgresql.conf for settings of a plan.
///
/// # Errors
/// If one is reserved, or its name or value is not fit for the file.
pub(crate) fn lines(settings: &BTreeMap<String, String>) -> Result<String> {
    let mut text = String::new();
    for (name, value) in settings {
        if let Some(reason) = reserved(name) {
            return Err(Error::user(format!("the setting `{name}` is reserved for pgstrata: {reason}")));
        }
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        if !is_name {
            return Err(Error::user(format!("`{name}` is not a valid setting name")));
        }
        if value.chars().any(char::is_control) {
            return Err(Error::user(format!(
                "the value of the setting `{name}` contains a line break or another control character"
            )));
        }
        text.push_str(&format!("{name} = {}\n", quoted(value)));
    }
    Ok(text)
}

/// A value as the lexer of postgresql.conf reads it back: in quotes, quotes doubled, backslashes escaped (PostgreSQL,
/// "Setting Parameters", and `guc-file.l`).
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

/// The setting that a server's log blames, in the wording used since PostgreSQL 9: `unrecognized configuration
/// parameter "x"`, `invalid value for parameter "x"`, `parameter "x" requires ...`.
pub fn blamed_setting(log: &str) -> Option<&str> {
    let mut lines = log.lines().filter(|line| line.contains("LOG:") || line.contains("FATAL:"));
    lines.find_map(|line| Some(line.split_once("parameter \"")?.1.split_once('"')?.0))
}

/// A socket's path has at most 107 bytes (`sun_path` of unix(7)); the server's error for longer ones is unhelpful.
pub fn check_socket_path(socket: &Path) -> Result<()> {
    const MOST: usize = 107;
    let length = socket.as_os_str().len();
    if length <= MOST && socket.to_str().is_some() {
        return Ok(());
    }
    let shown = socket.display();
    Err(Error::host(format!("the socket path {shown} is {length} bytes long (the limit is {MOST}) or not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initdb_arguments_cannot_move_the_cluster_or_lock_us_out() {
        for argument in
            ["-kD/path", "-kX/path", "-kUbob", "-dnD", "--set=hba_file=/x", "-clisten_addresses=*", "port=1"]
        {
            assert!(reserved_argument(argument).is_some(), "{argument}");
        }
        for argument in ["-D", "-D/x", "--pgdata=/x", "-X", "--waldir=/x", "--wald=/x", "-U", "--auth-local=md5", "-A"]
        {
            assert!(reserved_argument(argument).is_some(), "{argument}");
        }
        for argument in [
            "--data-checksums",
            "-k",
            "--wal-segsize=64",
            "--encoding=UTF8",
            "--locale-provider=icu",
            "-kE",
            "-EUTF8",
            "-LD",
            "-TUX",
            "--set=wal_level=minimal",
            "-cwork_mem=4MB",
        ] {
            assert!(reserved_argument(argument).is_none(), "{argument}");
        }
    }

    #[test]
    fn values_are_quoted_as_postgresql_reads_them() {
        assert_eq!(quoted("128MB"), "'128MB'");
        assert_eq!(quoted(r"it's C:\x"), r"'it''s C:\\x'");
    }

    #[test]
    fn the_blamed_setting_is_found_in_the_log() {
        let log = "2026-01-01 [7] LOG:  unrecognized configuration parameter \"wal_snyc_method\" in file \"x\" line 3\n\
                   2026-01-01 [7] FATAL:  configuration file \"y\" contains errors\n";
        assert_eq!(blamed_setting(log), Some("wal_snyc_method"));
        assert_eq!(blamed_setting("LOG:  invalid value for parameter \"wal_level\": \"x\""), Some("wal_level"));
        assert_eq!(blamed_setting("FATAL:  could not map memory"), None);
    }

    #[test]
    fn names_and_values_that_would_break_the_file_are_refused() {
        let is_taken = |name: &str, value: &str| lines(&[(name.to_owned(), value.to_owned())].into()).is_ok();
        assert!(!is_taken("a b", "on"));
        assert!(!is_taken("fsync = off #", "on"));
        assert!(is_taken("auto_explain.log_min_duration", "on"));
        assert!(!is_taken("x", "on\nfsync = off"));
        assert!(reserved("Port").is_some());
        assert!(reserved("fsync").is_none());
        for directive in ["include", "include_if_exists", "Include_Dir"] {
            assert!(reserved(directive).is_some(), "{directive}");
        }
    }

    #[test]
    fn a_socket_path_that_is_too_long_says_so() {
        assert!(check_socket_path(Path::new("/tmp/s/.s.PGSQL.5432")).is_ok());
        let long = format!("/{}", "x".repeat(107));
        assert!(check_socket_path(Path::new(&long)).unwrap_err().to_string().contains("108 bytes"));
    }
}
