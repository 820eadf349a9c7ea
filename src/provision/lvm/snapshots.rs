//! Snapshots of a logical volume: thin ones share the pool, each thick one takes a part of the group's free space.

use super::{carriers_of, command, has_group, mapped_name, options, report, with_devices};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::provision::ledger::Thing;
use crate::provision::snapshots::{SNAPSHOT, SnapshotWay};
use crate::provision::{Base, folder, mapper};
use crate::record::options::Options;
use std::path::{Path, PathBuf};

/// Part of the group's free space that each thick snapshot gets.
const THICK_SHARE: &str = "20%FREE";

/// How to take snapshots of the volume behind a base.
pub(super) fn way(host: &Host, devices: &[&Path], base: &Base, asked: &Options) -> Result<SnapshotWay> {
    let group = report(host, "pv", "vg_name", devices, None)?.into_iter().find_map(|mut row| row.remove("vg_name"));
    let group = group.ok_or_else(|| Error::tool("LVM does not list the volume group of the stack"))?;
    let Base::Device(device) = base else { return Err(Error::bug(format!("{group} offers only volumes"))) };
    let volume = options::volumes(asked)
        .into_iter()
        .map(|volume| volume.name)
        .find(|name| mapper::find(host, &mapped_name(&group, name)).is_ok_and(|mapping| mapping.path() == *device));
    let volume = volume.ok_or_else(|| Error::bug(format!("no volume of {group} is {}", device.display())))?;
    let is_thin = options::is_thin(asked);
    Ok(SnapshotWay {
        whole: format!("{group}/{volume}"),
        folder: PathBuf::new(),
        source: if is_thin { options::POOL.to_owned() } else { volume },
        devices: devices.iter().map(|device| (*device).to_owned()).collect(),
        make,
        delete: |of, name| command("lvremove", &of.devices).args(["--yes", &format!("{}/{name}", group_of(of))]),
        thing: |of, name| {
            let thing = Thing::new("lvm", SNAPSHOT).with("name", format!("{}/{name}", group_of(of)));
            with_devices(thing, &of.devices)
        },
        is_filled: false,
        copy: None,
        // Thin snapshots use the space of their pool.
        is_lost: (!is_thin).then_some(is_lost),
        used,
    })
}

fn group_of(of: &SnapshotWay) -> &str {
    of.whole.split_once('/').map_or("", |(group, _)| group)
}

fn make(of: &SnapshotWay, name: &str) -> Command {
    let create = command("lvcreate", &of.devices).args(["--yes", "--snapshot", "--name", name]);
    let extents: &[&str] = if of.is_lost.is_some() { &["--extents", THICK_SHARE] } else { &[] };
    create.args(extents).arg(&of.whole)
}

/// Bytes of the thin pool in use; for a thick volume, its size and what its snapshots hold.
fn used(of: &SnapshotWay, host: &Host) -> Result<u64> {
    let rows = report(host, "lv", "lv_name,origin,lv_size,data_percent", &of.devices, Some(group_of(of)))?;
    let ours = rows.iter().filter(|row| row["lv_name"] == of.source || row["origin"] == of.source);
    let bytes = ours.map(|row| {
        let size = row["lv_size"].parse::<f64>().unwrap_or(0.0);
        let share = row["data_percent"].parse::<f64>().map_or(1.0, |percent| percent / 100.0);
        size * share
    });
    Ok(bytes.sum::<f64>() as u64)
}

/// True if the kernel has invalidated a thick snapshot: its volume had no room for another chunk.
fn is_lost(of: &SnapshotWay, host: &Host, name: &str) -> Result<bool> {
    let rows = report(host, "lv", "lv_name,lv_snapshot_invalid", &of.devices, Some(group_of(of)))?;
    Ok(rows.iter().any(|row| row["lv_name"] == name && row["lv_snapshot_invalid"].contains("invalid")))
}

/// Deletes a snapshot of our group; does nothing if there is none.
pub(super) fn delete(host: &Host, thing: &Thing) -> Result<()> {
    let name = thing.mark("name")?;
    let Some((group, snapshot)) = name.split_once('/').filter(|(group, _)| group.starts_with(folder::PREFIX)) else {
        return Err(Error::host(format!("{name} is not a snapshot of pgstrata")));
    };
    let there = carriers_of(host, thing);
    if there.is_empty() || !has_group(host, group, &there)? {
        return Ok(());
    }
    let rows = report(host, "lv", "lv_name", &there, Some(group))?;
    if !rows.iter().any(|row| row["lv_name"] == snapshot) {
        return Ok(());
    }
    host.run(&command("lvremove", &there).args(["--yes", name])).map(drop)
}
