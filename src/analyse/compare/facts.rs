//! Facts about a system by dotted key, the same keys for every source, and the facts that differ between sides.

use crate::analyse::compare::findings::FactDifference;
use crate::analyse::compare::side::{Medium, Side};
use crate::analyse::findings::names;
use crate::record::built::StackFacts;
use crate::record::claim::Claim;
use crate::record::facts::{DeviceFacts, HostFacts, MountFacts, ServerFacts, WriteCache};
use crate::record::stack::BaseName;
use crate::record::{durability, promise};
use crate::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Facts by key; a fact has several values if a side's trials found several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts(BTreeMap<String, BTreeSet<String>>);

/// Most values listed for one fact.
const MOST_VALUES: usize = 3;

impl Facts {
    /// Adds a fact; ignores an empty value.
    pub fn add(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let value: String = value.into();
        let value = value.trim();
        if !value.is_empty() {
            self.0.entry(key.into()).or_default().insert(value.to_owned());
        }
    }

    /// Adds what a trial ran on: storage of data and WAL, kernel settings, server.
    pub fn built(
        &mut self,
        stack: Option<&StackFacts>,
        knobs: &BTreeMap<String, String>,
        server: Option<&ServerFacts>,
    ) {
        if let Some(stack) = stack {
            for (prefix, base) in [("stack", &stack.data), ("wal_stack", &stack.wal)] {
                base.iter().for_each(|base| self.stack(prefix, stack, base));
            }
        }
        knobs.iter().for_each(|(name, value)| self.add(format!("knob.{name}"), value));
        server.into_iter().for_each(|server| self.server(server));
    }

    fn add_some(&mut self, key: impl Into<String>, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.add(key, value.to_string());
        }
    }

    pub fn host(&mut self, host: &HostFacts) {
        self.kernel(&host.kernel);
        self.add_some("host.distribution", host.distribution.as_ref());
        self.add_some("host.cpu", host.cpu_model.as_ref());
        self.add("host.cpus", host.cpus.to_string());
        self.add("host.memory", Bytes(host.memory_bytes).to_string());
        self.add_some("host.machine", host.machine.as_ref());
        self.add_some("host.governor", host.governor.as_ref());
        self.add_some("host.clocksource", host.clocksource.as_ref());
    }

    /// Adds the kernel; the system is always Linux because pgstrata measures nothing else.
    pub fn kernel(&mut self, kernel: &str) {
        self.add("host.kernel", kernel);
        self.add("host.system", format!("Linux {kernel}"));
    }

    /// Adds a mount; `prefix` is `stack` or `wal_stack`. The data's mount options use the shelf's key.
    pub fn mount(&mut self, prefix: &str, mount: &MountFacts) {
        self.add(format!("{prefix}.filesystem"), &mount.fstype);
        let mut options: BTreeSet<&str> = mount.options.iter().map(String::as_str).collect();
        options.extend(mount.super_options.iter().map(String::as_str));
        let key = if prefix == "stack" { "mount.options".to_owned() } else { format!("{prefix}.mount.options") };
        self.add(key, options.into_iter().collect::<Vec<_>>().join(","));
        for (name, value) in &mount.zfs {
            let key = if prefix == "stack" { format!("zfs.{name}") } else { format!("{prefix}.zfs.{name}") };
            self.add(key, value);
        }
    }

    /// Adds the devices below a mount.
    pub fn devices(&mut self, prefix: &str, devices: &[DeviceFacts]) {
        for device in devices {
            self.device(prefix, device.depth, device);
        }
    }

    fn device(&mut self, prefix: &str, depth: u32, device: &DeviceFacts) {
        let key = |what: &str| format!("{prefix}.device{depth}.{what}");
        // The number of a loop device differs between trials.
        let numbered = device.name.starts_with("loop");
        self.add(key("name"), if numbered { "loop" } else { &device.name });
        self.add_some(key("model"), device.model.as_ref());
        self.add_some(key("size"), device.size_bytes.map(Bytes));
        self.add_some(key("rotational"), device.rotational);
        self.add_some(key("write_cache"), device.write_cache.map(WriteCache::word));
        self.add_some(key("fua"), device.fua);
        self.add_some(key("scheduler"), device.scheduler.as_ref());
        self.add_some(key("nr_requests"), device.nr_requests);
        self.add_some(key("read_ahead_kb"), device.read_ahead_kb);
        self.add_some(key("logical_block"), device.logical_block_bytes);
        self.add_some(key("physical_block"), device.physical_block_bytes);
        self.add_some(key("direct_io"), device.direct_io);
    }

    /// Adds facts read back from the storage of data or WAL.
    pub fn stack(&mut self, prefix: &str, stack: &StackFacts, base: &BaseName) {
        if let Some(mount) = stack.mount_of(Some(base)) {
            self.mount(prefix, mount);
        }
        for below in stack.devices_below(Some(base)) {
            self.device(prefix, below.depth, below.device);
        }
        for (_, _, node) in stack.way_down(Some(base)) {
            let Some(layer) = &node.layer else { continue };
            for (name, value) in node.details.iter().filter(|(name, _)| !is_of_one_instance(name)) {
                self.add(format!("{prefix}.{layer}.{}", name.replace(' ', "_").to_lowercase()), value);
            }
        }
    }

    pub fn server(&mut self, server: &ServerFacts) {
        self.add("postgresql.version", &server.version);
        for (name, value) in server.settings.iter().chain(&server.key_settings) {
            if !is_of_place(name) {
                self.add(format!("postgresql.{name}"), value);
            }
        }
        // Same form that people use for their own builds.
        let block = server.key_settings.get("wal_block_size").and_then(|bytes| bytes.parse::<u64>().ok());
        self.add_some("postgresql.wal_block", block.map(|bytes| format!("{} kB", bytes / 1024)));
    }

    /// Joins the values of each key.
    pub fn texts(self) -> BTreeMap<String, String> {
        let values = self.0.into_iter();
        values.map(|(key, values)| (key, names::first(values.iter(), MOST_VALUES, " | ", " | "))).collect()
    }
}

