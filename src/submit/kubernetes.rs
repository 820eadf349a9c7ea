//! Kubernetes: an Indexed Job, a pod for each share, each on a node of its own; the plan travels as a ConfigMap.
//!
//! The manifest is JSON, which kubectl reads as it reads YAML: whatever stands in a plan, `serde_json` writes it as one text.

use super::{Engine, Flag, PLAN};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::parse::pods;
use crate::record::submitted::Submission;
use serde_json::{Value, json};

const JOB: &str = "job.json";
/// Bytes that a plan may have: a ConfigMap holds 1 MiB, its own fields included.
const MOST_PLAN: usize = (1 << 20) - 4096;

/// Kubernetes.
#[derive(Debug)]
pub struct Kubernetes;

const FLAGS: &[Flag] = &[
    Flag {
        name: "image",
        value: "IMAGE",
        doc: "Kubernetes: image with pgstrata and PostgreSQL (the Containerfile makes one)",
        required: true,
        default: None,
    },
    Flag {
        name: "claim",
        value: "CLAIM",
        doc: "Kubernetes: claim (PersistentVolumeClaim, ReadWriteMany) for run folders, mounted at /results",
        required: true,
        default: None,
    },
    Flag {
        name: "storage-class",
        value: "CLASS",
        doc: "Kubernetes: give each pod a new volume of this class, mounted at /data (in the plan: directory = \"/data\")",
        required: false,
        default: None,
    },
    Flag {
        name: "volume-size",
        value: "SIZE",
        doc: "Kubernetes: size of that volume",
        required: false,
        default: Some("20Gi"),
    },
];

impl Engine for Kubernetes {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn doc(&self) -> &'static str {
        "As an Indexed Job of Kubernetes (1.29 or newer), one pod for each share, on a node of its own"
    }

    fn flags(&self) -> &'static [Flag] {
        FLAGS
    }

    fn program(&self) -> &'static str {
        "kubectl"
    }

    fn carries_program(&self) -> bool {
        false
    }

    fn job_file(&self, submission: &Submission, _shares: &[u32], plan: &str) -> Result<(&'static str, String)> {
        if plan.len() > MOST_PLAN {
            return Err(Error::user(format!(
                "the plan has {} bytes, and a ConfigMap holds one of {MOST_PLAN}",
                plan.len()
            ))
            .hint("shorten the plan"));
        }
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": [config(submission, plan), job(submission)] });
        let text = serde_json::to_string_pretty(&list).map_err(|e| Error::bug(e.to_string()))?;
        Ok((JOB, text + "\n"))
    }

    fn command(&self, submission: &Submission, _shares: &[u32]) -> Command {
        // Every share has a pod again: one that is complete ends at once, as its folder is on the claim.
        // Applied by kubectl itself, the text would have to fit into an annotation, too.
        Command::new(self.program()).args(["apply", "--server-side", "-f", JOB]).args(&submission.arguments)
    }

    fn queued(&self, host: &Host, submission: &Submission) -> Result<Vec<u32>> {
        let label = format!("--selector=pgstrata={}", submission.job_name());
        let command = Command::new(self.program()).args(["get", "pods", &label, "--output", pods::TEMPLATE]);
        let listed = host.run(&command.args(&submission.arguments))?.stdout;
        Ok(pods::open(&listed).into_iter().map(|index| index + 1).collect())
    }

    fn starts_all(&self, submission: &Submission) -> Option<Command> {
        Some(Command::new(self.program()).args(["delete", "-f", JOB]).args(&submission.arguments))
    }
}

/// A finished Job does not start again, and a template does not change: each attempt has a name of its own.
fn name(submission: &Submission) -> String {
    format!("{}-{}", submission.job_name(), submission.attempt)
}

fn config(submission: &Submission, plan: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": submission.job_name() },
        "data": { PLAN: plan },
    })
}

