//! Where the parts of a stack are built, and under which name.

use crate::provision::Site;
use crate::record::stack::StackSpec;
use crate::run::session::Session;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Base name for everything in a stack.
pub(crate) fn name_of(session: &Session<'_>, spec: &StackSpec, trial: &str) -> String {
    // Stacks of one name that differ in an option may be kept at the same time.
    let alike = session.kept.iter().filter(|(kept, _)| kept.name == spec.name).count();
    let number = if alike == 0 { String::new() } else { format!("{alike}") };
    format!("pgstrata-{}-{trial}{number}.{}", session.record.id, spec.name)
}

pub(crate) fn site<'s>(session: &'s Session<'_>, name: String, images: &'s BTreeMap<String, PathBuf>) -> Site<'s> {
    Site {
        host: &session.host,
        ledger: &session.ledger,
        name,
        folder: session.folder.clone(),
        images,
        image: None,
        interrupt: &session.interrupt,
    }
}
