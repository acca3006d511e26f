//! Names of a set's files.

use std::{
    hash::{BuildHasher, RandomState},
    path::Path,
};

const ENDING: &str = ".safetensors";
/// Number of hexadecimal digits that distinguish the files of sets with the same name.
const MARK_DIGITS: usize = 8;

/// The names of a set's files: for the target `model.safetensors` these are
/// `model-00001-of-00003.safetensors` and so on, or `model-1f2e3d4c-00001-of-00003.safetensors` if
/// files of another set exist, and `model.safetensors.index.json`.
#[derive(Clone, Debug)]
pub(in super::super) struct SetNames {
    /// Name of the target, which is used for a set of one file.
    pub(super) target: String,
    stem: String,
}

impl SetNames {
    /// Returns the names of the set at a path.
    pub(in super::super) fn of(path: &Path) -> Self {
        let text = |part: Option<&std::ffi::OsStr>| {
            part.unwrap_or_default().to_string_lossy().into_owned()
        };
        Self { target: text(path.file_name()), stem: text(path.file_stem()) }
    }

    /// Returns the name of the index.
    pub(in super::super) fn index(&self) -> String {
        format!("{}.index.json", self.target)
    }

    /// Returns the names of `count` files, with an optional mark.
    pub(super) fn shards(&self, count: usize, mark: Option<&str>) -> Vec<String> {
        let mark = mark.map(|mark| format!("-{mark}")).unwrap_or_default();
        let name = |number| format!("{}{mark}-{number:05}-of-{count:05}{ENDING}", self.stem);
        (1..=count).map(name).collect()
    }

    /// Returns true if a name belongs to a file of any set of this target, with or without a mark.
    pub(in super::super) fn has_shard(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&self.stem).and_then(|rest| rest.strip_prefix('-'));
        let Some(rest) = rest.and_then(|rest| rest.strip_suffix(ENDING)) else { return false };
        let numbers = match rest.split_once('-') {
            Some((mark, numbers)) if is_mark(mark) && numbers.contains("-of-") => numbers,
            _ => rest,
        };
        let Some((number, count)) = numbers.split_once("-of-") else { return false };
        match (number_in(number), number_in(count)) {
            (Some(number), Some(count)) => (1..=count).contains(&number),
            _ => false,
        }
    }
}

fn is_mark(text: &str) -> bool {
    text.len() == MARK_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn number_in(text: &str) -> Option<usize> {
    let is_plain = text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Returns a mark that no other set has.
pub(super) fn new_mark() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{:08x}", random >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_shards_are_told_exactly() {
        let names = SetNames::of(Path::new("run/model.safetensors"));
        assert_eq!(names.index(), "model.safetensors.index.json");
        assert_eq!(names.shards(2, None)[1], "model-00002-of-00002.safetensors");
        assert_eq!(
            names.shards(2, Some("0123abcd"))[0],
            "model-0123abcd-00001-of-00002.safetensors"
        );
        let mark = new_mark();
        assert!(is_mark(&mark), "{mark}");
        for mark in [None, Some(&*mark)] {
            assert!(names.shards(500, mark).iter().all(|name| names.has_shard(name)));
        }
        for other in [
            "model.safetensors",
            "model-00001-of-00002.bin",
            "model-00000-of-00002.safetensors",
            "model-00003-of-00002.safetensors",
            "model-0001-of-0002.safetensors",
            "model-extra-00001-of-00002.safetensors",
            "model-0123ABCD-00001-of-00002.safetensors",
            "model-0123abcd-0123abcd-00001-of-00002.safetensors",
            "model2-00001-of-00002.safetensors",
            "my-model-00001-of-00002.safetensors",
            "model-00001-of-00002-of-00002.safetensors",
            "model-+0001-of-00002.safetensors",
            "model-00001-of-00002.safetensors.old",
        ] {
            assert!(!names.has_shard(other), "{other}");
        }
    }
}
