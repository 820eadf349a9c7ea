//! The findings as one JSON document on one line, for programs.

use super::Renderer;
use crate::analyse::findings::Findings;
use crate::error::{Context, Error, Result};
use std::io::Write;

/// `--format json`.
pub(super) struct Json;

impl Renderer for Json {
    fn extension(&self) -> &'static str {
        "json"
    }

    fn render(&self, findings: &Findings, out: &mut dyn Write) -> Result<()> {
        let text =
            serde_json::to_string(findings).map_err(|e| Error::bug(format!("findings do not serialise: {e}")))?;
        writeln!(out, "{text}").or_host(|| "write the report as JSON".to_owned())
    }
}