/// True for details that are unique to each filesystem, or say where it is rather than what it is.
fn is_of_one_instance(detail: &str) -> bool {
    const WORDS: &str =
        "folder,devices end,uuid,fsid,hash,seed,time,free,allocated,created,checked,volume name,label,lifetime";
    let detail = detail.to_lowercase();
    matches!(detail.as_str(), "image" | "device") || WORDS.split(',').any(|word| detail.contains(word))
}

/// Storage of files on this filesystem and these devices.
pub fn medium(mount: Option<&MountFacts>, devices: &[DeviceFacts]) -> Medium {
    let promises =
        mount.map(promise::of_mount).into_iter().flatten().chain(devices.iter().flat_map(promise::of_device));
    match mount {
        _ if promises.into_iter().any(|promise| promise.claim == Claim::Volatile) => Medium::Memory,
        _ if !devices.is_empty() => Medium::Disk,
        Some(mount) => medium_of_filesystem(&mount.fstype),
        None => Medium::Unknown,
    }
}

/// Storage of files on a filesystem of this type; unknown for those stacked on another filesystem.
pub fn medium_of_filesystem(name: &str) -> Medium {
    const ON_DISK: [&str; 13] =
        ["btrfs", "ext2", "ext3", "ext4", "f2fs", "hammer2", "jfs", "ntfs", "reiserfs", "ufs", "xfs", "zfs", "apfs"];
    let name = name.trim().to_lowercase();
    let first = name.split([' ', ',', '(', '/']).next().unwrap_or_default();
    match first {
        first if durability::memory_filesystem(first).is_some() => Medium::Memory,
        first if ON_DISK.contains(&first) => Medium::Disk,
        _ => Medium::Unknown,
    }
}

/// Facts with different values on at least two sides; then facts that only some sides have, without a difference among
/// those.
pub fn differences(sides: &[Side]) -> (Vec<FactDifference>, Vec<FactDifference>) {
    let keys: BTreeSet<&String> = sides.iter().flat_map(|side| side.facts.keys()).collect();
    let (mut differ, mut partly_known) = (Vec::new(), Vec::new());
    for key in keys {
        let values: Vec<Option<String>> = sides.iter().map(|side| side.facts.get(key).cloned()).collect();
        let distinct = values.iter().flatten().collect::<BTreeSet<_>>().len();
        // A side that did not use a tool has no version of it.
        let is_partly_known = values.contains(&None) && !key.starts_with("tool.");
        let fact = FactDifference { key: key.clone(), values };
        if distinct > 1 { differ.push(fact) } else { partly_known.extend(Some(fact).filter(|_| is_partly_known)) }
    }
    (differ, partly_known)
}

/// Server settings that describe location rather than behaviour, separated by blanks.
const PLACES: &str = "application_name client_encoding cluster_name config_file data_directory DateStyle \
    default_text_search_config dynamic_shared_memory_type external_pid_file hba_file ident_file lc_messages \
    lc_monetary lc_numeric lc_time listen_addresses log_destination log_line_prefix log_timezone logging_collector port \
    TimeZone transaction_deferrable transaction_isolation transaction_read_only unix_socket_directories \
    unix_socket_permissions";

/// True if a setting describes where a server is rather than how it behaves.
pub fn is_of_place(setting: &str) -> bool {
    PLACES.split_whitespace().any(|place| place == setting)
}
