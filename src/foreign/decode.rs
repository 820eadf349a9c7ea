//! Decodes bytes to text by evidence: a byte order mark, valid UTF-8, or else a Western single-byte encoding. Refuses
//! anything that is not text. Drops sequences that colour a terminal.

/// Text, and its encoding if that is not UTF-8: `UTF-16LE`, `UTF-16BE`, `Latin-1`, `Windows-1252`.
pub type Text = (String, Option<&'static str>);

/// Decodes bytes to text.
///
/// # Errors
/// Names what the bytes are instead, as in "it is ...".
pub fn decode(bytes: Vec<u8>) -> Result<Text, String> {
    if let Some((big, rest)) = sixteen_bits(&bytes) {
        let text = from_sixteen_bits(rest, big);
        if binary_share(text.bytes()) {
            return Err(what_binary(&bytes));
        }
        return Ok((plain(text), Some(if big { "UTF-16BE" } else { "UTF-16LE" })));
    }
    if is_binary(&bytes) {
        return Err(what_binary(&bytes));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((plain(text), None)),
        Err(error) => {
            let bytes = error.as_bytes();
            let windows = bytes.iter().any(|byte| (0x80..0xa0).contains(byte));
            let text: String = bytes.iter().map(|byte| from_windows(*byte)).collect();
            Ok((plain(text), Some(if windows { "Windows-1252" } else { "Latin-1" })))
        }
    }
}

/// True if bytes that are not UTF-16 are not text either.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    sixteen_bits(bytes).is_none() && (bytes.contains(&0) || binary_share(bytes.iter().copied()))
}

/// True if more bytes are control characters than in the output of a terminal.
fn binary_share(bytes: impl Iterator<Item = u8>) -> bool {
    let (mut all, mut controls) = (0usize, 0usize);
    for byte in bytes {
        all += 1;
        let usual = matches!(byte, b'\t' | b'\n' | b'\r' | 0x07 | 0x08 | 0x0b | 0x0c | 0x1b);
        controls += usize::from(byte < 0x20 && !usual);
    }
    controls * 50 > all
}

/// Names the kind of binary data by its first bytes.
fn what_binary(bytes: &[u8]) -> String {
    const ARCHIVES: [(&[u8], &str); 4] =
        [(b"PK\x03\x04", "zip"), (b"BZh", "bzip2"), (b"7z\xbc\xaf", "7-Zip"), (b"\x04\x22\x4d\x18", "lz4")];
    match ARCHIVES.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        Some((_, name)) => format!("packed with {name}: unpack it first"),
        None if bytes.get(257..262) == Some(b"ustar") => "a tar archive: unpack it first".to_owned(),
        None => "binary, not text".to_owned(),
    }
}

/// Byte order (true for big-endian) and the rest of a text that starts with a UTF-16 byte order mark.
fn sixteen_bits(bytes: &[u8]) -> Option<(bool, &[u8])> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => Some((false, rest)),
        [0xfe, 0xff, rest @ ..] => Some((true, rest)),
        _ => None,
    }
}

fn from_sixteen_bits(bytes: &[u8], big: bool) -> String {
    let units = bytes.chunks_exact(2).map(|pair| match big {
        true => u16::from_be_bytes([pair[0], pair[1]]),
        false => u16::from_le_bytes([pair[0], pair[1]]),
    });
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Decodes Windows-1252, which differs from Latin-1 only from 0x80 to 0x9f.
fn from_windows(byte: u8) -> char {
    const FROM_80: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => FROM_80[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// Removes sequences that colour a terminal or move its cursor (ECMA-48, "CSI").
fn plain(text: String) -> String {
    if !text.contains("\u{1b}[") {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let length = behind.bytes().take_while(|byte| (0x20..0x40).contains(byte)).count();
        let ends = behind.as_bytes().get(length).is_some_and(|byte| (0x40..0x7f).contains(byte));
        rest = &behind[length + usize::from(ends)..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn of(bytes: &[u8]) -> (String, Option<&'static str>) {
        decode(bytes.to_vec()).unwrap()
    }

    #[test]
    fn the_code_is_told_by_the_bytes() {
        let big: Vec<u8> = "größe 5\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(of("größe 5\n".as_bytes()), ("größe 5\n".into(), None));
        assert_eq!(of(b"gr\xf6\xdfe 5\n"), ("größe 5\n".into(), Some("Latin-1")));
        assert_eq!(of(b"5 \x80\n"), ("5 €\n".into(), Some("Windows-1252")));
        assert!(decode(big.clone()).is_err(), "without a mark");
        assert_eq!(of(&[&[0xfe, 0xff], big.as_slice()].concat()), ("größe 5\n".into(), Some("UTF-16BE")));
        assert_eq!(of(b"\xff\xfe5\0\n\0"), ("5\n".into(), Some("UTF-16LE")));
        assert_eq!(of(b"\xff\xfe\0\xd85\0"), ("\u{fffd}5".into(), Some("UTF-16LE")));
    }

    #[test]
    fn colours_of_a_terminal_are_left_out() {
        assert_eq!(of(b"\x1b[1;31msda\x1b[0m 5\x1b[K\n\x1b["), ("sda 5\n".into(), None));
    }

    #[test]
    fn what_is_no_text_is_named() {
        let mut tar = vec![b'a'; 300];
        tar[257..262].copy_from_slice(b"ustar");
        tar[100] = 0;
        for (bytes, what) in [
            (&b"\x7fELF\0\0\0"[..], "binary, not text"),
            (b"PK\x03\x04\0\0\0", "packed with zip: unpack it first"),
            (&tar, "a tar archive: unpack it first"),
            (&[1, 2, 3, 4, 5], "binary, not text"),
            (b"text with one zero\0", "binary, not text"),
        ] {
            assert_eq!(decode(bytes.to_vec()).unwrap_err(), what);
        }
        assert!(!is_binary(b"a bell \x07 and a form feed \x0c are text"));
    }

    proptest! {
        #[test]
        fn text_comes_back_from_every_code(text in "[ -~é¿\n]{2,200}") {
            let text = format!("5 {text}");
            let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
            prop_assert_eq!(of(&[&[0xff, 0xfe], le.as_slice()].concat()).0, text.clone());
            prop_assert_eq!(of(text.as_bytes()).0, text.clone());
            // Skip text that happens to be valid UTF-8 as well.
            if String::from_utf8(latin.clone()).is_err() {
                prop_assert_eq!(of(&latin).0, text);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            drop(decode(bytes));
        }
    }
}
