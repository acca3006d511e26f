//! The files of a revision, as git lists them.

use std::path::{Component, Path, PathBuf};

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Link,
    Submodule,
}

/// A file of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: EntryKind,
    pub(super) identifier: String,
    pub(super) size: u64,
    /// Path relative to the root of the work tree, without `..`.
    pub(super) path: PathBuf,
}

/// Parses the entries of a listing; invalid ones are skipped.
pub(super) fn entries(listing: &[u8]) -> impl Iterator<Item = Entry> + '_ {
    listing.split(|byte| *byte == 0).filter_map(entry)
}

/// Parses `MODE TYPE IDENTIFIER SIZE<tab>PATH`.
fn entry(line: &[u8]) -> Option<Entry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let (head, path) = (line.get(..tab)?, line.get(tab + 1..)?);
    let head = std::str::from_utf8(head).ok()?;
    let [mode, _, identifier, size] = head.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
        return None;
    };
    let kind = match mode {
        "120000" => EntryKind::Link,
        "160000" => EntryKind::Submodule,
        _ => EntryKind::File,
    };
    let path = path_of(path)?;
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_git = path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
    (is_inside && !is_git).then(|| Entry {
        kind,
        identifier: identifier.to_owned(),
        size: size.parse().unwrap_or_default(),
        path,
    })
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    Some(PathBuf::from(OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    Some(PathBuf::from(std::str::from_utf8(bytes).ok()?))
}

/// Returns true if a file belongs to the artifact at `wanted`: it has that path, is below it, or,
/// if that is not a directory of the revision, lies beside it, like shards and indexes.
pub(super) fn belongs(path: &Path, wanted: &Path, is_directory: bool) -> bool {
    if wanted.as_os_str().is_empty() || path.starts_with(wanted) {
        return true;
    }
    if is_directory {
        return false;
    }
    let folder = wanted.parent().unwrap_or(Path::new(""));
    let is_model = wanted.file_name().is_some_and(|name| {
        name.eq_ignore_ascii_case("saved_model.pb")
            || name.eq_ignore_ascii_case("saved_model.pbtxt")
    });
    path.parent() == Some(folder) || (is_model && path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_mode_identifier_size_and_path() {
        let listing = b"100644 blob abc      12\tm/a b.pb\x00120000 blob def 3\tlink\x00160000 commit 012 -\tsub\0";
        let found: Vec<_> = entries(listing).collect();
        assert_eq!((found[0].size, found[0].path.as_path()), (12, Path::new("m/a b.pb")));
        assert_eq!(found[0].identifier, "abc");
        let kinds: Vec<_> = found.iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [EntryKind::File, EntryKind::Link, EntryKind::Submodule]);
    }

    #[test]
    fn paths_that_lead_out_are_left_out() {
        let listing =
            b"100644 blob a 1\t../a\x00100644 blob a 1\t/a\x00100644 blob a 1\tb/.git/hooks/x\0";
        assert_eq!(entries(listing).count(), 0);
    }

    #[test]
    fn files_beside_one_belong_to_it_and_not_to_a_directory() {
        let belongs = |path: &str, wanted: &str, is_directory| {
            super::belongs(Path::new(path), Path::new(wanted), is_directory)
        };
        assert!(belongs("m/ckpt-1.index", "m/ckpt-1", false));
        assert!(belongs("m/variables/v.index", "m/saved_model.pb", false));
        assert!(!belongs("m/deep/x", "m/ckpt-1", false) && !belongs("n/x", "m/ckpt-1", false));
        assert!(belongs("m/deep/x", "m", true) && !belongs("mm/x", "m", true));
    }
}
