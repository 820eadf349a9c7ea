//! Checks a plan with the server and the kernel before anything is built: versions, settings, mount options.

use super::case::workload;
use super::io_uring;
use crate::cluster::check::{self, RefusedSetting, Values};
use crate::cluster::conf;
use crate::cluster::install::{self, Installation};
use crate::error::{Error, Result};
use crate::host::{Host, machine, paths, users};
use crate::plan::pointed::{MachineRefusal, Spot};
use crate::plan::{Plan, did_you_mean};
use crate::provision::mount_options::{MountFinding, MountOption, OptionAnswers, usual};
use crate::provision::stack::{MkfsAnswers, mkfs_refused};
use crate::provision::{same_bytes, snapshots};
use crate::record::build::UNBUILT;
use crate::record::case::CaseSpec;
use crate::record::stack::StackSpec;
use crate::units::Bytes;
use crate::{ageing, telemetry};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The layer that uses an existing folder of the machine, and its option.
const DIRECTORY: &str = "directory";

/// `max_connections` if the plan does not set it.
const DEFAULT_MAX_CONNECTIONS: u64 = 100;

/// Files that pgbench opens in addition to one per client.
const FILES_OF_PGBENCH: u64 = 3;

/// Values of `synchronous_commit` with which a commit waits for no standby.
const WITHOUT_STANDBY: [&str; 5] = ["local", "off", "false", "no", "0"];

#[derive(Debug, Default)]
pub struct PlanCheck {
    /// Servers that will run, in the order of the plan.
    pub servers: Vec<ServerLine>,
    /// Rejections by server or kernel.
    pub refusals: Vec<MachineRefusal>,
    /// Things that could not be checked.
    pub unchecked: Vec<String>,
}

/// A PostgreSQL of the plan, as found on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerLine {
    /// `bin` of the plan: `auto` or a folder.
    pub asked: String,
    /// Version as it prints it.
    pub version: String,
    /// Folder of its programs.
    pub bin: PathBuf,
}

/// Asks the server and the kernel about the cases that run in this `guest` (`None`: outside any guest); changes
/// nothing. A missing server is not an error here: its settings stay unchecked.
///
/// # Errors
/// When an installed server does not answer.
pub fn check(host: &Host, plan: &Plan, guest: Option<&str>) -> Result<PlanCheck> {
    let mut checked = PlanCheck { refusals: reserved(&plan.cases), ..PlanCheck::default() };
    // The layers of a stack know this without the machine, so those in other guests are checked as well.
    checked.snapshots(&plan.cases);
    checked.same_bytes(&plan.cases);
    checked.standbys(&plan.cases);
    checked.clients(&plan.cases, guest, machine::most_open_files())?;
    let whole = plan.cases.len();
    let plan = &plan.part_in(guest);
    if plan.cases.len() < whole {
        let cases = "settings and mount options of cases in other guests";
        checked.unchecked.push(format!("{cases}: their server and kernel are there only in the guest"));
    }
    let mut servers: BTreeMap<&str, Values> = BTreeMap::new();
    for postgres in plan.cases.iter().filter_map(|case| case.postgres.as_ref()) {
        let values = servers.entry(&postgres.bin).or_default();
        for (name, value) in &postgres.settings {
            values.entry(name.clone()).or_default().insert(value.clone());
        }
    }
    for (bin, values) in servers {
        checked.server(host, bin, values)?;
    }
    checked.filesystems(host, plan);
    checked.memory(&plan.cases, Bytes(machine::facts(host).memory_bytes));
    checked.io_uring(&plan.cases, || io_uring::refused(host));
    Ok(checked)
}

