//! The hidden subcommand inside of a guest.

use crate::error::Result;
use crate::guest::agent;
use crate::host::Host;

#[derive(Debug, clap::Args)]
pub struct Args {}

/// # Errors
/// If there is no host, or it is gone.
pub fn run(_: &Args) -> Result<u8> {
    agent::serve(&Host::this()).map(|()| 0)
}
