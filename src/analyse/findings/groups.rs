//! Things that belong together, in the order in which they come.

/// The values of each key; keys and values in the order in which they come first.
pub(crate) fn by_key<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Each item once, in the order in which they come first.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    by_key(items.into_iter().map(|item| (item, ()))).into_iter().map(|(item, _)| item).collect()
}

/// Index of the first item that `is_it`; one made by `new` is added where there is none.
pub(crate) fn place_of<T>(items: &mut Vec<T>, is_it: impl FnMut(&T) -> bool, new: impl FnOnce() -> T) -> usize {
    items.iter().position(is_it).unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    })
}

/// The item at that index.
pub(crate) fn item_of<T>(items: &mut Vec<T>, is_it: impl FnMut(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let place = place_of(items, is_it, new);
    &mut items[place]
}
