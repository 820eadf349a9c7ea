//! Slurm: one job array with a task for each share, each with a node of its own.

use super::{Engine, LOGS, run_words};
use crate::error::Result;
use crate::host::Host;
use crate::host::command::Command;
use crate::parse::scontrol::{self, ArrayTask};
use crate::parse::squeue;
use crate::record::submitted::Submission;
use std::collections::BTreeMap;

const JOB: &str = "job.sh";
/// States of tasks that did not exit with code 0 by themselves.
const FAILED: [&str; 9] = [
    "BOOT_FAIL",
    "CANCELLED",
    "DEADLINE",
    "FAILED",
    "LAUNCH_FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
];

pub(super) static SLURM: Engine = Engine {
    name: "slurm",
    value: None,
    doc: "As a Slurm job array, one task for each share, with a node of its own; the folder must be on storage that all nodes have",
    flags: &[],
    program: "sbatch",
    carries_program: true,
    shares: |submission| submission.blocks,
    job_file,
    command,
    waits: false,
    queued,
    starts_all: |_| None,
    notes: None,
    failures: |host, submission, _| {
        // Lists all jobs: only squeue can look one up by name.
        let show = Command::new("scontrol").with_callers_environment().args(["--oneliner", "show", "job"]);
        Ok(failures(&host.run(&show)?.stdout, &submission.job_name()))
    },
};

fn job_file(submission: &Submission, _shares: &[u32], _plan: &str) -> Result<(&'static str, String)> {
    let (name, shares) = (submission.job_name(), submission.shares);
    let run = run_words(submission, "./pgstrata", &format!("slurm/{shares}"));
    let text = format!(
        r#"#!/bin/sh
# Written by `pgstrata submit`. Submit it from its folder.
#SBATCH --job-name={name}
#SBATCH --array=0-{last}
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --output=/dev/null

# By itself: sbatch would read a % in the name of the folder as a pattern.
exec >>"{LOGS}/task-$SLURM_ARRAY_TASK_ID.$SLURMD_NODENAME.txt" 2>&1
# Ledgers and templates must be on a disk of the node, and home folders often are not.
if [ "$(id -u)" != 0 ] && [ -z "$PGSTRATA_STATE" ]; then
    PGSTRATA_STATE=/var/tmp/pgstrata-$(id -u)
    mkdir -p -m 700 "$PGSTRATA_STATE" && [ -O "$PGSTRATA_STATE" ] || exit 3
    export PGSTRATA_STATE
fi
# What a killed task left on this node.
./pgstrata clean
# A share that was begun goes on.
exec {run}
"#,
        last = shares.saturating_sub(1)
    );
    Ok((JOB, text))
}

fn command(submission: &Submission, shares: &[u32]) -> Command {
    let command = Command::new(SLURM.program).with_callers_environment().args(&submission.arguments);
    let command = match shares.len() == submission.shares as usize {
        true => command,
        false => command.arg(format!("--array={}", indices(shares))),
    };
    command.arg(JOB)
}

fn queued(host: &Host, submission: &Submission) -> Result<Vec<u32>> {
    let words = ["--noheader", "--array", "--format=%K"];
    let command =
        Command::new("squeue").with_callers_environment().args(words).arg(format!("--name={}", submission.job_name()));
    let tasks = squeue::tasks(&host.run(&command)?.stdout);
    Ok(tasks.into_iter().map(|task| task + 1).collect())
}

/// Shares whose last task failed. Slurm forgets a task some minutes after its end (`MinJobAge`).
fn failures(listed: &str, name: &str) -> Vec<(u32, String)> {
    let mut last: BTreeMap<u32, ArrayTask> = BTreeMap::new();
    for task in scontrol::tasks(listed, name) {
        for index in &task.indices {
            if last.get(index).is_none_or(|known| known.array <= task.array) {
                last.insert(*index, task.clone());
            }
        }
    }
    let failed = last.into_iter().filter(|(_, task)| FAILED.contains(&task.state.as_str()));
    failed.map(|(index, task)| (index + 1, format!("Slurm: {}", ended(&task)))).collect()
}

/// `NODE_FAIL, on node1 (NodeDown)`.
fn ended(task: &ArrayTask) -> String {
    let mut text = task.state.clone();
    // Slurm itself ends tasks by a signal; the state gives the reason.
    text.extend(task.exit_code.filter(|(code, _)| *code != 0).map(|(code, _)| format!(", exit code {code}")));
    text.extend(task.nodes.iter().map(|nodes| format!(", on {nodes}")));
    // For a cancelled task the reason is why it had been waiting.
    if let Some(reason) = task.reason.as_ref()
        && task.state != "CANCELLED"
        && reason != "NonZeroExitCode"
    {
        text.push_str(&format!(" ({reason})"));
    }
    text
}

/// Tasks are counted from 0.
fn indices(shares: &[u32]) -> String {
    shares.iter().map(|share| share.saturating_sub(1).to_string()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::submitted::tests::submission;

    #[test]
    fn only_missing_slurm_tasks_are_submitted_again() {
        let job = Submission { arguments: vec!["--partition=a b".to_owned()], ..submission("slurm") };
        let (name, text) = job_file(&job, &[1, 2, 3], "").unwrap();
        assert!(text.contains("\n#SBATCH --array=0-2\n") && text.contains("\n#SBATCH --requeue\n"), "{text}");
        assert!(text.ends_with("\nexec ./pgstrata run plan.toml --share slurm/3 --results results\n"), "{text}");
        assert_eq!(name, "job.sh");
        assert_eq!(command(&job, &[1, 2, 3]).shown(), "sbatch '--partition=a b' job.sh");
        assert_eq!(command(&job, &[1, 3]).shown(), "sbatch '--partition=a b' --array=0,2 job.sh");
    }

    #[test]
    fn the_last_task_of_each_share_says_how_it_ended() {
        let listed = include_str!("../../tests/fixtures/scontrol/22.05.txt");
        let earlier: String =
            listed.lines().filter(|line| !line.contains("ArrayJobId=8 ")).map(|l| format!("{l}\n")).collect();
        let failed = |text: &str| {
            let found = failures(text, "pgstrata-spread-0a1b2c3d");
            found.into_iter().map(|(share, how)| format!("{share} {how}")).collect::<Vec<_>>()
        };
        assert_eq!(
            failed(&earlier),
            [
                "1 Slurm: FAILED, exit code 3, on node1",
                "3 Slurm: NODE_FAIL, on node1 (NodeDown)",
                "4 Slurm: TIMEOUT, on node1 (TimeLimit)"
            ]
        );
        let all = failed(listed);
        assert_eq!(all.len(), 3, "{all:?}");
        assert_eq!([&all[0], &all[1]], ["1 Slurm: CANCELLED", "3 Slurm: CANCELLED"]);
    }
}
