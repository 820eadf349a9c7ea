//! Figures of one case, accumulated over its trials.

pub(crate) mod age_figures;
pub(crate) mod ageing;
pub(crate) mod backend_time;
pub(crate) mod capacity;
pub(crate) mod cpu_use;
pub(crate) mod drives;
pub(crate) mod epochs;
pub(crate) mod image_cost;
pub(crate) mod measures;
pub(crate) mod percentiles;
pub(crate) mod stages;
pub(crate) mod steadiness;
pub(crate) mod strata;
pub(crate) mod sums;
pub(crate) mod synced;
pub(crate) mod turns;
pub(crate) mod window;
pub(crate) mod work;
