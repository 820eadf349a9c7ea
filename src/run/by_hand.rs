//! A case as a shell script for a person: the kernel's knobs, the stack and an empty cluster, from the functions that
//! the run takes its commands from. With a trial, the values that it read back are beside the commands that read them.

use crate::cluster::{conf, server};
use crate::error::Result;
use crate::host::command::Command;
use crate::provision::by_hand::{Script, word};
use crate::provision::{knobs, stack};
use crate::record::case::{CaseSpec, PostgresSpec};
use crate::record::stack::End;
use crate::record::trial::TrialRecord;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The script; `source` says where the case comes from.
///
/// # Errors
/// If a layer exists only for a measurement, or a setting is not fit for postgresql.conf.
pub fn script(case: &CaseSpec, trial: Option<&TrialRecord>, source: &str) -> Result<String> {
    let mut script = Script::of(&case.stack);
    let from = script.begin("Knobs of the kernel, until it boots again (sysctl.d(5) keeps them)");
    knobs::by_hand(&mut script, &case.machine);
    let knobs = trial.map(|trial| &trial.knobs).into_iter().flatten();
    let knobs = knobs.filter(|(name, _)| case.machine.get(name).is_some());
    script.end(from, &knobs.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>());
    let folders = stack::by_hand(&mut script, &case.stack, trial.and_then(|trial| trial.stack.as_ref()))?;
    if let Some(postgres) = &case.postgres {
        cluster(&mut script, postgres, &folders, trial)?;
    }
    let mut head = vec![
        format!("Builds the stack {} of the case {}, as {source}.", case.stack.name, case.id),
        "Read it, fill in what is empty, and run it as root. It refuses a device that is not blank.".to_owned(),
    ];
    if !case.age.is_empty() {
        head.push("The run also aged the stack before it measured; this script does not.".to_owned());
    }
    Ok(script.text(&head))
}

/// Adds an empty cluster with the plan's settings.
fn cluster(
    script: &mut Script,
    postgres: &PostgresSpec,
    folders: &BTreeMap<End, PathBuf>,
    trial: Option<&TrialRecord>,
) -> Result<()> {
    let server = trial.and_then(|trial| trial.server.as_ref());
    let (found, version) = server.map_or(("", ""), |server| (server.bin.as_str(), server.version.as_str()));
    let from = script.begin("PostgreSQL");
    if let Some(build) = &postgres.build {
        let ran = server.and_then(|server| Some(format!("; configure {}", server.configure.as_ref()?)));
        script.remark(&format!("Built from source: {}{}", build.described(), ran.unwrap_or_default()));
    }
    let owner = script.fill_in("OWNER", "postgres", "User that PostgreSQL runs as");
    let bin = script.fill_in("BIN", found, &format!("Folder of PostgreSQL's programs {version}"));
    let (initdb, bin) = (Path::new(&bin).join("initdb"), PathBuf::from(bin));
    script.check(format!("[ -x {} ] || die 'BIN has no initdb'", word(&initdb.display().to_string())));
    let place = |(end, folder): (&End, &PathBuf)| match end {
        End::Data => folder.join("data"),
        End::Wal => folder.join("pg_wal"),
        End::Tablespace(name) => folder.join(format!("tablespace-{name}")),
    };
    for of in folders {
        script.run(&Command::new("install").args(["-d", "-m", "700", "-o", owner.as_str()]).arg(place(of)));
    }
    let data = folders.get_key_value(&End::Data).map(place).unwrap_or_default();
    let wal = folders.get_key_value(&End::Wal).map(place);
    let major = server.map_or(server::CHECKSUMS_BY_DEFAULT, |server| server.version_num / 10_000);
    let command = server::initdb_command(&initdb, &data, wal.as_deref(), &postgres.initdb, major);
    script.run(&as_user(&owner, &command));
    let lines = conf::lines(&postgres.settings)?;
    if !lines.is_empty() {
        let file = word(&data.join("postgresql.conf").display().to_string());
        script.line(format!("cat >> {file} <<'END_OF_SETTINGS'\n{lines}END_OF_SETTINGS"));
    }
    for (end, folder) in folders {
        if let End::Tablespace(name) = end {
            let statement = server::create_tablespace(name, &place((end, folder)))?;
            script.remark(&format!("Once it runs: {statement}"));
        }
    }
    if let Some(window) = trial.and_then(|trial| trial.window.as_ref()).filter(|window| !window.settings.is_empty()) {
        let set: Vec<String> = window.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        script.remark(&format!("Only for its measurement, the run also set {}.", set.join(", ")));
    }
    script.read(&as_user(&owner, &Command::new(bin.join("pg_controldata")).arg(&data)));
    // The server knows those of extensions only once it runs.
    for name in postgres.settings.keys().filter(|name| !name.contains('.')) {
        script.read(&as_user(&owner, &Command::new(bin.join("postgres")).arg("-D").arg(&data).args(["-C", name])));
    }
    let asked = postgres.settings.keys().map(String::as_str).chain(["data_checksums", "wal_segment_size"]);
    let values = server.into_iter().flat_map(|server| {
        let named = |name: &str| server.settings.get(name).or_else(|| server.key_settings.get(name));
        asked.clone().filter_map(move |name| Some((name.to_owned(), named(name)?.clone())))
    });
    script.end(from, &values.collect::<Vec<_>>());
    Ok(())
}

fn as_user(owner: &str, command: &Command) -> Command {
    Command::new("runuser").args(["-u", owner, "--"]).args(command.words())
}