/// Settings and initdb arguments that servers under test depend on.
pub(super) fn reserved(cases: &[CaseSpec]) -> Vec<MachineRefusal> {
    let mut checked = PlanCheck::default();
    for postgres in cases.iter().filter_map(|case| case.postgres.as_ref()) {
        let settings = postgres.settings.keys();
        let settings = settings.map(|name| (Spot::Setting(name.clone()), "setting", name, conf::reserved(name)));
        let arguments = postgres.initdb.iter();
        let arguments =
            arguments.map(|it| (Spot::Initdb(it.clone()), "initdb argument", it, conf::reserved_argument(it)));
        for (spot, what, name, reason) in settings.chain(arguments) {
            let Some(reason) = reason else { continue };
            let message = format!("the {what} `{name}` is reserved for pgstrata: {reason}");
            checked.refuse(spot, message, Some("remove it from [postgres]".to_owned()));
        }
    }
    checked.refusals
}

impl PlanCheck {
    fn server(&mut self, host: &Host, bin: &str, mut values: Values) -> Result<()> {
        let extensions: Vec<String> = values.keys().filter(|name| check::is_extension(name)).cloned().collect();
        let Ok(install) = install::find(host, bin) else {
            if bin == UNBUILT && !values.is_empty() {
                self.unchecked.push("the settings: PostgreSQL is not built yet; the run checks them then".to_owned());
            } else if !values.is_empty() {
                self.unchecked.push(format!("the settings for `{bin}`: there is no such PostgreSQL to ask"));
            }
            return Ok(());
        };
        if !extensions.is_empty() {
            self.unchecked.push(format!("settings of extensions: {}", extensions.join(", ")));
        }
        values.retain(|name, _| conf::reserved(name).is_none());
        let user = users::server_user(host)?;
        let refused = check::refused(host, &install, &user, &values)?;
        if !refused.is_empty() {
            let names = check::names(host, &install, &user)?;
            self.refusals.extend(refused.iter().map(|setting| refusal(&install, &names, setting)));
        }
        self.servers.push(ServerLine { asked: bin.to_owned(), version: install.version, bin: install.bin });
        Ok(())
    }

    fn filesystems(&mut self, host: &Host, plan: &Plan) {
        let (mut options, mut of_mkfs) = (OptionAnswers::default(), MkfsAnswers::new());
        let mut unchecked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for stack in StackSpec::each_once(plan.cases.iter().map(|case| &case.stack)) {
            for (arguments, words) in mkfs_refused(host, stack, &mut of_mkfs) {
                let words = words.replace(":\n  ", ": ").replace("\n  ", "; ");
                let message = format!("mkfs refuses this on an empty file of that size: {words}");
                let word = arguments.last().cloned().unwrap_or_default();
                let spot = Spot::Layer { stack: stack.name.clone(), key: "mkfs", word };
                self.refuse(spot, message, None);
            }
            for MountOption { option, filesystem, finding } in options.of(stack) {
                match finding {
                    MountFinding::Good => {}
                    MountFinding::Refused(words) => {
                        let spot = Spot::Layer { stack: stack.name.clone(), key: "mount", word: option.clone() };
                        let name = option.split('=').next().unwrap_or_default();
                        let message = format!("the kernel refuses the mount option `{option}`: {words}");
                        let help = did_you_mean(name, usual(&filesystem).into_iter().filter(|known| *known != name));
                        self.refuse(spot, message, help);
                    }
                    MountFinding::Unchecked(why) => {
                        unchecked.entry(why).or_default().insert(format!("{option} ({filesystem})"));
                    }
                }
            }
        }
        for (why, options) in unchecked {
            let options: Vec<String> = options.into_iter().collect();
            self.unchecked.push(format!("mount options {}: {why}", options.join(", ")));
        }
    }

    /// Rejects cases whose server is to use io_uring if the kernel refuses it.
    fn io_uring(&mut self, cases: &[CaseSpec], refused: impl Fn() -> Option<io_uring::Obstacle>) {
        let mut asked = cases.iter().filter_map(|case| io_uring::asked_by(case.postgres.as_ref()?)).peekable();
        let Some(obstacle) = asked.peek().and_then(|_| refused()) else { return };
        for (name, value) in asked {
            let message = format!("`{name} = {value}` cannot work here: {}", obstacle.why);
            self.refuse(Spot::SettingValue(name.clone(), value.clone()), message, Some(obstacle.hint.clone()));
        }
    }

