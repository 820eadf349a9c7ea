//! Output of Slurm's `squeue --noheader --array --format=%K`: the index of each task of an array, one per line.

use std::collections::BTreeSet;

/// The indices, unique and sorted; skips jobs that are not arrays.
pub(crate) fn tasks(text: &str) -> Vec<u32> {
    let tasks: BTreeSet<u32> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    tasks.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_tasks_are_listed_once_and_plain_jobs_are_skipped() {
        assert_eq!(tasks("2\n0\n2\nN/A\n\n"), [0, 2]);
    }
}
