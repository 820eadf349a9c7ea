//! `delay` and `flakey`: device mapper targets that make one device slow, or let it fail.
//!
//! The only ledger entry is the `mapping`, by its name and UUID. Nothing is written to the device below, so it can be
//! reopened by creating the same mapping.

use super::identity::BlockDevice;
use super::{Built, Described, Layer, LayerInfo, LayerInput, Site, Unmet, devices_for, kernel_module, knobs, mapper};
use crate::error::Result;
use crate::host::Host;
use crate::record::claim::{Claim, Promise};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::{Role, Take};
use crate::units::Micros;

#[cfg(test)]
mod tests;

/// A target that maps a whole device one to one.
pub struct SlippedIn {
    /// Its name is also the target's.
    info: LayerInfo,
    module: &'static str,
    check: fn(&Options) -> Result<(), OptionProblem>,
    /// Builds the target's arguments from those that name the device.
    arguments: fn(&Options, &str) -> Vec<String>,
    facts: fn(&Options) -> Vec<(&'static str, String)>,
    promises: fn(&Options) -> Vec<Promise>,
}

/// A device that completes requests late.
pub static DELAY: SlippedIn = SlippedIn {
    info: LayerInfo::device(
        "delay",
        "dm-delay: delays each request, to simulate a slow disk.",
        &[
            OptionSpec::with_default("delay", OptionKind::Span, "0ms")
                .doc("Delay of reads, writes and flushes, in whole milliseconds."),
            OptionSpec::with_default("read", OptionKind::Span, "delay").doc("Delay of reads, if different."),
            OptionSpec::with_default("write", OptionKind::Span, "delay").doc("Delay of writes, if different."),
            OptionSpec::with_default("flush", OptionKind::Span, "delay").doc("Delay of flushes, if different."),
            knobs::QUEUE,
        ],
    )
    .on(&[Take::ONE_DEVICE])
    .keeping_pages()
    .undone_by(mapper::UNDO),
    module: "dm-delay",
    check: |options| {
        for key in DELAYS {
            if options.span(key).is_some_and(|span| span.0 % 1000 != 0) {
                return Err(OptionProblem::at(key, "dm-delay takes whole milliseconds only").help("write it as 2ms"));
            }
        }
        if DELAYS.iter().all(|key| millis(options, key) == 0) {
            return Err(
                OptionProblem::at("delay", "nothing is delayed").help("set `delay`, `read`, `write` or `flush`")
            );
        }
        Ok(())
    },
    arguments: |options, device| DELAYS[1..].iter().map(|key| format!("{device} {}", millis(options, key))).collect(),
    facts: |options| DELAYS[1..].iter().map(|key| (*key, format!("{} ms", millis(options, key)))).collect(),
    promises: |_| Vec::new(),
};

const DELAYS: [&str; 4] = ["delay", "read", "write", "flush"];

fn millis(options: &Options, key: &str) -> u64 {
    options.span(key).or_else(|| options.span(DELAYS[0])).unwrap_or(Micros(0)).0 / 1000
}

/// A device that fails repeatedly.
pub static FLAKEY: SlippedIn = SlippedIn {
    info: LayerInfo::device(
        "flakey",
        "dm-flakey: works and fails in turn, for some seconds each; for fault tests.",
        &[
            OptionSpec::with_default("up", OptionKind::Span, "60s")
                .doc("How long it works, in whole seconds; it begins with this."),
            OptionSpec::with_default("down", OptionKind::Span, "0s").doc("How long it then fails, in whole seconds."),
            OptionSpec::with_default("fault", OptionKind::OneOf(&["errors", "error_writes", "drop_writes"]), "errors")
                .doc("What fails: all requests, writes, or writes that are dropped and acknowledged."),
            knobs::QUEUE,
        ],
    )
    .on(&[Take::ONE_DEVICE])
    .keeping_pages()
    .undone_by(mapper::UNDO),
    module: "dm-flakey",
    check: |options| {
        for key in ["up", "down"] {
            if options.span(key).is_some_and(|span| span.0 % 1_000_000 != 0) {
                return Err(OptionProblem::at(key, "dm-flakey takes whole seconds only").help("write it as 5s"));
            }
        }
        if seconds(options, "up", 60) + seconds(options, "down", 0) == 0 {
            return Err(OptionProblem::at("up", "`up` and `down` are both 0"));
        }
        Ok(())
    },
    arguments: |options, device| {
        let times = format!("{device} {} {}", seconds(options, "up", 60), seconds(options, "down", 0));
        match options.text("fault") {
            Some(fault) if fault != "errors" => vec![times, format!("1 {fault}")],
            _ => vec![times],
        }
    },
    facts: |options| {
        vec![
            ("up", format!("{} s", seconds(options, "up", 60))),
            ("down", format!("{} s", seconds(options, "down", 0))),
            ("fault", options.text("fault").unwrap_or("errors").to_owned()),
        ]
    },
    promises: |options| {
        let drops = options.text("fault") == Some("drop_writes") && seconds(options, "down", 0) > 0;
        let promise = Promise {
            claim: Claim::HoldsFlushesBack,
            source: "dm-flakey drop_writes".to_owned(),
            why: "while it is down, it acknowledges writes and drops them".to_owned(),
        };
        drops.then_some(promise).into_iter().collect()
    },
};

/// True if the kernel shows the requested features. dm-flakey without a feature fails all requests: Linux 6.1 shows
/// that as no features, later versions as two.
fn shows(shown: &str, wanted: &str) -> bool {
    match shown.strip_prefix(wanted) {
        Some("") => true,
        Some(rest) => wanted.starts_with("flakey ") && matches!(rest.trim(), "0" | "2 error_reads error_writes"),
        None => false,
    }
}

fn seconds(options: &Options, key: &str, default: u64) -> u64 {
    options.span(key).map_or(default, |span| span.0 / 1_000_000)
}

impl Described for SlippedIn {
    fn info(&self) -> &LayerInfo {
        &self.info
    }
}

impl Layer for SlippedIn {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        (self.check)(options)
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        mapper::unmet(host).chain(kernel_module::unmet_target(host, self.name(), self.module)).collect()
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        kernel_module::load(site.host, self.module, &[])?;
        let device = BlockDevice::find(devices_for(inputs, Role::Data)[0])?;
        let below = format!("{}:{} 0", device.node.major, device.node.minor);
        let arguments = (self.arguments)(options, &below).join(" ");
        let sectors = mapper::sectors(site.host, device.node)?;
        let (name, base) = mapper::create(site, self.name(), sectors, &arguments, shows)?;
        let details = (self.facts)(options).into_iter().chain([("mapping", name)]);
        Ok(Built { promises: (self.promises)(options), ..Built::one(base, details) })
    }

    fn reopen(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        self.build(site, inputs, options)
    }
}
