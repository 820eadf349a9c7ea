//! `xfs_info MOUNTPOINT`: the geometry of an XFS (xfsprogs).

use super::fields::{filled_lines, having, wrong_line};
use crate::error::Result;
use std::collections::BTreeMap;

/// Reads `section  =word key=value, key=value` lines to `section key` -> value. Words without `=` are added to the
/// section's own value: `log` -> `internal log`, `naming` -> `version 2`.
///
/// # Errors
/// Names a line without `=`, a duplicate key, and the section `data` or `log` if it is missing.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>> {
    let mut fields = BTreeMap::new();
    let mut section = String::new();
    for (index, line) in filled_lines(text) {
        let (name, rest) = line.split_once('=').ok_or_else(|| wrong_line("xfs_info", index, line, "no `=`"))?;
        if !name.trim().is_empty() {
            name.trim().clone_into(&mut section);
        }
        if section.is_empty() {
            return Err(wrong_line("xfs_info", index, line, "a value before the first section"));
        }
        for (key, value) in split_line(rest) {
            let key = key.map_or_else(|| section.clone(), |key| format!("{section} {key}"));
            if fields.insert(key, value).is_some() {
                return Err(wrong_line("xfs_info", index, line, "a duplicate key"));
            }
        }
    }
    having("xfs_info", fields, &["data bsize", "log"])
}

/// The pairs of one line; leading words without `=` come first, as one value without a key. Words after a pair are its
/// unit (`blks`) and are dropped.
fn split_line(rest: &str) -> Vec<(Option<&str>, String)> {
    let mut own = Vec::new();
    let mut pairs: Vec<(Option<&str>, String)> = Vec::new();
    for token in rest.split([' ', ',', '\t']).filter(|token| !token.is_empty()) {
        match token.split_once('=') {
            Some((key, value)) => pairs.push((Some(key), value.to_owned())),
            None if pairs.is_empty() => own.push(token),
            None => {}
        }
    }
    if !own.is_empty() {
        pairs.insert(0, (None, own.join(" ")));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    /// From xfsprogs 6.1.0.
    const INFO: &str = "\
meta-data=/dev/loop0             isize=512    agcount=4, agsize=65536 blks
         =                       sectsz=512   attr=2, projid32bit=1
         =                       crc=1        finobt=1, sparse=1, rmapbt=0
data     =                       bsize=4096   blocks=262144, imaxpct=25
         =                       sunit=0      swidth=0 blks
naming   =version 2              bsize=4096   ascii-ci=0, ftype=1
log      =internal log           bsize=4096   blocks=16384, version=2
         =                       sectsz=512   sunit=0 blks, lazy-count=1
realtime =none                   extsz=4096   blocks=0, rtextents=0
";

    #[test]
    fn a_geometry_reads() {
        let fields = parse(INFO).unwrap();
        assert_eq!(fields["meta-data"], "/dev/loop0");
        assert_eq!(fields["meta-data crc"], "1");
        assert_eq!(fields["data bsize"], "4096");
        assert_eq!(fields["log"], "internal log");
        assert_eq!(fields["log lazy-count"], "1");
        assert_eq!(fields["naming"], "version 2");
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(parse("x\n").unwrap_err().to_string(), "xfs_info, line 1: no `=`: `x`");
        assert_eq!(parse("data =bsize=4096\n").unwrap_err().to_string(), "xfs_info printed no `log`");
        assert!(parse("= a=1\n").unwrap_err().to_string().contains("before the first section"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop(parse(&text));
        }
    }
}
