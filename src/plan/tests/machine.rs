//! The table `[machine]` and the knobs of devices.

use super::catalogue;
use crate::plan::{Plan, example, parse, schema};
use crate::record::options::OptionValue;

/// A plan with this `[machine]`, on a stack with a device and one without.
fn plan_of(machine: &str, queue: &str) -> String {
    format!(
        "name = \"p\"\n[machine]\n{machine}\n[stack.disk]\ndevice = {{ loop = \"1GiB\"{queue} }}\nfilesystem = \"ext4\"\n\
         [stack.tmp]\nfilesystem = \"tmpfs\"\n[workload.sync]\nsync = {{}}\n"
    )
}

fn read(machine: &str, queue: &str) -> Plan {
    let text = plan_of(machine, queue);
    parse(&text, "p", &catalogue()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn refusal(machine: &str, queue: &str) -> String {
    parse(&plan_of(machine, queue), "p", &catalogue()).unwrap_err().to_string()
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.cases.iter().map(|case| case.id.as_str()).collect()
}

#[test]
fn a_list_of_knob_values_is_an_axis_everywhere() {
    for machine in ["\"vm.dirty_bytes\" = [\"256MiB\", \"default\"]", "vm.dirty_bytes = [\"256MiB\", \"default\"]"] {
        let plan = read(machine, "");
        let expected = [
            "disk.sync.vm-dirty_bytes-256mib",
            "disk.sync.vm-dirty_bytes-default",
            "tmp.sync.vm-dirty_bytes-256mib",
            "tmp.sync.vm-dirty_bytes-default",
        ];
        assert_eq!(ids(&plan), expected);
        assert_eq!(plan.cases[0].axes["vm.dirty_bytes"], "256MiB");
        assert_eq!(plan.cases[0].machine.text("vm.dirty_bytes"), Some("256MiB"));
        assert_eq!(plan.cases[1].machine.text("vm.dirty_bytes"), Some("default"));
    }
}

#[test]
fn default_device_knobs_reach_devices_without_knobs_of_their_own() {
    let queue = "queue = { scheduler = [\"none\", \"bfq\"], nr_requests = 64 }";
    let plan = read(queue, "");
    assert_eq!(ids(&plan), ["disk.sync.queue-scheduler-none", "disk.sync.queue-scheduler-bfq", "tmp.sync"]);
    let of = |plan: &Plan, case: usize, knob: &str| {
        plan.cases[case].stack.nodes[0].options.table("queue").get(knob).cloned()
    };
    assert_eq!(of(&plan, 1, "scheduler"), Some(OptionValue::Text("bfq".into())));
    assert_eq!(of(&plan, 1, "nr_requests"), Some(OptionValue::Integer(64)));
    assert!(
        plan.cases
            .iter()
            .all(|case| case.machine.0.is_empty() && case.stack.nodes.last().unwrap().options.0.is_empty())
    );

    let plan = read(queue, ", queue = { nr_requests = [8, \"default\"] }");
    let expected =
        ["disk.sync.loop-nr_requests-8.queue-scheduler-none", "disk.sync.loop-nr_requests-8.queue-scheduler-bfq"];
    assert_eq!(ids(&plan)[..2], expected);
    assert_eq!(plan.cases.len(), 5);
    assert_eq!(of(&plan, 0, "nr_requests"), Some(OptionValue::Integer(8)));
    assert_eq!(of(&plan, 3, "nr_requests"), Some(OptionValue::Text("default".into())));
    assert_eq!(of(&plan, 3, "scheduler"), Some(OptionValue::Text("bfq".into())));
}

#[test]
fn a_baseline_and_an_exclude_name_knobs() {
    let text = plan_of("vm.dirty_bytes = [\"256MiB\", \"default\"]", "")
        .replace("name = \"p\"\n", "name = \"p\"\nbaseline = { \"vm.dirty_bytes\" = \"default\" }\n")
        + "[[exclude]]\nstack = \"tmp\"\nvm.dirty_bytes = \"256 MiB\"\n";
    let plan = parse(&text, "p", &catalogue()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plan.baseline["vm.dirty_bytes"], "default");
    assert_eq!(plan.cases.len(), 3);
}

#[test]
fn mistakes_are_shown_where_they_stand() {
    for (machine, queue, line, words) in [
        ("\"vm.dirty_byte\" = \"1GiB\"", "", 3, "did you mean `vm.dirty_bytes`?"),
        ("[machine.vm]\ndirty_byte = \"1GiB\"", "", 4, "did you mean `vm.dirty_bytes`?"),
        ("vm.dirty_bytes = 5", "", 3, "must be a size with its unit"),
        ("huge = \"sometimes\"", "", 3, "must be \"always\" or \"never\""),
        ("vm.dirty_ratio = 0", "", 3, "at least 1, found 0"),
        ("vm.dirty_bytes = [\"default\", \"1GiB\"]\nvm.dirty_ratio = 10", "", 4, "it excludes `vm.dirty_bytes`"),
        ("vm.dirty_ratio = 10\n\"vm.dirty_ratio\" = 20", "", 4, "set twice"),
        ("queue = { schedular = \"none\" }", "", 3, "did you mean `scheduler`?"),
        ("huge = \"never\"", ", queue = { nr_requests = 1 }", 5, "at least 4, found 1"),
        ("queue = { nr_requests = [64, 32] }", ", queue = { nr_requests = 8 }", 3, "applies to no device of any stack"),
    ] {
        let message = refusal(machine, queue);
        assert!(message.contains(words) && message.contains(&format!(":{line}:")), "{machine}: {message}");
    }
    let clash = plan_of("queue = { scheduler = \"none\" }", "").replace(
        "device = { loop = \"1GiB\" }",
        "devices = { queue = { loop = \"1GiB\", queue = { scheduler = \"bfq\" } } }",
    );
    let message =
        parse(&format!("{clash}[stack.b]\ndevice = {{ loop = \"1GiB\" }}\nfilesystem = \"xfs\"\n"), "p", &catalogue());
    assert!(message.unwrap_err().to_string().contains("is also the name of a knob"));
}

#[test]
fn exclusive_knobs_do_not_conflict_when_one_is_default() {
    assert_eq!(read("vm.dirty_bytes = \"default\"\nvm.dirty_ratio = [5, 10]", "").cases.len(), 4);
}

#[test]
fn schema_and_example_show_the_knobs() {
    let schema = schema(&catalogue());
    let machine = &schema["properties"]["machine"]["properties"];
    for knob in [&machine["vm.dirty_bytes"], &machine["vm"]["properties"]["dirty_bytes"], &machine["huge"]] {
        assert!(knob.to_string().contains("\"const\":\"default\""), "{knob}");
    }
    assert!(machine["queue"]["properties"]["scheduler"].is_object());
    let text = example(&catalogue());
    assert!(text.contains("# [machine]\n# \"vm.dirty_bytes\" = [\"4GiB\", \"default\"]"), "{text}");
}
