//! `pgstrata witness`: keeps acknowledgements of another machine's PostgreSQL while its power is cut.

use super::out;
use crate::cut::pull::answer;
use crate::error::{Context, Result};
use crate::host::lines::{LIMITS, serve};
use crate::host::signals::Interrupt;
use std::path::PathBuf;

/// Keep what another machine acknowledges while its plug is pulled (see pgstrata pull)
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata witness --listen 192.0.2.7:7432                 keep the files in this folder
  pgstrata witness --listen 192.0.2.7:7432 --keep /srv/w   in another one

Listens on this address alone, without encryption and without a password: anyone who can connect can add lines. Each commit \
is synced before it is confirmed. Ctrl-C ends it; the files stay.")]
pub struct Args {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: String,
    /// Folder for the files, one for each series of pulls
    #[arg(long, value_name = "DIR", default_value = ".")]
    keep: PathBuf,
}

/// Serves until interrupted.
///
/// # Errors
/// If the address is unavailable.
pub fn run(args: &Args) -> Result<u8> {
    let folder = std::path::absolute(&args.keep).or_user(|| "find the folder to keep files in".to_owned())?;
    serve(
        &args.listen,
        &Interrupt::listen()?,
        &|address| out::remark(&format!("listening on {address}, files in {}", folder.display())),
        &|line| answer(&folder, line),
        LIMITS,
    )?;
    Ok(0)
}
