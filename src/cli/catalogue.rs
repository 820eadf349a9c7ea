//! Names that plans can use: the lists of layers and workloads, in the form that plans need.

use crate::plan::{Catalogue, CatalogueEntry};
use crate::provision::{self, knobs};
use crate::{ageing, workload};

/// All layers, workloads and knobs of this program.
pub fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::default();
    for &layer in provision::ALL {
        let info = layer.info();
        catalogue.layers.push(CatalogueEntry {
            check: Box::new(move |options| layer.check(options)),
            takes: info.takes,
            offers: info.offers,
            bases: Box::new(move |options| layer.bases(options)),
            ..CatalogueEntry::new(info.name, info.doc, info.options)
        });
    }
    for &workload in workload::ALL {
        let info = workload.info();
        catalogue.workloads.push(CatalogueEntry {
            resolve: Box::new(move |options, folder| workload.resolve(options, folder)),
            check: Box::new(move |options| workload.check(options)),
            needs_server: info.needs_server,
            ..CatalogueEntry::new(workload.name(), info.doc, info.options)
        });
    }
    let machine = CatalogueEntry::new("machine", "Knobs of the kernel.", knobs::MACHINE);
    catalogue.machine = Some(CatalogueEntry { check: Box::new(knobs::check), ..machine });
    let age = CatalogueEntry::new("age", "Ages the stack before the measurement.", ageing::SPECS);
    catalogue.age = Some(CatalogueEntry { check: Box::new(ageing::check), ..age });
    catalogue.age_of_clusters = ageing::OF_CLUSTERS;
    catalogue
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;
    use std::collections::BTreeSet;

    #[test]
    fn entries_of_one_kind_have_unique_names_and_options() {
        let catalogue = catalogue();
        for kind in [&catalogue.layers, &catalogue.workloads] {
            let names: BTreeSet<&str> = kind.iter().map(|entry| entry.name).collect();
            assert_eq!(names.len(), kind.len());
            for entry in kind {
                let keys: BTreeSet<&str> = entry.options.iter().map(|spec| spec.key).collect();
                assert_eq!(keys.len(), entry.options.len(), "{}", entry.name);
            }
        }
    }

    #[test]
    fn the_example_of_what_this_program_has_is_a_plan() {
        let catalogue = catalogue();
        if catalogue.layers.is_empty() || catalogue.workloads.is_empty() {
            println!("skipped: this program has no filesystem or no workload, so no plan can be written for it");
            return;
        }
        for text in [plan::SHORT_EXAMPLE, &plan::example(&catalogue)] {
            plan::parse(text, "example", &catalogue).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }
}
