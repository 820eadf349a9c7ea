//! What an operation costs, compared like a rate.

use super::*;

#[test]
fn what_an_operation_costs_is_lower_or_higher_and_not_faster() {
    let sides = from_run::sides(0, "x", &a_run(), None);
    let costs = sides[0].measures.iter().filter(|measure| measure.figure == FigureKind::Counter);
    let costs: Vec<(&str, &str, String)> =
        costs.map(|it| (it.item.as_str(), it.case.as_str(), it.conditions[2].value.clone().unwrap())).collect();
    for item in ["wal_bytes", "flushes_per_wal_sync", "device_writes"] {
        assert!(costs.contains(&(item, "ext4-tpcb-c16", "16".to_owned())), "{costs:?}");
        assert!(costs.contains(&(item, "ext4-tpcb-c4", "4".to_owned())), "{costs:?}");
    }
    let wal = |means: &[f64]| SideMeasure {
        spread: trials("x", means),
        ..SideMeasure::new("pgbench", Vec::new(), "wal_bytes", FigureKind::Counter, "", means[0])
    };
    let outcome = |means| ratio::compare(&wal(means), &wal(&[500.0, 501.0, 499.0])).unwrap().outcome;
    assert_eq!(outcome(&[400.0, 401.0, 399.5]), RatioOutcome::Lower);
    assert_eq!(outcome(&[600.0, 601.0, 599.5]), RatioOutcome::Higher);
    assert_eq!(outcome(&[500.0, 501.0, 499.0]), RatioOutcome::Undecided, "equal to the last digit");
    let found = two(wal(&[400.0, 401.0, 399.5]), wal(&[500.0, 501.0, 499.0]));
    assert!(found.answer.ends_with("1 figure compared: 1 higher"), "{}", found.answer);
}
