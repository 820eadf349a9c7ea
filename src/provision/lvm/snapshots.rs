//! Snapshots of a logical volume: thin ones share the pool, each thick one takes a part of the group's free space.

use super::{command, has_group, mapped_name, options, report};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::provision::ledger::Thing;
use crate::provision::snapshots::{IsLost, SNAPSHOT, SnapshotWay, text_of};
use crate::provision::{Base, folder, mapper};
use crate::record::options::Options;
use std::path::{Path, PathBuf};

/// Part of the group's free space that each thick snapshot gets.
const THICK_SHARE: &str = "20%FREE";

/// How to take snapshots of the volume behind a base.
pub(super) fn way(host: &Host, devices: &[&Path], base: &Base, asked: &Options) -> Result<SnapshotWay> {
    let rows = report(host, "pv", "vg_name", devices, None)?;
    let group = rows.into_iter().find_map(|mut row| row.remove("vg_name"));
    let group = group.ok_or_else(|| Error::tool("LVM does not list the volume group of the stack"))?;
    let is_it = |name: &str| {
        mapper::find(host, &mapped_name(&group, name))
            .is_ok_and(|mapping| text_of(base) == mapping.path().display().to_string())
    };
    let volume = options::volumes(asked).into_iter().map(|volume| volume.name).find(|name| is_it(name));
    let volume = volume.ok_or_else(|| Error::bug(format!("no volume of {group} is {}", text_of(base))))?;
    let origin = format!("{group}/{volume}");
    let devices: Vec<PathBuf> = devices.iter().map(|device| (*device).to_owned()).collect();
    let extents: Vec<String> = match options::is_thin(asked) {
        true => Vec::new(),
        false => ["--extents", THICK_SHARE].map(str::to_owned).to_vec(),
    };
    let counted = if options::is_thin(asked) { options::POOL.to_owned() } else { volume };
    let (make_on, delete_on, noted_on, asked_on) = (devices.clone(), devices.clone(), devices.clone(), devices.clone());
    let (whole, delete_in, noted_in, asked_in) = (origin.clone(), group.clone(), group.clone(), group.clone());
    let (used_on, used_in) = (devices, group);
    let is_lost: IsLost = Box::new(move |host, name| is_lost(host, &borrowed(&asked_on), &asked_in, name));
    Ok(SnapshotWay {
        whole,
        make: Box::new(move |name| {
            let create = command("lvcreate", &borrowed(&make_on)).args(["--yes", "--snapshot", "--name", name]);
            create.args(&extents).arg(&origin)
        }),
        delete: Box::new(move |name| {
            command("lvremove", &borrowed(&delete_on)).args(["--yes", &format!("{delete_in}/{name}")])
        }),
        thing: Box::new(move |name| {
            let mut thing = Thing::new("lvm", SNAPSHOT).with("name", format!("{noted_in}/{name}"));
            for (number, device) in noted_on.iter().enumerate() {
                thing = thing.with_path(&format!("device-{number}"), device)?;
            }
            Ok(thing)
        }),
        filled: None,
        copy: None,
        // Thin snapshots use the space of their pool.
        is_lost: (!options::is_thin(asked)).then_some(is_lost),
        used: Box::new(move |host| used(host, &borrowed(&used_on), &used_in, &counted)),
    })
}

fn borrowed(devices: &[PathBuf]) -> Vec<&Path> {
    devices.iter().map(PathBuf::as_path).collect()
}

/// Bytes of the thin pool in use; for a thick volume, its size and what its snapshots hold.
fn used(host: &Host, devices: &[&Path], group: &str, counted: &str) -> Result<u64> {
    let rows = report(host, "lv", "lv_name,origin,lv_size,data_percent", devices, Some(group))?;
    let ours = rows.iter().filter(|row| row["lv_name"] == counted || row["origin"] == counted);
    let bytes = ours.map(|row| {
        let size = row["lv_size"].parse::<f64>().unwrap_or(0.0);
        let share = row["data_percent"].parse::<f64>().map_or(1.0, |percent| percent / 100.0);
        size * share
    });
    Ok(bytes.sum::<f64>() as u64)
}

/// True if the kernel has invalidated a thick snapshot: its volume had no room for another chunk.
fn is_lost(host: &Host, devices: &[&Path], group: &str, name: &str) -> Result<bool> {
    let rows = report(host, "lv", "lv_name,lv_snapshot_invalid", devices, Some(group))?;
    Ok(rows.iter().any(|row| row["lv_name"] == name && row["lv_snapshot_invalid"].contains("invalid")))
}

/// Deletes a snapshot of our group; does nothing if there is none.
pub(super) fn delete(host: &Host, name: &str, devices: &[&Path]) -> Result<()> {
    let Some((group, snapshot)) = name.split_once('/').filter(|(group, _)| group.starts_with(folder::PREFIX)) else {
        return Err(Error::host(format!("{name} is not a snapshot of pgstrata")));
    };
    let there: Vec<&Path> = devices.iter().copied().filter(|device| super::carries_a_label(host, device)).collect();
    if there.is_empty() || !has_group(host, group, &there)? {
        return Ok(());
    }
    let rows = report(host, "lv", "lv_name", &there, Some(group))?;
    if !rows.iter().any(|row| row["lv_name"] == snapshot) {
        return Ok(());
    }
    host.run(&command("lvremove", &there).args(["--yes", name])).map(drop)
}
