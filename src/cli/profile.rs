//! `pgstrata profile`: what a running server asks of its storage.

use super::out;
use crate::cluster::install;
use crate::error::{Context, Error, Result};
use crate::foreign;
use crate::host::command::Command;
use crate::host::{Host, files, folders, machine};
use crate::profile::{self, figures, load, reading, text, waldump};
use crate::record::profile::Profile;
use crate::units::Bytes;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variables of libpq that name a server.
const OF_SERVER: [&str; 3] = ["PGHOST", "PGHOSTADDR", "PGSERVICE"];

/// Below this rate a server's commits say little, 1/s.
const IDLE: f64 = 1.0;

/// Measure what a running PostgreSQL server asks of its storage, read-only
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  pgstrata profile --dsn 'host=db1 user=monitor dbname=shop'    connect, read for ten minutes, write profile.toml
  pgstrata profile --script --minutes 10 > p.sql                where no connection is allowed, run this script there:
  pgstrata profile --from out                                   psql -X -f p.sql > out; then read its output here
  pgstrata profile --from profile.toml --wal /srv/archive       add the distribution over commits, from WAL segments
  pgstrata profile show profile.toml                            what the server asks of its storage, where it waits
  pgstrata profile load profile.toml > plan.toml                a plan: two stacks under a load of that shape

One psql session reads counters twice and samples the sessions once a second in between. It is read only, gets no transaction \
id, writes no file, and needs a role with pg_monitor. The file has sums alone: no names of tables, databases, users or hosts, no \
SQL. What could not be seen is listed with the reason. --wal reads by the pg_waldump of the server's version.

Exit code: 0 done, 2 not the output of a whole run of the script, 3 no psql, or no PostgreSQL of that version, 4 psql failed, \
5 the file cannot be written."
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Connection string of the server (libpq: PGHOST and the like, and ~/.pgpass are used)
    #[arg(long)]
    dsn: Option<OsString>,
    /// Output of the script; or a profile, to add --wal to it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dsn", "minutes"])]
    from: Option<PathBuf>,
    /// Print the script instead
    #[arg(long, conflicts_with_all = ["dsn", "from", "output", "wal"])]
    script: bool,
    /// How long to read
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1440))]
    minutes: u32,
    /// Folder of WAL segments of the server
    #[arg(long, value_name = "DIR", value_parser = |path: &str| std::path::absolute(path))]
    wal: Option<PathBuf>,
    /// File to write
    #[arg(short, long, value_name = "FILE", default_value = "profile.toml", value_parser = |path: &str| std::path::absolute(path))]
    output: PathBuf,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show a profile
    Show {
        /// The file
        file: PathBuf,
        /// Print JSON: the profile and its figures
        #[arg(long)]
        json: bool,
    },
    /// Print a plan of two stacks under a load of a profile's shape
    Load {
        /// The file
        #[arg(value_parser = |path: &str| std::path::absolute(path))]
        file: PathBuf,
        /// Also write setup.sql and the scripts, to be changed; created if missing, and the place for the plan
        #[arg(short, long, value_name = "DIR", value_parser = |path: &str| std::path::absolute(path))]
        output: Option<PathBuf>,
    },
}

/// Reads a server, or what was read of it; writes and shows the profile.
///
/// # Errors
/// See the exit codes in the help text.
pub fn run(args: &Args) -> Result<u8> {
    match &args.action {
        Some(Action::Show { file, json }) => show(&profile::open(file)?, *json)?,
        Some(Action::Load { file, output }) => make_load(file, output.as_deref())?,
        None if args.script => out::bytes(profile::script(args.minutes).as_bytes())?,
        None => make(args)?,
    }
    Ok(0)
}

