//! For any text, the result is a plan or a list of mistakes that can be shown.

use super::{MANUAL, catalogue};
use crate::plan::{Paint, check};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use std::path::Path;

/// Words of plans, values of all kinds, and punctuation.
fn token() -> impl Strategy<Value = String> {
    const WORDS: &[&str] = &[
        "name",
        "seed",
        "blocks",
        "baseline",
        "stack",
        "postgres",
        "machine",
        "queue",
        "workload",
        "exclude",
        "device",
        "volume",
        "filesystem",
        "directory",
        "wal",
        "reuse",
        "loop",
        "disk",
        "ext4",
        "tmpfs",
        "size",
        "mkfs",
        "mount",
        "bin",
        "settings",
        "initdb",
        "pgbench",
        "sync",
        "clients",
        "scale",
        "duration",
        "[",
        "]",
        "{",
        "}",
        "[[",
        "]]",
        "=",
        ",",
        ".",
        "\n",
        "\n",
        " ",
        "\"6GiB\"",
        "\"ext4\"",
        "\"60s\"",
        "\"50% of RAM\"",
        "1",
        "0",
        "-1",
        "1.5",
        "true",
        "inf",
        "1979-05-27",
        "\"\"",
        "'",
        "\"",
        "#",
        "\\",
        "é",
        "\u{1b}",
        "\u{0}",
        "\u{feff}",
    ];
    prop_oneof![9 => proptest::sample::select(WORDS).prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)]
}

/// The manual's plan with part of it replaced.
fn bent() -> impl Strategy<Value = String> {
    let tokens = proptest::collection::vec(token(), 0..4).prop_map(|tokens| tokens.concat());
    (0..MANUAL.len(), 0usize..20, tokens).prop_map(|(start, length, tokens)| {
        let end = (start + length).min(MANUAL.len());
        format!("{}{tokens}{}", &MANUAL[..start], &MANUAL[end..])
    })
}

fn answers(text: &str) -> Result<(), proptest::test_runner::TestCaseError> {
    match check(text, Path::new("/"), &catalogue()) {
        Ok(plan) => {
            prop_assert!(!plan.cases.is_empty());
            prop_assert_eq!(plan.order.len(), plan.cases.len() * plan.blocks as usize);
            let ids: std::collections::BTreeSet<&String> = plan.cases.iter().map(|case| &case.id).collect();
            prop_assert_eq!(ids.len(), plan.cases.len());
        }
        Err(problems) => {
            prop_assert!(!problems.is_empty());
            let shown = problems.render(text, "plan.toml", Paint::Plain);
            prop_assert!(shown.contains("error"));
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
            prop_assert!(!problems.render(text, "plan.toml", Paint::Coloured).is_empty());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn random_text_never_panics(text in ".{0,200}") {
        answers(&text)?;
    }

    #[test]
    fn random_words_of_plans_never_panic(tokens in proptest::collection::vec(token(), 0..60)) {
        answers(&tokens.concat())?;
    }

    #[test]
    fn a_bent_plan_never_panics(text in bent()) {
        answers(&text)?;
    }

    #[test]
    fn two_bends_never_panic(text in bent(), at in 0usize..400, token in prop_oneof![token(), Just(String::new())]) {
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        answers(&format!("{}{token}{}", &text[..at], &text[at..]))?;
    }
}

#[test]
fn random_bytes_in_a_file_never_panic() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut state = 1u32;
    for length in 0..200 {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        std::fs::write(file.path(), &bytes).unwrap();
        let error = crate::plan::read(file.path(), &catalogue(), crate::plan::Paint::Plain).unwrap_err();
        assert_eq!(error.kind(), crate::error::Kind::User);
    }
}
