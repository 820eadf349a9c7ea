//! How a text is mangled: bytes, numbers, lines, and what mails and pages do to them.

/// Numbers without end from a seed (splitmix64, Steele et al. 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// No variant is longer.
const LONGEST: usize = 256 * 1024;

/// What is put in.
const ODD: [&str; 40] = [
    "0",
    "-1",
    "-0",
    "1e308",
    "1e-400",
    "nan",
    "inf",
    "99999999999999999999",
    "18446744073709551615",
    "1.2.3",
    "1,234.5",
    "1.234,5",
    "%",
    "٣",
    "５",
    "½",
    "\u{a0}",
    "\u{202f}",
    "\u{200b}",
    "\u{feff}",
    "\t",
    "\r",
    "\n",
    "\r\n",
    "\0",
    "\u{1b}[31m",
    "|",
    "> ",
    ">>",
    "```",
    "<pre>",
    "$ ",
    "# ",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    " ",
];

/// A text after one to eight changes.
pub fn mutated(mut text: Vec<u8>, foreign: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    for _ in 0..=random.below(8) {
        text = change(text, foreign, random);
        text.truncate(LONGEST);
    }
    text
}

fn change(mut text: Vec<u8>, foreign: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let length = text.len();
    if length == 0 {
        return random.pick(foreign).clone();
    }
    let at = random.below(length);
    let end = (at + random.below(60) + 1).min(length);
    match random.below(18) {
        0 => text[at] ^= 1 << random.below(8),
        1 => text[at] = u8::try_from(random.below(256)).unwrap(),
        2 => drop(text.drain(at..end)),
        3 => {
            let piece = text[at..end].to_vec();
            let to = random.below(length);
            text.splice(to..to, piece);
        }
        4 => {
            let odd = random.pick(&ODD).as_bytes().to_vec();
            text.splice(at..at, odd);
        }
        5 => digits(&mut text, random),
        6 => text.truncate(at),
        7 => drop(text.drain(..at)),
        8 => {
            let other = random.pick(foreign);
            let from = random.below(other.len().max(1));
            let to = (from + random.below(2000)).min(other.len());
            text.splice(at..at, other[from..to].iter().copied());
        }
        9 => return lines(&text, random),
        10 => return String::from_utf8_lossy(&text).replace('\n', "\r\n").into_bytes(),
        11 => return wrapped(&text, 20 + random.below(80)),
        12 => return around(&text, random),
        13 => return collapsed(&text),
        14 => return String::from_utf8_lossy(&text).replace('.', ",").into_bytes(),
        15 => {
            let line = text[..at].iter().filter(|byte| **byte == b'\n').count();
            let piece = text.split_inclusive(|byte| *byte == b'\n').nth(line).unwrap_or_default();
            let many = piece.repeat(1 + random.below(200));
            text.splice(at..at, many);
        }
        16 => return folded(&text, 20 + random.below(110)),
        _ => {
            for byte in text.iter_mut().filter(|byte| **byte == b'\n') {
                if random.below(4) == 0 {
                    *byte = b' ';
                }
            }
        }
    }
    text
}

/// Other digits in place of some.
fn digits(text: &mut [u8], random: &mut Random) {
    for byte in text.iter_mut().filter(|byte| byte.is_ascii_digit()) {
        if random.below(10) == 0 {
            *byte = b'0' + u8::try_from(random.below(10)).unwrap();
        }
    }
}

/// Lines in another order, some of them gone or twice.
fn lines(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    for _ in 0..=random.below(4) {
        let (one, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(3) {
            0 => lines.swap(one, other),
            1 => lines.insert(one, lines[other]),
            _ if lines.len() > 1 => drop(lines.remove(one)),
            _ => {}
        }
    }
    lines.concat()
}

/// Lines broken at a blank before a column.
fn wrapped(text: &[u8], column: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut length = 0;
    for byte in text {
        length = if *byte == b'\n' { 0 } else { length + 1 };
        if *byte == b' ' && length > column {
            out.push(b'\n');
            length = 0;
        } else {
            out.push(*byte);
        }
    }
    out
}

/// Lines broken at a column, inside of words too, as `fold` and terminals do.
fn folded(text: &[u8], column: usize) -> Vec<u8> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| line.chunks(column).collect::<Vec<_>>().join(&b'\n')).collect()
}

/// What mails and pages put before and behind each line.
fn around(text: &[u8], random: &mut Random) -> Vec<u8> {
    const AROUND: [(&str, &str); 6] =
        [("> ", ""), (">> ", " "), ("| | ", " | |"), ("\u{a0}\u{a0}", "\u{a0}"), ("    ", ""), ("<p>", "</p>")];
    let (before, behind) = random.pick(&AROUND);
    let text = String::from_utf8_lossy(text);
    let lines: Vec<String> = text.lines().map(|line| format!("{before}{line}{behind}\n")).collect();
    lines.concat().into_bytes()
}

/// Runs of blanks as one.
fn collapsed(text: &[u8]) -> Vec<u8> {
    let mut out = text.to_vec();
    out.dedup_by(|one, other| *one == b' ' && *other == b' ');
    out
}
