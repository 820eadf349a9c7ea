//! `--on`: a plan of image files on a disk or in a folder of the person's own.

use super::init;
use super::out;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::provision::{disk, drives};
use crate::record::case::CaseSpec;
use crate::record::options::OptionValue;
use crate::record::stack::{GroundName, StackSpec};

/// The layer that is an image file, its option for the folder, and the layer that is a disk.
const IMAGE: &str = "loop";
const FOLDER: &str = "in";
const DISK: &str = "disk";
/// What both can be asked for.
const KEPT: [&str; 3] = ["queue", drives::PRECONDITION.key, drives::PRECONDITION_ROUND.key];

/// Puts the image files of the cases into a folder, or a disk in their place.
///
/// # Errors
/// When it is neither, or the disk is in use; when a stack has no image file, or several and there is one disk.
pub fn put(host: &Host, cases: &mut [CaseSpec], on: &str) -> Result<()> {
    let place = init::place(on, &disk::found(host))?;
    if cases.iter().all(|case| images(&case.stack) == 0) {
        return Err(Error::user("no stack of the plan has an image file that --on could place")
            .hint("copy the plan and name your devices in it"));
    }
    for case in cases {
        match &place {
            init::Place::Loop => {}
            init::Place::Folder(folder) => in_folder(&mut case.stack, folder),
            init::Place::Disk { path, key, value } => on_disk(case, path, (*key, value))?,
        }
    }
    Ok(())
}

fn images(stack: &StackSpec) -> usize {
    stack.nodes.iter().filter(|node| node.layer == IMAGE).count()
}

fn in_folder(stack: &mut StackSpec, folder: &str) {
    for node in stack.nodes.iter_mut().filter(|node| node.layer == IMAGE) {
        node.options.set(FOLDER, OptionValue::Text(folder.to_owned()));
    }
}

fn on_disk(case: &mut CaseSpec, path: &str, (key, value): (&str, &str)) -> Result<()> {
    if images(&case.stack) > 1 {
        let several = format!("stack {} needs {} devices, and --on names one", case.stack.name, images(&case.stack));
        let copy = "copy the plan with `pgstrata plans NAME > mine.toml` and name a disk for each device";
        return Err(Error::user(several).hint(copy));
    }
    if case.axes.contains_key(IMAGE) {
        return Err(Error::user("the size of the image file is an axis of the plan, and a disk has one size"));
    }
    for node in case.stack.nodes.iter_mut().filter(|node| node.layer == IMAGE) {
        node.options.0.retain(|key, _| KEPT.contains(&key.as_str()));
        node.options.set(DISK, OptionValue::Text(path.to_owned()));
        node.options.set(key, OptionValue::Text(value.to_owned()));
        DISK.clone_into(&mut node.layer);
    }
    rename(&mut case.stack);
    Ok(())
}

/// A node that was named after the image file is named after the disk.
fn rename(stack: &mut StackSpec) {
    let renamed = |ground: &GroundName| match ground.node() == IMAGE {
        true => GroundName::of(DISK, ground.ground()),
        false => ground.clone(),
    };
    for node in &mut stack.nodes {
        if node.name == IMAGE {
            DISK.clone_into(&mut node.name);
        }
        for input in &mut node.inputs {
            input.from = renamed(&input.from);
        }
    }
    stack.data = renamed(&stack.data);
    stack.wal = stack.wal.as_ref().map(renamed);
    stack.tablespaces.values_mut().for_each(|ground| *ground = renamed(ground));
}

/// What is said of a run that is not where its plan has it.
pub fn remark(on: &str) {
    out::remark(&format!("the image files of the plan are replaced: --on {}", out::harmless(on)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shipped;

    fn cases(name: &str) -> Vec<CaseSpec> {
        let text = shipped::find(name).unwrap().text;
        crate::plan::parse(text, name, &super::super::catalogue()).unwrap().cases
    }

    #[test]
    fn a_folder_takes_the_image_files_and_a_disk_their_place() {
        let mut in_it = cases("separate-wal");
        put(&Host::this(), &mut in_it, "/tmp").unwrap();
        let images = in_it.iter().flat_map(|case| &case.stack.nodes).filter(|node| node.layer == IMAGE);
        assert!(images.clone().count() > 0 && images.clone().all(|node| node.options.text(FOLDER) == Some("/tmp")));

        let mut on_it = cases("wal-compression");
        let ids: Vec<String> = on_it.iter().map(|case| case.id.clone()).collect();
        for case in &mut on_it {
            on_disk(case, "/dev/disk/by-id/x", ("serial", "S1")).unwrap();
            let node = case.stack.node(DISK).unwrap();
            assert_eq!((node.options.text(DISK), node.options.text("serial")), (Some("/dev/disk/by-id/x"), Some("S1")));
            assert_eq!(node.options.0.len(), 2, "nothing of the image is left");
            assert_eq!(case.stack.nodes[1].inputs[0].from.node(), DISK);
        }
        assert_eq!(on_it.iter().map(|case| case.id.clone()).collect::<Vec<_>>(), ids);
        let error = on_disk(&mut cases("separate-wal").pop().unwrap(), "/dev/x", ("serial", "S1")).unwrap_err();
        assert!(error.to_string().contains("needs 2 devices"), "{error}");
    }

    #[test]
    fn what_is_neither_disk_nor_folder_is_refused() {
        let error = put(&Host::this(), &mut cases("wal-compression"), "/nowhere/at/all").unwrap_err();
        assert!(error.hint_text().unwrap().contains("doctor"), "{error}");
        let error = put(&Host::this(), &mut [], "/tmp").unwrap_err();
        assert!(error.to_string().contains("no image file") || error.to_string().contains("no stack"), "{error}");
    }
}
