//! `mount` of Linux, FreeBSD and macOS, and `/proc/mounts` as people paste it.
//!
//! A row has the labels `filesystem` (or device), `mount`, `type`, `options` (as printed, without parentheses).
//!
//! | option | figure | unit |
//! |---|---|---|
//! | size (of a filesystem in memory), rsize, wsize | `size_bytes`, `rsize_bytes`, `wsize_bytes` | B |
//! | logbsize, sunit, swidth (of XFS, in sectors) | `logbsize_bytes`, `sunit_bytes`, `swidth_bytes` | B |
//! | commit, timeo (of NFS, in tenths) | `commit_s`, `timeo_s` | s |
//! | logbufs, retrans | `logbufs`, `retrans` | count |
//!
//! Sources: mount(8) of util-linux, proc(5), xfs(5), ext4(5), nfs(5), mount(8) of FreeBSD and macOS.

use super::output::{Line, Output, Row};
use super::table;
use crate::foreign::clean as web;

/// Whether a line of the text is one of these forms.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    lines.iter().any(|line| is_begun(line.text) || row(*line).is_some())
}

/// Reads every run of mounts in the text.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let mut outputs: Vec<Output> = Vec::new();
    let mut joins = false;
    for line in lines {
        let found = row(*line);
        if found.is_none() && !is_begun(line.text) {
            joins &= line.text.trim().is_empty() || table::is_omission(line.text);
            continue;
        }
        if !joins {
            outputs.push(table::output("mount", line.number));
            joins = true;
        }
        let Some(output) = outputs.last_mut() else { continue };
        table::extend(output, line.number);
        match found {
            Some(row) => output.rows.push(row),
            None => output.unread.push(table::unread(*line, "options in parentheses")),
        }
    }
    outputs
}

/// Options that are quantities; others with a number, such as `uid=`, are names.
const OPTIONS: &[(&str, &str, &str, f64)] = &[
    ("size", "size_bytes", "B", 1.0),
    ("rsize", "rsize_bytes", "B", 1.0),
    ("wsize", "wsize_bytes", "B", 1.0),
    ("logbsize", "logbsize_bytes", "B", 1.0),
    ("sunit", "sunit_bytes", "B", 512.0),
    ("swidth", "swidth_bytes", "B", 512.0),
    ("commit", "commit_s", "s", 1.0),
    ("timeo", "timeo_s", "s", 0.1),
    ("logbufs", "logbufs", "count", 1.0),
    ("retrans", "retrans", "count", 1.0),
];

fn row(line: Line<'_>) -> Option<Row> {
    let text = line.text.trim();
    let (filesystem, mount, kind, options) = linux(text).or_else(|| bsd(text)).or_else(|| kernel(text))?;
    let labels = [("filesystem", filesystem), ("mount", mount), ("type", kind), ("options", options)];
    let mut row = table::row(labels.map(|(name, value)| (name, value.to_owned())).to_vec(), line.number);
    let mut parts = options.split(',').peekable();
    while let Some(part) = parts.next() {
        // No option begins with a digit: what follows goes on with this one's number.
        let goes_on = parts.peek().is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()));
        let Some((option, text)) = part.trim().split_once('=').filter(|_| !goes_on) else { continue };
        let known = OPTIONS.iter().find(|(known, ..)| *known == option);
        if let Some(((_, name, unit, factor), value)) = known.zip(table::bytes(text)) {
            row.figures.push(table::figure(name, unit, value * factor, text, line.number));
        }
    }
    Some(row)
}

/// `tmpfs on /run type tmpfs (rw,nosuid)`, perhaps with a label in brackets behind.
fn linux(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (filesystem, rest) = text.split_once(" on ")?;
    let (mount, rest) = rest.split_once(" type ")?;
    let (kind, rest) = rest.trim().split_once(|c: char| c.is_whitespace())?;
    let options = rest.trim().strip_prefix('(')?;
    let end = options.find(')')?;
    let tail = options[end + 1..].trim();
    let plausible = mount.starts_with('/') && (tail.is_empty() || tail.starts_with('['));
    plausible.then_some((filesystem.trim(), mount.trim(), kind, &options[..end]))
}

