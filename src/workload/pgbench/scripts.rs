//! The scripts of a pgbench workload: built in, in files, or in the plan itself.

use super::shipped::{self, Shipped, Transaction};
use crate::error::Error;
use crate::host::{Host, files, machine};
use crate::profile;
use crate::profile::load::{self, ProfileLoad};
use crate::record::operation::Writes;
use crate::record::options::{OptionProblem, OptionValue, Options};
use crate::units::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Built-in scripts available in every version since 9.6.
pub const BUILTINS: [&str; 3] = ["tpcb-like", "simple-update", "select-only"];

/// Options that a profile decides.
const DECIDED: [&str; 4] = ["data", "scale", "script", "setup"];

/// Rows of a page that a profile's load touches: each client has one.
const ROWS: i64 = 32;

/// Begins the `setup` that was made of a profile.
const MADE: &str = "-- load of ";

/// Used if the plan names none.
pub const DEFAULT_SCRIPT: &str = "tpcb-like";

/// One script with its weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Name of its measure: that of the built-in or shipped transaction, the file's stem, the remark in the first line of SQL or `sql`, numbered if there are
    /// duplicates.
    pub name: String,
    pub source: ScriptSource,
    /// Relative frequency.
    pub weight: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptSource {
    /// One of [`BUILTINS`].
    Builtin(&'static str),
    File(PathBuf),
    /// SQL in the plan itself.
    Sql(String),
    Shipped(&'static Transaction),
}

/// Makes the paths of scripts absolute: relative ones start at `folder`. Keeps weights. The load of a profile takes its
/// place among the options.
pub fn resolve_scripts(options: &mut Options, folder: &Path) {
    if let Some(OptionValue::Text(path)) = options.0.get_mut("profile") {
        *path = folder.join(path.as_str()).to_string_lossy().into_owned();
        // What is wrong with it, or given beside it, is reported by the check.
        let path = path.clone();
        if DECIDED.iter().all(|key| options.get(key).is_none())
            && let Ok(load) = load_of(&path)
        {
            options.0.extend(as_options(&path, &load));
        }
    }
    for key in ["script", "setup"] {
        let values = match options.0.get_mut(key) {
            Some(OptionValue::List(items)) => items.as_mut_slice(),
            Some(value) => std::slice::from_mut(value),
            None => continue,
        };
        for value in values {
            if let OptionValue::Text(text) = value
                && let Ok(Script { source: ScriptSource::File(path), .. }) = script(text)
                && path.is_relative()
            {
                *text = folder.join(text.as_str()).to_string_lossy().into_owned();
            }
        }
    }
}

/// Files that these options name: scripts, setup, a profile.
pub fn files(options: &Options) -> Vec<PathBuf> {
    let texts = ["script", "setup"].into_iter().flat_map(|key| options.texts(key));
    let scripts = texts.filter_map(|text| match script(&text).ok()?.source {
        ScriptSource::File(path) => Some(path),
        _ => None,
    });
    scripts.chain(options.text("profile").map(PathBuf::from)).collect()
}

/// The load of a profile.
///
/// # Errors
/// If the file cannot be read, or is no profile that gives a load.
pub fn load_of(path: &str) -> Result<ProfileLoad, Error> {
    static MEMORY: LazyLock<Bytes> = LazyLock::new(|| Bytes(machine::facts(&Host::this()).memory_bytes));
    load::of(&profile::open(Path::new(path))?, *MEMORY)
}

/// The options that such a load is: with them the plan has all of it, whatever becomes of the file.
fn as_options(path: &str, load: &ProfileLoad) -> BTreeMap<String, OptionValue> {
    let known = ScriptSource::File(path.into()).known_by().unwrap_or_default();
    let head = format!("{MADE}{known}, {} commits/s, {} bytes", load.rate, load.tables.0);
    let scripts = load.scripts.iter().map(|(name, weight, sql)| format!("-- {name}\n{}@{weight}", sql.trim_end()));
    let options = [
        ("script", OptionValue::List(scripts.map(OptionValue::Text).collect())),
        ("setup", OptionValue::Text(format!("{head}\n{}", load.setup.trim_end()))),
        ("scale", OptionValue::Integer(1)),
    ];
    options.map(|(key, value)| (key.to_owned(), value)).into()
}

/// The load of a profile among the options: name and sum of its file, commits a second of its server, bytes of its tables.
pub fn made_of(options: &Options) -> Option<(String, f64, u64)> {
    let mut parts = options.text("setup")?.lines().next()?.strip_prefix(MADE)?.rsplitn(3, ", ");
    let bytes = parts.next()?.strip_suffix(" bytes")?.parse().ok()?;
    let rate = parts.next()?.strip_suffix(" commits/s")?.parse().ok()?;
    Some((parts.next()?.to_owned(), rate, bytes))
}

/// Checks that a profile gave its load, which nothing has changed since, and that nothing stands beside it that it decides.
///
/// # Errors
/// As [`load_of`]; an option that the profile decides.
pub fn check_profile(options: &Options) -> Result<(), OptionProblem> {
    let Some(path) = options.text("profile") else { return Ok(()) };
    if options.integer("clients").is_some_and(|clients| clients > ROWS) {
        let what = format!("is more than {ROWS}: each client of a profile's load has a row of its own on every page");
        return Err(OptionProblem::at("clients", what).help(format!("use {ROWS} or fewer")));
    }
    let is_made = |key: &str| match key {
        "data" => false,
        "scale" => options.integer(key) == Some(1),
        "script" => options.texts(key).iter().all(|text| text.starts_with("-- ")),
        _ => made_of(options).is_some_and(|(known, ..)| {
            known.rsplit_once(" (").is_some_and(|(name, _)| Path::new(path).ends_with(name))
        }),
    };
    let own = DECIDED.into_iter().find(|key| options.get(key).is_some() && !is_made(key));
    if own.is_none() && made_of(options).is_some() {
        return Ok(());
    }
    load_of(path).map_err(|e| OptionProblem::at("profile", format!("{path}: {e}")))?;
    let key = own.unwrap_or("profile");
    Err(OptionProblem::at(key, "conflicts with `profile`, whose load has tables and scripts of its own")
        .help(format!("remove `{key}` or `profile`; to change its scripts: pgstrata profile load FILE -o DIR")))
}

/// The shipped script of a plan, if it names one: whatever else it names is refused by [`scripts`].
pub fn shipped(options: &Options) -> Option<&'static Shipped> {
    options.texts("script").iter().find_map(|text| shipped::named(text))
}

/// The scripts of a plan, with their weights.
///
/// # Errors
/// For a script that is neither built in, nor shipped, nor a file, nor SQL; for a shipped one beside others.
pub fn scripts(options: &Options) -> Result<Vec<Script>, OptionProblem> {
    if let (Some(shipped), 1) = (shipped(options), options.texts("script").len()) {
        let scripts = shipped.transactions.iter().map(|transaction| {
            let source = ScriptSource::Shipped(transaction);
            Script { name: source.plain_name(), source, weight: transaction.weight }
        });
        return Ok(scripts.collect());
    }
    let mut texts = options.texts("script");
    if texts.is_empty() {
        texts.push(DEFAULT_SCRIPT.to_owned());
    }
    let mut scripts: Vec<Script> = Vec::new();
    for text in &texts {
        let mut script = script(text)?;
        let same = scripts.iter().filter(|other| other.source.plain_name() == script.name).count();
        if same > 0 {
            script.name = format!("{}#{}", script.name, same + 1);
        }
        scripts.push(script);
    }
    Ok(scripts)
}

pub(crate) fn script(text: &str) -> Result<Script, OptionProblem> {
    let (what, weight) = match text.rsplit_once('@') {
        Some((what, weight)) if !weight.is_empty() && weight.bytes().all(|b| b.is_ascii_digit()) => {
            let weight: u32 = weight.parse().unwrap_or(0);
            if weight == 0 {
                return Err(OptionProblem::at("script", format!("the weight in `{text}` must be between 1 and 2^32")));
            }
            (what, weight)
        }
        _ => (text, 1),
    };
    let source = match BUILTINS.iter().find(|name| **name == what) {
        Some(name) => ScriptSource::Builtin(name),
        None if what.trim_end().ends_with(';') => ScriptSource::Sql(what.to_owned()),
        None if Path::new(what).extension().is_some_and(|e| e == "sql") || what.contains('/') => {
            ScriptSource::File(PathBuf::from(what))
        }
        None if shipped::named(what).is_some() => {
            let message =
                format!("`{what}` is a mix of transactions with tables of its own: it is used alone, without weight");
            return Err(OptionProblem::at("script", message).help(format!("write script = \"{what}\"")));
        }
        None => {
            let message =
                format!("`{what}` is no script that is known, nor a file `path.sql`, nor SQL that ends with `;`");
            let (builtin, shipped) = (BUILTINS.join(", "), shipped::names());
            let help = match what {
                _ if what.contains(".sql@") => "a weight is a whole number of at least 1: `path.sql@3`".to_owned(),
                _ if what.contains(' ') => format!("end SQL with `;`: \"{what};\""),
                _ if what.contains('.') => format!("a file of another name than `path.sql`: `./{what}`"),
                _ => {
                    format!("shipped: {shipped}; built into pgbench: {builtin}; a file of such a name: `./{what}`")
                }
            };
            return Err(OptionProblem::at("script", message).help(help));
        }
    };
    Ok(Script { name: source.plain_name(), source, weight })
}

/// The script or SQL that a plan runs once after loading.
///
/// # Errors
/// For a built-in script, which is not SQL of the plan's own.
pub fn setup(text: &str) -> Result<ScriptSource, OptionProblem> {
    match script(text).map(|script| script.source) {
        Ok(source @ (ScriptSource::File(_) | ScriptSource::Sql(_))) => Ok(source),
        _ => {
            Err(OptionProblem::at("setup", format!("`{text}` is neither a file `path.sql` nor SQL that ends with `;`")))
        }
    }
}

impl ScriptSource {
    /// The text of a script that is not built in.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn text(&self) -> Result<Vec<u8>, Error> {
        match self {
            ScriptSource::Builtin(_) => Ok(Vec::new()),
            ScriptSource::File(path) => {
                files::read_given(path, u64::MAX, || format!("read the script {}", path.display()))
            }
            ScriptSource::Sql(sql) => Ok(format!("{sql}\n").into_bytes()),
            ScriptSource::Shipped(transaction) => Ok(transaction.sql.as_bytes().to_vec()),
        }
    }

    /// Name by which what was run is known again: that of a file with the start of the SHA-256 of its text, in whatever
    /// folder it is; `None` if the plan says it all.
    pub fn known_by(&self) -> Option<String> {
        let ScriptSource::File(path) = self else { return None };
        Some(format!("{} ({})", path.file_name().unwrap_or_default().to_string_lossy(), self.sum()))
    }

    /// The start of the SHA-256 of its text. An unreadable one is rejected when it is run.
    pub fn sum(&self) -> String {
        files::sha256(&self.text().unwrap_or_default())[..8].to_owned()
    }

    /// A name fit for a measure and for the tag of its histogram: no comma, blank or control character.
    pub fn plain_name(&self) -> String {
        match self {
            ScriptSource::Builtin(name) => (*name).to_owned(),
            ScriptSource::Sql(sql) => {
                let remark = sql.lines().next().and_then(|line| line.strip_prefix("-- "));
                plain(remark.filter(|name| !name.contains(' ')).unwrap_or("sql"))
            }
            ScriptSource::Shipped(transaction) => transaction.name.to_owned(),
            ScriptSource::File(path) => plain(&path.file_stem().unwrap_or_default().to_string_lossy()),
        }
    }
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}

