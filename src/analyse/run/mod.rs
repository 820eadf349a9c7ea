//! Figures over all cases of a run: comparisons, ranks, durability, machines, trials not run.

pub(crate) mod ageing;
pub(crate) mod blocks;
pub(crate) mod counters;
pub(crate) mod decided;
pub(crate) mod disturbed;
pub(crate) mod drives;
pub(crate) mod durability;
pub(crate) mod effects;
pub(crate) mod flush_share;
pub(crate) mod full;
pub(crate) mod in_memory;
pub(crate) mod machines;
pub(crate) mod not_run;
pub(crate) mod percentile_ratios;
pub(crate) mod power_cuts;
pub(crate) mod profiled;
pub(crate) mod ranked;
pub(crate) mod ranking;
pub(crate) mod spread;
pub(crate) mod turns;
