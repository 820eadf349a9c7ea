//! What `kubectl get pods` lists with [`TEMPLATE`]: completion index and phase of each pod of an Indexed Job.

/// For `--output`: the index stands in an annotation of each pod.
pub(crate) const TEMPLATE: &str = r#"jsonpath={range .items[*]}{.metadata.annotations.batch\.kubernetes\.io/job-completion-index} {.status.phase}{"\n"}{end}"#;

/// The indices of pods that wait or run, each once, in order.
pub(crate) fn open(text: &str) -> Vec<u32> {
    let index = |line: &str| {
        let (index, phase) = line.trim().split_once(' ')?;
        // A pod of which nothing is heard may still run.
        matches!(phase, "Pending" | "Running" | "Unknown").then(|| index.parse().ok())?
    };
    let mut open: Vec<u32> = text.lines().filter_map(index).collect();
    open.sort_unstable();
    open.dedup();
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_have_ended_do_not_count_and_each_index_does_once() {
        assert_eq!(
            open("2 Running\n0 Succeeded\n1 Failed\n0 Pending\n2 Pending\n3 Unknown\n Running\n4\n\n"),
            [0, 2, 3]
        );
    }
}