    /// Rejects servers that do not fit in memory, which would show only when they are started.
    fn memory(&mut self, cases: &[CaseSpec], memory: Bytes) {
        const BUFFERS: &str = "shared_buffers";
        let servers = cases.iter().filter_map(|case| case.postgres.as_ref());
        let large = servers.filter(|postgres| postgres.size(BUFFERS).is_some_and(|size| size >= memory));
        for value in large.filter_map(|postgres| postgres.asked(BUFFERS)) {
            let message = format!("`{BUFFERS} = {value}` does not fit in this machine's memory, {memory}");
            let help = Some("use less: what is in swap measures the swap".to_owned());
            self.refuse(Spot::SettingValue(BUFFERS.to_owned(), value.to_owned()), message, help);
        }
    }

    /// Rejects cases whose every commit would wait forever.
    fn standbys(&mut self, cases: &[CaseSpec]) {
        const NAMES: &str = "synchronous_standby_names";
        let waiting = cases.iter().filter_map(|case| case.postgres.as_ref()).filter(|postgres| {
            let commit = postgres.asked("synchronous_commit");
            commit.is_none_or(|commit| WITHOUT_STANDBY.iter().all(|word| !word.eq_ignore_ascii_case(commit)))
        });
        for value in waiting.filter_map(|postgres| postgres.asked(NAMES)).filter(|value| !value.trim().is_empty()) {
            let message =
                format!("`{NAMES} = {value}`: every commit would wait for ever, since pgstrata starts no standby");
            let help = "remove it, or set synchronous_commit = \"local\" or \"off\"".to_owned();
            self.refuse(Spot::SettingValue(NAMES.to_owned(), value.to_owned()), message, Some(help));
        }
    }

    /// Rejects cases whose clients the server or pgbench would turn away, which would show only when the data are
    /// loaded. Clients connect as superuser, so reserved slots (`superuser_reserved_connections`) serve them too.
    fn clients(&mut self, cases: &[CaseSpec], guest: Option<&str>, files: Option<u64>) -> Result<()> {
        const MOST: &str = "max_connections";
        // Telemetry's connections, and the one that watches the window.
        let own = telemetry::CONNECTIONS + 1;
        for case in cases {
            let Some(postgres) = &case.postgres else { continue };
            let clients = workload(&case.workload.kind)?.connections(&case.workload.options);
            let set = postgres.asked(MOST);
            // The server itself rejects a value that is not a number.
            let most = set.map_or(Some(DEFAULT_MAX_CONNECTIONS), |value| value.trim().parse().ok());
            let spot = Spot::Workload { name: case.workload.name.clone(), key: "clients".to_owned() };
            let needed = clients.saturating_add(own);
            if let Some(most) = most.filter(|most| needed > *most) {
                let spot = set.map_or(spot, |value| Spot::SettingValue(MOST.to_owned(), value.to_owned()));
                let message =
                    format!("{MOST} = {most} is less than the workload's {clients} and pgstrata's {own} connections");
                self.refuse(spot, message, Some(format!("set {MOST} = {needed}, or use fewer clients")));
            } else if let Some(files) = files.filter(|files| clients.saturating_add(FILES_OF_PGBENCH) > *files)
                && case.guest.as_deref() == guest
            {
                let message = format!("pgbench cannot open {clients} connections: the limit of open files is {files}");
                let help = "raise it: ulimit -Hn, LimitNOFILE of systemd; or use fewer clients";
                self.refuse(spot, message, Some(help.to_owned()));
            }
        }
        Ok(())
    }

