//! What is told of all files together and what one of them says itself, where the two do not fit: the file's own words
//! are never replaced, and the doubt is kept with the case.
//!
//! Absent on purpose: properties of zfs and zpool, settings of pgbench as `pgbench.NAME` and the mount at `stack.mount`;
//! `analyse` holds these against the output, as it does for what was published.

use super::moment;
use crate::record::imported::{ImportedCase, ImportedFigure, ImportedOutput, ImportedTrial, Origin};
use jiff::civil::Date;
use std::collections::BTreeSet;

/// What a case's own output says otherwise than its facts and the origin of all do, in sentences.
#[must_use]
pub fn doubts(origin: &Origin, case: &ImportedCase) -> Vec<String> {
    let mut found = BTreeSet::new();
    for trial in &case.trials {
        found.extend(of_date(origin, trial));
        for output in &trial.outputs {
            let at = Place { trial, output };
            found.extend(of_version(origin, case, &at));
            found.extend(of_kernel(origin, case, &at));
            found.extend(of_settings(case, &at));
        }
    }
    found.extend(of_filesystem(case));
    found.into_iter().collect()
}

/// An output and where it stands.
struct Place<'a> {
    trial: &'a ImportedTrial,
    output: &'a ImportedOutput,
}

impl<'a> Place<'a> {
    fn file(&self) -> &'a str {
        self.trial.files.get(self.output.file).map_or("", |file| &file.name)
    }

    fn fact(&self, name: &str) -> Option<&'a str> {
        self.output.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn fact<'a>(case: &'a ImportedCase, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| case.facts.get(*key)).map(String::as_str)
}

/// PostgreSQL's version, to the part that names a major one.
fn of_version(origin: &Origin, case: &ImportedCase, at: &Place<'_>) -> Option<String> {
    let told = fact(case, &["postgresql.version", "postgres.version"]).or(origin.postgresql.as_deref())?;
    let own = at.fact("build")?;
    let (one, other) = (major(told)?, major(own)?);
    let file = at.file();
    (one != other).then(|| format!("PostgreSQL is told as {told}, and {file} is of {} {own}", at.output.tool))
}

/// `15` of `PostgreSQL 15.3`, `9.6` of `9.6.24`.
fn major(version: &str) -> Option<String> {
    let (first, second) = first_numbers(version)?;
    Some(if first >= 10 { first.to_string() } else { format!("{first}.{}", second?) })
}

/// The first two numbers of the first version in a text.
fn first_numbers(text: &str) -> Option<(u32, Option<u32>)> {
    let begin = text.find(|c: char| c.is_ascii_digit())?;
    let mut parts = text[begin..].split('.').map(|part| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse::<u32>().ok()
    });
    Some((parts.next()??, parts.next().flatten()))
}

/// The kernel.
fn of_kernel(origin: &Origin, case: &ImportedCase, at: &Place<'_>) -> Option<String> {
    let own = at.fact("kernel")?;
    // In the name of a system another version comes first: `Debian 12.5`.
    let of_system = |system: &'_ str| {
        let behind = ["Linux ", "kernel "].iter().find_map(|word| system.split_once(word))?.1.to_owned();
        behind.starts_with(|c: char| c.is_ascii_digit()).then_some(behind)
    };
    let told = fact(case, &["host.kernel", "kernel"]).map(str::to_owned);
    let told = told.or_else(|| origin.system.as_deref().and_then(of_system))?;
    let ((one, of_one), (other, of_other)) = (first_numbers(&told)?, first_numbers(own)?);
    let differ = one != other || of_one.zip(of_other).is_some_and(|(one, other)| one != other);
    differ.then(|| format!("the kernel is told as {told}, and {} is of {own}", at.file()))
}

/// Numbers that a summary of pgbench shows.
fn of_settings(case: &ImportedCase, at: &Place<'_>) -> Option<String> {
    const SETTINGS: [&str; 4] = ["scale", "clients", "threads", "duration"];
    if at.output.tool != "pgbench" {
        return None;
    }
    let figures = || at.output.rows.iter().flat_map(|row| &row.figures);
    SETTINGS.iter().find_map(|name| {
        let told: f64 = case.facts.get(&format!("workload.{name}"))?.parse().ok()?;
        let own: &ImportedFigure = figures().find(|figure| figure.name == *name && figure.value != told)?;
        Some(format!("workload.{name} is told as {told}, and {} (line {}) says {}", at.file(), own.line, own.text))
    })
}