/// Whether each transaction of a mix writes WAL, as far as that is known.
pub fn writes(scripts: &[Script]) -> Writes {
    let mut sources = scripts.iter().map(|script| &script.source);
    if sources.clone().all(|source| matches!(source, ScriptSource::Builtin("tpcb-like" | "simple-update"))) {
        Writes::Always
    } else if sources.all(|source| matches!(source, ScriptSource::Builtin("select-only"))) {
        Writes::Never
    } else {
        Writes::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Settings;
    use super::*;
    use crate::workload::pgbench::options::check_files;

    fn options(pairs: &[(&str, OptionValue)]) -> Options {
        let mut options = Options::default();
        options.set("scale", OptionValue::Integer(10));
        for (key, value) in pairs {
            options.set(key, value.clone());
        }
        options
    }

    fn text(text: &str) -> OptionValue {
        OptionValue::Text(text.to_owned())
    }

    #[test]
    fn scripts_carry_weights_and_names_of_their_own() {
        let list = ["select-only@9", "/srv/a@b.sql", "/srv/x/a@b.sql@3", "tpcb-like"];
        let list = OptionValue::List(list.map(text).to_vec());
        let scripts = Settings::from(&options(&[("script", list)])).unwrap().scripts;
        let seen: Vec<_> = scripts.iter().map(|script| (script.name.as_str(), script.weight)).collect();
        assert_eq!(seen, [("select-only", 9), ("a_b", 1), ("a_b#2", 3), ("tpcb-like", 1)]);
        let problem = Settings::from(&options(&[("script", text("mine.txt"))])).unwrap_err();
        assert_eq!(problem.help.as_deref(), Some("a file of another name than `path.sql`: `./mine.txt`"));
        let problem = Settings::from(&options(&[("script", text("tpcb"))])).unwrap_err();
        assert!(problem.help.unwrap().contains("tpcb-like"));
        assert!(Settings::from(&options(&[("script", text("tpcb-like@0"))])).is_err());
    }

    #[test]
    fn a_shipped_script_is_a_mix_and_stands_alone() {
        let of = |value: OptionValue| Settings::from(&options(&[("script", value)]));
        for shipped in &shipped::ALL {
            let settings = of(text(shipped.name)).unwrap();
            assert_eq!(settings.shipped, Some(shipped));
            assert_eq!(settings.scripts.iter().map(|script| script.weight).sum::<u32>(), 100, "{}", shipped.name);
            assert!(!settings.uses_builtin() && settings.writes() == Writes::Unknown);
        }
        assert_eq!(of(OptionValue::List(vec![text("queue")])).unwrap().scripts[0].name, "push");
        for value in [text("orders@2"), OptionValue::List(vec![text("orders"), text("my.sql")])] {
            assert!(of(value).unwrap_err().message.contains("used alone"));
        }
        let help = of(text("order")).unwrap_err().help.unwrap();
        assert!(help.contains("orders, events, queue, documents") && help.contains("./order"), "{help}");
        let own = of(text("./orders")).unwrap();
        assert!(own.shipped.is_none() && own.scripts[0].source == ScriptSource::File("./orders".into()));
    }

    #[test]
    fn script_paths_are_relative_to_the_plan_and_keep_weights() {
        let resolved = |value: OptionValue| {
            let mut options = options(&[("script", value)]);
            resolve_scripts(&mut options, Path::new("/plans/a@3"));
            options.get("script").unwrap().plain()
        };
        assert_eq!(resolved(text("my.sql")), "/plans/a@3/my.sql");
        assert_eq!(resolved(text("deep/my@b.sql@3")), "/plans/a@3/deep/my@b.sql@3");
        assert_eq!(resolved(text("../my.sql")), "/plans/a@3/../my.sql");
        let list = OptionValue::List(["select-only@9", "/srv/x.sql", "my.sql@2", "tpcb"].map(text).to_vec());
        assert_eq!(resolved(list), "select-only@9,/srv/x.sql,/plans/a@3/my.sql@2,tpcb");
    }

    #[test]
    fn a_script_file_that_is_not_there_is_named() {
        let settings = Settings::from(&options(&[("script", text("/nowhere/x.sql"))])).unwrap();
        assert!(check_files(&settings).unwrap_err().message.contains("/nowhere/x.sql"));
    }

    #[test]
    fn a_script_is_known_by_its_text_in_any_folder() {
        let folder = tempfile::tempdir().unwrap();
        let known = |place: &str, sql: &str| {
            let path = folder.path().join(place).join("hit.sql");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, sql).unwrap();
            ScriptSource::File(path).known_by().unwrap()
        };
        let one = known("a", "select 1;\n");
        assert!(one.starts_with("hit.sql (") && one == known("b", "select 1;\n"), "{one}");
        assert_ne!(one, known("a", "select 2;\n"));
        assert_eq!(ScriptSource::Sql("select 1;".to_owned()).known_by(), None);
    }

    #[test]
    fn inline_sql_of_the_plan_is_a_script_and_setup() {
        let insert = "insert into t (at) values (now());";
        let list = OptionValue::List(vec![text(insert), text("select 1;@3"), text("select-only")]);
        let settings =
            Settings::from(&options(&[("script", list), ("setup", text("create table t (at timestamp);"))])).unwrap();
        let seen: Vec<_> = settings.scripts.iter().map(|script| (script.name.as_str(), script.weight)).collect();
        assert_eq!(seen, [("sql", 1), ("sql#2", 3), ("select-only", 1)]);
        assert_eq!(settings.scripts[0].source.text().unwrap(), format!("{insert}\n").as_bytes());
        assert_eq!(settings.setup.unwrap(), ScriptSource::Sql("create table t (at timestamp);".to_owned()));
        assert_eq!(writes(&settings.scripts), Writes::Unknown);
        let problem = |setup: &str| Settings::from(&options(&[("setup", text(setup))])).unwrap_err();
        assert_eq!(problem("tpcb-like").key.as_deref(), Some("setup"));
        assert!(problem("create table t ()").message.contains("ends with `;`"));
        let missing = Settings::from(&options(&[("setup", text("/nowhere/x.sql"))])).unwrap();
        assert_eq!(check_files(&missing).unwrap_err().key.as_deref(), Some("setup"));
        let marked = Settings::from(&options(&[("script", text("\u{feff}SELECT 1;"))])).unwrap();
        assert!(check_files(&marked).unwrap_err().message.contains("byte order mark"));
    }

    #[test]
    fn a_profile_takes_the_place_of_scripts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("busy.toml");
        let busy = include_str!("../../../tests/fixtures/profile/busy.toml");
        std::fs::write(&file, busy).unwrap();
        let asked = |more: &[(&str, OptionValue)]| {
            let mut options = Options::default();
            options.set("profile", text("busy.toml"));
            more.iter().for_each(|(key, value)| options.set(key, value.clone()));
            resolve_scripts(&mut options, folder.path());
            options
        };
        let options = asked(&[]);
        check_profile(&options).unwrap();
        let settings = Settings::from(&options).unwrap();
        let names: Vec<_> = settings.scripts.iter().map(|script| (script.name.as_str(), script.weight)).collect();
        assert_eq!(names, [("read", 500_000), ("write1", 500_000)]);
        let (known, rate, _) = made_of(&options).unwrap();
        assert!(known.starts_with("busy.toml (") && rate == 1000.0, "{known}");
        for (key, value) in [("scale", OptionValue::Integer(9)), ("data", text("1GB")), ("script", text("tpcb-like"))] {
            let problem = check_profile(&asked(&[(key, value.clone())])).unwrap_err();
            assert!(problem.key.as_deref() == Some(key) && problem.message.contains("`profile`"), "{problem:?}");
            // `[quick] set` comes after the load was made.
            let mut changed = options.clone();
            changed.set(key, value);
            assert_eq!(check_profile(&changed).unwrap_err().key.as_deref(), Some(key));
        }
        std::fs::write(folder.path().join("other.toml"), busy).unwrap();
        let mut other = options.clone();
        other.set("profile", text(&folder.path().join("other.toml").to_string_lossy()));
        assert!(check_profile(&other).unwrap_err().message.contains("`profile`"));
        std::fs::write(&file, busy.replace("50000", "0")).unwrap();
        assert!(check_profile(&asked(&[])).unwrap_err().message.contains("hardly any commits that wrote"));
        std::fs::remove_file(&file).unwrap();
        assert!(check_profile(&asked(&[])).unwrap_err().message.contains("busy.toml"));
    }
}
