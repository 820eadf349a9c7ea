//! `zpool list`: devices and space of a pool.
//!
//! `zpool list -vHP POOL`: the devices of a pool. The pool's own line comes first; its devices follow, each after a
//! tab; devices not for data follow a line with the name of their class (zpool-list(8)).

use crate::error::{Error, Result};
use crate::record::age::PoolRoom;
use crate::record::stack::Role;

/// Reads the devices (or partitions, or files) of one pool by their paths, except spares, which hold no data.
///
/// # Errors
/// Names the line of an unknown class.
pub fn parse(text: &str) -> Result<Vec<(String, Role)>> {
    let mut class = Some(Role::Data);
    let mut devices = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        let Some(vdev) = line.strip_prefix('\t') else {
            let heading = line.split_whitespace().next().unwrap_or_default();
            class = match heading {
                "log" | "logs" => Some(Role::Log),
                "cache" => Some(Role::Cache),
                "special" => Some(Role::Special),
                "dedup" => Some(Role::Dedup),
                "spare" | "spares" => None,
                _ => {
                    let message = format!("zpool list line {}: unknown class of devices `{heading}`", number + 1);
                    return Err(Error::tool(message));
                }
            };
            continue;
        };
        let name = vdev.split('\t').next().unwrap_or_default().trim();
        if name.starts_with('/') {
            devices.extend(class.map(|class| (name.to_owned(), class)));
        }
    }
    Ok(devices)
}

/// The columns that [`room`] reads, in order.
pub const ROOM_COLUMNS: &str = "size,allocated,free,fragmentation,capacity";

/// Reads `zpool list -Hp -o` [`ROOM_COLUMNS`] `POOL`.
///
/// # Errors
/// Names a column that is not a number.
pub fn room(text: &str) -> Result<PoolRoom> {
    let values: Vec<&str> = text.trim_end_matches('\n').split('\t').collect();
    let names: Vec<&str> = ROOM_COLUMNS.split(',').collect();
    let &[size, allocated, free, fragmentation, capacity] = values.as_slice() else {
        let (found, wanted) = (values.len(), names.len());
        return Err(Error::tool(format!("zpool list prints {found} columns, but {wanted} were requested")));
    };
    Ok(PoolRoom {
        size_bytes: number(names[0], size)?,
        allocated_bytes: number(names[1], allocated)?,
        free_bytes: number(names[2], free)?,
        fragmentation_percent: if fragmentation == "-" { None } else { Some(number(names[3], fragmentation)?) },
        capacity_percent: number(names[4], capacity)?,
    })
}

fn number(column: &str, text: &str) -> Result<u64> {
    // Versions before 2.0 print the percent sign even with -p.
    let digits = text.strip_suffix('%').unwrap_or(text);
    digits.parse().map_err(|_| Error::tool(format!("zpool list: {column} is `{text}`, not a number")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn the_devices_of_a_real_pool_have_their_classes() {
        let devices = parse(include_str!("../../tests/fixtures/zfs/2.3.9-zpool-list.txt")).unwrap();
        let found: Vec<(&str, Role)> = devices.iter().map(|(path, role)| (path.as_str(), *role)).collect();
        let wanted = [
            ("/dev/loop0", Role::Data),
            ("/dev/loop1", Role::Data),
            ("/dev/loop4", Role::Special),
            ("/dev/loop5", Role::Special),
            ("/dev/loop2", Role::Log),
            ("/dev/loop3", Role::Cache),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_class_that_is_not_known_is_told() {
        let error = parse("tank\t1\nobjects\t-\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("`objects`"), "{error}");
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn pool_capacity_is_parsed_and_fragmentation_may_be_unknown() {
        let wanted = PoolRoom {
            size_bytes: 1000,
            allocated_bytes: 400,
            free_bytes: 600,
            fragmentation_percent: Some(17),
            capacity_percent: 40,
        };
        assert_eq!(room("1000\t400\t600\t17\t40\n").unwrap(), wanted);
        assert_eq!(room("1000\t400\t600\t17%\t40%\n").unwrap(), wanted);
        assert_eq!(room("1000\t400\t600\t-\t40\n").unwrap(), PoolRoom { fragmentation_percent: None, ..wanted });
        let wrong = |text| room(text).unwrap_err().to_string();
        assert!(wrong("1000\t-\t600\t0\t40\n").contains("allocated is `-`"));
        assert!(wrong("1000\t1\n").contains("2 columns"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop((parse(&text), room(&text)));
        }
    }
}
