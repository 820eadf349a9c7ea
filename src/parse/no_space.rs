//! Messages about a filesystem, pool or quota without free space, from the kernel, as programs and servers print them.

use super::server_log;

/// ENOSPC and EDQUOT in glibc's English, PostgreSQL's own message about a truncated write (md.c), the messages of zfs
/// and zpool for both errors (libzfs_util.c, `EZFS_NOSPC`), and that of lvcreate for a thin pool
/// (`pool_below_threshold`).
pub const FULL: &[&str] = &[
    "No space left on device",
    "Disk quota exceeded",
    "Check free disk space",
    ": out of space",
    "free space in thin pool",
];

/// EIO and EROFS in glibc's English: the filesystem's error if a device refuses writes, of which a full one may be the
/// cause.
pub const REFUSED: &[&str] = &["Input/output error", "Read-only file system"];

/// The first line with one of these messages ([`FULL`], [`REFUSED`]).
pub fn line<'t>(text: &'t str, words: &[&str]) -> Option<&'t str> {
    text.lines().find(|line| says_one(line, words)).map(str::trim)
}

/// The first such message in a server's log: wall clock, microseconds since 1970, and the message with its level.
pub fn logged<'t>(log: &'t str, words: &[&str]) -> Option<(u64, &'t str)> {
    let mut last = None;
    for line in log.lines() {
        // A hint follows its message, and has a time stamp too.
        let of_hint = server_log::stamped(line).is_some_and(|(_, message)| message.starts_with("HINT:"));
        if !of_hint {
            last = server_log::stamped(line).or(last);
        }
        if says_one(line, words) {
            return last;
        }
    }
    None
}

fn says_one(line: &str, words: &[&str]) -> bool {
    words.iter().any(|words| line.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTEND: &str = "2026-11-22 05:17:22.460 GMT [31] LOG:  checkpoint starting: wal\n\
         2026-11-22 05:17:23.500 GMT [42] ERROR:  could not extend file \"base/5/16396\": No space left on device\n\
         2026-11-22 05:17:23.500 GMT [42] HINT:  Check free disk space.\n";

    #[test]
    fn the_first_message_without_room_is_found_with_its_time() {
        let (at_us, message) = logged(EXTEND, FULL).unwrap();
        assert_eq!(at_us % 60_000_000, 23_500_000);
        assert_eq!(message, "ERROR:  could not extend file \"base/5/16396\": No space left on device");
    }

    #[test]
    fn a_short_write_is_recognised_by_its_hint() {
        let log = "2026-11-22 05:17:23.500 GMT [42] ERROR:  could not extend file \"base/5/1\": wrote only 4096 of 8192 bytes\n\
                   2026-11-22 05:17:23.500 GMT [42] HINT:  Check free disk space.\n";
        assert!(logged(log, FULL).unwrap().1.starts_with("ERROR:  could not extend file"));
    }

    #[test]
    fn zfs_has_words_of_its_own() {
        let said = "`zfs snapshot -r tank@a` failed with exit code 1; output:\n  \
             cannot create snapshot 'tank@a': out of space\n  no snapshots were created";
        assert_eq!(line(said, FULL), Some("cannot create snapshot 'tank@a': out of space"));
    }

    #[test]
    fn refused_writes_are_distinguished_from_enospc() {
        let log = "2026-11-22 05:17:23.500 GMT [42] PANIC:  could not fsync file \"pg_wal/000000010000000000000001\": Input/output error\n";
        assert_eq!((logged(log, FULL), line(log, FULL)), (None, None));
        let (at_us, message) = logged(log, REFUSED).unwrap();
        assert!(at_us % 60_000_000 == 23_500_000 && message.starts_with("PANIC:  could not fsync"), "{message}");
        assert_eq!(line("cp: x\n touch: y: Read-only file system", REFUSED), Some("touch: y: Read-only file system"));
        assert_eq!((line(EXTEND, REFUSED), logged(EXTEND, REFUSED)), (None, None));
        let snapshot = "Cannot create new thin volume, free space in thin pool g/pool reached threshold.";
        assert_eq!(line(snapshot, FULL), Some(snapshot));
    }

    #[test]
    fn other_failures_and_empty_texts_say_nothing_of_room() {
        assert_eq!(
            (logged("2026-11-22 05:17:23.500 GMT [1] PANIC:  could not fsync file: I/O error", FULL), line("", FULL)),
            (None, None)
        );
        assert_eq!(
            line("cp: x\n  cp: error writing 'y': No space left on device", FULL),
            Some("cp: error writing 'y': No space left on device")
        );
    }
}
