//! Definition of every column of `seconds.parquet`: name, unit, kind, type and meaning, shared by writers and readers.
//!
//! Names end with the unit for times and sizes. Counters are stored raw; there are no rates or shares. Columns of block
//! devices are families: each device of the stack has one of every family.

/// Constants of columns, each with its doc comment as the meaning that is stored beside its figures.
macro_rules! columns {
    ($($(#[doc = $doc:literal])+
    $vis:vis const $id:ident: $type:ty = $kind:ident($name:literal, $unit:literal)$(.$then:ident())*;)+) => {
        $($(#[doc = $doc])+ $vis const $id: $type = $kind($name, $unit, concat!($($doc),+).trim_ascii_start())$(.$then())*;)+
    };
}

mod client;
mod machine;
mod postgres;
mod waits;
mod zfs;

pub use client::*;
pub use machine::*;
pub use postgres::*;
pub use waits::axes;
pub(crate) use waits::waits;
pub use zfs::*;

use crate::record::column::{Column, ColumnKind, ColumnType};

/// The definition of one column.
pub type ColumnDef = Column<&'static str>;

impl ColumnDef {
    /// The same column stored as text.
    const fn text(self) -> ColumnDef {
        ColumnDef { of: ColumnType::Text, ..self }
    }

    /// The same column for every block device of a stack.
    const fn of_each_device(self) -> DeviceColumn {
        DeviceColumn(self)
    }

    /// Owned copy of the definition.
    pub fn column(&self) -> Column {
        let [name, unit, doc] = [self.name, self.unit, self.doc].map(str::to_owned);
        Column { name, unit, kind: self.kind, of: self.of, doc }
    }
}

/// A counter.
const fn counter(name: &'static str, unit: &'static str, doc: &'static str) -> ColumnDef {
    ColumnDef { name, unit, kind: ColumnKind::Counter, of: ColumnType::Count, doc }
}

/// A state at the moment of the row.
const fn gauge(name: &'static str, unit: &'static str, doc: &'static str) -> ColumnDef {
    ColumnDef { kind: ColumnKind::Gauge, ..counter(name, unit, doc) }
}

/// A whole number counted since the previous row.
const fn interval(name: &'static str, unit: &'static str, doc: &'static str) -> ColumnDef {
    ColumnDef { kind: ColumnKind::Interval, ..counter(name, unit, doc) }
}

/// The definition of a column that every block device of a stack has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceColumn(ColumnDef);

impl DeviceColumn {
    /// Column name for one device, whose columns begin with `prefix` ([`super::seconds::device_prefixes`]).
    pub fn name(&self, prefix: &str) -> String {
        format!("{prefix}_{}", self.0.name)
    }

    /// The column of one device.
    pub fn column(&self, prefix: &str) -> Column {
        Column { name: self.name(prefix), ..self.0.column() }
    }

    /// True if a column of this name can belong to this family.
    pub(crate) fn includes(&self, name: &str) -> bool {
        let device = name.strip_prefix("dev_").and_then(|rest| rest.strip_suffix(self.0.name));
        device.is_some_and(|device| device.len() > 1 && device.ends_with('_'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_includes_exactly_the_columns_of_all_devices() {
        for name in ["dev_d1_flushes", "dev_xfs_loop_flushes", "dev_a_2_flushes"] {
            assert!(DEVICE_FLUSHES.includes(name), "{name}");
        }
        for name in ["d1_flushes", "dev_flushes", "dev_d1_flush_ms", "dev__flushe", "dev_d1"] {
            assert!(!DEVICE_FLUSHES.includes(name), "{name}");
        }
        assert!(DEVICE_FLUSHES.includes(&DEVICE_FLUSHES.name("dev_sda")));
    }
}
