//! The search for the highest rate within a latency limit, on real servers: one in memory, one on an image.

use crate::program::workshop::{Workshop, can_build_stacks, json, said};
use std::fs;

const PLAN: &str = r#"
name = "capacity"
blocks = 1
baseline = "ext4"

[stack.ext4]
device = { loop = "1GiB" }
filesystem = "ext4"

[stack.tmp]
filesystem = { tmpfs = "1GiB" }

[postgres]
# Without flushes, so that other programs' writes do not decide how many steps last a minute.
settings = { shared_buffers = "64MB", fsync = "off" }

[workload.orders]
capacity = { scale = 2, clients = 4, latency_limit = "500ms", steps = 13, step = "1s", warmup = "1s" }
"#;

#[test]
fn capacity_is_searched_stepwise_and_reported_with_both_figures() {
    if !can_build_stacks("the search for a capacity") {
        return;
    }
    let shop = Workshop::new();
    let output = shop.run(&shop.file("plan.toml", PLAN));
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();
    for case in ["ext4.orders", "tmp.orders"] {
        let record = json(&fs::read(folder.join(format!("trials/{case}/1/trial.json"))).unwrap());
        let search = &record["counts"]["search"];
        let steps = search["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 13, "{search}");
        let first = steps[0]["rate"].as_f64().unwrap() / search["peak_tps"].as_f64().unwrap();
        assert!((first - 0.7).abs() < 1e-9, "{search}");
        for step in steps {
            let number = |key: &str| step[key].as_f64().unwrap();
            let due = number("done") + number("failed") + number("skipped");
            // Each came about as often as it was to: arrivals are random.
            let offered = number("rate") * number("elapsed_us") / 1e6;
            assert!(due <= offered + 5.0 * offered.sqrt() + 5.0, "{step}");
            // A second, or at a low rate until 300 transactions were scheduled, at most a minute.
            let wanted_us = (300.0 / number("rate")).ceil().clamp(1.0, 60.0) * 1e6;
            // It ends with the last arrival before its end.
            let last_us = 20.0 / number("rate") * 1e6;
            assert!((wanted_us - 1e6 - last_us..wanted_us + 20e6).contains(&number("elapsed_us")), "{step}");
            let out = folder.join(format!("trials/{case}/1/raw/{}.out", step["tag"].as_str().unwrap()));
            assert!(fs::read_to_string(out).unwrap().contains("number of transactions actually processed"));
        }
        assert!(steps.windows(2).any(|pair| pair[0]["rung"] != pair[1]["rung"]), "{search}");
    }
    let report = |args: &[&str]| {
        let output = shop.pgstrata(&[&["report", folder.to_str().unwrap()], args].concat()).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        output.stdout
    };
    let findings = json(&report(&["--json"]));
    assert_eq!(findings["rankings"][0]["by"], "capacity", "{}", findings["rankings"]);
    for case in findings["cases"].as_array().unwrap() {
        let capacity = &case["capacity"];
        assert_eq!((&capacity["limit_us"], &capacity["searches"]), (&500_000.into(), &1.into()), "{capacity}");
        let steps = capacity["steps"].as_array().unwrap();
        assert!(
            steps
                .iter()
                .filter(|step| step["failed_by"].is_null())
                .all(|step| step["late_share"].as_f64() <= Some(0.01))
        );
        assert!(steps.iter().any(|step| step["p99_us"].as_u64() > Some(0)), "{capacity}");
        let rates: Vec<f64> = steps.iter().map(|step| step["rate"].as_f64().unwrap()).collect();
        let (least, most) = (rates.iter().copied().fold(f64::MAX, f64::min), rates.iter().copied().fold(0.0, f64::max));
        let about = capacity["about"]["value"].as_f64();
        assert!(about.is_none_or(|about| about > least * 0.6 && about < most * 1.6), "{capacity}");
        assert!(case["steadiness"].is_null());
    }
    let text = String::from_utf8(report(&[])).unwrap();
    assert!(
        text.contains("Highest rate within the latency limit") && text.contains("rate with 99 % within 500 ms"),
        "{text}"
    );
    let markdown = String::from_utf8(report(&["--format", "md"])).unwrap();
    let table = "### Highest rate within the latency limit\n\n| Case | Limit | Holds, 1/s | About, 1/s |";
    assert!(markdown.contains(table) && markdown.contains("three consecutive steps"), "{markdown}");
    let page = fs::read_to_string(folder.join("report.html")).unwrap_or_default();
    assert!(page.is_empty() || page.contains("id=\"capacity-section\""));
}
