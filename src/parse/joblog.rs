//! GNU parallel's job log (`--joblog`): one line per finished job, tab-separated.

/// A finished job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinishedJob {
    pub(crate) host: String,
    pub(crate) exit_code: i32,
    pub(crate) signal: i32,
    pub(crate) command: String,
}

/// The jobs of a log; skips malformed lines, because the last one may be incomplete.
pub(crate) fn tasks(text: &str) -> Vec<FinishedJob> {
    let tasks = text.lines().filter_map(|line| {
        let columns: Vec<&str> = line.splitn(9, '\t').collect();
        let [_, host, _, _, _, _, exit_code, signal, command] = columns.as_slice() else { return None };
        let (exit_code, signal) = (exit_code.trim().parse().ok()?, signal.trim().parse().ok()?);
        Some(FinishedJob { host: (*host).to_owned(), exit_code, signal, command: (*command).to_owned() })
    });
    tasks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From GNU parallel 20221122.
    const LOG: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n\
                       1\t:\t1700000000.123\t     0.002\t0\t0\t3\t0\tsh -c 'exit 3' a\n\
                       2\tdb1\t1700000000.125\t     0.002\t0\t2\t0\t0\techo b\n3\tdb2\t17000";

    #[test]
    fn the_header_and_a_half_line_are_no_jobs() {
        let found = tasks(LOG);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].host.as_str(), found[0].exit_code, found[0].command.as_str()),
            (":", 3, "sh -c 'exit 3' a")
        );
    }
}
