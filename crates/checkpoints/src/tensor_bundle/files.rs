//! The names of a bundle's files, and in-memory files.

use std::{
    collections::HashMap,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_files::ReadAt;
pub use serdes_files::{FileSystem, Files};

/// Files held in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(HashMap<PathBuf, Arc<Vec<u8>>>);

impl MemoryFiles {
    /// Creates an empty set of files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a file.
    pub fn insert(&mut self, path: impl Into<PathBuf>, bytes: Vec<u8>) {
        self.0.insert(path.into(), Arc::new(bytes));
    }
}

impl Files for MemoryFiles {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        match self.0.get(path) {
            Some(bytes) => Ok(Arc::<Vec<u8>>::clone(bytes)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Returns the path of the index of the bundle with `prefix`.
#[must_use]
pub fn index_path(prefix: &Path) -> PathBuf {
    with_suffix(prefix, ".index")
}

/// Returns the path of data file `shard` of `num_shards`, as TensorFlow names it:
/// `.data-00000-of-00001`, and `--0001` for -1.
#[must_use]
pub fn data_path(prefix: &Path, shard: i32, num_shards: i32) -> PathBuf {
    with_suffix(prefix, &format!(".data-{}-of-{}", five_digits(shard), five_digits(num_shards)))
}

/// Returns the prefix of the bundle that a data file belongs to, by its name: `ckpt` of
/// `ckpt.data-00000-of-00002`; `None` for any other name.
#[must_use]
pub fn prefix_of_data(path: &Path) -> Option<PathBuf> {
    let text = path.to_str()?;
    let (prefix, numbers) = text.rsplit_once(".data-")?;
    let (shard, shards) = numbers.split_once("-of-")?;
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(shard) && is_number(shards)).then(|| PathBuf::from(prefix))
}

/// Returns the prefix of the bundle whose index has this name: `ckpt` of `ckpt.index`, for a file
/// named `.index`, which TensorFlow writes for a prefix that ends in `/`, its folder; `None` for
/// any other name.
#[must_use]
pub fn prefix_of_index(path: &Path) -> Option<PathBuf> {
    if path.file_name()? == ".index" {
        return Some(path.parent()?.join(""));
    }
    path.extension().is_some_and(|is| is == "index").then(|| path.with_extension(""))
}

fn five_digits(number: i32) -> String {
    // TensorFlow formats the number with %05d, which counts the sign: -1 becomes "-0001".
    format!("{number:05}")
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_tensorflow() {
        let prefix = Path::new("d/ckpt-1.5");
        assert_eq!(index_path(prefix), Path::new("d/ckpt-1.5.index"));
        assert_eq!(data_path(prefix, 2, 12), Path::new("d/ckpt-1.5.data-00002-of-00012"));
        assert_eq!(data_path(prefix, 0, -1), Path::new("d/ckpt-1.5.data-00000-of--0001"));
        assert_eq!(
            data_path(prefix, 123_456, 1_000_000),
            Path::new("d/ckpt-1.5.data-123456-of-1000000")
        );
    }

    #[test]
    fn index_tells_its_prefix() {
        for (index, prefix) in [("d/ckpt-1.index", "d/ckpt-1"), ("d/.index", "d/"), (".index", "")]
        {
            let found = prefix_of_index(Path::new(index)).unwrap();
            assert_eq!(found.to_str(), Some(prefix));
            assert_eq!(index_path(&found).to_str(), Some(index));
        }
        for other in ["ckpt.indexes", "index", "d/index", "ckpt.data-00000-of-00001", ".."] {
            assert_eq!(prefix_of_index(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn a_data_file_tells_its_prefix() {
        let prefix = |name: &str| prefix_of_data(Path::new(name));
        assert_eq!(prefix("d/ckpt-1.data-00000-of-00002"), Some("d/ckpt-1".into()));
        assert_eq!(prefix("ckpt.data-123456-of-1000000"), Some("ckpt".into()));
        for other in ["ckpt.index", "ckpt.data-0-of-1", "ckpt.data-0000x-of-00001", "a.data-00000"]
        {
            assert_eq!(prefix(other), None, "{other}");
        }
    }
}
