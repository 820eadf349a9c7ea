//! Where a row of `zpool iostat -v` stands in the tree of its pool: from the indentation, or from names and capacities,
//! since pages lose the indentation.

use super::Read;

/// Where a row stands, outermost first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::foreign) struct Place {
    pub(in crate::foreign) pool: String,
    pub(in crate::foreign) section: Option<String>,
    pub(in crate::foreign) vdev: Option<String>,
    /// Groups inside the vdev: `replacing-1`.
    pub(in crate::foreign) group: Option<String>,
    pub(in crate::foreign) device: Option<String>,
}

impl Place {
    /// Its labels; none where it names a section alone.
    pub(in crate::foreign) fn labels(self) -> Option<Vec<(&'static str, String)>> {
        let Place { pool, section, vdev, group, device } = self;
        let only = section.is_some() && vdev.is_none() && device.is_none();
        let pool = Some(pool).filter(|pool| !pool.is_empty());
        let all =
            [("pool", pool), ("section", section), ("vdev", vdev), ("group", group), ("device", device)].into_iter();
        (!only).then(|| all.filter_map(|(name, value)| Some((name, value?))).collect())
    }
}

/// The places of rows, given as indentation and name, where the indentation is what these tools print: two columns a
/// level, and deeper behind each group. `None` where it was lost.
pub(in crate::foreign) fn places(rows: &[(usize, &str)]) -> Option<Vec<Place>> {
    const STEP: usize = 2;
    let base = rows.first().filter(|(_, name)| !is_group(name) && !is_section(name))?.0;
    let mut at = Place::default();
    let mut above: Vec<(usize, &str)> = Vec::new();
    let mut groups: Vec<&str> = Vec::new();
    let mut found: Vec<Place> = Vec::new();
    for (index, &(indent, name)) in rows.iter().enumerate() {
        let is_followed = rows.get(index + 1).is_some_and(|(next, _)| *next > indent);
        let is_last = index + 1 == rows.len();
        let owned = || Some(name.to_owned());
        if indent == base && !is_group(name) {
            (above, at) = (vec![(base, name)], Place { pool: at.pool, ..Place::default() });
            match is_section(name) {
                true => at.section = owned(),
                false => (at.pool, groups) = (name.to_owned(), Vec::new()),
            }
            found.push(at.clone());
            continue;
        }
        if indent == base && is_passing(name) && is_last {
            found.push(Place { pool: at.pool.clone(), vdev: owned(), ..Place::default() });
            continue;
        }
        above.retain(|(column, _)| *column < indent);
        let is_child = above.last().is_some_and(|(column, _)| column + STEP == indent);
        if !is_child || (is_group(name) && !is_followed && !is_last) {
            return None;
        }
        at = Place { pool: at.pool, section: at.section, ..Place::default() };
        let inside = above.iter().skip(1).map(|(_, name)| (*name).to_owned()).collect::<Vec<_>>();
        let mut inside = inside.into_iter().chain(is_group(name).then(|| name.to_owned()));
        at.vdev = inside.next();
        let rest: Vec<String> = inside.collect();
        at.group = (!rest.is_empty()).then(|| rest.join("/"));
        if above.len() == 1 && is_group(name) {
            groups.push(name);
        }
        // Old versions print `mirror` for each mirror.
        let same = groups.iter().filter(|group| Some(**group) == at.vdev.as_deref()).count();
        at.vdev = at.vdev.take().map(|vdev| if same > 1 { format!("{vdev} ({same})") } else { vdev });
        at.device = (!is_group(name)).then(|| name.to_owned());
        found.push(at.clone());
        above.push((indent, name));
    }
    rows.iter().any(|(indent, _)| *indent > base).then_some(found)
}

/// The rows between two separators.
#[derive(Default)]
pub(super) struct Tree {
    /// Whether only the first row is a pool.
    verbose: bool,
    at: Place,
    /// Groups of the present pool.
    groups: Vec<String>,
    /// What decided about `verbose`, where it was not certain.
    pub(super) note: Option<String>,
    /// What could not be known of the tree.
    pub(super) notes: Vec<String>,
}

