//! Tests of whole plans against a catalogue of made-up entries that resemble the real ones.

mod bad_plans;
mod from_catalogue;
mod good_plans;
mod machine;
mod random_plans;

use super::{Catalogue, CatalogueEntry};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::{BaseKind, Take};

const fn spec(key: &'static str, kind: OptionKind, doc: &'static str) -> OptionSpec {
    OptionSpec::optional(key, kind).doc(doc)
}

const fn required(spec: OptionSpec) -> OptionSpec {
    OptionSpec { required: true, ..spec }
}

const fn or(spec: OptionSpec, default: &'static str) -> OptionSpec {
    OptionSpec { default: Some(default), ..spec }
}

const LOOP: &[OptionSpec] = &[
    required(spec("loop", OptionKind::Size, "Size of the image.")),
    or(spec("in", OptionKind::Path, "Folder of the image."), "the run's folder"),
    or(
        spec("sparse", OptionKind::Boolean, "Whether the image's blocks are taken when they are first written."),
        "false",
    ),
    or(spec("direct_io", OptionKind::Boolean, "Whether the loop device goes past the page cache."), "true"),
    QUEUE,
];
const QUEUE: OptionSpec = spec(
    "queue",
    OptionKind::Table(&[
        spec("scheduler", OptionKind::OrDefault(&OptionKind::Text), "Scheduler."),
        spec("nr_requests", OptionKind::OrDefault(&OptionKind::Integer { min: 4 }), "Requests."),
    ]),
    "Knobs of the device.",
);
const MACHINE: &[OptionSpec] = &[
    spec("vm.dirty_bytes", OptionKind::OrDefault(&OptionKind::Size), "Bytes."),
    spec("vm.dirty_ratio", OptionKind::OrDefault(&OptionKind::Integer { min: 1 }), "Percent."),
    spec("huge", OptionKind::OrDefault(&OptionKind::OneOf(&["always", "never"])), "Huge pages."),
    QUEUE,
];
const DISK: &[OptionSpec] = &[
    required(spec("disk", OptionKind::Path, "The device.")),
    spec("serial", OptionKind::Text, "Its serial number."),
    spec("wwn", OptionKind::Text, "Its world wide name."),
    or(spec("overwrite", OptionKind::Boolean, "Whether what is on it may be lost."), "false"),
];
const FILESYSTEM: &[OptionSpec] =
    &[spec("mkfs", OptionKind::TextList, "Arguments of mkfs."), spec("mount", OptionKind::TextList, "Mount options.")];
const MIRROR: &[OptionSpec] = &[required(spec("width", OptionKind::Integer { min: 2 }, "Number of copies."))];
const TMPFS: &[OptionSpec] = &[
    or(spec("size", OptionKind::Size, "The most it may take."), "half of memory"),
    spec("mount", OptionKind::TextList, "Mount options."),
];
const DIRECTORY: &[OptionSpec] = &[required(spec("directory", OptionKind::Path, "The folder."))];
const PGBENCH: &[OptionSpec] = &[
    or(spec("script", OptionKind::SqlOrList, "Built-in script or files."), "tpcb-like"),
    or(spec("scale", OptionKind::IntegerOrShare, "Size of the data."), "10"),
    or(spec("clients", OptionKind::Integer { min: 1 }, "Number of clients."), "1"),
    or(spec("jobs", OptionKind::Integer { min: 1 }, "Number of threads."), "1"),
    or(spec("mode", OptionKind::OneOf(&["simple", "extended", "prepared"]), "Query mode."), "simple"),
    spec("rate", OptionKind::Number, "Transactions a second."),
    spec("latency_limit", OptionKind::Span, "What is later is skipped; needs a rate."),
    or(spec("duration", OptionKind::Span, "Length of the measurement."), "60s"),
    or(spec("warmup", OptionKind::Span, "Length of the warm-up."), "10s"),
];

fn entry(name: &'static str, doc: &'static str, options: &'static [OptionSpec]) -> CatalogueEntry {
    CatalogueEntry { bases: Box::new(|_| vec![String::new()]), ..CatalogueEntry::new(name, doc, options) }
}

fn device(name: &'static str, doc: &'static str, options: &'static [OptionSpec]) -> CatalogueEntry {
    CatalogueEntry { offers: BaseKind::Device, ..entry(name, doc, options) }
}

fn on_device(name: &'static str, doc: &'static str, options: &'static [OptionSpec]) -> CatalogueEntry {
    CatalogueEntry { takes: &[Take::ONE_DEVICE], ..entry(name, doc, options) }
}

