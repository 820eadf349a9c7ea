//! `/proc/PID/mountinfo`, the kernel's mount table (proc(5); Documentation/filesystems/proc.rst, section 3.5).

use crate::error::{Error, Result};

/// One mount, with the kernel's octal escapes undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Mount id.
    pub id: u32,
    /// Id of the parent mount.
    pub parent: u32,
    /// Major device number of the filesystem; 0 for filesystems without a device of their own (tmpfs, btrfs, overlay).
    pub major: u32,
    /// Minor device number of the filesystem.
    pub minor: u32,
    /// Mounted path within the filesystem; `/` for all of it.
    pub root: String,
    /// Mount point.
    pub target: String,
    /// Options of the mount point.
    pub options: Vec<String>,
    /// Filesystem type.
    pub fstype: String,
    /// Device, or the name that was given to mount.
    pub source: String,
    /// Options of the filesystem.
    pub super_options: Vec<String>,
}

/// Reads the whole table, in the kernel's order (a later mount on the same target hides an earlier one).
///
/// # Errors
/// Names the line, the item and its expected form.
pub fn parse(text: &str) -> Result<Vec<Mount>> {
    let wrong = |index, what| Error::host(format!("mountinfo, line {}: {what}", index + 1));
    text.lines().enumerate().map(|(index, line)| parse_line(line).map_err(|what| wrong(index, what))).collect()
}

fn parse_line(line: &str) -> Result<Mount, String> {
    let mut fields = line.split(' ');
    let mut next = |item: &str| fields.next().filter(|field| !field.is_empty()).ok_or(format!("no {item}"));
    let id = number(next("mount id")?, "mount id")?;
    let parent = number(next("parent id")?, "parent id")?;
    let device = next("device number")?;
    let (major, minor) = device.split_once(':').ok_or(format!("device number `{device}` is not major:minor"))?;
    let root = unescape(next("root")?)?;
    let target = unescape(next("mount point")?)?;
    let options = split_options(next("mount options")?)?;
    // Optional fields come before it: `shared:1`, `master:2`.
    while next("separator `-`")? != "-" {}
    let fstype = unescape(next("filesystem type")?)?;
    // The kernel prints an empty source as nothing between two spaces.
    let source = unescape(fields.next().ok_or("no source")?)?;
    let super_options = split_options(fields.next().ok_or("no filesystem options")?)?;
    if let Some(extra) = fields.next() {
        return Err(format!("`{extra}` after the filesystem options"));
    }
    let (major, minor) = (number(major, "major")?, number(minor, "minor")?);
    Ok(Mount { id, parent, major, minor, root, target, options, fstype, source, super_options })
}

fn number(text: &str, item: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{item} `{text}` is not a number"))
}

fn split_options(text: &str) -> Result<Vec<String>, String> {
    text.split(',').filter(|option| !option.is_empty()).map(unescape).collect()
}

/// Undoes escapes such as `\040` (the kernel's mangle(): space, tab, newline, backslash, and `#` in some fields).
fn unescape(text: &str) -> Result<String, String> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if let (b'\\', Some(byte)) = (*first, after.get(..3).and_then(octal)) {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            // Filesystems with escapes of their own (overlay: `\,` and `\:`) keep them.
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("`{text}` is not UTF-8"))
}

fn octal(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0u8, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 8)?;
        value.checked_mul(8)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    const TABLE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard,resuid=65534
42 27 0:39 / /tmp/a\\040b rw,relatime - tmpfs n\\040x rw,size=4k
43 27 0:40 /@home /home rw,noatime - btrfs /dev/loop0 rw,discard=async,space_cache=v2,subvolid=5,subvol=/@home
44 27 0:41 / /over rw - overlay  rw,lowerdir=/a\\,b
";

    #[test]
    fn a_real_table_reads() {
        let mounts = parse(TABLE).unwrap();
        assert_eq!(mounts.len(), 5);
        let root = &mounts[1];
        assert_eq!((root.id, root.parent, root.major, root.minor), (27, 1, 254, 0));
        assert_eq!(root.super_options, ["rw", "discard", "resuid=65534"]);
        assert_eq!((mounts[2].target.as_str(), mounts[2].source.as_str()), ("/tmp/a b", "n x"));
        assert_eq!(mounts[3].root, "/@home");
        assert_eq!(mounts[4].source, "");
    }

    #[test]
    fn errors_name_the_line_and_the_item() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("22 27 0:21 / /proc rw - proc proc rw\nx"), "mountinfo, line 2: mount id `x` is not a number");
        assert_eq!(
            error("22 27 021 / /proc rw - proc proc rw"),
            "mountinfo, line 1: device number `021` is not major:minor"
        );
        assert_eq!(error("22 27 0:21 / /proc rw shared:1"), "mountinfo, line 1: no separator `-`");
        assert_eq!(error("22 27 0:21 / /proc rw - proc proc"), "mountinfo, line 1: no filesystem options");
        assert_eq!(
            error("22 27 0:21 / /proc rw - proc proc rw extra"),
            "mountinfo, line 1: `extra` after the filesystem options"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop(parse(&text));
        }

        #[test]
        fn any_target_survives_the_kernels_escaping(name in "[^\r\n]{1,30}") {
            let escaped: String = name.chars().map(|c| match c {
                ' ' => "\\040".to_owned(),
                '\t' => "\\011".to_owned(),
                '\\' => "\\134".to_owned(),
                c => c.to_string(),
            }).collect();
            let mounts = parse(&format!("1 2 0:3 / /{escaped} rw - tmpfs none rw\n")).unwrap();
            prop_assert_eq!(&mounts[0].target, &format!("/{name}"));
        }
    }
}
