//! Figures to sentences.

pub(crate) mod cautions;
pub(crate) mod digits;
pub(crate) mod effects;
pub(crate) mod headline;
pub(crate) mod merged;
pub(crate) mod window;
pub(crate) mod work;