fn disk_check(options: &Options) -> Result<(), OptionProblem> {
    if options.text("serial").or(options.text("wwn")).is_none_or(|text| text == "...") {
        return Err(OptionProblem::at("disk", "a real disk needs its serial or wwn").help("lsblk -o SERIAL,WWN"));
    }
    Ok(())
}

const AGE: &[OptionSpec] = &[
    spec("rewrite", OptionKind::Integer { min: 0 }, "Times overwritten."),
    spec("fill", OptionKind::Integer { min: 0 }, "Percent."),
    spec("filesystem", OptionKind::OneOf(&["aged", "fresh"]), "Where it is measured."),
];

fn machine_check(options: &Options) -> Result<(), OptionProblem> {
    let set = |key: &str| options.get(key).is_some_and(|value| value.plain() != "default");
    match set("vm.dirty_bytes") && set("vm.dirty_ratio") {
        true => Err(OptionProblem::at("vm.dirty_ratio", "it excludes `vm.dirty_bytes`").help("leave one out")),
        false => Ok(()),
    }
}

fn pgbench_check(options: &Options) -> Result<(), OptionProblem> {
    if options.get("latency_limit").is_some() && options.get("rate").is_none() {
        return Err(OptionProblem::at("latency_limit", "means nothing without a rate").help("add rate = ..."));
    }
    match (options.integer("clients"), options.integer("jobs")) {
        (Some(clients), Some(jobs)) if clients < jobs => {
            Err(OptionProblem::at("clients", format!("{clients} clients cannot fill {jobs} jobs")))
        }
        _ => Ok(()),
    }
}

pub(super) fn catalogue() -> Catalogue {
    Catalogue {
        layers: vec![
            device("loop", "An image file as a block device.", LOOP),
            CatalogueEntry { check: Box::new(disk_check), ..device("disk", "A real disk.", DISK) },
            CatalogueEntry { takes: &[Take::ONE_DEVICE], ..device("mirror", "Copies on several devices.", MIRROR) },
            on_device("ext4", "The fourth extended filesystem.", FILESYSTEM),
            on_device("xfs", "XFS.", FILESYSTEM),
            on_device("btrfs", "Btrfs.", FILESYSTEM),
            entry("tmpfs", "Memory that swaps.", TMPFS),
            entry("directory", "What is there.", DIRECTORY),
        ],
        workloads: vec![
            CatalogueEntry {
                check: Box::new(pgbench_check),
                needs_server: true,
                ..entry("pgbench", "PostgreSQL's own driver.", PGBENCH)
            },
            entry("sync", "One write and one sync at a time.", &[]),
        ],
        machine: Some(CatalogueEntry { check: Box::new(machine_check), ..entry("machine", "Knobs.", MACHINE) }),
        age: Some(entry("age", "Ages the stack.", AGE)),
        age_of_clusters: &["rewrite"],
    }
}

/// The plan of the manual, which most tests modify.
pub(super) const MANUAL: &str = r#"name = "which-filesystem"
seed = 42
blocks = 3
baseline = "ext4"

[stack.ext4]
device = { loop = "6GiB", in = "/var/lib/pgstrata" }
filesystem = { ext4 = { mkfs = ["-E", "lazy_itable_init=0,lazy_journal_init=0"], mount = ["noatime"] } }

[stack.xfs-disk]
device = { disk = "/dev/disk/by-id/nvme-1", serial = "S5GX" }
filesystem = { xfs = { mount = ["noatime", "discard"] } }
wal = "ext4"

[stack.tmp]
filesystem = { tmpfs = "4GiB" }

[stack.here]
directory = "/srv/pg"

[postgres]
settings = { shared_buffers = "512MB", wal_sync_method = ["fdatasync", "open_datasync"], fsync = true }

[workload.tpcb]
pgbench = { script = "tpcb-like", scale = "50% of RAM", clients = [1, 4, 16], duration = "60s", warmup = "10s" }

[workload.sync]
sync = {}

[[exclude]]
stack = "tmp"
wal_sync_method = "open_datasync"
"#;

/// A small plan with `extra` inserted before its workload.
pub(super) fn small(extra: &str) -> String {
    format!(
        "name = \"p\"\n[stack.t]\nfilesystem = \"tmpfs\"\n{extra}\n[workload.w]\npgbench = {{ clients = [1, 2] }}\n"
    )
}
