//! Where the parts of a stack are built, and under which name.

use crate::provision::Site;
use crate::record::stack::StackSpec;
use crate::run::session::Session;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Base name for everything in a stack.
pub(crate) fn name_of(session: &Session<'_>, spec: &StackSpec, trial: &str) -> String {
    // Stacks of one name may stand at the same time: kept ones that differ in an option, those of one block.
    let others = session.kept.iter().map(|(kept, _)| kept).chain(&session.images.beside);
    let alike = others.filter(|other| other.name == spec.name).count();
    let number = if alike == 0 { String::new() } else { format!("{alike}") };
    format!("pgstrata-{}-{trial}{number}.{}", session.record.id, spec.name)
}

pub(crate) fn site<'s>(session: &'s Session<'_>, name: String, images: &'s BTreeMap<String, PathBuf>) -> Site<'s> {
    let (host, ledger, folder) = (&session.host, &session.ledger, session.folder.clone());
    Site { host, ledger, name, folder, images, image: None, interrupt: &session.interrupt }
}
