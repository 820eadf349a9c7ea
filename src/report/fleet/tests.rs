//! Content of a fleet's page; names from outside stay text.

use super::{GroupingLink, page};
use crate::analyse::findings::Estimate;
use crate::analyse::fleet::{FleetFindings, GroupBy, GroupComparison, HostFinding, HostGroup, HostRunFinding};

const HOSTILE: &str = "<script>x</script>\"'\u{202e}";

fn session(started: &str, speed: f64, changes: &[&str]) -> HostRunFinding {
    HostRunFinding {
        run: "0badcafe".to_owned(),
        started: started.to_owned(),
        speed,
        trials: 3,
        in_group: changes.is_empty(),
        facts: Default::default(),
        changes: changes.iter().map(|change| (*change).to_owned()).collect(),
    }
}

fn fleet(name: &str) -> FleetFindings {
    let host = |host: &str, speed: f64| HostFinding {
        host: host.to_owned(),
        speed,
        below: Some(1.0),
        is_slow: speed < 0.9,
        trials: 3,
        cases: [(name.to_owned(), speed)].into(),
        history: vec![session("2026-03-02T09:14:33Z", speed, &[])],
    };
    let mut hosts = vec![host(name, 0.85), host("node2", 1.0)];
    hosts[1].history.push(session("2026-04-02T09:14:33Z", 0.97, &["firmware A1 to B2"]));
    let group = HostGroup { name: name.to_owned(), spread: 0.03, limit: Some(3.6), limit_speed: Some(0.9), hosts };
    let ratio = Estimate::of(0.95, Some((0.94, 0.96)), 4);
    let comparison = GroupComparison {
        group: name.to_owned(),
        reference: name.to_owned(),
        ratio,
        hosts: (2, 2),
        method: "paired over 2 hosts".to_owned(),
    };
    FleetFindings {
        plan: name.to_owned(),
        answer: vec![name.to_owned()],
        grouped_by: vec![GroupBy::Model],
        hosts: 2,
        groups: vec![group.clone(), group],
        comparisons: vec![comparison],
        not_compared: vec![(name.to_owned(), name.to_owned())],
        left_out: vec![(name.to_owned(), name.to_owned())],
    }
}

#[test]
fn the_page_has_each_host_limits_history_and_omissions() {
    let page = page(&fleet("node1"), None, &[]).unwrap();
    for part in [
        "class=\"row slow\"",
        "class=\"limit\"",
        "2026-04-02: firmware A1 to B2",
        "class=\"other\"",
        "1 host has a single measurement",
        "paired over 2 hosts",
        "0.94",
        "Left out, and why",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("All runs"));
}

#[test]
fn the_page_has_no_script_request_or_inline_style() {
    let other = GroupingLink { text: "kernel".to_owned(), address: "/fleet?by=kernel".to_owned(), is_this: false };
    let page = page(&fleet(HOSTILE), Some("/"), &[other]).unwrap();
    assert!(!page.contains("<script") && !page.contains(" style=") && !page.contains(" src="), "{page}");
    assert!(page.contains("&lt;script&gt;") && !page.contains('\u{202e}'), "{page}");
    assert!(page.contains("fleet?by=kernel\"") && page.contains("href=\"/\">All runs"), "{page}");
}
