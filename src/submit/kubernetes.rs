//! Kubernetes: an Indexed Job with a pod for each share, each on a node of its own; the plan is passed as a ConfigMap.
//!
//! The manifest is JSON, which kubectl accepts like YAML: `serde_json` writes any plan as a single string.

use super::{Engine, Flag, PLAN};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::parse::pods::{self, Pod};
use crate::record::submitted::Submission;
use serde_json::{Value, json};

const JOB: &str = "job.json";
/// Largest plan, bytes: a ConfigMap holds 1 MiB, including its own fields.
const MOST_PLAN: usize = (1 << 20) - 4096;

pub(super) static KUBERNETES: Engine = Engine {
    name: "kubernetes",
    value: None,
    doc: "As an Indexed Job of Kubernetes (1.29 or newer), one pod for each share, on a node of its own",
    flags: FLAGS,
    program: "kubectl",
    carries_program: false,
    shares: |submission| submission.blocks,
    job_file,
    command,
    waits: false,
    queued,
    starts_all: |submission| Some(kubectl(submission, &["delete", "-f", JOB])),
    notes: None,
    failures: |host, submission, _| {
        let failed = pods::failed(&pods_of(host, submission)?).into_iter();
        Ok(failed.map(|pod| (pod.index + 1, format!("Kubernetes: {}", died(&pod)))).collect())
    },
};

const FLAGS: &[Flag] = &[
    Flag::required("image", "IMAGE", "Kubernetes: image with pgstrata and PostgreSQL (the Containerfile makes one)"),
    Flag::required(
        "claim",
        "CLAIM",
        "Kubernetes: claim (PersistentVolumeClaim, ReadWriteMany) for run folders, mounted at /results",
    ),
    Flag::optional(
        "storage-class",
        "CLASS,...",
        "Kubernetes: give each pod a new volume of this class, mounted at /data (in the plan: directory = \"/data\"); of several \
         classes (fast,slow) one volume each, at /data/CLASS",
    ),
    Flag {
        default: Some("20Gi"),
        ..Flag::optional("volume-size", "SIZE", "Kubernetes: size of each of these volumes")
    },
];

fn job_file(submission: &Submission, _shares: &[u32], plan: &str) -> Result<(&'static str, String)> {
    if plan.len() > MOST_PLAN {
        let what = format!("the plan has {} bytes, and a ConfigMap holds one of {MOST_PLAN}", plan.len());
        return Err(Error::user(what).hint("shorten the plan"));
    }
    let classes = classes(submission)?;
    let config = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": submission.job_name() },
        "data": { PLAN: plan },
    });
    let job = job(submission, &classes);
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [config, job] });
    let text = serde_json::to_string_pretty(&list).map_err(|e| Error::bug(e.to_string()))?;
    Ok((JOB, text + "\n"))
}

fn command(submission: &Submission, _shares: &[u32]) -> Command {
    // Every share gets a pod again: a complete one ends at once, because its folder is on the claim. Applied
    // client-side, the text would also have to fit into an annotation.
    kubectl(submission, &["apply", "--server-side", "-f", JOB])
}

fn queued(host: &Host, submission: &Submission) -> Result<Vec<u32>> {
    Ok(pods::open(&pods_of(host, submission)?).into_iter().map(|index| index + 1).collect())
}

fn kubectl(submission: &Submission, words: &[&str]) -> Command {
    Command::new("kubectl").with_callers_environment().args(words).args(&submission.arguments)
}

fn pods_of(host: &Host, submission: &Submission) -> Result<String> {
    let label = format!("--selector=pgstrata={}", submission.job_name());
    Ok(host.run(&kubectl(submission, &["get", "pods", &label, "--output", pods::TEMPLATE]))?.stdout)
}