    /// Rejects stacks to be aged with snapshots that have none.
    fn snapshots(&mut self, cases: &[CaseSpec]) {
        for case in cases {
            let Some(key) = ageing::asks_for_snapshots(&case.age) else { continue };
            let Some(why) = snapshots::lacking(&case.stack) else { continue };
            self.age(case, key, why, &format!("{}; remove `{key}` from `age`", snapshots::WHO_HAS));
        }
    }

    /// Rejects stacks where writing unchanged pages back would write nothing.
    fn same_bytes(&mut self, cases: &[CaseSpec]) {
        for case in cases {
            let Some(key) = ageing::asks_for_same_bytes(&case.age) else { continue };
            let Some(why) = same_bytes::skipped(&case.stack) else { continue };
            self.age(case, key, why, same_bytes::INSTEAD);
        }
    }

    fn age(&mut self, case: &CaseSpec, key: &str, message: String, help: &str) {
        let spot = Spot::Age { stack: case.stack.name.clone(), key: key.to_owned() };
        self.refuse(spot, message, Some(help.to_owned()));
    }

    /// Adds a refusal, once.
    fn refuse(&mut self, spot: Spot, message: String, help: Option<String>) {
        let refusal = MachineRefusal { spot, message, help };
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }
}

fn refusal(install: &Installation, names: &[String], setting: &RefusedSetting) -> MachineRefusal {
    let (name, version) = (&setting.name, short(&install.version));
    let Some(value) = &setting.value else {
        return MachineRefusal {
            spot: Spot::Setting(name.clone()),
            message: format!("PostgreSQL {version} has no setting `{name}`"),
            help: did_you_mean(name, names.iter().map(String::as_str)),
        };
    };
    let words = setting.hint.as_deref().and_then(|hint| hint.strip_prefix("Available values: "));
    let words: Vec<&str> = words.map(|words| words.trim_end_matches('.').split(", ").collect()).unwrap_or_default();
    let hint = setting.hint.clone().unwrap_or_default();
    let help = match did_you_mean(value, words) {
        Some(question) => Some(format!("{question} {hint}")),
        None => setting.hint.clone(),
    };
    MachineRefusal {
        spot: Spot::SettingValue(name.clone(), value.clone()),
        message: format!("PostgreSQL {version} refuses `{name}`: {}", setting.message),
        help,
    }
}

/// Rejects places that the server's user cannot enter: initdb would fail there in every trial.
///
/// # Errors
/// With the folder that is closed, and the remedy.
pub fn places(host: &Host, cases: &[CaseSpec], state: &Path) -> Result<()> {
    if !users::is_root() || cases.iter().all(|case| case.postgres.is_none()) {
        return Ok(());
    }
    let user = users::server_user(host)?;
    let nodes = cases.iter().flat_map(|case| &case.stack.nodes);
    let named = nodes.filter(|node| node.layer == DIRECTORY).filter_map(|node| node.options.text(DIRECTORY));
    let folders = named.map(|folder| (Path::new(folder), "the folder of a stack", "name another folder in the plan"));
    let state = (state, "the folder for ledgers and templates", "choose another with --state DIR");
    for (folder, what, instead) in std::iter::once(state).chain(folders) {
        if let Some(closed) = paths::closed_to(folder, &user) {
            // Nobody shall open these for a benchmark.
            let is_private = ["/root", "/home"].iter().any(|home| closed.starts_with(home));
            let (user, folder, closed) = (&user.name, folder.display(), closed.display());
            let message = format!(
                "`{user}`, as whom PostgreSQL runs, cannot enter {what}, {folder}: {closed} is closed to that user"
            );
            let open = if is_private { String::new() } else { format!(", or: chmod a+x {closed}") };
            return Err(Error::host(message).hint(format!("{instead}{open}")));
        }
    }
    Ok(())
}

