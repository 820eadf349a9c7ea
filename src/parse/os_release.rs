//! `/etc/os-release`: the name of the distribution (os-release(5)).

/// Name of the distribution: `PRETTY_NAME`, else `NAME`, unquoted.
pub fn pretty_name(text: &str) -> Option<String> {
    let names = ["PRETTY_NAME", "NAME"].into_iter().find_map(|wanted| {
        let mut pairs = text.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(item, _)| item.trim() == wanted)
    });
    names.map(|(_, name)| unquoted(name.trim())).filter(|name| !name.is_empty())
}

/// A value of a shell-like assignment without its quotes and backslashes.
fn unquoted(value: &str) -> String {
    let inner = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote)).unwrap_or(value);
    let mut plain = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    #[test]
    fn the_pretty_name_is_taken_unquoted() {
        let text = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(pretty_name(text).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(pretty_name("NAME=Arch\n").as_deref(), Some("Arch"));
        assert_eq!(pretty_name(r#"PRETTY_NAME="A \"B\"""#).as_deref(), Some(r#"A "B""#));
    }

    #[test]
    fn a_file_without_a_name_gives_none() {
        assert_eq!(pretty_name("ID=debian\n"), None);
        assert_eq!(pretty_name("PRETTY_NAME=\"\"\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(PRETTY_NAME=)?\\PC{0,40}\n?") {
            drop(pretty_name(&text));
        }
    }
}
