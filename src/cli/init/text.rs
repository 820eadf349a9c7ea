//! Text of a first plan.

use crate::units::Bytes;
use crate::workload::pgbench::BYTES_PER_SCALE;

/// Storage for its stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum StackPlace {
    /// Image files in the default folder.
    Loop,
    /// A real disk, with the key that identifies it.
    Disk { path: String, key: &'static str, value: String },
    /// A folder; nothing is formatted.
    Folder(String),
}

/// A question that a first plan can answer.
#[derive(Debug)]
pub(super) struct Question {
    pub name: &'static str,
    pub doc: &'static str,
    /// True if it needs a device to format.
    pub formats: bool,
    /// Stacks by name with their filesystem, if a device is formatted.
    stacks: &'static [(&'static str, &'static str)],
    /// The baseline in the plan's syntax.
    baseline: &'static str,
    /// Further lines of `[postgres]`.
    settings: &'static str,
    clients: &'static str,
}

/// A question about ext4 with 8 clients that needs no device.
const fn question(name: &'static str, doc: &'static str, baseline: &'static str) -> Question {
    let stacks = &[("ext4", "\"ext4\"")];
    Question { name, doc, formats: false, stacks, baseline, settings: "", clients: "8" }
}

/// All questions, in the order offered.
pub(super) const QUESTIONS: [Question; 5] = [
    Question {
        formats: true,
        stacks: &[("ext4", "\"ext4\""), ("xfs", "\"xfs\"")],
        ..question("filesystem", "ext4 or xfs, both with mkfs defaults", "\"ext4\"")
    },
    Question {
        formats: true,
        stacks: &[("ext4", "{ ext4 = { mount = [[\"relatime\"], [\"noatime\"], [\"lazytime\"]] } }")],
        ..question("mount-options", "whether noatime and lazytime matter on ext4", "{ \"ext4.mount\" = \"relatime\" }")
    },
    Question {
        settings: "settings = { wal_sync_method = [\"fdatasync\", \"open_datasync\"] }\n",
        ..question(
            "wal-sync-method",
            "which wal_sync_method: fdatasync or open_datasync",
            "{ wal_sync_method = \"fdatasync\" }",
        )
    },
    Question {
        settings: "settings = { wal_compression = [\"off\", \"on\"] }\n",
        ..question(
            "wal-compression",
            "whether compressing full-page images in WAL pays",
            "{ wal_compression = \"off\" }",
        )
    },
    Question {
        clients: "[1, 4, 16]",
        ..question("clients", "how the commit rate scales with the number of clients", "{ clients = 1 }")
    },
];

/// A database that is read from memory alone.
pub(super) const SMALL: Bytes = Bytes(300 << 20);
/// Room that an image has beside the data: for growth, WAL and the filesystem.
const ROOM: u64 = 3 << 30;
/// Blocks of a run whose time is not limited, and the fewest and most of others.
pub(super) const USUAL_BLOCKS: u32 = 5;
pub(super) const FEWEST_BLOCKS: u32 = 3;
pub(super) const MOST_BLOCKS: u64 = 20;

/// How large a plan is.
pub(super) struct FirstPlanSize {
    pub data: Bytes,
    /// That of this machine.
    pub memory: Bytes,
    /// The most.
    pub blocks: u32,
}

impl FirstPlanSize {
    fn scale(&self) -> u64 {
        (self.data.0 / BYTES_PER_SCALE).max(1)
    }

    /// Size of an image, GiB: data may fill four fifths of it.
    fn image_gib(&self) -> u64 {
        (self.data.0.saturating_mul(5) / 4).saturating_add(ROOM).div_ceil(1 << 30)
    }
}

/// The options by which `plan` and `run` put a shipped plan's images there.
pub(super) fn on(place: &StackPlace) -> String {
    match place {
        StackPlace::Loop => String::new(),
        StackPlace::Disk { path, .. } | StackPlace::Folder(path) => format!(" --on {path}"),
    }
}

/// A plan with comments; a small one takes about ten to twenty minutes.
pub(super) fn plan(question: &Question, place: &StackPlace, size: &FirstPlanSize) -> String {
    let mut text = format!(
        "# {}: {}.\n\
         # Check it with `pgstrata plan`, run it with `pgstrata run`; every key: pgstrata plan --example --all\n\
         name = \"{}\"\n\
         blocks = {{ at_least = 3, at_most = {} }}  # every case runs once per block; the run ends when all pairs are decided\n\
         baseline = {}  # ratios are relative to this case\n",
        question.name, question.doc, question.name, size.blocks, question.baseline
    );
    if *place == StackPlace::Loop {
        text.push_str(
            "durability = \"quick\"  # also find out what a power cut would cost each stack, before the first trial\n\
             # guest = [\"bookworm\", \"trixie\"]  # run in virtual machines with the kernels of these suites: pgstrata guest\n",
        );
    }
    match place {
        StackPlace::Folder(folder) => {
            text.push_str("\n# A folder on an existing filesystem: nothing is formatted, no root needed.\n");
            text.push_str(&format!("[stack.here]\ndirectory = {}\n", quoted(folder)));
        }
        _ => {
            let device = device(place, size.image_gib());
            for (name, filesystem) in question.stacks {
                text.push_str(&format!("\n[stack.{name}]\n{device}\nfilesystem = {filesystem}\n"));
            }
        }
    }
    let from_memory = size.data < size.memory;
    text.push_str(&format!(
        "\n[postgres]\nbin = \"auto\"      # the newest installed; `pgstrata plan` shows which\n{}\
         \n# pgbench's TPC-B-like transaction: every commit writes. Measured over two full checkpoint cycles.\n\
         # The database has {}: {}.\n\
         [workload.tpcb]\npgbench = {{ scale = {}, clients = {}, cycles = 2, warmup = \"30s\" }}\n",
        question.settings,
        size.data,
        if from_memory { "read from this machine's memory" } else { "more than this machine's memory" },
        size.scale(),
        question.clients
    ));
    text
}

/// The lines of a stack that name its device.
fn device(place: &StackPlace, image_gib: u64) -> String {
    match place {
        StackPlace::Disk { path, key, value } => format!(
            "# ALL DATA ON THIS DISK ARE LOST. A disk that holds data is refused; with `overwrite = true` the run asks first.\n\
             device = {{ disk = {}, {key} = {} }}",
            quoted(path),
            quoted(value)
        ),
        _ => format!(
            "# An image file in /var/lib/pgstrata; in = \"/FOLDER\" puts it on another disk.\n\
             device = {{ loop = \"{image_gib}GiB\" }}"
        ),
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
