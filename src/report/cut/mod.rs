//! Page of `pgstrata cut`: one file that opens from disk, needs no network and no script, and uses the report's style
//! sheet. Its tables are those of a run's report.

use super::power_cuts::{devices, guarantees, verdicts};
use super::sheet::{self, sheet};
use crate::analyse::findings::CutFindings;
use crate::error::Result;
use minijinja::context;

/// Prefix of the file names of its tables.
const NAME: &str = "cut";

/// Renders the page; on a server, `home` links to its list of runs.
///
/// # Errors
/// A bug: a template that does not render.
pub fn page(findings: &CutFindings, home: Option<&str>) -> Result<String> {
    let cuts = &findings.power_cuts;
    let own = context! {
        record => findings.record,
        answer => findings.answer,
        verdicts => sheet(NAME, &verdicts(cuts).even()),
        guarantees => sheet(NAME, &guarantees(cuts)),
        devices => sheet(NAME, &devices(cuts)),
    };
    sheet::render("a cut", include_str!("page.html"), ".save { font-size: .78rem; }", home, own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::findings::{CutRecord, StatesTried, Verdict, VerdictRecord};
    use crate::analyse::run::power_cuts::of_plan;

    const HOSTILE: &str = "<script>x</script>\"'\u{202e}";

    fn verdict(case: &str, verdict: &str) -> VerdictRecord {
        let text = format!(
            r#"{{"format":1,"tool_version":"0","made":"","cases":["{case}"],"verdict":{verdict},"clients":4,"commits":1200,"writes":9,"flushes":9,"bytes":9}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn found() -> CutFindings {
        let lying = VerdictRecord {
            state: Some(format!("power cut after 7 of 9 acknowledged commits (2 ms): floor {HOSTILE}")),
            evidence: Some("results/cut-1/lying".to_owned()),
            torn_pages: 2,
            ..verdict("lying", r#"{"verdict":"loses","commits":3,"us":2000}"#)
        };
        let states = StatesTried { class: "floor".to_owned(), tried: 1300, of: 9000, may_fail: false };
        let ext4 = VerdictRecord {
            states: vec![states],
            wal_ends_read: 1300,
            recovered: 65,
            ..verdict("ext4", r#"{"verdict":"holds","states":1300}"#)
        };
        let nothing = VerdictRecord {
            verdict: Verdict::NotMeasured { why: HOSTILE.to_owned() },
            ..verdict("folder", r#"{"verdict":"holds","states":0}"#)
        };
        let (name, plan) = (HOSTILE.to_owned(), HOSTILE.to_owned());
        let commands = vec![format!("pgstrata cut {HOSTILE}")];
        of_plan(CutRecord {
            name,
            plan,
            commands,
            left: 2,
            verdicts: vec![lying, ext4, nothing],
            ..CutRecord::default()
        })
    }

    #[test]
    fn foreign_text_is_escaped_and_nothing_runs() {
        let page = page(&found(), Some("/")).unwrap();
        let policy = page.replace("&#x27;", "'");
        assert!(policy.contains("default-src 'none'; style-src 'sha256-") && !page.contains("<script"), "{page}");
        assert!(page.contains("&lt;script&gt;") && !page.contains('\u{202e}'), "{page}");
    }

    #[test]
    fn the_page_has_a_verdict_on_each_guarantee_with_its_states() {
        let page = page(&found(), None).unwrap().replace('\u{a0}', " ");
        for part in [
            "Convicted: lying loses 3 commits &#x2f; 2 ms. Holds: ext4. Not measured: folder.",
            "1300 <span>of 9000 enumerated</span>",
            "Not cut: 2 of 5 cases.",
            "<dd>3600</dd>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let table = guarantees(&found().power_cuts);
        let rows = table.groups.iter().flat_map(|group| &group.rows);
        let texts = rows.map(|row| row.cells[1].text.as_str());
        assert_eq!(
            texts.collect::<Vec<_>>(),
            [
                "loses 3 commits / 2 ms",
                "not stated: the gravest failure counts",
                "not stated: the gravest failure counts",
                "not stated: the gravest failure counts",
                "holds (1300 states)",
                "holds",
                "holds",
                "not tested",
                "not measured",
                "not measured",
                "not measured",
                "not measured",
            ]
        );
    }
}
