//! What plans can name: the lists of layers and workloads, as the plan wants them.

use crate::ageing;
use crate::plan::{Catalogue, CatalogueEntry};
use crate::provision::{self, knobs};
use crate::record::stack::GroundKind;
use crate::workload;

/// Every layer, workload and knob of this program.
#[must_use]
pub fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::default();
    for &layer in provision::ALL {
        catalogue.layers.push(CatalogueEntry {
            name: layer.name(),
            doc: layer.info().doc,
            options: layer.info().options,
            resolve: Box::new(|_, _| ()),
            check: Box::new(move |options| layer.check(options)),
            takes: layer.info().takes,
            offers: layer.info().offers,
            grounds: Box::new(move |options| layer.grounds(options)),
            needs_server: false,
        });
    }
    for &workload in workload::ALL {
        catalogue.workloads.push(CatalogueEntry {
            name: workload.name(),
            doc: workload.info().doc,
            options: workload.info().options,
            resolve: Box::new(move |options, folder| workload.resolve(options, folder)),
            check: Box::new(move |options| workload.check(options)),
            takes: &[],
            offers: GroundKind::Folder,
            grounds: Box::new(|_| Vec::new()),
            needs_server: workload.info().needs_server,
        });
    }
    catalogue.machine = Some(CatalogueEntry {
        name: "machine",
        doc: "Knobs of the kernel.",
        options: knobs::MACHINE,
        resolve: Box::new(|_, _| ()),
        check: Box::new(knobs::check),
        takes: &[],
        offers: GroundKind::Folder,
        grounds: Box::new(|_| Vec::new()),
        needs_server: false,
    });
    catalogue.age = Some(CatalogueEntry {
        name: "age",
        doc: "Ages the stack before the measurement.",
        options: ageing::SPECS,
        resolve: Box::new(|_, _| ()),
        check: Box::new(ageing::check),
        takes: &[],
        offers: GroundKind::Folder,
        grounds: Box::new(|_| Vec::new()),
        needs_server: false,
    });
    catalogue.age_of_clusters = ageing::OF_CLUSTERS;
    catalogue
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_entries_of_one_kind_share_a_name_or_an_option() {
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
        let text = plan::example(&catalogue);
        plan::parse(&text, "example", &catalogue).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
