//! Drives that are brought to their steady state before anything is measured: on an image, in rounds of 100 ms.

use crate::program::machine::traces;
use crate::program::workshop::{Ran, Workshop, can_build_stacks, json, run_id, said};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

const PLAN: &str = r#"
name = "drives"
blocks = 2

[stack.ext4]
device = { loop = "64MiB", precondition = true, precondition_round = "100ms" }
filesystem = "ext4"

[stack.ext3]
device = { loop = "64MiB", precondition = true, precondition_round = "100ms" }
filesystem = "ext3"

[workload.sync]
sync = { duration = "300ms" }
"#;

/// The drives in the records of the trials of a case, one for each trial.
fn drives(folder: &Path, case: &str) -> Vec<serde_json::Value> {
    let trial = |number: u32| json(&fs::read(folder.join(format!("trials/{case}/{number}/trial.json"))).unwrap());
    (1..=2).map(|number| trial(number)["drives"][0].clone()).collect()
}

fn events(folder: &Path, kind: &str) -> usize {
    let events = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    events.lines().filter(|line| line.contains(&format!("\"{kind}\""))).count()
}

#[test]
fn an_image_is_preconditioned_once_for_all_its_trials() {
    if !can_build_stacks("preconditioning an image") {
        return;
    }
    let shop = Workshop::new();
    let plan = shop.file("plan.toml", PLAN);
    let shown = shop.pgstrata(&["plan", plan.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("once per run")
            && text.contains(": 128 MiB in sequence")
            && text.contains("5 to 25 rounds of 100 ms"),
        "{text}"
    );
    let Ran { folder, findings, text, .. } = shop.ran(PLAN);
    let all: Vec<_> = ["ext4.sync", "ext3.sync"].into_iter().flat_map(|case| drives(&folder, case)).collect();
    assert!(all.iter().all(|drive| *drive == all[0]), "all trials had the same image: {all:#?}");
    let rounds = all[0]["rounds"].as_array().unwrap();
    assert!((5..=25).contains(&rounds.len()), "{rounds:#?}");
    for round in rounds {
        let (operations, bytes) = (round["operations"].as_u64().unwrap(), round["written_bytes"].as_u64().unwrap());
        assert!(bytes == operations * 4096 && round["elapsed_us"].as_u64() >= Some(100_000), "{round}");
    }
    assert!(rounds.iter().any(|round| round["operations"].as_u64() > Some(0)), "{rounds:#?}");
    assert_eq!(all[0]["fill"]["written_bytes"], 2 * (64 << 20));
    assert_eq!((events(&folder, "drive_preconditioned"), events(&folder, "drive_round")), (1, rounds.len()));
    let found = &findings["drives"];
    assert_eq!(found.as_array().unwrap().len(), 1, "{found:#}");
    assert_eq!(found[0]["rounds"].as_array().unwrap().len(), rounds.len());
    let sentence = found[0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("rounds of 100 ms, not SNIA's 60 s; of the image file"), "{sentence}");
    assert!(text.contains("Preconditioned drives"), "{text}");
    assert!(!text.contains("drive not preconditioned"), "an image is no drive: {text}");
}

#[test]
fn an_interrupt_ends_an_hour_long_round_at_once() {
    if !can_build_stacks("Ctrl-C while a drive is preconditioned") {
        return;
    }
    let shop = Workshop::new();
    // Nobody waits for a round of an hour.
    let plan = shop.file("plan.toml", &PLAN.replace("100ms", "1h"));
    let mut command = shop.pgstrata(&["run", "--json", plan.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut events_said = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_filled = |line: &String| {
        line.contains("\"drive_filled\"") && {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            event["what"]["done_bytes"] == event["what"]["of_bytes"]
        }
    };
    assert!(events_said.by_ref().map_while(Result::ok).any(|line| is_filled(&line)), "the fill never ended");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let rest = std::thread::spawn(move || events_said.count());
    let output = child.wait_with_output().unwrap();
    rest.join().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let folder = shop.run_folder();
    assert!(traces(&run_id(&folder)).is_empty(), "{:?}", traces(&run_id(&folder)));
    assert_eq!(events(&folder, "drive_preconditioned"), 0);
    assert!(!folder.join("trials/ext4.sync/1/trial.json").exists());
}
