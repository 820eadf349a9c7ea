//! Output of `kubectl get pods` with [`TEMPLATE`]: the pods of an Indexed Job, one per line, tab-separated.

use std::collections::{BTreeMap, BTreeSet};

/// Value for `--output`. The index is in an annotation of each pod; missing values are empty columns.
pub(crate) const TEMPLATE: &str = concat!(
    r#"jsonpath={range .items[*]}{.metadata.annotations.batch\.kubernetes\.io/job-completion-index}{"\t"}{.status.phase}{"\t"}"#,
    r#"{.metadata.creationTimestamp}{"\t"}{.status.reason}{"\t"}{.status.containerStatuses[*].state.terminated.reason}{"\t"}"#,
    r#"{.status.containerStatuses[*].state.terminated.exitCode}{"\t"}{.spec.nodeName}{"\n"}{end}"#
);

/// A pod that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pod {
    /// Index of its share, from 0.
    pub(crate) index: u32,
    /// Reason why the pod ended: `Evicted`, `NodeLost`, `DeadlineExceeded`.
    pub(crate) reason: Option<String>,
    /// Reason why its container ended: `OOMKilled`, `Error`.
    pub(crate) container_reason: Option<String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) node: Option<String>,
}

/// Indices of waiting or running pods, unique and sorted.
pub(crate) fn open(text: &str) -> Vec<u32> {
    let indices = text.lines().filter_map(|line| {
        let mut columns = line.split('\t');
        let (index, phase) = (columns.next()?, columns.next()?);
        // A pod in an unknown state may still run.
        matches!(phase, "Pending" | "Running" | "Unknown").then(|| index.parse().ok())?
    });
    let open: BTreeSet<u32> = indices.collect();
    open.into_iter().collect()
}

/// Failed pods by index, except where a newer pod of the index has not failed.
pub(crate) fn failed(text: &str) -> Vec<Pod> {
    let mut newest: BTreeMap<u32, (&str, Option<Pod>)> = BTreeMap::new();
    for line in text.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [index, phase, made, reason, container_reason, exit_code, node] = columns.as_slice() else { continue };
        let Ok(index) = index.parse() else { continue };
        // RFC 3339 in UTC sorts as text.
        if newest.get(&index).is_some_and(|(known, _)| known > made) {
            continue;
        }
        let [reason, container_reason, node] =
            [reason, container_reason, node].map(|text| Some((*text).to_owned()).filter(|text| !text.is_empty()));
        let pod = Pod { index, reason, container_reason, exit_code: exit_code.parse().ok(), node };
        newest.insert(index, (made, Some(pod).filter(|_| *phase == "Failed")));
    }
    newest.into_values().filter_map(|(_, pod)| pod).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_pods_are_skipped_and_each_index_counts_once() {
        assert_eq!(
            open("2\tRunning\n0\tSucceeded\n1\tFailed\n0\tPending\n2\tPending\n3\tUnknown\n\tRunning\n4\n\n"),
            [0, 2, 3]
        );
    }

    #[test]
    fn the_newest_pod_of_an_index_says_how_it_failed() {
        let text = "0\tFailed\t2026-01-01T00:00:00Z\t\tOOMKilled\t137\tn1\n\
                    1\tFailed\t2026-01-01T00:00:00Z\tEvicted\t\t\tn2\n\
                    2\tRunning\t2026-01-01T00:09:00Z\t\t\t\tn3\n\
                    2\tFailed\t2026-01-01T00:00:00Z\tNodeLost\t\t\tn1\n\
                    3\tSucceeded\t2026-01-01T00:00:00Z\t\tCompleted\t0\tn1\n";
        let pod = |index, node: &str| Pod {
            index,
            reason: None,
            container_reason: None,
            exit_code: None,
            node: Some(node.to_owned()),
        };
        let killed = Pod { container_reason: Some("OOMKilled".to_owned()), exit_code: Some(137), ..pod(0, "n1") };
        let evicted = Pod { reason: Some("Evicted".to_owned()), ..pod(1, "n2") };
        assert_eq!(failed(text), [killed, evicted]);
    }
}