/// `OOMKilled, exit code 137, on node7`.
fn died(pod: &Pod) -> String {
    let reasons: Vec<&str> = [&pod.reason, &pod.container_reason].into_iter().flatten().map(String::as_str).collect();
    let mut parts = vec![if reasons.is_empty() { "failed".to_owned() } else { reasons.join(", ") }];
    parts.extend(pod.exit_code.map(|code| format!("exit code {code}")));
    parts.extend(pod.node.as_ref().map(|node| format!("on {node}")));
    parts.join(", ")
}

/// The storage classes given by the user.
fn classes(submission: &Submission) -> Result<Vec<&str>> {
    let Some(named) = submission.options.get("storage-class") else { return Ok(Vec::new()) };
    let classes: Vec<&str> = named.split(',').map(str::trim).collect();
    for (i, class) in classes.iter().enumerate() {
        if !is_class(class) {
            return Err(Error::user(format!("`{class}` is not the name of a storage class")).hint(
                "a name has lower-case letters, digits, hyphens and dots; `kubectl get storageclass` lists those of the cluster",
            ));
        }
        if classes[..i].contains(class) {
            return Err(Error::user(format!("the storage class `{class}` is named twice")).hint("name each class once"));
        }
    }
    Ok(classes)
}

/// True for a valid Kubernetes object name of this kind: a DNS subdomain (RFC 1123).
fn is_class(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut labels = text.split('.');
    text.len() <= 253
        && labels.all(|label| {
            let ends = label.starts_with(is_end) && label.ends_with(is_end);
            ends && label.len() <= 63 && label.chars().all(|c| is_end(c) || c == '-')
        })
}

