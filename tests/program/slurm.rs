//! A plan submitted to a real Slurm: a task is killed midway and requeued, a share is lost and submitted again, all are merged.

use crate::depth::waits_for_full;
use crate::program::slurm_site::{Site, can_start};
use crate::program::spread::{folder_of, succeeded, trials};
use crate::program::workshop::{Workshop, json, run_id, said};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

/// A folder whose name a shell, sbatch and `#SBATCH` would each read in a way of their own.
const ODD: &str = "it's a \"run\" of $HOME, %a";

fn submit(shop: &Workshop, site: &Site, args: &[&str]) -> Output {
    shop.pgstrata(&[&["submit"], args].concat()).env("SLURM_CONF", site.conf()).output().unwrap()
}

/// State of each share.
fn states(output: &Output) -> Vec<String> {
    let shares = json(&output.stdout)["shares"].clone();
    shares.as_array().unwrap().iter().map(|share| share["state"].as_str().unwrap().to_owned()).collect()
}

/// One folder and two sizes of files, six blocks. Each file is made, synced and deleted, so small ones are slower per byte.
fn plan(shop: &Workshop) {
    fs::create_dir(shop.path().join("a")).unwrap();
    let text = format!(
        "name = \"spread\"\nblocks = 6\nbaseline = {{ size = \"32MiB\" }}\n[stack.a]\ndirectory = \"{}\"\n[workload.s]\n\
         files = {{ size = [\"1MiB\", \"32MiB\"], duration = \"3s\" }}\n",
        shop.path().join("a").display()
    );
    shop.file("plan.toml", &text);
}

/// What a run says of the two cases.
struct Said {
    /// Rate of each trial, by its case and block.
    rates: BTreeMap<(String, u64), Value>,
    /// How they are compared.
    method: Value,
}

impl Said {
    fn by(shop: &Workshop, folder: &Path) -> Said {
        let report = shop.pgstrata(&["report", folder.to_str().unwrap(), "--json"]).output().unwrap();
        succeeded(&report);
        let found = json(&report.stdout);
        let classes = found["rankings"][0]["classes"].as_array().unwrap();
        let mut rows = classes.iter().flat_map(|class| class["rows"].as_array().unwrap());
        let comparison = rows.find_map(|row| row["comparison"].as_object()).unwrap();
        let trials = found["trials"].as_array().unwrap().iter();
        let rate = |trial: &Value| {
            ((trial["case"].as_str().unwrap().to_owned(), trial["trial"].as_u64().unwrap()), trial["rate"].clone())
        };
        Said { rates: trials.map(rate).collect(), method: comparison["method"].clone() }
    }
}

/// Kills the second task when it has a trial, and requeues it; its folder stays, and goes on.
fn lose_a_task(shop: &Workshop, site: &Site, results: &Path, job: &str) {
    let has_a_trial = || folder_of(results, "2of3").is_some_and(|folder| !trials(&folder).is_empty());
    site.wait("trial of the second task", |_| has_a_trial());
    let task = format!("{job}_1");
    site.succeed("scancel", &["--signal=KILL", "--full", &task]);
    site.wait("end of the killed task", |site| {
        !site.succeed("squeue", &["--noheader", "--states=running,completing", "--format=%K", "--array"]).contains('1')
    });
    let second = folder_of(results, "2of3").unwrap();
    let (id, before) = (run_id(&second), trials(&second));
    assert!(before.len() < 4, "the task ended before it was killed: {before:?}");
    let told = said(&submit(shop, site, &["--again", ODD]));
    assert!(told.contains("2 of 3  incomplete") && told.contains("; Slurm: CANCELLED"), "{told}");
    site.succeed("scontrol", &["requeue", &task]);
    site.wait_for_an_empty_queue();
    assert_eq!((run_id(&second), trials(&second).len()), (id, 4), "{}", site.logs());
}

