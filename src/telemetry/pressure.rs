//! How long tasks stalled for CPU, storage and memory: `/proc/pressure`, total microseconds.

use super::{Reading, Sampler, Target, count};
use crate::error::Result;
use crate::host::Host;
use crate::parse::pressure;
use crate::record::seconds::{Column, Value};

/// The source `pressure`.
pub struct Pressure;

const RESOURCES: [&str; 3] = ["cpu", "io", "memory"];

struct Open(Host);

impl Sampler for Pressure {
    fn name(&self) -> &'static str {
        "pressure"
    }

    fn columns(&self, _target: &Target) -> Vec<Column> {
        let of = |resource: &str| {
            let some =
                format!("/proc/pressure/{resource}: time in which at least one task of the machine waited for it");
            let full = format!(
                "/proc/pressure/{resource}: time in which no task could go on for want of it; cpu has it since Linux 5.13"
            );
            [
                Column::counter(format!("psi_{resource}_some_us"), "us", some),
                Column::counter(format!("psi_{resource}_full_us"), "us", full),
            ]
        };
        RESOURCES.iter().flat_map(|resource| of(resource)).collect()
    }

    fn open(&self, host: &Host, _target: &Target) -> Result<Box<dyn Reading>> {
        let mut open = Open(host.clone());
        let hint = "pressure (PSI) needs Linux 4.20 with CONFIG_PSI, booted without psi=0";
        open.sample().map_err(|error| error.hint(hint))?;
        Ok(Box::new(open))
    }
}

impl Reading for Open {
    fn sample(&mut self) -> Result<Vec<Option<Value>>> {
        let mut row = Vec::with_capacity(2 * RESOURCES.len());
        for resource in RESOURCES {
            let path = format!("/proc/pressure/{resource}");
            let stalled = pressure::parse(&path, &self.0.read(&path)?)?;
            row.extend([count(stalled.some_us), count(stalled.full_us)]);
        }
        Ok(row)
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
        let row = Pressure.open(&Host::rooted(root.path()), &Target::default()).unwrap().sample().unwrap();
        assert_eq!(row, [count(1), None, count(2), count(3), count(4), count(5)]);
        assert_eq!(row.len(), Pressure.columns(&Target::default()).len());
    }

    #[test]
    fn a_kernel_without_pressure_says_what_it_lacks() {
        let root = tempfile::tempdir().unwrap();
        let error = Pressure.open(&Host::rooted(root.path()), &Target::default()).err().unwrap();
        assert!(error.hint_text().unwrap().contains("CONFIG_PSI"), "{error}");
    }
}
