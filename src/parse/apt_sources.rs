//! apt's package sources: one-line files (`sources.list`) and deb822 files (`*.sources`), sources.list(5).

/// Packages of one suite at one URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AptSource {
    pub uri: String,
    pub suite: String,
    pub components: Vec<String>,
    /// Keyring file, if the source names one.
    pub signed_by: Option<String>,
}

/// The binary sources of a one-line file; skips other lines.
pub(crate) fn one_line(text: &str) -> Vec<AptSource> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<AptSource> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb").filter(|rest| rest.starts_with([' ', '\t']))?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => ("", rest),
    };
    let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
    let mut words = rest.split_whitespace().map(str::to_owned);
    let (uri, suite) = (words.next()?, words.next()?);
    Some(AptSource { uri, suite, components: words.collect(), signed_by: signed_by.map(str::to_owned) })
}

/// The binary sources of a deb822 file: one for each URI and suite of a stanza.
pub(crate) fn deb822(text: &str) -> Vec<AptSource> {
    let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    plain.split(|line| line.trim().is_empty()).flat_map(stanza).collect()
}

fn stanza(lines: &[&str]) -> Vec<AptSource> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in lines {
        match (line.starts_with([' ', '\t']), line.split_once(':'), fields.last_mut()) {
            (true, _, Some((_, value))) => value.push_str(line),
            (false, Some((name, value)), _) => fields.push((name.trim().to_lowercase(), value.to_owned())),
            _ => {}
        }
    }
    let [enabled, types, signed_by, uris, suites, components] =
        ["enabled", "types", "signed-by", "uris", "suites", "components"].map(|name| -> Vec<String> {
            let found = fields.iter().find(|(field, _)| field == name);
            found.map(|(_, value)| value.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
        });
    if enabled.first().is_some_and(|word| word == "no") || !types.iter().any(|kind| kind == "deb") {
        return Vec::new();
    }
    let signed_by = signed_by.into_iter().next().filter(|file| file.starts_with('/'));
    let pairs = uris.iter().flat_map(|uri| suites.iter().map(move |suite| (uri.clone(), suite.clone())));
    let sources = pairs.map(|(uri, suite)| {
        let (components, signed_by) = (components.clone(), signed_by.clone());
        AptSource { uri, suite, components, signed_by }
    });
    sources.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    fn shown(sources: &[AptSource]) -> Vec<String> {
        let of = |source: &AptSource| {
            let AptSource { uri, suite, components, signed_by } = source;
            format!("{uri} {suite} {} {}", components.join("+"), signed_by.as_deref().unwrap_or("-"))
        };
        sources.iter().map(of).collect()
    }

    #[test]
    fn a_line_may_carry_options_and_comments() {
        let text = "# deb http://a x main\ndeb [arch=amd64 signed-by=/k.gpg] http://b x main contrib # why\n\
                    deb-src http://c x main\ndebris http://d x main\ndeb http://e x/\n";
        assert_eq!(shown(&one_line(text)), ["http://b x main+contrib /k.gpg", "http://e x/  -"]);
    }

    #[test]
    fn a_stanza_gives_a_source_for_each_suite() {
        let text = "Types: deb deb-src\n# http://snapshot\nURIs: http://a\nSuites: x\n x-updates\nComponents: main\n\
                    Signed-By: /k.gpg\n\nTypes: deb\nURIs: http://b\nSuites: y\nComponents: main\nEnabled: no\n";
        assert_eq!(shown(&deb822(text)), ["http://a x main /k.gpg", "http://a x-updates main /k.gpg"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "((deb|Types:|URIs:|Suites:) ?\\PC{0,30}\n?){0,6}") {
            drop((one_line(&text), deb822(&text)));
        }
    }
}
