//! `zpool list`: devices and space of a pool.
//!
//! `zpool list -vHP POOL`: the devices of a pool. The pool's own line comes first; its devices follow, each after a
//! tab; devices not for data follow a line with the name of their class (zpool-list(8)).

use crate::error::{Error, Result};

/// Use of a device by its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VdevClass {
    Data,
    Log,
    Cache,
    Special,
    Dedup,
}

/// A device of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolDevice {
    /// Path of the device, partition or file.
    pub path: String,
    pub class: VdevClass,
}

/// Reads the devices of one pool, except spares, which hold no data.
///
/// # Errors
/// Names the line of an unknown class.
pub fn parse(text: &str) -> Result<Vec<PoolDevice>> {
    let mut class = Some(VdevClass::Data);
    let mut devices = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        let Some(vdev) = line.strip_prefix('\t') else {
            let heading = line.split_whitespace().next().unwrap_or_default();
            class = match heading {
                "log" | "logs" => Some(VdevClass::Log),
                "cache" => Some(VdevClass::Cache),
                "special" => Some(VdevClass::Special),
                "dedup" => Some(VdevClass::Dedup),
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
            devices.extend(class.map(|class| PoolDevice { path: name.to_owned(), class }));
        }
    }
    Ok(devices)
}

/// The columns that [`room`] reads, in order.
pub const ROOM_COLUMNS: &str = "size,allocated,free,fragmentation,capacity";

/// Space of a pool, bytes and percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSpace {
    pub size: u64,
    pub allocated: u64,
    pub free: u64,
    /// `None` if the pool does not report it (`-`).
    pub fragmentation: Option<u64>,
    pub capacity: u64,
}

/// Reads `zpool list -Hp -o` [`ROOM_COLUMNS`] `POOL`.
///
/// # Errors
/// Names a column that is not a number.
pub fn room(text: &str) -> Result<PoolSpace> {
    let values: Vec<&str> = text.trim_end_matches('\n').split('\t').collect();
    let names: Vec<&str> = ROOM_COLUMNS.split(',').collect();
    let &[size, allocated, free, fragmentation, capacity] = values.as_slice() else {
        return Err(Error::tool(format!(
            "zpool list prints {} columns, but {} were requested",
            values.len(),
            names.len()
        )));
    };
    Ok(PoolSpace {
        size: number(names[0], size)?,
        allocated: number(names[1], allocated)?,
        free: number(names[2], free)?,
        fragmentation: if fragmentation == "-" { None } else { Some(number(names[3], fragmentation)?) },
        capacity: number(names[4], capacity)?,
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
        let found: Vec<(&str, VdevClass)> = devices.iter().map(|device| (device.path.as_str(), device.class)).collect();
        let wanted = [
            ("/dev/loop0", VdevClass::Data),
            ("/dev/loop1", VdevClass::Data),
            ("/dev/loop4", VdevClass::Special),
            ("/dev/loop5", VdevClass::Special),
            ("/dev/loop2", VdevClass::Log),
            ("/dev/loop3", VdevClass::Cache),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_class_that_is_not_known_is_told() {
        let error = parse("tank\t1\nobjects\t-\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("`objects`"), "{error}");
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn pool_capacity_is_parsed_and_fragmentation_may_be_unknown() {
        let wanted = PoolSpace { size: 1000, allocated: 400, free: 600, fragmentation: Some(17), capacity: 40 };
        assert_eq!(room("1000\t400\t600\t17\t40\n").unwrap(), wanted);
        assert_eq!(room("1000\t400\t600\t17%\t40%\n").unwrap(), wanted);
        assert_eq!(room("1000\t400\t600\t-\t40\n").unwrap(), PoolSpace { fragmentation: None, ..wanted });
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
