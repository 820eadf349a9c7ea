//! Our own user, and the one that PostgreSQL runs as.

use super::Host;
use super::command::Command;
use crate::error::{Error, Kind, Result};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The user that PostgreSQL and its clients run as: ourselves if we are not root, else the user behind sudo, else
/// `postgres`, else `nobody`. Never root.
///
/// # Errors
/// If none of them exists.
pub fn server_user(host: &Host) -> Result<User> {
    if !is_root() {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        let name = look_up(host, &uid.to_string())?.map_or_else(|| uid.to_string(), |user| user.name);
        return Ok(User { name, uid, gid });
    }
    let behind_sudo = std::env::var("SUDO_UID").ok().filter(|uid| uid != "0");
    for name in behind_sudo.iter().map(String::as_str).chain(["postgres", "nobody"]) {
        if let Some(user) = look_up(host, name)?.filter(|user| user.uid != 0) {
            return Ok(user);
        }
    }
    Err(Error::host("PostgreSQL must not run as root, and there is no user `postgres` or `nobody`")
        .hint("adduser --system --group postgres"))
}

/// The user who called us through sudo; `None` if we are not root or were not called through it.
pub(crate) fn behind_sudo() -> Option<User> {
    if !is_root() {
        return None;
    }
    let [uid, gid] = ["SUDO_UID", "SUDO_GID"].map(|name| std::env::var(name).ok()?.parse::<u32>().ok());
    let (uid, gid) = (uid?, gid?);
    let name = std::env::var("SUDO_USER").unwrap_or_else(|_| uid.to_string());
    (uid != 0).then_some(User { name, uid, gid })
}

/// Looks up a user by name or number in the system's database (NSS).
///
/// # Errors
/// If the system has no process or thread left for the lookup.
fn look_up(host: &Host, name_or_uid: &str) -> Result<Option<User>> {
    match host.run(&Command::new("getent").args(["passwd", name_or_uid])) {
        Err(e) if e.kind() != Kind::Tool => Err(e),
        found => Ok(found.ok().and_then(|output| user_of(&output.stdout))),
    }
}

fn user_of(passwd: &str) -> Option<User> {
    let mut fields = passwd.lines().next()?.split(':');
    let name = fields.next()?.to_owned();
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(User { name, uid, gid })
}
