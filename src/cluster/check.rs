//! Validates settings with the server that will use them, before there is a cluster.
//!
//! `postgres -C NAME -c NAME=VALUE` parses its command line as a start would, prints and exits: it knows names, units,
//! ranges and enums of this very build. It is given an empty configuration file, so it needs no data folder. One call
//! with all settings covers the usual plan; only after a rejection each half is tried alone (about 3 ms). Not covered:
//! settings of extensions, and conflicts between two settings.

use super::install::Installation;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::host::users::User;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The server answers in milliseconds; beyond this it hangs.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Rejections to look for: as many as are shown.
const MOST_REFUSED: usize = 20;

/// A folder without a server's configuration.
const NO_CLUSTER: &str = "/proc";

/// Settings with all the values that a plan gives them.
pub type Values = BTreeMap<String, BTreeSet<String>>;

/// A setting that the server rejects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSetting {
    pub name: String,
    /// The rejected value; `None` if the server has no such setting.
    pub value: Option<String>,
    /// The server's message.
    pub message: String,
    /// The server's hint.
    pub hint: Option<String>,
}

/// True if the setting belongs to an extension (its name has a dot): the server accepts anything for it.
pub fn is_extension(name: &str) -> bool {
    name.contains('.')
}

/// The settings among `values` that the server rejects.
///
/// # Errors
/// When the server cannot be asked.
pub fn refused(host: &Host, install: &Installation, user: &User, values: &Values) -> Result<Vec<RefusedSetting>> {
    let settings = values.iter().filter(|(name, _)| !is_extension(name));
    let pairs: Vec<(&str, &str)> =
        settings.flat_map(|(name, values)| values.iter().map(move |value| (name.as_str(), value.as_str()))).collect();
    let mut refused = Vec::new();
    if pairs.is_empty() || ask(host, install, user, &pairs).is_ok() {
        // The last value of a repeated name wins, but each is checked.
        return Ok(refused);
    }
    // Checks that the server can be asked at all: any later rejection is the setting's fault.
    ask(host, install, user, &[])?;
    let mut halves = vec![pairs.as_slice()];
    while let Some(part) = halves.pop().filter(|_| refused.len() < MOST_REFUSED) {
        match (part, ask(host, install, user, part)) {
            (_, Ok(())) => {}
            ([(name, value)], Err(error)) => refused.push(described(name, value, &error.to_string())),
            (part, Err(_)) => {
                let (first, second) = part.split_at(part.len() / 2);
                halves.extend([second, first]);
            }
        }
    }
    Ok(refused)
}

///
/// # Errors
/// When the server cannot be asked.
pub fn names(host: &Host, install: &Installation, user: &User) -> Result<Vec<String>> {
    let command = Command::new(install.bin.join("postgres")).arg("--describe-config").user(user).limit(ANSWER_LIMIT);
    let output = host.run(&command)?;
    let names = output.stdout.lines().filter_map(|line| line.split('\t').next());
    Ok(names.filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// Page size of this server build, bytes.
///
/// # Errors
/// When the server cannot be asked.
pub(crate) fn block_size(host: &Host, install: &Installation, user: &User) -> Result<u64> {
    let said = value(host, install, user, "block_size", &[])?;
    said.parse().map_err(|_| Error::tool(format!("the server says that `block_size` is `{said}`")))
}

fn ask(host: &Host, install: &Installation, user: &User, pairs: &[(&str, &str)]) -> Result<()> {
    value(host, install, user, "max_connections", pairs).map(drop)
}

/// The value that a setting has, given these settings.
fn value(host: &Host, install: &Installation, user: &User, name: &str, pairs: &[(&str, &str)]) -> Result<String> {
    let settings = pairs.iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]);
    let command = Command::new(install.bin.join("postgres"))
        .args(["-C", name, "-D", NO_CLUSTER, "-c", "config_file=/dev/null"])
        .args(settings)
        .user(user)
        .limit(ANSWER_LIMIT);
    let output = host.run(&command).map_err(|e| Error::tool(e.to_string()))?;
    Ok(output.stdout.trim().to_owned())
}

/// Splits the server's lines: `FATAL:  ...`, `DETAIL:  ...`, `HINT:  ...`.
fn described(name: &str, value: &str, said: &str) -> RefusedSetting {
    let line = |label: &str| {
        let line = said.lines().find_map(|line| Some(line.split_once(label)?.1.trim()));
        line.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let fatal = line("FATAL:").unwrap_or_else(|| said.to_owned());
    let unknown = fatal.contains("unrecognized configuration parameter");
    let message = match line("DETAIL:") {
        Some(detail) => format!("{fatal}: {detail}"),
        None => fatal,
    };
    RefusedSetting { name: name.to_owned(), value: (!unknown).then(|| value.to_owned()), message, hint: line("HINT:") }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::host::users;

    fn values(pairs: &[(&str, &str)]) -> Values {
        let mut values = Values::new();
        for (name, value) in pairs {
            values.entry((*name).to_owned()).or_default().insert((*value).to_owned());
        }
        values
    }

    #[test]
    fn the_server_itself_says_which_settings_and_values_it_refuses() {
        let Some(install) = testing::some_installation() else { return };
        let (host, user) = (Host::this(), users::server_user(&Host::this()).unwrap());
        assert!([1024, 2048, 4096, 8192, 16384, 32768].contains(&block_size(&host, &install, &user).unwrap()));
        let good = values(&[("shared_buffers", "128MB"), ("fsync", "off"), ("a.b", "x"), ("wal_level", "minimal")]);
        assert_eq!(refused(&host, &install, &user, &good).unwrap(), []);
        let bad = values(&[
            ("shard_buffers", "128MB"),
            ("shared_buffers", "128 megs"),
            ("wal_sync_method", "opendatasync"),
            ("wal_sync_method", "fdatasync"),
            ("max_connections", "-4"),
        ]);
        let found = refused(&host, &install, &user, &bad).unwrap();
        let named: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.value.as_deref())).collect();
        let expected = [
            ("max_connections", Some("-4")),
            ("shard_buffers", None),
            ("shared_buffers", Some("128 megs")),
            ("wal_sync_method", Some("opendatasync")),
        ];
        assert_eq!(named, expected);
        assert!(found[3].hint.as_ref().unwrap().contains("open_datasync"), "{found:?}");
        assert!(names(&host, &install, &user).unwrap().contains(&"shared_buffers".to_owned()));
    }

    #[test]
    fn the_servers_words_are_taken_apart() {
        let said = "postgres failed (exit code 1)\n2026 [1] FATAL:  invalid value for parameter \"x\": \"(\"\n2026 [1] DETAIL:  syntax \
                    error\n2026 [1] HINT:  try y";
        let found = described("x", "(", said);
        assert_eq!(found.message, "invalid value for parameter \"x\": \"(\": syntax error");
        assert_eq!((found.value.as_deref(), found.hint.as_deref()), (Some("("), Some("try y")));
        assert_eq!(described("x", "1", "it was killed").message, "it was killed");
    }
}
