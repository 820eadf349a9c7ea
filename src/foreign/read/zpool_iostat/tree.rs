//! Places a row of `zpool iostat -v` in the tree of its pool: by indentation, or, since pages lose it, by names and
//! capacities.

use super::UnplacedRow;

/// Place of a row, outermost first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PoolPlace {
    pub(super) pool: String,
    pub(super) section: Option<String>,
    pub(super) vdev: Option<String>,
    /// Groups inside the vdev: `replacing-1`.
    pub(super) group: Option<String>,
    pub(super) device: Option<String>,
}

impl PoolPlace {
    /// Its labels; `None` if it only names a section.
    pub(super) fn labels(self) -> Option<Vec<(&'static str, String)>> {
        let PoolPlace { pool, section, vdev, group, device } = self;
        let only = section.is_some() && vdev.is_none() && device.is_none();
        let pool = Some(pool).filter(|pool| !pool.is_empty());
        let all =
            [("pool", pool), ("section", section), ("vdev", vdev), ("group", group), ("device", device)].into_iter();
        (!only).then(|| all.filter_map(|(name, value)| Some((name, value?))).collect())
    }
}

/// Places of rows, given as indentation and name, if the indentation is as these tools print it: two columns per level,
/// and deeper after each group. `None` if it was lost.
pub(super) fn places(rows: &[(usize, &str)]) -> Option<Vec<PoolPlace>> {
    const STEP: usize = 2;
    let base = rows.first().filter(|(_, name)| !is_group(name) && !is_section(name))?.0;
    let mut at = PoolPlace::default();
    let mut above: Vec<(usize, &str)> = Vec::new();
    let mut groups: Vec<&str> = Vec::new();
    let mut found: Vec<PoolPlace> = Vec::new();
    for (index, &(indent, name)) in rows.iter().enumerate() {
        let is_followed = rows.get(index + 1).is_some_and(|(next, _)| *next > indent);
        let is_last = index + 1 == rows.len();
        if indent == base && !is_group(name) {
            (above, at) = (vec![(base, name)], PoolPlace { pool: at.pool, ..PoolPlace::default() });
            match is_section(name) {
                true => at.section = Some(name.to_owned()),
                false => (at.pool, groups) = (name.to_owned(), Vec::new()),
            }
            found.push(at.clone());
            continue;
        }
        if indent == base && is_passing(name) && is_last {
            found.push(PoolPlace { pool: at.pool.clone(), vdev: Some(name.to_owned()), ..PoolPlace::default() });
            continue;
        }
        above.retain(|(column, _)| *column < indent);
        let is_child = above.last().is_some_and(|(column, _)| column + STEP == indent);
        if !is_child || (is_group(name) && !is_followed && !is_last) {
            return None;
        }
        at = PoolPlace { pool: at.pool, section: at.section, ..PoolPlace::default() };
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

/// True if the name is a section of a pool: logs, cache and the like.
pub(super) fn is_section(name: &str) -> bool {
    matches!(name, "logs" | "log" | "cache" | "special" | "dedup" | "spares")
}

/// True if the name is a group of devices: `mirror-0`, `raidz2-1`, `draid2:4d:9c:1s-0`, `mirror`.
pub(super) fn is_group(name: &str) -> bool {
    let bare = name.rsplit_once('-').filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let bare = bare.map_or(name, |(bare, _)| bare);
    let draid =
        bare.strip_prefix("draid").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || "cds:".contains(c)));
    draid || matches!(bare, "mirror" | "raidz" | "raidz1" | "raidz2" | "raidz3" | "anyraid") || is_passing(name)
}

/// True if the name is a group inside a group, which exists only while a device is being replaced.
fn is_passing(name: &str) -> bool {
    let mut kinds = ["replacing", "spare"].iter();
    kinds.any(|kind| name == *kind || name.strip_prefix(kind).is_some_and(|rest| rest.starts_with('-')))
}

/// Places of rows without indentation, and what is uncertain about them. The first row is a pool; the others are its
/// devices if `-v` was given, if some are groups or have no capacity, or if they add up to it. Group membership is
/// known only for devices without a capacity of their own.
pub(super) fn guessed(block: &[UnplacedRow<'_>], verbose: Option<bool>) -> (Vec<PoolPlace>, Option<&'static str>) {
    let is_verbose = verbose.unwrap_or_else(|| block.len() < 2 || block[1..].iter().any(UnplacedRow::is_inner));
    let by_sum = verbose.is_none() && !is_verbose && adds_up(block);
    let mut at = PoolPlace::default();
    let mut places = Vec::new();
    for read in block {
        let owned = || Some(read.name.to_owned());
        if at.pool.is_empty() && !read.is_inner() || !(is_verbose || by_sum) {
            at = PoolPlace { pool: read.name.to_owned(), ..PoolPlace::default() };
        } else if is_section(read.name) {
            at = PoolPlace { pool: at.pool, section: owned(), ..PoolPlace::default() };
        } else if is_passing(read.name) && at.vdev.is_some() && !read.has_capacity() {
            // It exists while a device is being replaced; names do not show how many of the following devices are in
            // it.
            places.push(PoolPlace { group: owned(), ..at.clone() });
            continue;
        } else if is_group(read.name) {
            at = PoolPlace { pool: at.pool, section: at.section, vdev: owned(), ..PoolPlace::default() };
        } else {
            at.vdev = at.vdev.filter(|_| !read.has_capacity());
            places.push(PoolPlace { device: owned(), ..at.clone() });
            continue;
        }
        places.push(at.clone());
    }
    let note = match (verbose, is_verbose, by_sum) {
        (None, false, true) => Some("rows that add up to the pool are treated as its devices"),
        (None, false, false) => Some("each row is treated as a pool: no rows add up to another"),
        _ if block.iter().any(|read| is_group(read.name)) => {
            Some("the indentation was lost: groups are recognized by name")
        }
        _ => None,
    };
    (places, note)
}

/// True if the other rows add up to the first, within rounding to three digits.
fn adds_up(block: &[UnplacedRow<'_>]) -> bool {
    let Some((first, rest)) = block.split_first() else { return false };
    if rest.iter().any(|read| read.name == first.name) {
        return false;
    }
    let mut checked = 0;
    for name in ["allocated_bytes", "free_bytes"] {
        let whole = first.row.figure(name).map_or(0.0, |whole| whole.value);
        if whole <= 0.0 {
            continue;
        }
        let sum: f64 = rest.iter().filter_map(|read| read.row.figure(name)).map(|figure| figure.value).sum();
        if (sum - whole).abs() > whole * 0.02 {
            return false;
        }
        checked += 1;
    }
    checked > 0
}

impl UnplacedRow<'_> {
    fn has_capacity(&self) -> bool {
        self.row.figure("allocated_bytes").is_some()
    }

    /// True for a row that is no pool.
    fn is_inner(&self) -> bool {
        is_section(self.name) || is_group(self.name) || !self.has_capacity()
    }
}
