//! Reasons why a guest ended, from the last output of QEMU and of the guest's console.

use crate::error::Error;
use crate::host::command::last_lines;
use crate::units::Bytes;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Lines of the console shown in an error.
const LINES: usize = 12;

/// True if the kernel says on its console that it panicked.
pub(super) fn is_panic(console: &str) -> bool {
    console.contains("Kernel panic")
}

/// The error for a guest that ended by itself.
pub(super) fn ended(status: Option<ExitStatus>, console: &str, qemu: &str, memory: Bytes) -> Error {
    let console = readable(console);
    let cause = if console.contains("Out of memory") || console.contains("panic_on_oom") {
        format!("the guest ran out of its {memory} of memory")
    } else if let Some(line) = console.lines().find(|line| is_panic(line)) {
        format!("the guest's kernel panicked: {}", after_time(line))
    } else if let Some(line) = console.lines().rev().find(|line| line.contains("damaged")) {
        let hint = "to rebuild it: pgstrata guest rm, then pgstrata guest build";
        return Error::host(format!("the guest ended: {}", after_time(line).trim_start_matches("pgstrata-guest: ")))
            .hint(hint);
    } else {
        match status.map(|status| (status.code(), status.signal())) {
            Some((_, Some(signal))) => format!("the guest ended: QEMU was killed by signal {signal}"),
            Some((Some(code), _)) if code != 0 => format!("the guest ended: QEMU failed with exit code {code}"),
            Some(_) => "the guest powered itself off".to_owned(),
            None => "the guest's port was closed".to_owned(),
        }
    };
    Error::tool(with_lines(cause, &console, qemu))
}

/// The error for a guest that does not respond.
pub(super) fn silent(what: &str, console: &str, qemu: &str) -> Error {
    Error::tool(with_lines(what.to_owned(), &readable(console), qemu))
}

fn with_lines(mut text: String, console: &str, qemu: &str) -> String {
    for (what, said) in [("QEMU", qemu), ("the guest's console", console)] {
        let lines = last_lines(said, LINES);
        text.extend((!lines.is_empty()).then(|| format!("; last lines of {what}:\n{lines}")));
    }
    text
}

/// The console's text without carriage returns and the firmware's escape sequences.
fn readable(console: &str) -> String {
    console.chars().filter(|c| *c == '\n' || *c == '\t' || !c.is_control()).collect()
}

/// A line of the kernel without its leading `[    1.234567] `.
fn after_time(line: &str) -> &str {
    line.split_once("] ").filter(|(time, _)| time.trim_start().starts_with('[')).map_or(line, |(_, rest)| rest)
}

/// First line of QEMU's errors, without the program's name.
pub(super) fn first_line(qemu: &str) -> String {
    let line = readable(qemu).lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned();
    line.strip_prefix("qemu-system-x86_64: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(raw_status: i32, console: &str) -> Error {
        ended(Some(ExitStatus::from_raw(raw_status)), console, "", Bytes(1 << 30))
    }

    #[test]
    fn the_cause_comes_first_and_the_console_after_it() {
        let text = error(9, "[    1.0] a\r\n[    2.0] b\r\n").to_string();
        assert_eq!(
            text,
            "the guest ended: QEMU was killed by signal 9; last lines of the guest's console:\n  [    1.0] a\n  [    2.0] b"
        );
        let text = error(0, "[    2.5] Kernel panic - not syncing: sysrq triggered crash\n").to_string();
        assert!(text.starts_with("the guest's kernel panicked: Kernel panic - not syncing: sysrq"), "{text}");
        let text =
            error(0, "Kernel panic - not syncing: Out of memory: compulsory panic_on_oom is enabled\n").to_string();
        assert!(text.starts_with("the guest ran out of its 1 GiB of memory"), "{text}");
        let damaged = error(0, "pgstrata-guest: the root image is damaged: it cannot be mounted\n");
        assert!(damaged.to_string().contains("damaged") && damaged.hint_text().unwrap().contains("guest rm"));
    }
}
