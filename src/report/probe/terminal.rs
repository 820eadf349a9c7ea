//! A probe's findings for a terminal, the answer in the first six lines; plain UTF-8 without colours. Every text from
//! outside is passed through `printable`, because a terminal obeys control characters.

use super::super::words::moment;
use super::{head, rows, sections};
use crate::analyse::probe::findings::ProbeFindings;
use crate::analyse::probe::requirements::RequirementFinding;
use crate::report::text::paragraph;
use crate::units::{Bytes, Micros};

/// The whole report.
pub fn terminal(findings: &ProbeFindings, requirements: &[RequirementFinding]) -> String {
    [
        head::head(findings),
        "\n".to_owned(),
        head::requirements(requirements),
        paragraph("", &about(findings)),
        "\n".to_owned(),
        rows::table(findings),
        sections::credibility(findings),
        sections::recommendation(findings),
        sections::standing(findings),
        sections::devices(findings),
        sections::stalls(findings),
        sections::caveats(findings),
    ]
    .concat()
}

/// Folder, filesystem, devices, date, duration.
fn about(findings: &ProbeFindings) -> String {
    let place = &findings.place;
    let mount = place.mount.as_ref();
    let on = mount.map_or_else(String::new, |mount| match mount.source.as_str() {
        "" | "none" => format!(" on {}", mount.fstype),
        source if source == mount.fstype => format!(" on {source}"),
        source => format!(" on {} ({source})", mount.fstype),
    });
    let devices = place.devices.iter().map(|device| match &device.model {
        Some(model) => format!("{} {}", device.name, model.trim()),
        None => device.name.clone(),
    });
    let devices: Vec<String> = devices.collect();
    let over = if devices.is_empty() { String::new() } else { format!(", over {}", devices.join(", ")) };
    let machine = place.hypervisor.as_ref().map_or_else(String::new, |who| match who.as_str() {
        "virtual machine" => ", a virtual machine".to_owned(),
        who => format!(", a virtual machine ({who})"),
    });
    format!(
        "{}{on}{over}. Linux {}{machine}; {}; {} of measuring, files of {}.",
        place.folder,
        place.kernel,
        moment(&findings.started),
        Micros(findings.elapsed_us),
        Bytes(findings.file_bytes)
    )
}
