//! Text of a first plan.

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

/// A plan that takes about ten to twenty minutes, with comments.
pub(super) fn plan(question: &Question, place: &StackPlace) -> String {
    let mut text = format!(
        "# {}: {}.\n\
         # Check it with `pgstrata plan`, run it with `pgstrata run`; every key: pgstrata plan --example --all\n\
         name = \"{}\"\n\
         blocks = {{ at_least = 3, at_most = 5 }}  # every case runs once per block; the run ends when all pairs are decided\n\
         baseline = {}  # ratios are relative to this case\n",
        question.name, question.doc, question.name, question.baseline
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
            let device = device(place);
            for (name, filesystem) in question.stacks {
                text.push_str(&format!("\n[stack.{name}]\n{device}\nfilesystem = {filesystem}\n"));
            }
        }
    }
    text.push_str(&format!(
        "\n[postgres]\nbin = \"auto\"      # the newest installed; `pgstrata plan` shows which\n{}\
         \n# pgbench's TPC-B-like transaction: every commit writes. Measured over two full checkpoint cycles.\n\
         [workload.tpcb]\npgbench = {{ scale = 20, clients = {}, cycles = 2, warmup = \"30s\" }}\n",
        question.settings, question.clients
    ));
    text
}

/// The lines of a stack that name its device.
fn device(place: &StackPlace) -> String {
    match place {
        StackPlace::Disk { path, key, value } => format!(
            "# ALL DATA ON THIS DISK ARE LOST. A disk that holds data is refused; with `overwrite = true` the run asks first.\n\
             device = {{ disk = {}, {key} = {} }}",
            quoted(path),
            quoted(value)
        ),
        _ => "# An image file in /var/lib/pgstrata; in = \"/FOLDER\" puts it on another disk.\n\
              device = { loop = \"4GiB\" }"
            .to_owned(),
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