fn job(submission: &Submission, classes: &[&str]) -> Value {
    let label = json!({ "pgstrata": submission.job_name() });
    let blocks = format!("kubernetes/{}", submission.shares);
    let mut command = vec!["pgstrata", "run", "/plan/plan.toml", "--share", &blocks, "--results", "/results"];
    command.extend(submission.quick.then_some("--quick"));
    let options = &submission.options;
    let mut mounts = vec![
        json!({ "name": "plan", "mountPath": "/plan", "readOnly": true }),
        json!({ "name": "results", "mountPath": "/results" }),
    ];
    let mut volumes = vec![
        json!({ "name": "plan", "configMap": { "name": submission.job_name() } }),
        json!({ "name": "results", "persistentVolumeClaim": { "claimName": options.get("claim") } }),
    ];
    for (i, class) in classes.iter().enumerate() {
        // The name of a volume is a DNS label, whose limit is shorter than a class name's.
        let (volume, path) = match classes.len() {
            1 => ("data".to_owned(), "/data".to_owned()),
            _ => (format!("data-{}", i + 1), format!("/data/{class}")),
        };
        mounts.push(json!({ "name": volume, "mountPath": path }));
        let spec = json!({
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class,
            "resources": { "requests": { "storage": options.get("volume-size") } },
        });
        volumes.push(json!({ "name": volume, "ephemeral": { "volumeClaimTemplate": { "spec": spec } } }));
    }
    let apart = json!([{ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": label } }]);
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        // A finished Job does not restart, and a template is immutable: each attempt has a name of its own.
        "metadata": { "name": format!("{}-{}", submission.job_name(), submission.attempt) },
        "spec": {
            "completionMode": "Indexed",
            "completions": submission.shares,
            "parallelism": submission.shares,
            // A share that ends with trials not run is not retried, and does not end others; one whose node is lost is
            // retried.
            "backoffLimitPerIndex": 0,
            "podFailurePolicy": { "rules": [{ "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget" }] }] },
            "template": {
                "metadata": { "labels": label },
                "spec": {
                    "restartPolicy": "Never",
                    "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": apart } },
                    "containers": [{
                        "name": "pgstrata",
                        "image": options.get("image"),
                        "command": command,
                        "volumeMounts": mounts,
                    }],
                    "volumes": volumes,
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::submitted::tests::submission;

    fn made(options: &[(&str, &str)], plan: &str) -> Value {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let job = Submission { options, attempt: 2, ..submission("kubernetes") };
        let (_, text) = job_file(&job, &[2], plan).unwrap();
        assert!(text.starts_with('{'), "kubectl takes what begins with a brace for JSON");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn an_indexed_job_runs_one_pod_per_share() {
        let plan = "name = \"x\" # \u{85}\u{1F600} ---\n: - !!python \"\\\"\t'\r\n";
        let list = made(&[("image", "i\": 1"), ("claim", "c")], plan);
        let (config, job) = (&list["items"][0], &list["items"][1]);
        assert_eq!(config["data"]["plan.toml"], plan);
        assert_eq!((&job["spec"]["completions"], &job["spec"]["completionMode"]), (&json!(3), &json!("Indexed")));
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(
            pod["containers"][0]["command"],
            json!(["pgstrata", "run", "/plan/plan.toml", "--share", "kubernetes/3", "--results", "/results"])
        );
        assert_eq!(pod["containers"][0]["image"], "i\": 1");
        assert_eq!(pod["volumes"][0]["configMap"]["name"], config["metadata"]["name"]);
        assert_eq!(pod["volumes"].as_array().unwrap().len(), 2, "no volume for data unless its class is named");
        assert_eq!(job["metadata"]["name"], "pgstrata-spread-0a1b2c3d-2");
        let apart = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
        assert_eq!(apart["labelSelector"]["matchLabels"], job["spec"]["template"]["metadata"]["labels"]);
    }

    #[test]
    fn a_storage_class_gives_each_pod_its_own_volume() {
        let list = made(&[("image", "i"), ("claim", "c"), ("storage-class", "fast"), ("volume-size", "5Gi")], "");
        let pod = &list["items"][1]["spec"]["template"]["spec"];
        let spec = &pod["volumes"][2]["ephemeral"]["volumeClaimTemplate"]["spec"];
        assert_eq!(
            (&spec["storageClassName"], &spec["resources"]["requests"]["storage"]),
            (&json!("fast"), &json!("5Gi"))
        );
        assert_eq!(pod["containers"][0]["volumeMounts"][2], json!({ "name": "data", "mountPath": "/data" }));
    }

    #[test]
    fn each_storage_class_gives_every_pod_a_named_volume() {
        let list =
            made(&[("image", "i"), ("claim", "c"), ("storage-class", "fast, io2.example"), ("volume-size", "5Gi")], "");
        let pod = &list["items"][1]["spec"]["template"]["spec"];
        let described = |volume: &Value| {
            let spec = &volume["ephemeral"]["volumeClaimTemplate"]["spec"];
            format!("{} {}", volume["name"], spec["storageClassName"])
        };
        let volumes: Vec<String> = pod["volumes"].as_array().unwrap().iter().skip(2).map(described).collect();
        assert_eq!(volumes, [r#""data-1" "fast""#, r#""data-2" "io2.example""#]);
        let mounts = &pod["containers"][0]["volumeMounts"];
        assert_eq!(mounts[2], json!({ "name": "data-1", "mountPath": "/data/fast" }));
        assert_eq!(mounts[3], json!({ "name": "data-2", "mountPath": "/data/io2.example" }));
    }

    #[test]
    fn what_is_no_storage_class_is_refused() {
        let long = "a".repeat(64);
        for wrong in ["", "fast,", "Fast", "a b", "a/b", "..", "-a", "a-", "fast,fast", "a\nb", &long] {
            let options = [("storage-class".to_owned(), wrong.to_owned())].into();
            let job = Submission { options, ..submission("kubernetes") };
            assert!(job_file(&job, &[1], "").is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_failed_pod_is_reported_with_reason_and_node() {
        let pod = Pod {
            index: 1,
            reason: None,
            container_reason: Some("OOMKilled".to_owned()),
            exit_code: Some(137),
            node: Some("n7".to_owned()),
        };
        assert_eq!(died(&pod), "OOMKilled, exit code 137, on n7");
        let evicted = Pod { reason: Some("Evicted".to_owned()), container_reason: None, exit_code: None, ..pod };
        assert_eq!(died(&evicted), "Evicted, on n7");
    }
}