fn job(submission: &Submission) -> Value {
    let label = json!({ "pgstrata": submission.job_name() });
    let blocks = format!("kubernetes/{}", submission.shares);
    let mut command = vec!["pgstrata", "run", "/plan/plan.toml", "--blocks", &blocks, "--results", "/results"];
    if submission.quick {
        command.push("--quick");
    }
    let option = |name: &str| submission.options.get(name);
    let mut mounts = vec![
        json!({ "name": "plan", "mountPath": "/plan", "readOnly": true }),
        json!({ "name": "results", "mountPath": "/results" }),
    ];
    let mut volumes = vec![
        json!({ "name": "plan", "configMap": { "name": submission.job_name() } }),
        json!({ "name": "results", "persistentVolumeClaim": { "claimName": option("claim") } }),
    ];
    if let Some(class) = option("storage-class") {
        mounts.push(json!({ "name": "data", "mountPath": "/data" }));
        let spec = json!({
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class,
            "resources": { "requests": { "storage": option("volume-size") } },
        });
        volumes.push(json!({ "name": "data", "ephemeral": { "volumeClaimTemplate": { "spec": spec } } }));
    }
    let apart = json!([{ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": label } }]);
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name(submission) },
        "spec": {
            "completionMode": "Indexed",
            "completions": submission.shares,
            "parallelism": submission.shares,
            // A share that ends with trials not run is not tried again, and ends no other; one whose node went away is.
            "backoffLimitPerIndex": 0,
            "podFailurePolicy": { "rules": [{ "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget" }] }] },
            "template": {
                "metadata": { "labels": label },
                "spec": {
                    "restartPolicy": "Never",
                    "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": apart } },
                    "containers": [{
                        "name": "pgstrata",
                        "image": option("image"),
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
        let (_, text) = Kubernetes.job_file(&job, &[2], plan).unwrap();
        assert!(text.starts_with('{'), "kubectl takes what begins with a brace for JSON");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn an_indexed_job_has_a_pod_for_each_share_and_the_plan_byte_for_byte() {
        let plan = "name = \"x\" # \u{85}\u{1F600} ---\n: - !!python \"\\\"\t'\r\n";
        let list = made(&[("image", "i\": 1"), ("claim", "c")], plan);
        let (config, job) = (&list["items"][0], &list["items"][1]);
        assert_eq!(config["data"]["plan.toml"], plan);
        assert_eq!((&job["spec"]["completions"], &job["spec"]["completionMode"]), (&json!(3), &json!("Indexed")));
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(
            pod["containers"][0]["command"],
            json!(["pgstrata", "run", "/plan/plan.toml", "--blocks", "kubernetes/3", "--results", "/results"])
        );
        assert_eq!(pod["containers"][0]["image"], "i\": 1");
        assert_eq!(pod["volumes"][0]["configMap"]["name"], config["metadata"]["name"]);
        assert_eq!(pod["volumes"].as_array().unwrap().len(), 2, "no volume for data unless its class is named");
        assert_eq!(job["metadata"]["name"], "pgstrata-spread-0a1b2c3d-2");
        let apart = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
        assert_eq!(apart["labelSelector"]["matchLabels"], job["spec"]["template"]["metadata"]["labels"]);
    }

    #[test]
    fn a_storage_class_gives_each_pod_a_volume_of_its_own() {
        let list = made(&[("image", "i"), ("claim", "c"), ("storage-class", "fast"), ("volume-size", "5Gi")], "");
        let pod = &list["items"][1]["spec"]["template"]["spec"];
        let spec = &pod["volumes"][2]["ephemeral"]["volumeClaimTemplate"]["spec"];
        assert_eq!(
            (&spec["storageClassName"], &spec["resources"]["requests"]["storage"]),
            (&json!("fast"), &json!("5Gi"))
        );
        assert_eq!(pod["containers"][0]["volumeMounts"][2], json!({ "name": "data", "mountPath": "/data" }));
    }
}