#[test]
fn a_slurm_array_with_lost_tasks_merges_completely() {
    const NAME: &str = "an array on a real Slurm";
    if waits_for_full() || !can_start(NAME) {
        return;
    }
    let (shop, site) = (Workshop::new(), Site::start());
    // The second task is killed within its first three trials of four.
    plan(&shop);
    let submitted = submit(&shop, &site, &["plan.toml", "--slurm", "--shares", "3", "--into", ODD, "--go", "--json"]);
    succeeded(&submitted);
    let told = json(&submitted.stdout);
    let job = told["said"].as_str().unwrap().strip_prefix("Submitted batch job ").unwrap().to_owned();
    let folder = shop.path().join(ODD);
    let results = folder.join("results");
    lose_a_task(&shop, &site, &results, &job);

    let looked = submit(&shop, &site, &["--again", ODD, "--json"]);
    succeeded(&looked);
    assert_eq!(states(&looked), ["complete"; 3], "{}", site.logs());
    assert!(folder.join("logs").read_dir().unwrap().count() >= 3, "each task has its log in the folder");
    // A node that took its folder with it: its share alone is submitted again.
    let third = folder_of(&results, "3of3").unwrap();
    fs::remove_dir_all(&third).unwrap();
    let looked = submit(&shop, &site, &["--again", ODD, "--json"]);
    assert_eq!(looked.status.code(), Some(1), "{}", said(&looked));
    assert_eq!(states(&looked), ["complete", "complete", "absent"]);
    let kept = ["1of3", "2of3"].map(|share| run_id(&folder_of(&results, share).unwrap()));
    let again = submit(&shop, &site, &["--again", ODD, "--go"]);
    succeeded(&again);
    assert!(said(&again).contains("Submitted batch job"), "{}", said(&again));
    let queued = submit(&shop, &site, &["--again", ODD, "--json"]);
    assert_eq!(json(&queued.stdout)["missing"], serde_json::json!([]), "what is queued is not missing");
    site.wait_for_an_empty_queue();
    assert_eq!(kept, ["1of3", "2of3"].map(|share| run_id(&folder_of(&results, share).unwrap())));
    assert_eq!(results.read_dir().unwrap().count(), 3, "only the missing share ran again");

    // On one machine, in one run; and of another plan.
    succeeded(&shop.pgstrata(&["run", "plan.toml", "--results", "alone"]).output().unwrap());
    let text = fs::read_to_string(shop.path().join("plan.toml")).unwrap();
    shop.file("other.toml", &text.replace("blocks = 6", "blocks = 1"));
    succeeded(&shop.pgstrata(&["run", "other.toml", "--results", "other"]).output().unwrap());
    let only = |place: &str| fs::read_dir(shop.path().join(place)).unwrap().next().unwrap().unwrap().path();
    let (alone, other) = (only("alone"), only("other"));
    let mut runs: Vec<String> =
        fs::read_dir(&results).unwrap().map(|e| e.unwrap().path().display().to_string()).collect();
    runs.push(other.display().to_string());
    let command: Vec<&str> =
        ["merge", "--into", "all", "--json"].into_iter().chain(runs.iter().map(String::as_str)).collect();
    let merged = shop.pgstrata(&command).output().unwrap();
    assert_eq!(merged.status.code(), Some(1), "{}", said(&merged));
    let left_out = json(&merged.stdout)["left_out"].clone();
    assert_eq!(left_out.as_array().unwrap().len(), 1, "{left_out}");
    assert!(left_out[0]["reason"].as_str().unwrap().contains("another plan than"), "{left_out}");
    // The merge takes each trial as its share has it. What the disk did meanwhile is another matter: two runs may differ.
    let shares = ["1of3", "2of3", "3of3"].map(|share| Said::by(&shop, &folder_of(&results, share).unwrap()));
    let (merged, alone) = (Said::by(&shop, &shop.path().join("all")), Said::by(&shop, &alone));
    assert_eq!((&merged.method, &alone.method), (&"paired over 6 blocks".into(), &"paired over 6 blocks".into()));
    assert_eq!(merged.rates.len(), 12);
    assert_eq!(merged.rates, shares.into_iter().flat_map(|share| share.rates).collect());
}
