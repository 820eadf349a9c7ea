//! `--share` of `pgstrata run`: a share of the plan's blocks, or a job array whose environment names it.

use crate::error::{Error, Kind, Result};
use crate::plan::Plan;
use crate::record::run::Share;
use crate::store::folder::RunFolder;
use std::path::Path;
use std::str::FromStr;

/// Value of `--share`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareArg {
    /// `2/6`: the share of this machine.
    Share(Share),
    /// `slurm`, `slurm/6`: the share by the index of a Slurm job array.
    Slurm(Option<u32>),
    /// `kubernetes/6`: the share by the index of an Indexed Job.
    Kubernetes(u32),
}

const FORMS: &str = "write --share i/n (share i of n, from 1), --share slurm, --share slurm/n or --share kubernetes/n";

impl FromStr for ShareArg {
    type Err = String;

    fn from_str(text: &str) -> Result<ShareArg, String> {
        let found = match text.split_once('/') {
            None => (text == "slurm").then_some(ShareArg::Slurm(None)),
            Some(("slurm", of)) => positive(of).map(|of| ShareArg::Slurm(Some(of))),
            Some(("kubernetes", of)) => positive(of).map(ShareArg::Kubernetes),
            Some((part, of)) => positive(part).zip(positive(of)).map(|(part, of)| ShareArg::Share(Share { part, of })),
        };
        match found {
            Some(ShareArg::Share(share)) if share.part > share.of => {
                Err(format!("there is no share {} of {}: shares are counted from 1", share.part, share.of))
            }
            Some(found) => Ok(found),
            None => Err(FORMS.to_owned()),
        }
    }
}

fn positive(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number > 0)
}

impl ShareArg {
    /// The requested share.
    ///
    /// # Errors
    /// If the environment does not name it.
    pub fn share(self) -> Result<Share> {
        self.share_in(&|name| std::env::var(name).ok())
    }

    fn share_in(self, environment: &dyn Fn(&str) -> Option<String>) -> Result<Share> {
        match self {
            ShareArg::Share(share) => Ok(share),
            ShareArg::Slurm(of) => slurm(of, environment),
            ShareArg::Kubernetes(of) => {
                let index = number("JOB_COMPLETION_INDEX", environment)
                    .map_err(|e| e.hint("kubernetes/n is for pods of an Indexed Job (completionMode: Indexed)"))?;
                within("JOB_COMPLETION_INDEX", index, of)
            }
        }
    }
}

/// Slurm numbers tasks as given by `--array`; shares are counted from its first task.
fn slurm(of: Option<u32>, environment: &dyn Fn(&str) -> Option<String>) -> Result<Share> {
    const ARRAY: &str = "--share slurm is for tasks of a job array: sbatch --array=0-5 for a plan in 6 shares";
    let index = number("SLURM_ARRAY_TASK_ID", environment).map_err(|e| e.hint(ARRAY))?;
    if let Some(of) = of {
        return within("SLURM_ARRAY_TASK_ID", index, of);
    }
    let count = number("SLURM_ARRAY_TASK_COUNT", environment).map_err(|e| e.hint(ARRAY))?;
    let least = number("SLURM_ARRAY_TASK_MIN", environment).map_err(|e| e.hint(ARRAY))?;
    if least != 0 {
        return Err(Error::user(format!("the job array begins at task {least}, not at 0"))
            .hint("use sbatch --array=0-5, or name the number of shares: --share slurm/6 (tasks are counted from 0)"));
    }
    within("SLURM_ARRAY_TASK_ID", index, count)
}

fn within(name: &str, index: u32, of: u32) -> Result<Share> {
    if index < of {
        return Ok(Share { part: index + 1, of });
    }
    Err(Error::user(format!("{name} is {index}, and there are {of} shares: tasks are counted from 0"))
        .hint("make the array as large as the number of shares, without gaps"))
}