/// The version without the packager's remark.
pub fn short(version: &str) -> &str {
    version.split_whitespace().next().unwrap_or(version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::case::{PostgresSpec, WorkloadSpec};
    use crate::record::options::{OptionValue, Options};
    use std::path::Path;

    #[test]
    fn a_refused_value_suggests_the_nearest_one_the_server_lists() {
        let install = Installation { bin: PathBuf::from("/x"), major: 18, version: "18.6 (Debian)".into() };
        let setting = RefusedSetting {
            name: "wal_sync_method".into(),
            value: Some("opendatasync".into()),
            message: "invalid value".into(),
            hint: Some("Available values: fsync, fdatasync, open_datasync.".into()),
        };
        let shown = refusal(&install, &[], &setting);
        assert_eq!(shown.message, "PostgreSQL 18.6 refuses `wal_sync_method`: invalid value");
        assert!(shown.help.unwrap().starts_with("did you mean `open_datasync`? Available values: fsync"));
        let unknown = RefusedSetting { name: "shard_buffers".into(), value: None, ..setting };
        let known = ["shared_buffers".to_owned(), "temp_buffers".to_owned()];
        assert_eq!(refusal(&install, &known, &unknown).help.as_deref(), Some("did you mean `shared_buffers`?"));
    }

    #[test]
    fn unavailable_io_uring_is_refused_once_for_all_its_cases() {
        let case = |method: &str| CaseSpec {
            id: method.into(),
            guest: None,
            age: Options::default(),
            stack: StackSpec::linear("s", Vec::new()),
            postgres: Some(PostgresSpec {
                bin: "auto".into(),
                build: None,
                settings: [("io_method".to_owned(), method.to_owned())].into(),
                initdb: Vec::new(),
            }),
            machine: Options::default(),
            workload: WorkloadSpec { name: "w".into(), kind: "pgbench".into(), options: Options::default() },
            axes: BTreeMap::new(),
        };
        let obstacle =
            || Some(io_uring::Obstacle { why: "kernel.io_uring_disabled is 2".into(), hint: "sysctl x".into() });
        let refusals = |cases: &[CaseSpec], found: fn() -> Option<io_uring::Obstacle>| {
            let mut checked = PlanCheck::default();
            checked.io_uring(cases, found);
            checked.refusals
        };
        let all = [case("worker"), case("io_uring"), case("io_uring")];
        let [refusal] = refusals(&all, obstacle).try_into().unwrap();
        assert_eq!(refusal.spot, Spot::SettingValue("io_method".into(), "io_uring".into()));
        assert_eq!(refusal.message, "`io_method = io_uring` cannot work here: kernel.io_uring_disabled is 2");
        assert_eq!(refusal.help.as_deref(), Some("sysctl x"));
        assert_eq!(refusals(&all, || None), []);
        assert_eq!(refusals(&all[..1], obstacle), []);
    }

    #[test]
    fn a_server_larger_than_memory_is_refused_once() {
        let refused = |value: &str| {
            let mut checked = PlanCheck::default();
            let cases = [1, 2].map(|_| crate::run::warnings::tests::case(1, &[("Shared_Buffers", value)]));
            checked.memory(&cases, Bytes(24 << 30));
            checked.refusals.into_iter().map(|refusal| (refusal.spot, refusal.message)).collect::<Vec<_>>()
        };
        let spot = |value: &str| Spot::SettingValue("shared_buffers".to_owned(), value.to_owned());
        let message = "`shared_buffers = 64GB` does not fit in this machine's memory, 24 GiB";
        assert_eq!(refused("64GB"), [(spot("64GB"), message.to_owned())]);
        assert_eq!(refused("8388608").len(), 1, "blocks of 8 kB: 64 GiB");
        assert_eq!(refused("128"), []);
    }

    #[test]
    fn excess_clients_and_standbys_that_never_connect_are_refused() {
        let refused = |clients, settings: &[(&str, &str)]| {
            let mut checked = PlanCheck::default();
            let cases = [1, 2].map(|_| crate::run::warnings::tests::case(clients, settings));
            checked.clients(&cases, None, Some(1000)).unwrap();
            checked.standbys(&cases);
            let shown = |refusal: &MachineRefusal| format!("{}; {}", refusal.message, refusal.help.clone().unwrap());
            (checked.refusals.iter().map(shown).collect::<Vec<_>>().join("\n"), checked.refusals)
        };
        let at = |refusals: &[MachineRefusal]| refusals.iter().map(|refusal| refusal.spot.clone()).collect::<Vec<_>>();
        let (message, refusals) = refused(98, &[]);
        assert!(
            message.contains("workload's 98 and pgstrata's 3 connections") && message.contains("max_connections = 101"),
            "{message}"
        );
        assert_eq!(at(&refusals), [Spot::Workload { name: "w".into(), key: "clients".into() }]);
        let (message, refusals) = refused(10, &[("Max_Connections", "11")]);
        assert!(message.contains("max_connections = 11 is less than"), "{message}");
        assert_eq!(at(&refusals), [Spot::SettingValue("max_connections".into(), "11".into())]);
        assert!(refused(1_000_000_000, &[]).0.contains("1000000000 and"));
        assert!(refused(998, &[("max_connections", "2000")]).0.contains("limit of open files is 1000"));
        for (clients, most) in [(97, "100"), (200, "203"), (200, "many"), (997, "2000")] {
            assert_eq!(refused(clients, &[("max_connections", most)]).0, "", "{clients} {most}");
        }
        let standby = |settings: &[(&str, &str)]| !refused(1, settings).0.is_empty();
        let names = ("synchronous_standby_names", "ANY 1 (*)");
        assert!(standby(&[names]) && standby(&[names, ("synchronous_commit", "remote_write")]));
        assert!(
            !standby(&[names, ("Synchronous_Commit", "LOCAL")]) && !standby(&[names, ("synchronous_commit", "off")])
        );
        assert!(!standby(&[("synchronous_standby_names", "")]));
    }

    #[test]
    fn rewriting_identical_pages_is_refused_where_zfs_skips_them() {
        let refused = |age: &[(&str, OptionValue)]| {
            let mut options = Options::default();
            let dedup = ("dedup".to_owned(), OptionValue::Text("on".to_owned()));
            options.set("properties", OptionValue::Map([dedup].into()));
            let layers = vec![("loop", Options::default()), ("zpool", Options::default()), ("zfs", options)];
            let mut case =
                CaseSpec { stack: StackSpec::linear("pool", layers), ..crate::run::warnings::tests::case(1, &[]) };
            age.iter().for_each(|(key, value)| case.age.set(key, value.clone()));
            let mut checked = PlanCheck::default();
            checked.same_bytes(&[case.clone(), case]);
            checked.refusals
        };
        let [refusal] = &refused(&[("rewrite", OptionValue::Integer(3))])[..] else {
            panic!("one refusal of two cases")
        };
        assert_eq!(refusal.spot, Spot::Age { stack: "pool".into(), key: "rewrite".into() });
        assert!(
            refusal.message.contains("dedup = \"on\"") && refusal.help.as_ref().unwrap().contains("dedup = \"off\"")
        );
        let control = ("filesystem", OptionValue::Text("fresh".to_owned()));
        assert!(refused(&[("rewrite", OptionValue::Integer(3)), control]).is_empty());
        assert!(refused(&[("rewrite", OptionValue::Integer(0))]).is_empty() && refused(&[]).is_empty());
    }

    #[test]
    fn a_plan_with_a_missing_server_reports_settings_as_unchecked() {
        let mut checked = PlanCheck::default();
        let values = Values::from([("fsync".to_owned(), BTreeSet::from(["off".to_owned()]))]);
        checked.server(&Host::this(), "/nowhere/bin", values).unwrap();
        assert!(checked.unchecked[0].contains("/nowhere/bin") && checked.servers.is_empty(), "{checked:?}");
        assert!(!Path::new("/nowhere/bin").exists());
    }
}
