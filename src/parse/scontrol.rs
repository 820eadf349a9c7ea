//! Output of Slurm's `scontrol --oneliner show job`: a job, or a task of an array, per line.

/// A task of an array, or several that Slurm keeps as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArrayTask {
    /// Job number of the array.
    pub(crate) array: u32,
    /// Indices in the array.
    pub(crate) indices: Vec<u32>,
    /// `NODE_FAIL`, `TIMEOUT`, `COMPLETED`.
    pub(crate) state: String,
    /// Reason for waiting or ending.
    pub(crate) reason: Option<String>,
    /// Exit code and signal.
    pub(crate) exit_code: Option<(u32, u32)>,
    /// Nodes that it ran on.
    pub(crate) nodes: Option<String>,
}

/// Tasks of arrays with this name, which must not contain a space; names of other people's jobs may.
pub(crate) fn tasks(text: &str, name: &str) -> Vec<ArrayTask> {
    let tasks = text.lines().filter_map(|line| {
        // The name precedes all user-defined text, which may look like a field.
        if field(line, "JobName") != Some(name) {
            return None;
        }
        let exit_code = field(line, "ExitCode").and_then(|value| value.split_once(':'));
        Some(ArrayTask {
            array: field(line, "ArrayJobId")?.parse().ok()?,
            indices: indices(field(line, "ArrayTaskId")?)?,
            state: field(line, "JobState")?.to_owned(),
            reason: given(line, "Reason"),
            exit_code: exit_code.and_then(|(code, signal)| code.parse().ok().zip(signal.parse().ok())),
            nodes: given(line, "NodeList"),
        })
    });
    tasks.collect()
}

fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut words = line.split(' ').filter_map(|word| word.split_once('='));
    words.find(|(known, _)| *known == key).map(|(_, value)| value)
}

fn given(line: &str, key: &str) -> Option<String> {
    field(line, key).filter(|value| !matches!(*value, "" | "None" | "(null)")).map(str::to_owned)
}

/// `3`, `0-2,5`, `0-9:3%2`: ranges with a step, and the maximum running at once.
fn indices(text: &str) -> Option<Vec<u32>> {
    let (ranges, _) = text.split_once('%').unwrap_or((text, ""));
    let mut found = Vec::new();
    for range in ranges.split(',') {
        let (range, step) = range.split_once(':').unwrap_or((range, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let step = step.parse().ok().filter(|step| *step > 0)?;
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        found.extend((first..=last).step_by(step));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Slurm 22.05; the second line is somebody's job whose name looks like fields of ours.
    const LISTED: &str = include_str!("../../tests/fixtures/scontrol/22.05.txt");

    #[test]
    fn each_array_task_has_its_state_despite_odd_job_names() {
        let found = tasks(LISTED, "pgstrata-spread-0a1b2c3d");
        let shown = found.iter().map(|task| {
            let ArrayTask { array, indices, state, reason, exit_code, nodes } = task;
            let [reason, nodes] = [reason, nodes].map(|text| text.as_deref().unwrap_or("-"));
            let (code, signal) = exit_code.unwrap();
            format!("{array} {indices:?} {state} {reason} {code}:{signal} {nodes}")
        });
        assert_eq!(
            shown.collect::<Vec<String>>(),
            [
                "1 [0] FAILED NonZeroExitCode 3:0 node1",
                "1 [1] COMPLETED - 0:0 node1",
                "1 [2] CANCELLED - 0:15 node1",
                "1 [3] CANCELLED Resources 0:0 -",
                "6 [2] NODE_FAIL NodeDown 0:15 node1",
                "7 [3] TIMEOUT TimeLimit 0:15 node1",
                "8 [0, 2] CANCELLED BeginTime 0:0 -",
            ]
        );
        assert_eq!(tasks(LISTED, "pgstrata-spread"), []);
    }

    #[test]
    fn indices_are_ranges_with_steps() {
        assert_eq!(indices("7"), Some(vec![7]));
        assert_eq!(indices("0-2,5%1"), Some(vec![0, 1, 2, 5]));
        assert_eq!(indices("0-9:4"), Some(vec![0, 4, 8]));
        for wrong in ["", "a", "0-", "0-4:0", "N/A"] {
            assert_eq!(indices(wrong), None, "{wrong}");
        }
    }
}
