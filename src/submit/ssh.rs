//! Hosts reached by ssh, through GNU parallel: it copies program and plan to each, runs one share at a time there, and
//! fetches run folders.

use super::{Engine, PLAN, PROGRAM, RESULTS, run_words};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::parse::joblog;
use crate::record::submitted::Submission;

const JOB: &str = "job.sh";
/// GNU parallel's log of tasks.
const NOTES: &str = "parallel.log";
/// Exit code of ssh if it could not reach a host or lost it.
const LOST: i32 = 255;

pub(super) static SSH: Engine = Engine {
    name: "ssh",
    value: Some("HOST,..."),
    doc: "On these hosts, one share at a time on each, by GNU parallel (needs rsync here and there): program and plan are copied to each, \
          run folders come back. A host is a name or USER@NAME; ports and keys belong in ~/.ssh/config",
    flags: &[],
    program: "parallel",
    carries_program: true,
    shares,
    job_file,
    command,
    waits: true,
    queued: |_, _| Ok(Vec::new()),
    starts_all: |_| None,
    notes: Some(NOTES),
    failures: |_, _, notes| Ok(notes.map(failures).unwrap_or_default()),
};

fn shares(submission: &Submission) -> u32 {
    u32::try_from(hosts(submission).count()).unwrap_or(submission.blocks).clamp(1, submission.blocks)
}

fn job_file(submission: &Submission, shares: &[u32], _plan: &str) -> Result<(&'static str, String)> {
    if let Some(wrong) = hosts(submission).find(|host| !is_host(host)) {
        let allowed = "use letters, digits, dots, hyphens and underscores, optionally after USER@";
        return Err(Error::user(format!("`{wrong}` is not a host name: {allowed}"))
            .hint("give a host with a port or key a name in ~/.ssh/config"));
    }
    let command = command(submission, shares).shown();
    let text = format!(
        "#!/bin/sh\n# Written by `pgstrata submit`. Start it in its folder; it ends when the shares have run.\nexec {command}\n"
    );
    Ok((JOB, text))
}

fn command(submission: &Submission, shares: &[u32]) -> Command {
    let logins: Vec<&str> = hosts(submission).collect();
    // GNU parallel substitutes the share for {}. First removes what a killed task left on the host.
    let run = run_words(submission, "./pgstrata", &format!("{{}}/{}", submission.shares));
    Command::new(SSH.program)
        .with_callers_environment()
        .args(&submission.arguments)
        .args(["--jobs", "1", "--sshlogin", &logins.join(","), "--filter-hosts", "--workdir", &submission.job_name()])
        .args(["--basefile", PROGRAM, "--basefile", PLAN, "--return", RESULTS, "--joblog", NOTES])
        .args(["--line-buffer", "--tagstring", "share {}"])
        .arg(format!("./pgstrata clean; {run}"))
        .arg(":::")
        .args(shares.iter().map(u32::to_string))
}

fn hosts(submission: &Submission) -> impl Iterator<Item = &str> {
    submission.options.get("ssh").map(String::as_str).unwrap_or_default().split(',').map(str::trim)
}

/// True for text that neither a shell nor GNU parallel would interpret.
fn is_host(text: &str) -> bool {
    text.splitn(2, '@').all(|word| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    })
}

fn failures(notes: &str) -> Vec<(u32, String)> {
    let failed = joblog::tasks(notes).into_iter().filter(|task| task.exit_code != 0 || task.signal != 0);
    let reasons = failed.filter_map(|task| {
        let how = match (task.exit_code, task.signal) {
            (LOST, _) => format!("{} was not reached, or lost", task.host),
            (code, 0) => format!("ended with exit code {code} on {}", task.host),
            (_, signal) => format!("was ended by signal {signal} on {}", task.host),
        };
        // `... --share 2/3 ...`
        Some((task.command.split_once("--share ")?.1.split_once('/')?.0.parse().ok()?, how))
    });
    reasons.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::submitted::tests::submission;

    fn on(hosts: &str) -> Submission {
        Submission { options: [("ssh".to_owned(), hosts.to_owned())].into(), quick: true, ..submission("ssh") }
    }

    #[test]
    fn each_ssh_host_runs_one_share_at_a_time() {
        let command = command(&on("db1, root@db2"), &[1, 3]).shown();
        assert!(command.starts_with("parallel --jobs 1 --sshlogin db1,root@db2 --filter-hosts "), "{command}");
        assert!(command.contains(" --basefile pgstrata --basefile plan.toml --return results "), "{command}");
        assert!(
            command.contains("; ./pgstrata run plan.toml --quick --share {}/3 --results results' ::: 1 3"),
            "{command}"
        );
        assert_eq!(shares(&on("db1,db2")), 2);
        assert_eq!(shares(&on("a,b,c,d,e,f,g,h")), 6, "no more shares than blocks");
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for wrong in ["", "a b", "-oProxyCommand=x", "a;b", "a/b", "$(x)", "root@", "@a", "a@b@c", "[::1]", ":", ".."] {
            assert!(job_file(&on(&format!("db1,{wrong}")), &[1], "").is_err(), "{wrong}");
        }
        assert!(job_file(&on("db-1.example.org,root@10.0.0.7"), &[1], "").is_ok());
    }

    #[test]
    fn a_host_that_was_lost_is_told_with_its_share() {
        let log = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n\
                   1\tdb1\t1700000000.100\t     3.000\t0\t10\t0\t0\t./pgstrata clean; ./pgstrata run plan.toml --share 1/3 --results results\n\
                   2\tdb2\t1700000000.100\t     3.000\t0\t10\t255\t0\t./pgstrata clean; ./pgstrata run plan.toml --share 2/3 --results results\n";
        assert_eq!(failures(log), [(2, "db2 was not reached, or lost".to_owned())]);
    }
}
