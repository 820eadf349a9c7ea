//! Complete builds of a fake tarball: its `configure` and Makefile produce scripts that answer like PostgreSQL.

use super::*;
use crate::error::Kind;
use crate::host::{paths, users};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Takes the sizes from its arguments, as PostgreSQL's does.
const CONFIGURE: &str = r#"#!/bin/sh
prefix= wal=8
for argument; do
    case $argument in
        --prefix=*) prefix=${argument#*=} ;;
        --with-wal-blocksize=*) wal=${argument#*=} ;;
        --break-configure) echo 'configure: error: no acceptable C compiler'; exit 1 ;;
    esac
done
[ -z "$CFLAGS" ] || exit 9
echo "checking for C compiler"
printf 'prefix=%s\nwal=%s\nuid=%s\n' "$prefix" "$wal" "$(id -u)" > settings
"#;

const MAKEFILE: &str = r#"include ../settings
all:
	@test ! -e slow || sleep 60
	@test ! -e broken || { echo 'x.c:3: fatal error: y.h: no such file'; exit 1; }
	@echo 'gcc -c -o x.o x.c'
install:
	mkdir -p $(DESTDIR)$(prefix)/bin
	sed 's/WAL/$(wal)/; s/BUILDER/$(uid)/' postgres.in > $(DESTDIR)$(prefix)/bin/postgres
	chmod 755 $(DESTDIR)$(prefix)/bin/postgres
"#;

const POSTGRES: &str = r#"#!/bin/sh
# built by BUILDER
case "$1 $2" in
    '--version '*) echo 'postgres (PostgreSQL) 15.99' ;;
    '-C wal_block_size') echo $((WAL * 1024)) ;;
    '-C block_size') echo 8192 ;;
    '-C segment_size') echo 1GB ;;
esac
"#;

struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    fn new() -> Workshop {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Workshop { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn shelf(&self) -> Shelf {
        Shelf::at(&self.path("builds"))
    }

    /// A source tree with these additional files.
    fn tree(&self, more: &[&str]) -> PathBuf {
        let tree = self.path("postgresql-15.99");
        std::fs::create_dir_all(tree.join("src")).unwrap();
        std::fs::write(tree.join("configure"), CONFIGURE).unwrap();
        std::fs::set_permissions(tree.join("configure"), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(tree.join("src/Makefile"), MAKEFILE).unwrap();
        std::fs::write(tree.join("src/postgres.in"), POSTGRES).unwrap();
        more.iter().for_each(|name| std::fs::write(tree.join("src").join(name), "").unwrap());
        tree
    }

    fn tarball(&self, more: &[&str]) -> BuildSpec {
        let (tree, file) = (self.tree(more), self.path("pg.tar.gz"));
        run("tar", &["-czf", text(&file), "-C", text(self.folder.path()), text(Path::new(tree.file_name().unwrap()))]);
        BuildSpec { source: Some(text(&file).to_owned()), wal_blocksize: Some(16), ..BuildSpec::default() }
    }

    fn build(&self, spec: &BuildSpec, interrupt: &Interrupt) -> (Result<BuiltPostgres>, Vec<String>) {
        let mut lines = Vec::new();
        let built = build(&Host::this(), &self.shelf(), spec, interrupt, &mut |progress| match progress {
            BuildProgress::Begins(step) => lines.push(step.to_owned()),
            BuildProgress::At(line) => lines.push(format!("  {line}")),
            BuildProgress::Note(note) => lines.push(format!("note: {note}")),
            BuildProgress::Done { .. } => {}
        });
        (built, lines)
    }

    /// Everything on the shelf except its lock and log.
    fn lies_there(&self) -> Vec<String> {
        let listed = folders::list(self.shelf().path()).unwrap_or_default();
        let names = listed.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
        names.filter(|name| name != ".lock" && name != "build.log").collect()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn run(program: &str, args: &[&str]) {
    assert!(Command::new(program).args(args).status().unwrap().success(), "{program} {args:?}");
}

/// Prints the reason if builds cannot be tested here.
fn can_build(spec: &BuildSpec) -> bool {
    let lacking = needs::lacking(&Host::this(), spec);
    lacking.first().inspect(|(what, _)| println!("skipped: {what}")).is_none()
}

#[test]
fn a_build_is_made_once_as_an_unprivileged_user() {
    let shop = Workshop::new();
    let spec = shop.tarball(&[]);
    if !can_build(&spec) {
        return;
    }
    let (built, lines) = shop.build(&spec, &Interrupt::never());
    let built = built.unwrap();
    assert!(lines.contains(&"  1 files compiled".to_owned()), "{lines:?}");
    let program = std::fs::read_to_string(built.bin.join("postgres")).unwrap();
    let builder = users::server_user(&Host::this()).unwrap().uid;
    assert!(builder != 0 && program.contains(&format!("# built by {builder}\n")), "{program}");
    assert!(built.made_from.contains("pg.tar.gz, SHA-256 "), "{built:?}");
    assert_eq!(look(&Host::this(), &shop.shelf(), &spec).unwrap(), BuildState::Built(built.clone()));
    let (again, lines) = shop.build(&spec, &Interrupt::never());
    assert_eq!((again.unwrap(), lines), (built.clone(), Vec::new()));
    // Another option gives another build; both stay.
    let other = BuildSpec { wal_blocksize: Some(64), ..spec.clone() };
    assert_eq!(look(&Host::this(), &shop.shelf(), &other).unwrap(), BuildState::Lacking(Vec::new()));
    assert_ne!(shop.build(&other, &Interrupt::never()).0.unwrap().bin, built.bin);
    assert_eq!(shop.lies_there().len(), 2);
    let all = shop.shelf().all().unwrap();
    assert!(all.iter().all(|(_, kept, bytes)| kept.version == "15.99" && *bytes > 0), "{all:?}");
    // So does another tarball under the same name.
    assert_eq!(look(&Host::this(), &shop.shelf(), &shop.tarball(&["more"])).unwrap(), BuildState::Lacking(Vec::new()));
    shop.shelf().remove(&all[0].0).unwrap();
    assert!(shop.shelf().remove("../..").unwrap_err().to_string().contains("there is no build"));
    shop.shelf().remove_all().unwrap();
    assert_eq!(shop.lies_there(), Vec::<String>::new());
}

#[test]
fn a_failed_build_leaves_only_its_log_and_states_why() {
    let shop = Workshop::new();
    let configured = |arguments: &[&str]| {
        let configure = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        BuildSpec { configure, ..shop.tarball(&[]) }
    };
    if !can_build(&configured(&[])) {
        return;
    }
    let cases = [
        (configured(&["--break-configure"]), Kind::Tool, "configure: no acceptable C compiler"),
        (shop.tarball(&["broken"]), Kind::Tool, "x.c:3: fatal error: y.h"),
    ];
    for (spec, kind, words) in cases {
        let error = shop.build(&spec, &Interrupt::never()).0.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.chain().contains(words), "{}", error.chain());
        assert_eq!(shop.lies_there(), Vec::<String>::new());
    }
    std::fs::remove_file(shop.path("postgresql-15.99/src/broken")).unwrap();
    // A requested value is not in force: this server always has pages of 8 kB.
    let error = shop.build(&BuildSpec { blocksize: Some(4), ..shop.tarball(&[]) }, &Interrupt::never()).0.unwrap_err();
    assert!(error.to_string().contains("block_size is 8192, asked for 4096"), "{error}");
    let patch = shop.path("a.patch");
    std::fs::write(&patch, "--- a/src/x\n+++ b/src/x\n@@ -1 +1 @@\n-a\n+b\n").unwrap();
    let patched = BuildSpec { patches: vec![text(&patch).to_owned()], ..shop.tarball(&[]) };
    assert!(shop.build(&patched, &Interrupt::never()).0.unwrap_err().chain().contains("apply the patch"));
    std::fs::write(shop.path("pg.tar.gz"), "no tarball").unwrap();
    let nothing = BuildSpec { source: Some(text(&shop.path("pg.tar.gz")).to_owned()), ..BuildSpec::default() };
    assert_eq!(shop.build(&nothing, &Interrupt::never()).0.unwrap_err().kind(), Kind::User);
    assert_eq!(shop.lies_there(), Vec::<String>::new());
}

#[test]
fn an_interrupted_or_killed_build_leaves_nothing_that_counts() {
    let shop = Workshop::new();
    let spec = shop.tarball(&["slow"]);
    if !can_build(&spec) {
        return;
    }
    let interrupt = Interrupt::never();
    let ended = std::thread::scope(|scope| {
        let building = scope.spawn(|| shop.build(&spec, &interrupt).0);
        while !paths::is_file(&shop.shelf().path().join(".part/tree/settings")) {
            std::thread::sleep(Duration::from_millis(10));
        }
        interrupt.raise();
        building.join().unwrap()
    });
    assert_eq!(ended.unwrap_err().kind(), Kind::Interrupted);
    assert_eq!(shop.lies_there(), Vec::<String>::new());
    // Leaves the state of a build killed by SIGKILL.
    let half = shop.shelf().path().join(".part/tree");
    std::fs::create_dir_all(half.join("src")).unwrap();
    std::fs::remove_file(shop.path("postgresql-15.99/src/slow")).unwrap();
    let spec = shop.tarball(&[]);
    let built = shop.build(&spec, &Interrupt::never()).0.unwrap();
    assert!(!half.exists());
    // A folder without its metadata file is not a build.
    std::fs::remove_file(built.bin.parent().unwrap().join(shelf::NOTE)).unwrap();
    assert_eq!(look(&Host::this(), &shop.shelf(), &spec).unwrap(), BuildState::Lacking(Vec::new()));
    assert_eq!(shop.build(&spec, &Interrupt::never()).0.unwrap(), built);
}

#[test]
fn a_checkout_is_built_at_its_commit() {
    let shop = Workshop::new();
    let tree = shop.tree(&[]);
    let spec = BuildSpec { source: Some(text(&tree).to_owned()), ..BuildSpec::default() };
    if !can_build(&spec) {
        return;
    }
    let git = |args: &[&str]| {
        let of = ["-C", text(&tree), "-c", "user.name=x", "-c", "user.email=x@x", "-c", "safe.directory=*"];
        run("git", &[of.as_slice(), args].concat());
    };
    assert!(shop.build(&spec, &Interrupt::never()).0.unwrap_err().to_string().contains("git"), "no commit yet");
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    std::fs::write(tree.join("src/Makefile"), "nonsense").unwrap();
    let (built, lines) = shop.build(&spec, &Interrupt::never());
    let built = built.unwrap();
    assert!(lines.iter().any(|line| line.starts_with("note: ") && line.contains("uncommitted changes")), "{lines:?}");
    assert!(built.made_from.starts_with("commit "), "{built:?}");
    git(&["commit", "-q", "-a", "-m", "second"]);
    assert_eq!(look(&Host::this(), &shop.shelf(), &spec).unwrap(), BuildState::Lacking(Vec::new()));
}