/// Whether the line begins as Linux' does but does not end so.
fn is_begun(text: &str) -> bool {
    let mut parts = text.trim().splitn(2, " on ");
    let (first, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let typed = rest.split_once(" type ").is_some_and(|(mount, rest)| !mount.contains(' ') && rest.contains('('));
    typed && !first.contains(' ') && rest.starts_with('/') && linux(text.trim()).is_none() && !text.contains(')')
}

/// `/dev/ada0p2 on / (ufs, local, soft-updates)`.
fn bsd(text: &str) -> Option<(&str, &str, &str, &str)> {
    const OPTIONS: [&str; 9] =
        ["local", "nfsv4acls", "journaled", "noatime", "nodev", "nosuid", "read-only", "multilabel", "soft-updates"];
    const TYPES: [&str; 10] =
        ["ufs", "zfs", "devfs", "procfs", "fdescfs", "linprocfs", "tmpfs", "nullfs", "apfs", "msdosfs"];
    let (filesystem, rest) = text.split_once(" on ")?;
    let (mount, rest) = rest.rsplit_once(" (")?;
    let inner = rest.strip_suffix(')')?;
    let (kind, options) = inner.split_once(',').unwrap_or((inner, ""));
    let known = TYPES.contains(&kind) || options.split(',').any(|option| OPTIONS.contains(&option.trim()));
    let one_word = !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    let names = filesystem.split_whitespace().count() <= 2 && mount.starts_with('/');
    (known && one_word && names).then(|| (filesystem.trim(), mount.trim(), kind, options.trim()))
}

/// `/dev/vda / ext4 rw,relatime 0 0`.
fn kernel(text: &str) -> Option<(&str, &str, &str, &str)> {
    let words = table::words(text);
    let [filesystem, mount, kind, options, dump, pass] = words.as_slice() else { return None };
    let digits = [dump, pass].iter().all(|word| word.len() == 1 && web::number(word).is_some());
    let mode = options.split(',').next().is_some_and(|first| matches!(first, "rw" | "ro"));
    (digits && mode && mount.starts_with('/')).then_some((*filesystem, *mount, *kind, *options))
}

#[cfg(test)]
mod tests {
    use super::super::table::checks::{numbers_not_read, outputs_of};
    use super::*;
    use proptest::prelude::{any, proptest};

    const TEXTS: [&str; 4] = [
        include_str!("../../../shelf/memory-filesystems-2018/mount.txt"),
        include_str!("../../../tests/fixtures/mount/2.38.1.txt"),
        include_str!("../../../tests/fixtures/mount/proc-mounts.txt"),
        "/dev/ada0p2 on / (ufs, local, journaled soft-updates)\nzroot/tmp on /tmp (zfs, local, noatime, nosuid, nfsv4acls)\n\
        devfs on /dev (devfs)\n",
    ];

    fn outputs(text: &str) -> Vec<Output> {
        outputs_of(text, looks_like, read)
    }

    fn rows(outputs: &[Output]) -> usize {
        outputs.iter().map(|output| output.rows.len()).sum()
    }

    #[test]
    fn every_line_of_every_form_is_a_row() {
        for text in TEXTS {
            let found = outputs(text);
            assert_eq!((rows(&found), found.len(), found[0].unread.len()), (text.lines().count(), 1, 0), "{found:#?}");
            let left = numbers_not_read(text, &found);
            assert!(left.iter().all(|it| it == "0"), "dump and pass are no figures: {left:?}");
        }
        let found = outputs(TEXTS[0]);
        assert_eq!(numbers_not_read(TEXTS[0], &found), Vec::<String>::new());
        let row = &found[0].rows[0];
        assert_eq!((row.labels[2].1.as_str(), row.figures[0].value), ("tmpfs", 10_485_760.0 * 1024.0));
        assert_eq!(row.labels[3].1, "rw,noatime,nodiratime,size=10485760k");
        assert_eq!(outputs(TEXTS[3])[0].rows[0].labels[2].1, "ufs");
    }

    #[test]
    fn a_comma_inside_of_a_quantity_leaves_no_number() {
        let text = "tmpfs on /dev/shm type tmpfs (rw,relatime,size=2468401,234.584k,nr_inodes=5)\n";
        let names: Vec<String> = read(&web::lines(text))[0].rows[0].figures.iter().map(|it| it.name.clone()).collect();
        assert!(!names.contains(&"size_bytes".to_owned()), "{names:?}");
    }

    #[test]
    fn options_that_are_quantities_have_units_and_others_give_no_number() {
        let text = "/dev/mapper/vg-pg on /pg type xfs (rw,noatime,logbufs=8,logbsize=256k,sunit=128,noquota)\n\
                    /dev/sda1 on / type ext4 (rw,errors=remount-ro,commit=60)\n\
                    nas:/vol on /mnt type nfs4 (rw,vers=4.2,rsize=1048576,timeo=600,retrans=2,port=0)\n";
        let found = outputs(text);
        let figures: Vec<_> = found[0]
            .rows
            .iter()
            .flat_map(|row| &row.figures)
            .map(|it| (it.name.as_str(), it.value, it.unit.as_str()))
            .collect();
        let expected = [
            ("logbufs", 8.0, "count"),
            ("logbsize_bytes", 262_144.0, "B"),
            ("sunit_bytes", 65_536.0, "B"),
            ("commit_s", 60.0, "s"),
            ("rsize_bytes", 1_048_576.0, "B"),
            ("timeo_s", 60.0, "s"),
            ("retrans", 2.0, "count"),
        ];
        assert_eq!(figures, expected);
    }

    #[test]
    fn a_line_that_is_cut_off_is_reported_and_prose_is_none() {
        let found = outputs("tmpfs on /run type tmpfs (rw)\ntmpfs on /mnt/tmpfs type tmpfs (rw,noat");
        assert_eq!((rows(&found), found[0].unread[0].line), (1, 2));
        assert!(outputs("we run on /data (fast, cheap)\nit depends on the type of disk\n").is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(a|/|tmpfs| on | type |\\(|\\)|,|local|size=|[0-9]|[ \\n]){0,40}", any in any::<String>()) {
            outputs(&text);
            outputs(&any);
        }
    }
}
