//! Effects of options made up for the sample.

use pgstrata::analyse::findings::*;

/// Stacks and a setting, one of which depends on the clients.
pub fn effects() -> Vec<Effects> {
    let option = |axis: &str, level: &str, reference: &str, at: Option<&str>, value: f64, spread: f64| OptionEffect {
        axis: axis.to_owned(),
        level: level.to_owned(),
        reference: reference.to_owned(),
        at: at.map(|level| format!("clients={level}")),
        ratio: Estimate::of(value, Some((value * (1.0 - spread), value * (1.0 + spread))), 3),
        outcome: (axis != "clients").then(|| PairOutcome::of((value - 1.0).abs() > spread, None)),
        pairs: 12,
        differs_in_durability: level == "tmpfs",
    };
    let options = vec![
        option("stack", "xfs", "ext4", None, 1.04, 0.06),
        option("stack", "tmpfs", "ext4", None, 6.4, 0.3),
        option("full_page_writes", "off", "on", Some("1"), 1.01, 0.03),
        option("full_page_writes", "off", "on", Some("16"), 1.31, 0.05),
        option("clients", "16", "1", None, 6.8, 0.2),
    ];
    vec![Effects {
        title: "tpcb".to_owned(),
        combinations: 12,
        blocks: 3,
        unavailable: None,
        options,
        wal: Vec::new(),
        best: None,
    }]
}
