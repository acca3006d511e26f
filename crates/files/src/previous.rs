//! Keeps earlier versions of a file: `PATH.1` is the last one, `PATH.2` the one before.
//!
//! A file keeps its name until its successor takes it, so that the name refers to a complete file
//! at any time.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Error,
    partial::{new_path, remove_leftovers},
    place::TargetPlace,
};

/// Adds the name `PATH.1` to the file at `place`, which is about to be replaced; the old `PATH.1`
/// becomes `PATH.2`, and so on up to `files`. Where the file system supports no second name,
/// returns the path to which the file must be copied.
///
/// If a saver dies between this call and the replacement, the file is not kept twice: the next
/// saver finds that the newest version is kept already.
pub(super) fn keep(place: &TargetPlace, files: u32) -> Result<Option<PathBuf>, Error> {
    let target = place.path();
    if files == 0 || !target.try_exists().map_err(|error| Error::new("look at", &target, error))? {
        return Ok(None);
    }
    let first = numbered(place, 1);
    let newest = first.path();
    if is_same_file(&target, &newest) {
        return Ok(None);
    }
    for number in (1..files).rev() {
        let (from, to) = (numbered(place, number).path(), numbered(place, number + 1).path());
        match fs::rename(&from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::new("rename", &from, error));
            }
            _ => {}
        }
    }
    remove_leftovers(&first);
    let link = new_path(&first);
    match fs::hard_link(&target, &link) {
        Ok(()) => fs::rename(&link, &newest).map(|()| None).map_err(|error| {
            let _ = fs::remove_file(&link);
            Error::new("rename", &link, error)
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::new("link", &target, error))
        }
        // The file system has no hard links, or its limit is reached.
        Err(_) => Ok(Some(newest)),
    }
}

fn numbered(place: &TargetPlace, number: u32) -> TargetPlace {
    let mut numbered = place.clone();
    numbered.name.push(format!(".{number}"));
    numbered
}

#[cfg(unix)]
fn is_same_file(left: &Path, right: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (fs::metadata(left), fs::symlink_metadata(right)) {
        (Ok(left), Ok(right)) => (left.dev(), left.ino()) == (right.dev(), right.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_same_file(_: &Path, _: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::{Durability, Replacement, replacement::copy};

    fn replace(target: &Path, text: &str, keep: u32) {
        let replacement = Replacement::create(target).unwrap().keeping(keep);
        replacement.file().write_all(text.as_bytes()).unwrap();
        replacement.finish(Durability::None).unwrap();
    }

    fn states(directory: &Path) -> Vec<(String, String)> {
        let mut found: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                (
                    path.file_name().unwrap().to_str().unwrap().to_owned(),
                    fs::read_to_string(path).unwrap(),
                )
            })
            .collect();
        found.sort();
        found
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn as_many_states_are_kept_as_were_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        for text in ["1", "2", "3", "4"] {
            replace(&target, text, 2);
        }
        assert_eq!(states(directory.path()), pairs(&[("a", "4"), ("a.1", "3"), ("a.2", "2")]));
        replace(&target, "5", 0);
        assert_eq!(states(directory.path()), pairs(&[("a", "5"), ("a.1", "3"), ("a.2", "2")]));
        replace(&target, "6", 1);
        assert_eq!(states(directory.path()), pairs(&[("a", "6"), ("a.1", "5"), ("a.2", "2")]));
    }

    #[test]
    fn a_state_is_not_kept_twice_after_a_saver_that_was_killed() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        replace(&target, "1", 2);
        replace(&target, "2", 2);
        // Killed before the rename of the third, and while a link was being created.
        assert_eq!(keep(&TargetPlace::of(&target).unwrap(), 2).unwrap(), None);
        fs::hard_link(&target, directory.path().join(".a.1.0123456789abcdef.partial")).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "2");
        replace(&target, "4", 2);
        replace(&target, "5", 2);
        assert_eq!(states(directory.path()), pairs(&[("a", "5"), ("a.1", "4"), ("a.2", "2")]));
    }

    #[test]
    fn a_state_that_cannot_be_kept_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        replace(&target, "1", 1);
        fs::create_dir(directory.path().join("a.1")).unwrap();
        let replacement = Replacement::create(&target).unwrap().keeping(1);
        assert!(replacement.finish(Durability::None).is_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "1");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_copy_stands_in_for_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("a"), directory.path().join("a.1"));
        fs::write(&from, "1").unwrap();
        copy(&from, &to, Durability::None).unwrap();
        assert_eq!(states(directory.path()), pairs(&[("a", "1"), ("a.1", "1")]));
    }
}
