//! `zfs get -Hp all` and `zpool get -Hp all`: properties, one per line, four tab-separated columns, exact numbers
//! (zfs-get(8), zpool-get(8)).

use crate::error::{Error, Result};

/// One property of a dataset or a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// `recordsize`, `feature@zstd_compress`, `pgstrata:mark`.
    pub name: String,
    /// Sizes in bytes; words unchanged.
    pub value: String,
    /// Source of the value: `local`, `default`, `inherited from POOL`, `temporary`; `-` if it cannot be set.
    pub source: String,
}

/// Reads the properties of one dataset or pool.
///
/// # Errors
/// Names a line that does not have four columns.
pub fn parse(text: &str) -> Result<Vec<Property>> {
    let properties = text.lines().enumerate().map(|(number, line)| {
        let bad = || Error::tool(format!("zfs get line {}: `{line}` is not NAME, PROPERTY, VALUE, SOURCE", number + 1));
        let (_, rest) = line.split_once('\t').ok_or_else(bad)?;
        let (name, rest) = rest.split_once('\t').ok_or_else(bad)?;
        // The value of a user property may contain a tab.
        let (value, source) = rest.rsplit_once('\t').ok_or_else(bad)?;
        Ok(Property { name: name.to_owned(), value: value.to_owned(), source: source.to_owned() })
    });
    properties.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn the_properties_of_a_real_dataset_and_pool_are_read() {
        let dataset = parse(include_str!("../../tests/fixtures/zfs/2.3.9-zfs-get.txt")).unwrap();
        let pool = parse(include_str!("../../tests/fixtures/zfs/2.3.9-zpool-get.txt")).unwrap();
        let of = |all: &[Property], name: &str| {
            let found = all.iter().find(|property| property.name == name).unwrap();
            (found.value.clone(), found.source.clone())
        };
        assert_eq!(of(&dataset, "recordsize"), ("8192".to_owned(), "local".to_owned()));
        assert_eq!(of(&dataset, "sync"), ("standard".to_owned(), "default".to_owned()));
        assert_eq!(of(&pool, "cachefile"), ("none".to_owned(), "local".to_owned()));
        assert_eq!(of(&pool, "feature@lz4_compress"), ("active".to_owned(), "local".to_owned()));
    }

    #[test]
    fn a_line_without_four_columns_is_told() {
        let error = parse("tank\tsync\tstandard\tdefault\ntank\tsync\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("PROPERTY"), "{error}");
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn a_tab_in_a_value_stays_in_it() {
        let property = &parse("tank\torg:note\ta\tb\tlocal").unwrap()[0];
        assert_eq!((property.value.as_str(), property.source.as_str()), ("a\tb", "local"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop(parse(&text));
        }
    }
}