/// The filesystem, against the mounts that the case's own files list.
fn of_filesystem(case: &ImportedCase) -> Option<String> {
    let told = fact(case, &["stack.filesystem"]).filter(|_| !case.facts.contains_key("stack.mount"))?;
    let mut listed: BTreeSet<&str> = BTreeSet::new();
    let mut by = "";
    for trial in case.trials.iter().chain(&case.context) {
        for output in trial.outputs.iter().filter(|output| matches!(output.tool.as_str(), "mount" | "df")) {
            let labels = output.rows.iter().flat_map(|row| &row.labels);
            let types: Vec<&str> = labels.filter(|(name, _)| name == "type").map(|(_, kind)| kind.as_str()).collect();
            by = if types.is_empty() { by } else { Place { trial, output }.file() };
            listed.extend(types);
        }
    }
    let absent = !listed.is_empty() && !listed.iter().any(|kind| kind.eq_ignore_ascii_case(told));
    let all: Vec<&str> = listed.into_iter().collect();
    absent.then(|| format!("stack.filesystem is told as {told}, and {by} lists no such mount, but {}", all.join(", ")))
}

/// The date, which a clock of another zone may put a day off.
fn of_date(origin: &Origin, trial: &ImportedTrial) -> Option<String> {
    let told = origin.measured.as_deref()?;
    let own = moment::of(&trial.outputs, trial.log.as_ref()).beginning()?;
    let date: Date = own.get(..10)?.parse().ok()?;
    let differs = match told.get(..10).and_then(|day| day.parse::<Date>().ok()) {
        Some(day) => day.until(date).ok()?.get_days().abs() > 1,
        // A year, or a year and a month.
        None => {
            let year = told.get(..4).filter(|year| year.bytes().all(|byte| byte.is_ascii_digit()))?;
            let month = told.get(..7).filter(|month| month.as_bytes()[4] == b'-');
            !own.starts_with(month.unwrap_or(year))
        }
    };
    let file = trial.files.first().map_or("", |file| &file.name);
    differs.then(|| format!("it is told as measured {told}, and what {file} is of began {own}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{cases, read};
    use std::collections::BTreeMap;

    const PGBENCH: &str = "pgbench (18.6)\nscaling factor: 10\nnumber of clients: 8\nnumber of transactions actually processed: 7\ntps = 100.0 (without initial connection time)\n";
    const IOSTAT: &str = "Linux 6.18.44 (db1) \t2026-11-21 \t_x86_64_\t(2 CPU)\n\n2026-11-21T09:20:51+0000\nDevice r/s w/s rkB/s wkB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz svctm %util\nsda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n";

    fn of(origin: &Origin, facts: &[(&str, &str)]) -> Vec<String> {
        let mount = "/dev/sda1 on / type ext4 (rw,relatime)\n";
        let files = [("pgbench-x.txt", PGBENCH), ("iostat-x.txt", IOSTAT), ("mount.txt", mount)];
        let readings = files.iter().map(|(name, text)| read(name, &mut text.as_bytes()).unwrap()).collect();
        let facts: BTreeMap<String, String> =
            facts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let cases = cases(readings, &facts).cases;
        assert_eq!((cases.len(), cases[0].trials[0].files.len()), (1, 2));
        doubts(origin, &cases[0])
    }

    #[test]
    fn what_a_file_says_itself_goes_before_what_is_told_of_all_and_the_doubt_is_told() {
        for (key, value, said) in [
            ("postgresql.version", "15.3", "PostgreSQL is told as 15.3, and pgbench-x.txt is of pgbench 18.6"),
            ("workload.clients", "4", "workload.clients is told as 4, and pgbench-x.txt (line 3) says 8"),
            ("host.kernel", "5.10", "the kernel is told as 5.10, and iostat-x.txt is of 6.18.44"),
            ("stack.filesystem", "zfs", "stack.filesystem is told as zfs, and mount.txt lists no such mount, but ext4"),
        ] {
            assert_eq!(of(&Origin::default(), &[(key, value)]), [said]);
        }
        let some = |text: &str| Some(text.to_owned());
        let origin =
            Origin { postgresql: some("PostgreSQL 9.6"), system: some("Debian, Linux 4.9"), ..Origin::default() };
        assert_eq!(of(&origin, &[]).len(), 2);
        for day in ["2014-06-26", "2014", "2026-10", "2026-11-19T09:00:00Z"] {
            let found = of(&Origin { measured: some(day), ..Origin::default() }, &[]);
            assert!(found.len() == 1 && found[0].contains("began 2026-11-21T09:20:51Z"), "{day}: {found:?}");
        }
    }

    #[test]
    fn what_fits_or_cannot_be_held_against_anything_raises_no_doubt() {
        let facts = [
            ("postgresql.version", "18"),
            ("workload.clients", "8"),
            ("workload.scale", "10"),
            ("host.kernel", "6.18"),
            ("stack.filesystem", "EXT4"),
        ];
        let some = |text: &str| Some(text.to_owned());
        for (system, measured) in
            [("Debian 12.5", "2026-11-20"), ("Linux 6", "2026-11"), ("a Linux box", "2026"), ("", "in winter")]
        {
            let origin = Origin { system: some(system), measured: some(measured), ..Origin::default() };
            assert_eq!(of(&origin, &facts), [""; 0], "{system} {measured}");
        }
    }
}
