//! `/proc/cpuinfo`: the CPUs. Its layout differs by architecture, so no field is required.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpuinfo {
    /// `model name` of the first CPU; mostly missing on architectures other than x86.
    pub model: Option<String>,
    /// True if the CPU reports that it runs under a hypervisor (x86 flag `hypervisor`); `None` if it has no flags.
    pub hypervisor: Option<bool>,
}

/// Reads the first CPU, which stands for all.
pub fn parse(text: &str) -> Cpuinfo {
    Cpuinfo {
        model: value(text, "model name").filter(|model| !model.is_empty()).map(str::to_owned),
        hypervisor: value(text, "flags").map(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor")),
    }
}

fn value<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(item, _)| item.trim() == wanted).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    #[test]
    fn the_first_cpu_of_an_x86_machine_stands_for_all() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\n";
        assert_eq!(parse(text), Cpuinfo { model: Some("AMD EPYC".to_owned()), hypervisor: Some(true) });
        assert_eq!(parse("model name : X\nflags : fpu\n").hypervisor, Some(false));
    }

    #[test]
    fn an_arm_machine_says_neither() {
        assert_eq!(parse("processor\t: 0\nCPU part\t: 0xd0c\n"), Cpuinfo::default());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(model name|flags)?[\t :a-z]{0,30}\n?|\\PC{0,60}") {
            drop(parse(&text));
        }
    }
}