/// Whether the name is that of a part of a pool: logs, cache and their like.
pub(in crate::foreign) fn is_section(name: &str) -> bool {
    matches!(name, "logs" | "log" | "cache" | "special" | "dedup" | "spares")
}

/// Whether the name is that of several devices together: `mirror-0`, `raidz2-1`, `draid2:4d:9c:1s-0`, `mirror`.
pub(in crate::foreign) fn is_group(name: &str) -> bool {
    let bare = name.rsplit_once('-').filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let bare = bare.map_or(name, |(bare, _)| bare);
    let draid =
        bare.strip_prefix("draid").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || "cds:".contains(c)));
    draid || matches!(bare, "mirror" | "raidz" | "raidz1" | "raidz2" | "raidz3" | "anyraid") || is_passing(name)
}

/// Whether the name is that of a group inside a group, which lasts only while a device is replaced.
fn is_passing(name: &str) -> bool {
    ["replacing", "spare"]
        .iter()
        .any(|kind| name == *kind || name.strip_prefix(kind).is_some_and(|rest| rest.starts_with('-')))
}

impl Tree {
    /// The tree of these rows; `verbose` where the command line told.
    pub(super) fn of(block: &[Read<'_>], verbose: Option<bool>) -> Tree {
        let names = |read: &Read<'_>| is_section(read.name) || is_group(read.name);
        let members = |read: &Read<'_>| !read.has_capacity;
        let rest = block.get(1..).unwrap_or_default();
        let certain =
            verbose.or_else(|| (rest.is_empty() || rest.iter().any(|it| names(it) || members(it))).then_some(true));
        let (verbose, note) = match certain {
            Some(verbose) => (verbose, None),
            None if adds_up(block) => {
                (true, Some("which rows are devices is known from their sum, which is the pool's"))
            }
            None => (false, Some("each row is taken for a pool: their sums do not make some the devices of another")),
        };
        Tree { verbose, at: Place::default(), groups: Vec::new(), note: note.map(str::to_owned), notes: Vec::new() }
    }

    /// The place of the next row.
    pub(super) fn place(&mut self, name: &str, has_capacity: bool) -> Place {
        let name_owned = || Some(name.to_owned());
        let inside = self.verbose && !self.at.pool.is_empty();
        let may_be = has_capacity && !is_section(name) && !is_group(name);
        if name == self.at.pool || (!inside && may_be) {
            self.groups.clear();
            self.at = Place { pool: name.to_owned(), ..Place::default() };
            return self.at.clone();
        }
        if self.at.pool.is_empty() {
            self.notes.push("the row of the pool is missing: the text is cut off at its front".to_owned());
        }
        if is_section(name) {
            self.at = Place { pool: self.at.pool.clone(), section: name_owned(), ..Place::default() };
            return self.at.clone();
        }
        if is_passing(name) && self.at.vdev.as_deref().is_some_and(|vdev| !is_passing(vdev)) && !has_capacity {
            self.notes.push(format!("how many of the devices behind `{name}` belong to it cannot be known"));
            return Place { group: name_owned(), ..self.at.clone() };
        }
        if is_group(name) {
            // Old versions print `mirror` for each mirror.
            self.groups.push(name.to_owned());
            let same = self.groups.iter().filter(|group| *group == name).count();
            self.at.vdev = if same > 1 { Some(format!("{name} ({same})")) } else { name_owned() };
            return self.at.clone();
        }
        if has_capacity {
            // Members of a group have no capacity of their own: this one stands beside the group.
            self.at.vdev = None;
        }
        Place { device: name_owned(), ..self.at.clone() }
    }
}

/// Whether the rows behind the first add up to it, within what rounding to three digits allows.
fn adds_up(block: &[Read<'_>]) -> bool {
    let Some((first, rest)) = block.split_first() else { return false };
    if rest.iter().any(|read| read.name == first.name) {
        return false;
    }
    let mut checked = 0;
    for name in ["allocated_bytes", "free_bytes"] {
        let of =
            |read: &Read<'_>| read.row.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value);
        let Some(whole) = of(first).filter(|whole| *whole > 0.0) else { continue };
        let sum: f64 = rest.iter().filter_map(of).sum();
        if (sum - whole).abs() > whole * 0.02 {
            return false;
        }
        checked += 1;
    }
    checked > 0
}
