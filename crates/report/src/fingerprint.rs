//! The identity of a finding.

use std::{borrow::Cow, fmt};

use sha2::{Digest, Sha256};

/// The identity of a finding, by which issue trackers recognize it.
///
/// It consists of the artifact, the rule and the place in the artifact. It does not change when
/// other findings come and go, when a node moves in its file, when another file is renamed, when
/// messages change, and between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// Returns the fingerprint of a rule's finding at a place in an artifact.
    #[must_use]
    pub fn of(artifact: &str, rule: &str, place: Option<&str>) -> Self {
        let artifact = clean(artifact);
        let mut hash = Sha256::new();
        for part in ["1", &artifact, rule, place.unwrap_or_default()] {
            // Hash the length as well, so that different lists of parts have different bytes.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut first = [0; 16];
        for (byte, of_hash) in first.iter_mut().zip(hash.finalize()) {
            *byte = of_hash;
        }
        Self(first)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Normalizes a path: removes `./`, doubled and final slashes. URLs are not changed.
pub(crate) fn clean(path: &str) -> Cow<'_, str> {
    let is_odd = path.starts_with("./")
        || path.contains("/./")
        || path.contains("//")
        || path.ends_with("/.")
        || path.len() > 1 && path.ends_with('/');
    if !is_odd || path.contains("://") {
        return Cow::Borrowed(path);
    }
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let start = if path.starts_with('/') { "/" } else { "" };
    let joined = parts.join("/");
    Cow::Owned(if joined.is_empty() && start.is_empty() {
        ".".to_owned()
    } else {
        format!("{start}{joined}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_is_of_artifact_rule_and_place() {
        let one = Fingerprint::of("m", "unknown_op", Some("a"));
        assert_eq!(one, Fingerprint::of("./m/", "unknown_op", Some("a")));
        for other in [
            Fingerprint::of("n", "unknown_op", Some("a")),
            Fingerprint::of("m", "corrupt", Some("a")),
            Fingerprint::of("m", "unknown_op", Some("b")),
            Fingerprint::of("m", "unknown_op", None),
            Fingerprint::of("munknown_op", "", Some("a")),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn fingerprint_is_the_same_in_every_build() {
        let shown = Fingerprint::of("exported/model", "unknown_op", Some("x")).to_string();
        assert_eq!(shown, "9fe292bf29f3175d075ae4befff4bfab");
    }

    #[test]
    fn paths_are_cleaned_and_addresses_are_not() {
        for (path, cleaned) in [
            ("./a//b/", "a/b"),
            ("a/./b", "a/b"),
            ("a/.", "a"),
            ("/a", "/a"),
            ("//a", "/a"),
            (".", "."),
            ("./", "."),
            ("/", "/"),
            ("../a", "../a"),
            ("s3://bucket//key/", "s3://bucket//key/"),
        ] {
            assert_eq!(clean(path), cleaned, "{path}");
        }
    }
}
