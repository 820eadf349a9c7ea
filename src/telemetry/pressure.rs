//! Time that tasks stalled for CPU, storage and memory: `/proc/pressure`, total microseconds.

use super::{Reading, SampledObjects, Sampler, count};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::parse::pressure;
use crate::record::column::Column;
use crate::record::columns::{self, ColumnDef};

pub struct PressureSampler;

/// Resources that tasks wait for, with the columns for `some` and `full`.
const RESOURCES: [(&str, [ColumnDef; 2]); 3] = [
    ("cpu", [columns::PSI_CPU_SOME_US, columns::PSI_CPU_FULL_US]),
    ("io", [columns::PSI_IO_SOME_US, columns::PSI_IO_FULL_US]),
    ("memory", [columns::PSI_MEMORY_SOME_US, columns::PSI_MEMORY_FULL_US]),
];

impl Sampler for PressureSampler {
    fn about(&self) -> (&'static str, &'static str) {
        ("pressure", "How long tasks stalled for CPU, storage and memory, from `/proc/pressure`.")
    }

    fn columns(&self, _target: &SampledObjects) -> Vec<Column> {
        RESOURCES.iter().flat_map(|(_, some_and_full)| some_and_full.iter().map(ColumnDef::column)).collect()
    }

    fn open(&self, host: &Host, _target: &SampledObjects) -> Result<Reading> {
        let host = host.clone();
        let read = move || {
            let mut row = Vec::with_capacity(2 * RESOURCES.len());
            for (resource, _) in RESOURCES {
                let path = format!("/proc/pressure/{resource}");
                let stalled = pressure::parse(&path, &host.read(&path)?)?;
                row.extend([count(stalled.some_us), count(stalled.full_us)]);
            }
            Ok(row)
        };
        let hint = "pressure (PSI) needs Linux 4.20 with CONFIG_PSI, booted without psi=0";
        read().map_err(|error: Error| error.hint(hint))?;
        Ok(Box::new(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_come_in_the_order_of_the_columns() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/pressure")).unwrap();
        for (resource, text) in [
            ("cpu", "some avg10=0.00 total=1\n"),
            ("io", "some avg10=0.00 total=2\nfull avg10=0.00 total=3\n"),
            ("memory", "some avg10=0.00 total=4\nfull avg10=0.00 total=5\n"),
        ] {
            std::fs::write(root.path().join("proc/pressure").join(resource), text).unwrap();
        }
        let row = PressureSampler.open(&Host::rooted(root.path()), &SampledObjects::default()).unwrap()().unwrap();
        assert_eq!(row, [count(1), None, count(2), count(3), count(4), count(5)]);
        assert_eq!(row.len(), PressureSampler.columns(&SampledObjects::default()).len());
    }

    #[test]
    fn a_kernel_without_pressure_says_what_it_lacks() {
        let root = tempfile::tempdir().unwrap();
        let error = PressureSampler.open(&Host::rooted(root.path()), &SampledObjects::default()).err().unwrap();
        assert!(error.hint_text().unwrap().contains("CONFIG_PSI"), "{error}");
    }
}