fn make(args: &Args) -> Result<()> {
    let host = Host::this();
    let mut profile = match &args.from {
        Some(from) => given(from)?,
        None => {
            let is_named = args.dsn.is_some() || OF_SERVER.iter().any(|name| std::env::var_os(name).is_some());
            if !is_named {
                return Err(Error::user("no server is named: --dsn, or PGHOST or PGSERVICE in the environment").hint(
                    "where no connection is allowed: --script prints what to run there, --from reads its output",
                ));
            }
            files::check_output(&args.output)?;
            connect(&host, args.dsn.as_deref().unwrap_or_default(), args.minutes)?
        }
    };
    write(&profile, &args.output)?;
    if let Some(folder) = &args.wal {
        let at = args.output.display();
        let later = format!("read the WAL ({at} is written without it; `--from {at} --wal DIR` adds it later)");
        let (wal, stopped) = waldump::read(&host, &profile, folder).map_err(|e| e.while_doing(later))?;
        if let Some(why) = stopped.first() {
            out::remark(&out::harmless(&format!("{} segments not read to their end; the first: {why}", stopped.len())));
        }
        profile.unseen.remove(reading::WITHOUT_WAL);
        profile.wal = Some(wal);
        write(&profile, &args.output)?;
    }
    show(&profile, false)
}

fn write(profile: &Profile, path: &Path) -> Result<()> {
    files::write_output(path, profile::to_file(profile)?.as_bytes())?;
    out::remark(&format!("written to {}", path.display()));
    Ok(())
}

/// Prints a plan; with a folder, its load is scripts that are written there, to be changed.
fn make_load(file: &Path, folder: Option<&Path>) -> Result<()> {
    let profile = profile::open(file)?;
    let load = load::of(&profile, Bytes(machine::facts(&Host::this()).memory_bytes))?;
    if load.rate < IDLE {
        let rate = format!("{:.2} commits a second, and so does its load", load.rate);
        out::remark(&format!("this server was almost idle: it made {rate}; a busy hour tells more of its storage"));
    }
    let mut options = format!("profile = {}", toml::Value::from(file.to_string_lossy().as_ref()));
    if let Some(folder) = folder {
        folders::make_all(folder, 0o755)?;
        let scripts = load.scripts.iter().map(|(name, _, text)| (name.as_str(), text));
        let all =
            scripts.chain([("setup", &load.setup)]).map(|(name, text)| (folder.join(format!("{name}.sql")), text));
        let all: Vec<(PathBuf, &String)> = all.collect();
        let is_other = |path: &Path, text: &str| std::fs::read(path).is_ok_and(|there| there != text.as_bytes());
        if let Some((changed, _)) = all.iter().find(|(path, text)| is_other(path, text)) {
            return Err(Error::user(format!("{} already exists, and differs", changed.display()))
                .hint("choose another folder with -o, or remove it"));
        }
        for (path, text) in all {
            files::write_output(&path, text.as_bytes())?;
        }
        let names = load.scripts.iter().map(|(name, weight, _)| format!("\"{name}.sql@{weight}\""));
        let names = names.collect::<Vec<_>>().join(", ");
        options = format!("scale = 1, setup = \"setup.sql\", script = [{names}]");
    }
    out::bytes(load::plan(&profile, &load, &options).as_bytes())
}

fn show(profile: &Profile, json: bool) -> Result<()> {
    let (figures, waits) = (figures::of(profile), figures::waits(profile));
    let document = serde_json::json!({ "figures": figures, "waits": waits, "profile": profile });
    out::json_or(json, &document, || out::harmless_lines(&text::summary(profile)))
}

fn given(path: &Path) -> Result<Profile> {
    // Far more than a day's samples.
    let bytes = files::read_given(path, 1 << 30, || format!("read {}", path.display()))?;
    let (text, _) = foreign::decode(bytes).map_err(|what| Error::user(format!("{} is {what}", path.display())))?;
    // What the script prints is neither a remark nor TOML.
    let is_profile = text.starts_with('#') || text.parse::<toml::Table>().is_ok_and(|table| !table.is_empty());
    if is_profile { profile::from_file(&text) } else { reading::read(&text) }
}

/// Reads a server. psql is the one in PATH, else that of the newest installation.
fn connect(host: &Host, dsn: &OsStr, minutes: u32) -> Result<Profile> {
    let program = match host.has_program("psql") {
        true => PathBuf::from("psql"),
        false => install::find(host, "auto")?.bin.join("psql"),
    };
    let folder = std::env::current_dir().or_user(|| "find the current folder".to_owned())?;
    // The rest of the environment is for Kerberos and OpenSSL.
    let psql = Command::new(program).cwd(folder).with_callers_environment();
    let libpq = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG"));
    let psql = libpq.fold(psql, |psql, (name, value)| psql.env(name, value));
    out::remark(&format!("reading for {minutes} min"));
    profile::run(host, psql, dsn, minutes)
}
