//! Figures of one trial: its input, counters, series, charts.

pub(crate) mod arc;
pub(crate) mod charts;
pub(crate) mod checks;
pub(crate) mod counters;
pub(crate) mod device_work;
pub(crate) mod heat;
pub(crate) mod input;
pub(crate) mod rates;
pub mod reads;
pub(crate) mod series;
pub(crate) mod waits_over_time;
pub(crate) mod window;
