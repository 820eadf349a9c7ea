//! The errors that a person reads: what happened, where, and what to do.
//!
//! One type for the whole program. A module says which [`Kind`] an error is; the kind fixes the exit code. What is
//! absent on purpose: any module's detail. A module that must branch on its own failures keeps its own enum.

use std::fmt;

/// What kind of thing went wrong; fixes the exit code of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The person asked for something that cannot be: a plan, a flag, a file they named.
    User,
    /// The machine lacks something or refused something: a permission, a device, space.
    Host,
    /// A foreign program (mkfs, mount, initdb, pgbench, ...) failed.
    Tool,
    /// A run folder could not be written or read.
    Store,
    /// The person interrupted the run.
    Interrupted,
    /// A fault of pgstrata itself.
    Bug,
}

impl Kind {
    /// The exit code of the program for this kind. Documented in the manual page; never reused for another meaning.
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::User => 2,
            Kind::Host => 3,
            Kind::Tool => 4,
            Kind::Store => 5,
            Kind::Bug => 70,
            Kind::Interrupted => 130,
        }
    }
}

/// Every exit code of the program, with its meaning: the one table of the help and of the manual pages.
pub const EXIT_CODES: [(u8, &str); 10] = [
    (0, "done"),
    (1, "incomplete: trials not run, nothing to compare, a failed sync, cleanup incomplete"),
    (2, "wrong usage, or an error in a plan or other input file"),
    (3, "the machine lacks or refuses something needed"),
    (4, "an external program failed"),
    (5, "results cannot be read or written"),
    (6, "a requirement is not met, a limit is exceeded, or a power cut loses commits"),
    (7, "a requirement or limit is undecided, and none is known to be missed"),
    (70, "internal error in pgstrata"),
    (130, "interrupted"),
];

/// Exit code of a run that went to its end although some of its trials were not run or failed.
pub const EXIT_INCOMPLETE: u8 = 1;

/// Exit code of a check against requirements or limits of which one is not met.
pub const EXIT_REQUIREMENT: u8 = 6;

/// Exit code of a check that none fails and that could not decide one of them.
pub const EXIT_UNDECIDED: u8 = 7;

/// An error with its kind, what led to it and, where there is one, what to do about it.
///
/// `Display` gives the message alone; [`Error::chain`] all of it.
#[must_use]
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: Option<String>,
    context: Vec<String>,
}

/// Result with this program's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind`. The message is a lower-case fragment without a full stop that names the thing and the place.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), hint: None, context: Vec::new() }
    }

    /// The person asked for something that cannot be.
    pub fn user(message: impl Into<String>) -> Self {
        Self::new(Kind::User, message)
    }

    /// The machine lacks or refuses something.
    pub fn host(message: impl Into<String>) -> Self {
        Self::new(Kind::Host, message)
    }

    /// A foreign tool failed.
    pub fn tool(message: impl Into<String>) -> Self {
        Self::new(Kind::Tool, message)
    }

    /// A run folder could not be written or read.
    pub fn store(message: impl Into<String>) -> Self {
        Self::new(Kind::Store, message)
    }

    /// A fault of pgstrata.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(Kind::Bug, message)
    }

    /// The run was interrupted.
    pub fn interrupted() -> Self {
        Self::new(Kind::Interrupted, "interrupted")
    }

    /// Says what the person can do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says what the person can do about it, unless that is known.
    pub fn or_hint(self, hint: impl Into<String>) -> Self {
        if self.hint.is_some() { self } else { self.hint(hint) }
    }

    /// Puts what was being done in front: "failed to {doing}: ...".
    pub fn while_doing(mut self, doing: impl Into<String>) -> Self {
        self.context.push(doing.into());
        self
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What the person can do about it, where that is known.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Message with everything that was being done, outermost first, without the hint.
    pub fn chain(&self) -> String {
        self.context.iter().rev().map(|doing| format!("failed to {doing}: ")).collect::<String>() + &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain())
    }
}

impl std::error::Error for Error {}

/// Turns the error of a foreign type into ours, with what was being done and to what.
pub trait Context<T> {
    /// `what` completes "failed to ...": "read /proc/stat".
    fn or_host(self, what: impl FnOnce() -> String) -> Result<T>;
    /// Same, for run folders.
    fn or_store(self, what: impl FnOnce() -> String) -> Result<T>;
    /// Same, for what the person gave us.
    fn or_user(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> Context<T> for std::result::Result<T, E> {
    fn or_host(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error::host(e.to_string()).while_doing(what()))
    }
    fn or_store(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error::store(e.to_string()).while_doing(what()))
    }
    fn or_user(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error::user(e.to_string()).while_doing(what()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_names_the_outermost_deed_first() {
        let error = Error::host("no such device").while_doing("open /dev/x").while_doing("build stack ext4");
        assert_eq!(error.chain(), "failed to build stack ext4: failed to open /dev/x: no such device");
    }

    #[test]
    fn every_kind_has_an_exit_code_of_its_own() {
        let mut codes: Vec<u8> =
            [Kind::User, Kind::Host, Kind::Tool, Kind::Store, Kind::Interrupted, Kind::Bug].map(Kind::exit_code).into();
        codes.extend([0, EXIT_INCOMPLETE, EXIT_REQUIREMENT, EXIT_UNDECIDED]);
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes, EXIT_CODES.map(|(code, _)| code));
    }
}
