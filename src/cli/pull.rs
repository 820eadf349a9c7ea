//! `pgstrata pull`: cuts the power of a machine or a drive by hand, and checks every acknowledged commit afterwards.

use super::out::{self, harmless, harmless_lines};
use super::places::PlaceArgs;
use crate::cut::Verdict;
use crate::cut::pull::{FirstPull, Pulls, WitnessPlace};
use crate::error::{EXIT_REQUIREMENT, Error, Kind, Result};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::record::pull::{PullRecord, RoundEnd};
use std::path::PathBuf;

/// Test a drive by cutting its power: commit until it is off, then check every acknowledged commit
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata pull /mnt/ssd/test --witness 192.0.2.7:7432     the witness is another machine
  pgstrata pull /mnt/usb/test --witness /var/tmp/witness   the witness is a file on another disk
  pgstrata pull --resume results/pull-1a2b3c4d             after the power is back: judge, commit again
  pgstrata pull --resume results/pull-1a2b3c4d --judge     judge and stop

A new PostgreSQL cluster is made in the folder. Cut the power while clients commit: unplug the machine, or the drive alone \
(--drive-only). A reset, a reboot or a killed virtual machine is no power cut. A drive can be damaged for good. Keep the results \
(--results) and the witness's file on other disks.

Exit code: 0 no acknowledged commit was lost, 6 convicted, 2 wrong flag or nothing to judge, 130 interrupted (no power cut).")]
pub struct Args {
    /// Folder on the filesystem under test
    #[arg(required_unless_present = "resume", requires = "witness")]
    folder: Option<PathBuf>,
    /// Who keeps what was acknowledged: address and port of `pgstrata witness`, or a file on another disk
    #[arg(long, value_name = "ADDRESS:PORT|FILE", conflicts_with = "resume")]
    witness: Option<String>,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 4, conflicts_with = "resume", value_parser = clap::value_parser!(u16).range(1..=64))]
    clients: u16,
    /// The PostgreSQL: a major version, or the folder of its programs
    #[arg(long, value_name = "VERSION|DIR", default_value = "auto", conflicts_with = "resume")]
    postgres: String,
    /// After the power is back: judge the last pull of this series, then commit again
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// The drive alone lost its power; the machine kept running
    #[arg(long, requires = "resume")]
    drive_only: bool,
    /// Do not commit again
    #[arg(long, requires = "resume")]
    judge: bool,
    #[command(flatten)]
    places: PlaceArgs,
}

/// Commits, or judges and commits.
///
/// # Errors
/// Missing requirements; nothing to judge; a witness that cannot be reached.
pub fn run(args: &Args) -> Result<u8> {
    let interrupt = Interrupt::listen()?;
    let (host, places) = (Host::this().heeding(&interrupt), args.places.places()?);
    let mut pulls = match (&args.resume, &args.folder, &args.witness) {
        (Some(at), _, _) => {
            let at = std::path::absolute(at).map_err(|e| Error::user(e.to_string()))?;
            let mut pulls = Pulls::open(&at)?;
            let was_stopped = matches!(pulls.record.rounds.last(), Some(round) if round.end == Some(RoundEnd::Stopped));
            if args.judge || !was_stopped {
                let verdict = pulls.judge(&host, &places, args.drive_only, &interrupt)?;
                out::line(&harmless_lines(&summary(&pulls.record)))?;
                if verdict.convicts() {
                    return Ok(EXIT_REQUIREMENT);
                }
            }
            if args.judge {
                return Ok(0);
            }
            pulls
        }
        (None, Some(folder), Some(witness)) => {
            let witness = WitnessPlace::parse(witness)?;
            let asked =
                FirstPull { folder: folder.clone(), witness, clients: args.clients, bin: args.postgres.clone() };
            Pulls::prepare(&host, &asked, &places)?
        }
        _ => return Err(Error::user("name a folder and --witness, or --resume")),
    };
    let at = harmless(&pulls.at.display().to_string());
    let committed = pulls.commit(&host, &places, &interrupt, &|number| {
        out::remark(&format!(
            "pull {number}: clients commit. Cut the power at any time; after it is back:\n  pgstrata pull --resume {at}"
        ));
    });
    match committed {
        Err(e) if e.kind() == Kind::Interrupted => Err(e),
        Err(e) => Err(e.hint(format!("if the drive lost its power: pgstrata pull --resume {at} --drive-only"))),
        Ok(()) => Ok(0),
    }
}

/// List of the pulls, and the conclusion from all of them.
fn summary(record: &PullRecord) -> String {
    let mut text = String::new();
    for round in &record.rounds {
        if let Some(RoundEnd::Judged { acknowledged, verdict, left_out, .. }) = &round.end {
            let verdict = match verdict {
                Verdict::Holds { .. } => "holds".to_owned(),
                verdict => verdict.to_string(),
            };
            text.push_str(&format!("pull {}: {verdict}; {acknowledged} acknowledged commits\n", round.number));
            left_out.iter().for_each(|step| text.push_str(&format!("  not checked: {step}\n")));
        }
    }
    let devices = record.devices.iter().map(|device| {
        let model = device.model.as_deref().map_or("no model", str::trim);
        let firmware = record.firmware.get(&device.name).map_or("unknown", String::as_str);
        format!("{}: {model}, firmware {firmware}", device.name)
    });
    devices.for_each(|device| text.push_str(&format!("{device}\n")));
    let pulls: Vec<&Verdict> = record.verdicts().filter(|verdict| verdict.is_known()).collect();
    if !pulls.is_empty() && !pulls.iter().any(|verdict| verdict.convicts()) {
        text.push_str(&format!(
            "{} pulled, no commit lost: at most {:.1} % of such pulls would lose one (95 % upper limit, Clopper-Pearson)\n",
            pulls.len(),
            upper_limit(pulls.len()) * 100.0
        ));
    }
    text.trim_end().to_owned()
}

/// Upper 95 % limit of a share when 0 of n were observed (Clopper and Pearson, Biometrika 26, 1934; one-sided).
fn upper_limit(pulls: usize) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / pulls as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_clean_pulls_bound_the_loss_rate_at_a_tenth() {
        assert!((upper_limit(1) - 0.95).abs() < 1e-12);
        assert!((upper_limit(30) - 0.095).abs() < 0.0005, "{}", upper_limit(30));
    }
}
