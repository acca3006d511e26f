//! Metadata of a state for the package `serdes_ml`: aliases of its tensors, and leaves that are not
//! tensors.
//!
//! Source: `python/serdes_ml/_files.py` (aliases), `jax.py` (leaves), `_trees.py` and `_meshes.py`
//! in the same folder.

use std::collections::{HashMap, HashSet};

use super::{Metadata, json::Ordered};

/// Key of the aliases of tensors: a JSON object from each alias to the name under which the tensor
/// is stored.
const ALIASES: &str = "serdes_ml.aliases";

/// Key of the leaves that are not tensors: a JSON object from each name to its value.
pub(super) const LEAVES: &str = "serdes_ml.leaves";

/// Keys of a tree's structure and of its leaves' meshes. The names of the tensors imply the
/// structure without the kinds of its nodes.
const OF_TREES: [&str; 2] = ["serdes_ml.tree", "serdes_ml.meshes"];

/// Takes the aliases of tensors out of metadata: each with the position of the tensor among
/// `stored`. Metadata with other contents stay as they are.
pub(crate) fn take(metadata: &mut Metadata, stored: &[&str]) -> Vec<(String, usize)> {
    let Some(pairs) = metadata else { return Vec::new() };
    let Some(at) = pairs.iter().position(|(key, _)| key == ALIASES) else { return Vec::new() };
    let found: Option<Ordered<String>> =
        pairs.get(at).and_then(|(_, text)| serde_json::from_str(text).ok());
    let places: HashMap<&str, usize> =
        stored.iter().enumerate().map(|(place, name)| (*name, place)).collect();
    let aliases: Option<Vec<_>> = found.and_then(|Ordered(found)| {
        let place_of = |(name, stored): (String, String)| Some((name, *places.get(&*stored)?));
        found.into_iter().map(place_of).collect()
    });
    let Some(mut aliases) = aliases else { return Vec::new() };
    // A name that is itself stored is not an alias.
    aliases.retain(|(name, _)| !places.contains_key(&**name));
    pairs.remove(at);
    if pairs.is_empty() {
        *metadata = None;
    }
    aliases
}

/// Returns the names in metadata: of each leaf, and the keys of everything else.
pub(crate) fn names_of(metadata: &Metadata) -> Vec<String> {
    let mut names = Vec::new();
    for (key, text) in metadata.iter().flatten() {
        match key.as_str() {
            LEAVES => names.extend(names_of_leaves(text)),
            ALIASES => {}
            key if OF_TREES.contains(&key) => {}
            key => names.push(key.to_owned()),
        }
    }
    names
}

/// Returns the keys of an object of plain values, which may include Python's `NaN` and `Infinity`,
/// which JSON does not have.
fn names_of_leaves(text: &str) -> Vec<String> {
    let quoted = |text: &str| -> Option<(String, usize)> {
        let mut texts = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let found = texts.next()?.ok()?;
        Some((found, texts.byte_offset()))
    };
    let mut names = Vec::new();
    let mut rest = text.trim_start().strip_prefix('{').unwrap_or_default();
    while let Some((name, end)) = quoted(rest) {
        names.push(name);
        let value = rest.get(end..).unwrap_or_default().trim_start();
        let value = value.strip_prefix(':').unwrap_or_default().trim_start();
        let end = match quoted(value) {
            Some((_, end)) => end,
            None => value.find([',', '}']).unwrap_or(value.len()),
        };
        let next = value.get(end..).unwrap_or_default().trim_start();
        rest = next.strip_prefix(',').unwrap_or_default();
    }
    names
}

/// Returns metadata with aliases of tensors, each with the name under which it is stored.
pub(crate) fn put(metadata: Metadata, aliases: &[(&str, &str)]) -> Metadata {
    if aliases.is_empty() {
        return metadata;
    }
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut seen = HashSet::new();
    let entries = aliases
        .iter()
        .filter(|(name, _)| seen.insert(*name))
        .map(|(name, stored)| format!("{}: {}", quoted(name), quoted(stored)));
    let text = format!("{{{}}}", entries.collect::<Vec<_>>().join(", "));
    let mut pairs = metadata.unwrap_or_default();
    pairs.retain(|(key, _)| key != ALIASES);
    pairs.push((ALIASES.to_owned(), text));
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_put_into_metadata_and_taken_out_again() {
        let own = Some(vec![("step".to_owned(), "7".to_owned())]);
        let mut metadata = put(own.clone(), &[("head", "w"), ("caf\u{e9} \"x\"", "w")]);
        assert_eq!(metadata.as_ref().map(Vec::len), Some(2));
        let aliases = take(&mut metadata, &["b", "w"]);
        assert_eq!(aliases, [("head".to_owned(), 1), ("caf\u{e9} \"x\"".to_owned(), 1)]);
        assert_eq!(metadata, own);
        let mut metadata = put(None, &[("head", "w")]);
        take(&mut metadata, &["w"]);
        assert_eq!(metadata, None);
    }

    #[test]
    fn names_of_tells_leaves_and_other_keys() {
        let pairs = [
            (LEAVES, r#"{"step": 7, "a/\"b\"": "x, \"y\": 1", "best": Infinity, "on": true}"#),
            ("format", "pt"),
            (ALIASES, r#"{"head": "w"}"#),
        ];
        let metadata = Some(pairs.map(|(key, text)| (key.to_owned(), text.to_owned())).to_vec());
        assert_eq!(names_of(&metadata), ["step", "a/\"b\"", "best", "on", "format"]);
        assert_eq!(names_of(&Some(vec![(LEAVES.to_owned(), "[1, 2".to_owned())])), [""; 0]);
        assert_eq!(names_of(&None), [""; 0]);
    }

    #[test]
    fn metadata_that_names_no_tensor_stays_as_it_is() {
        for text in ["", "[]", r#"{"a": 1}"#, r#"{"a": "gone"}"#, r#"{"a":"w","a":"w"}"#] {
            let mut metadata = Some(vec![(ALIASES.to_owned(), text.to_owned())]);
            let before = metadata.clone();
            assert_eq!(take(&mut metadata, &["w"]), []);
            assert_eq!(metadata, before, "{text}");
        }
    }
}