fn number(name: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<u32> {
    let text = environment(name).ok_or_else(|| Error::user(format!("the environment has no {name}")))?;
    text.parse().map_err(|_| Error::user(format!("{name} in the environment is `{text}`, not a number")))
}

/// Run folders directly in a folder, by name. Other folders and damaged runs are skipped.
pub fn run_folders(results: &Path) -> std::io::Result<Vec<RunFolder>> {
    let mut paths: Vec<_> = std::fs::read_dir(results)?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths.iter().filter(|path| path.is_dir()).filter_map(|path| RunFolder::open(path).ok()).collect())
}

/// Run folders of a plan.
pub fn of_plan(results: &Path, plan: &Plan) -> Vec<RunFolder> {
    let mut folders = run_folders(results).unwrap_or_default();
    folders.retain(|folder| folder.record().is_of_plan(&plan.sha256, plan.seed, plan.quick.is_some()));
    folders
}

/// The folder below `results` in which an earlier task began this share of a plan.
///
/// # Errors
/// If the folder holds the same plan with another number of shares: a task was started with another array.
pub fn begun(results: &Path, plan: &Plan, share: Share) -> Result<Option<RunFolder>> {
    let mut found: Option<RunFolder> = None;
    for folder in of_plan(results, plan) {
        let Some(other) = folder.record().share else { continue };
        if other.of != share.of {
            let path = folder.path().display();
            let message = format!("{path} has share {other} of this plan, and --share asks for {share}");
            return Err(Error::new(Kind::User, message).hint(
                "all shares of a plan have the same n; for another division choose another folder with --results DIR",
            ));
        }
        if other == share {
            found = Some(folder);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(argument: &str, environment: &[(&str, &str)]) -> Result<Share> {
        let of =
            |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        argument.parse::<ShareArg>().unwrap().share_in(&of)
    }

    #[test]
    fn a_share_counts_from_1_and_an_array_from_0() {
        assert_eq!(share("2/3", &[]).unwrap(), Share { part: 2, of: 3 });
        let array = |id| [("SLURM_ARRAY_TASK_ID", id), ("SLURM_ARRAY_TASK_COUNT", "3"), ("SLURM_ARRAY_TASK_MIN", "0")];
        assert_eq!(share("slurm", &array("0")).unwrap(), Share { part: 1, of: 3 });
        assert_eq!(share("slurm", &array("2")).unwrap(), Share { part: 3, of: 3 });
        assert_eq!(share("kubernetes/4", &[("JOB_COMPLETION_INDEX", "3")]).unwrap(), Share { part: 4, of: 4 });
        // A task that is submitted alone still knows the size of its array.
        let alone = [("SLURM_ARRAY_TASK_ID", "2"), ("SLURM_ARRAY_TASK_COUNT", "1"), ("SLURM_ARRAY_TASK_MIN", "2")];
        assert_eq!(share("slurm/3", &alone).unwrap(), Share { part: 3, of: 3 });
        assert!(share("slurm", &alone).unwrap_err().to_string().contains("begins at task 2"));
    }

    #[test]
    fn what_names_no_share_is_refused() {
        for wrong in ["0", "8", "x", "0/3", "4/3", "1/0", "1/", "/3", "slurm/0", "kubernetes", "pbs/3"] {
            assert!(wrong.parse::<ShareArg>().is_err(), "{wrong}");
        }
        for (argument, environment) in [
            ("slurm", vec![]),
            ("slurm", vec![("SLURM_ARRAY_TASK_ID", "1")]),
            ("slurm/3", vec![("SLURM_ARRAY_TASK_ID", "3")]),
            ("kubernetes/3", vec![("JOB_COMPLETION_INDEX", "three")]),
            ("kubernetes/3", vec![]),
        ] {
            assert_eq!(share(argument, &environment).unwrap_err().kind(), Kind::User, "{argument} {environment:?}");
        }
    }
}
