//! File layout of a cluster: extents of its user relations, and allocated space against logical size.

use crate::cluster::server::{self, Server};
use crate::error::{Context, Result};
use crate::host::extents::{self, Pieces};
use crate::host::paths::{self, Kind};
use crate::host::signals::Interrupt;
use crate::host::{files, folders};
use crate::record::age::{LEAST_RELATION, Layout, RelationLayout};
use std::path::{Path, PathBuf};

/// User relations and the files of their main forks.
const RELATIONS: &str = "select c.relname, pg_relation_filepath(c.oid) from pg_class c where c.oid >= 16384 and \
                         c.relkind in ('r', 'i', 't', 'm') and pg_relation_filepath(c.oid) is not null \
                         order by pg_relation_size(c.oid) desc, 1";

/// Alternative source of a file's extents for filesystems that do not report them; `None` if there is none.
pub type OtherWay<'a> = dyn Fn(&Path) -> Result<Option<Pieces>> + 'a;

/// Reads the layout of a server's cluster. The server has just written a checkpoint.
///
/// # Errors
/// The server's or the kernel's message; interrupted.
pub(crate) fn look(server: &Server, other_way: &OtherWay<'_>, interrupt: &Interrupt) -> Result<Layout> {
    let data = &server.spec.data;
    let mut layout = of_filesystem(data)?;
    sizes(data, &mut layout)?;
    for row in server.connect(server::DATABASE)?.query(RELATIONS)? {
        if let [Some(name), Some(path)] = row.as_slice() {
            interrupt.check()?;
            let relation = relation(name, &data.join(path), other_way, &mut layout.not_told)?;
            layout.relations.extend((relation.bytes > 0).then_some(relation));
        }
    }
    Ok(layout)
}

/// Reads the space used in the filesystem of a folder.
///
/// # Errors
/// The kernel's message.
pub fn of_filesystem(folder: &Path) -> Result<Layout> {
    let room = files::room(folder)?;
    let (size_bytes, free_bytes) = (room.map(|room| room.used + room.free), room.map(|room| room.free));
    Ok(Layout { size_bytes, free_bytes, ..Layout::default() })
}

/// Adds up the sizes of the files, skipping a pg_wal that is a symlink.
fn sizes(folder: &Path, layout: &mut Layout) -> Result<()> {
    for path in folders::list(folder)? {
        // A running server may remove a file.
        let Some(facts) = paths::look_for(&path)? else { continue };
        match facts.kind {
            Kind::Directory => sizes(&path, layout)?,
            Kind::RegularFile => {
                layout.cluster_bytes += facts.bytes;
                layout.cluster_held_bytes += facts.allocated_bytes;
            }
            _ => {}
        }
    }
    Ok(())
}

fn relation(name: &str, first: &Path, other: &OtherWay<'_>, not_told: &mut Option<String>) -> Result<RelationLayout> {
    let files = segments(first);
    let mut bytes = 0;
    for path in &files {
        bytes += paths::look_at(path)?.bytes;
    }
    pieces(name, bytes, &files, other, not_told)
}

/// Extents of a relation's files, whose total size is given.
fn pieces(
    name: &str,
    bytes: u64,
    files: &[PathBuf],
    other_way: &OtherWay<'_>,
    not_told: &mut Option<String>,
) -> Result<RelationLayout> {
    let mut found = RelationLayout { name: name.to_owned(), bytes, ..RelationLayout::default() };
    let mut extents = 0;
    for path in files {
        let of_filesystem = extents::pieces(&files::open(path)?);
        let of_filesystem = of_filesystem.or_host(|| format!("read the extents of {}", path.display()))?;
        // A relation is reported completely or not at all.
        let answer = match of_filesystem {
            // Skip the alternative for relations too small to count, and after one that was incomplete: a file may take
            // minutes.
            None if found.bytes < LEAST_RELATION || not_told.is_some() => return Ok(without_extents(found)),
            None => other_way(path),
            answer => Ok(answer),
        };
        let pieces = match answer {
            Ok(Some(pieces)) => pieces,
            other => {
                let why = other.err().map(|e| e.to_string());
                not_told
                    .get_or_insert(why.unwrap_or_else(|| "the filesystem does not tell extents (FIEMAP)".to_owned()));
                return Ok(without_extents(found));
            }
        };
        extents += pieces.pieces;
        found.shared_bytes += pieces.shared_bytes;
        found.encoded_bytes += pieces.encoded_bytes;
        found.unwritten_bytes += pieces.unwritten_bytes;
    }
    found.extents = Some(extents);
    Ok(found)
}

fn without_extents(found: RelationLayout) -> RelationLayout {
    RelationLayout { name: found.name, bytes: found.bytes, ..RelationLayout::default() }
}

/// Files of a relation: `16384`, `16384.1`, ...
fn segments(first: &Path) -> Vec<PathBuf> {
    let further = (1..).map(|number| PathBuf::from(format!("{}.{number}", first.display())));
    std::iter::once(first.to_path_buf()).chain(further).take_while(|path| paths::is_file(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::cell::Cell;

    #[test]
    fn after_one_relation_without_extents_no_other_is_queried() {
        // Files of procfs have no extents, and neither does a relation without a file.
        let folder = Path::new("/proc/self");
        let asked = Cell::new(0);
        let other_way = |_: &Path| {
            asked.set(asked.get() + 1);
            Err(Error::host("zdb failed".to_owned()))
        };
        let mut not_told = None;
        for _ in 0..3 {
            let files = [folder.join("status")];
            let found = pieces("t", LEAST_RELATION, &files, &other_way, &mut not_told).unwrap();
            assert_eq!((found.extents, found.bytes), (None, LEAST_RELATION));
        }
        assert_eq!((asked.get(), not_told.as_deref()), (1, Some("zdb failed")));
    }
}
