//! Checks that the kernel kept the requested mount options.
//!
//! The kernel prints most options as given, omits those that are its default, and prints some differently. A
//! filesystem's table of [`KeepRule`]s describes this. An option counts as kept only if it is printed (as requested, as
//! the rule says, or with an equal value) or if it is a default whose opposite is not printed. Everything else counts
//! as dropped: ramfs, and others in part, accept any word and ignore it.

/// Evidence that the kernel kept an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepSign {
    /// The kernel prints one of these.
    Shown(&'static [&'static str]),
    /// The option is the default, which the kernel does not print, and none of these is printed.
    Unless(&'static [&'static str]),
    /// The option is the default, and its opposite, with or without `no`, is not printed.
    UnlessOpposite,
}

/// How the kernel prints options, which are separated by spaces. A pattern that ends in `=`, `:` or `-` matches by
/// prefix.
pub(super) type KeepRule = (&'static str, KeepSign);

/// Options of the mount point, the same for every filesystem (mount(8), "filesystem-independent mount options").
const COMMON: &[KeepRule] = &[
    ("defaults", KeepSign::Unless(&[])),
    ("atime norelatime diratime suid dev exec nolazytime", KeepSign::UnlessOpposite),
    ("strictatime", KeepSign::Unless(&["noatime", "relatime"])),
    ("async", KeepSign::Unless(&["sync"])),
];

/// The options of `asked` that are not in force according to `shown`.
pub(super) fn dropped<'a>(asked: &'a [String], shown: &[String], rules: &[KeepRule]) -> Vec<&'a str> {
    let dropped = asked.iter().map(String::as_str).filter(|option| {
        let mut of_option = rules.iter().chain(COMMON).filter(|(patterns, _)| is_among(option, patterns));
        !shown.iter().any(|line| same(option, line)) && !of_option.any(|(_, sign)| satisfied(*sign, option, shown))
    });
    dropped.collect()
}

fn satisfied(kept: KeepSign, option: &str, shown: &[String]) -> bool {
    let any = |patterns: &[&str]| patterns.iter().any(|pattern| shown.iter().any(|line| matches(pattern, line)));
    match kept {
        KeepSign::Shown(patterns) => any(patterns),
        KeepSign::Unless(patterns) => !any(patterns),
        KeepSign::UnlessOpposite => match option.strip_prefix("no") {
            Some(opposite) => !any(&[opposite]),
            None => !any(&[&format!("no{option}")]),
        },
    }
}

/// True if one of these patterns, separated by spaces, matches an option.
pub(super) fn is_among(option: &str, patterns: &str) -> bool {
    patterns.split(' ').any(|pattern| matches(pattern, option))
}

fn matches(pattern: &str, option: &str) -> bool {
    if pattern.ends_with(['=', ':', '-']) { option.starts_with(pattern) } else { option == pattern }
}

/// True for the same text, or the same key with an equal value: `allocsize=1m` is printed as `allocsize=1024k`,
/// `mode=0700` as `mode=700`.
fn same(asked: &str, shown: &str) -> bool {
    let pairs = asked.split_once('=').zip(shown.split_once('='));
    asked == shown
        || pairs.is_some_and(|((key, asked), (shown_key, shown))| {
            key == shown_key && amount(asked).is_some() && amount(asked) == amount(shown)
        })
}

/// The value according to the kernel's memparse(): `64k` = 65536.
pub(super) fn amount(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "t" | "T" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    fn words(text: &str) -> Vec<String> {
        text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    fn lost(asked: &str, shown: &str, rules: &[KeepRule]) -> Vec<String> {
        dropped(&words(asked), &words(shown), rules).into_iter().map(str::to_owned).collect()
    }

    const RULES: &[KeepRule] = &[
        ("barrier=0", KeepSign::Shown(&["nobarrier"])),
        ("barrier=1", KeepSign::Unless(&["nobarrier"])),
        ("compress=zstd", KeepSign::Shown(&["compress=zstd:"])),
    ];

    #[test]
    fn options_count_as_kept_when_printed_in_any_known_words() {
        let none: [&str; 0] = [];
        assert_eq!(lost("noatime,discard", "rw,noatime,discard", RULES), none);
        assert_eq!(lost("allocsize=1m,mode=0700", "rw,allocsize=1024k,mode=700", RULES), none);
        assert_eq!(lost("barrier=0", "rw,nobarrier", RULES), none);
        assert_eq!(lost("barrier=1,defaults,strictatime,suid,nolazytime", "rw", RULES), none);
        assert_eq!(lost("compress=zstd", "rw,compress=zstd:3", RULES), none);
    }

    #[test]
    fn options_count_as_dropped_when_nothing_shows_them() {
        assert_eq!(lost("size=64m,noatime", "rw,noatime", RULES), ["size=64m"]);
        assert_eq!(lost("barrier=1", "rw,nobarrier", RULES), ["barrier=1"]);
        assert_eq!(lost("noatime,relatime", "rw,relatime", RULES), ["noatime"]);
        assert_eq!(lost("allocsize=1m", "rw,allocsize=64k", RULES), ["allocsize=1m"]);
        assert_eq!(lost("compress=zstd", "rw,compress=zlib:3", RULES), ["compress=zstd"]);
        assert_eq!(lost("strictatime", "rw,relatime", RULES), ["strictatime"]);
        assert_eq!(lost("suid,nolazytime,dev", "rw,nosuid,lazytime", RULES), ["suid", "nolazytime"]);
    }

    proptest! {
        #[test]
        fn amounts_of_any_text_do_not_panic(text in any::<String>()) {
            prop_assert!(amount(&text).is_none_or(|_| text.starts_with(|c: char| c.is_ascii_digit() || c == '+')));
        }

        #[test]
        fn an_option_that_is_printed_as_asked_is_never_dropped(option in "[a-z=:0-9]{1,12}") {
            prop_assert!(dropped(std::slice::from_ref(&option), std::slice::from_ref(&option), RULES).is_empty());
        }
    }
}
