//! `mount` of Linux, FreeBSD and macOS, and `/proc/mounts` as people paste it.
//!
//! A row has the labels `filesystem` (or device), `mount`, `type`, `options` (as printed, without parentheses), and no figures.
//!
//! Sources: mount(8) of util-linux, proc(5), xfs(5), ext4(5), nfs(5), mount(8) of FreeBSD and macOS.

use super::output::{Output, Row, TextLine};
use super::table;
use crate::foreign::clean as web;

/// Reads every block of mounts in the text.
pub fn read(lines: &[TextLine<'_>]) -> Vec<Output> {
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

fn row(line: TextLine<'_>) -> Option<Row> {
    let text = line.text.trim();
    let (filesystem, mount, kind, options) = linux(text).or_else(|| bsd(text)).or_else(|| kernel(text))?;
    let labels = [("filesystem", filesystem), ("mount", mount), ("type", kind), ("options", options)];
    // The kernel escapes a blank like this.
    Some(table::row(labels.map(|(name, value)| (name, value.replace("\\040", " "))).to_vec(), line.number))
}

/// `tmpfs on /run type tmpfs (rw,nosuid)`, optionally followed by a label in brackets.
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

/// True if the line begins like Linux output but does not end like it.
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
        outputs_of(text, read)
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
        assert_eq!(row.labels[2].1, "tmpfs");
        assert_eq!(row.labels[3].1, "rw,noatime,nodiratime,size=10485760k");
        assert_eq!(outputs(TEXTS[3])[0].rows[0].labels[2].1, "ufs");
        for text in ["/dev/vda on /mnt/my disk type ext4 (rw)\n", "/dev/vda /mnt/my\\040disk ext4 rw,relatime 0 0\n"] {
            assert_eq!(outputs(text)[0].rows[0].labels[1].1, "/mnt/my disk");
        }
    }

    #[test]
    fn a_truncated_line_is_reported_and_prose_is_ignored() {
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
