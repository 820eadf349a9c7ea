//! `gpart list` of FreeBSD: disks and their partitions.
//!
//! A provider is a row with the labels `geom`, `part` (`provider` or `consumer`) and `name`, and the figures
//! `media_bytes`, `sector_bytes`, `stripe_bytes`, `stripe_offset_bytes`, `offset_bytes`, `length_bytes` in B, `start`,
//! `end`, `index`. What is no number is a fact under `<name> <key>`; the geom's own lines are facts under its name.
//! Source: gpart(8), geom(8).

use super::output::{Line, Output};
use super::{table, web};

/// Whether the text names a geom.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    lines.iter().any(|line| geom(line.text).is_some())
}

/// Reads every run of geoms in the text.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let mut outputs: Vec<Output> = Vec::new();
    let mut state: Option<State> = None;
    for line in lines {
        if let Some(name) = geom(line.text) {
            if state.is_none() {
                outputs.push(Output { tool: "gpart list", lines: (line.number, line.number), ..Output::default() });
            }
            state = Some(State { geom: name.to_owned(), part: "geom", name: name.to_owned() });
            if let Some(output) = outputs.last_mut() {
                output.facts.push(("geom".to_owned(), name.to_owned()));
                table::extend(output, line.number);
            }
            continue;
        }
        let (Some(current), Some(output)) = (&mut state, outputs.last_mut()) else { continue };
        if line.text.trim().is_empty() {
            continue;
        }
        if current.take(output, *line) {
            table::extend(output, line.number);
        } else {
            state = None;
        }
    }
    outputs
}

fn geom(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("Geom name:")?.trim();
    (!name.is_empty() && !name.contains(' ')).then_some(name)
}

struct State {
    geom: String,
    part: &'static str,
    name: String,
}

impl State {
    /// Takes a line; false when it is none of gpart's.
    fn take(&mut self, output: &mut Output, line: Line<'_>) -> bool {
        let text = line.text.trim();
        match text {
            "Providers:" => self.part = "provider",
            "Consumers:" => self.part = "consumer",
            _ => {
                let Some((key, value)) = text.split_once(':') else { return false };
                let name = key.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
                if name == "Name" && key != name {
                    value.trim().clone_into(&mut self.name);
                    let labels = vec![
                        ("geom", self.geom.clone()),
                        ("part", self.part.to_owned()),
                        ("name", value.trim().to_owned()),
                    ];
                    output.rows.push(table::row(labels, line.number));
                    return true;
                }
                if key.contains(' ') || key.is_empty() {
                    return false;
                }
                self.item(output, key, value.trim(), line);
            }
        }
        true
    }

    fn item(&self, output: &mut Output, key: &str, value: &str, line: Line<'_>) {
        let known = match key {
            "Mediasize" => Some(("media_bytes", "B")),
            "Sectorsize" => Some(("sector_bytes", "B")),
            "Stripesize" => Some(("stripe_bytes", "B")),
            "Stripeoffset" => Some(("stripe_offset_bytes", "B")),
            "offset" => Some(("offset_bytes", "B")),
            "length" => Some(("length_bytes", "B")),
            "start" => Some(("start", "sectors")),
            "end" => Some(("end", "sectors")),
            "index" => Some(("index", "")),
            _ => None,
        };
        let first = value.split_whitespace().next().unwrap_or_default();
        let row = output.rows.last_mut().filter(|_| self.part != "geom");
        match (row, known, web::number(first)) {
            (Some(row), Some((name, unit)), Some(number)) => {
                row.figures.push(table::figure(name, unit, number, first, line.number));
            }
            (Some(_), Some(_), None) => output.unread.push(table::unread(line, "a number")),
            _ => output.facts.push((format!("{} {key}", self.name), value.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::mangle::{any_mangling, numbers_not_read};
    use super::super::table::checks::outputs_of;
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    const PUBLISHED: &str = include_str!("../../shelf/freebsd10-zfs-fsync-2014/gpart-list.txt");
    const LIST: &str = "Geom name: ada0\nmodified: false\nstate: OK\nfwheads: 16\nlast: 488397127\nscheme: GPT\nProviders:\n\
        1. Name: ada0p1\n   Mediasize: 524288 (512K)\n   Sectorsize: 512\n   Mode: r0w0e0\n   type: freebsd-boot\n   index: 1\n   end: 1063\n   start: 40\n\
        Consumers:\n1. Name: ada0\n   Mediasize: 250059350016 (233G)\n   Sectorsize: 512\n";

    fn outputs(text: &str) -> Vec<Output> {
        outputs_of(text, looks_like, read)
    }

    #[test]
    fn what_was_published_is_read() {
        let found = outputs(PUBLISHED);
        assert_eq!(numbers_not_read(PUBLISHED, &found), Vec::<String>::new());
        assert_eq!(found[0].facts, [("geom".to_owned(), "mfid[1-12]".to_owned())]);
    }

    #[test]
    fn providers_are_rows_and_texts_are_facts() {
        let found = outputs(LIST);
        assert_eq!((found.len(), found[0].rows.len(), found[0].lines), (1, 2, (1, 19)));
        assert_eq!(found[0].rows[0].figures[0].value, 524_288.0);
        assert!(found[0].facts.contains(&("ada0p1 type".to_owned(), "freebsd-boot".to_owned())));
        assert!(found[0].facts.contains(&("ada0 scheme".to_owned(), "GPT".to_owned())));
        let found = outputs("Geom name: a\nProviders:\n1. Name: ap1\nMediasize: ?\nand so on\n");
        assert_eq!((found[0].unread[0].line, found[0].lines.1), (4, 4));
    }

    proptest! {
        #[test]
        fn mangled_text_gives_the_same_or_less(mangling in any_mangling()) {
            let count = |outputs: &[Output]| -> usize {
                outputs.iter().flat_map(|output| &output.rows).map(|row| row.figures.len()).sum()
            };
            prop_assert!(count(&outputs(&mangling.apply(LIST))) <= count(&outputs(LIST)), "{}", mangling.apply(LIST));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(Geom name: a|Providers:|1. Name: b|Mediasize: [0-9]|x: y|[ \\n:]){0,30}", any in any::<String>()) {
            outputs(&text);
            outputs(&any);
        }
    }
}
