//! The files of a package: the formats to freeze, and the lock.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use prost::Message;
use prost_types::FileDescriptorSet;

use super::{
    Difference, Differences, Item, LineFormats, LineRelease, Lock, ParseLockError, difference,
};
use crate::Registry;

/// An error of reading, writing or checking the lock of a package.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The lock cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A golden file cannot be listed.
    #[error("{}: a golden file's name must be UTF-8 without control characters", path.display())]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// The descriptors cannot be read.
    #[error("{}: not a FileDescriptorSet: {source}; generate it anew", path.display())]
    Descriptors {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: prost::DecodeError,
    },
    /// versions.toml cannot be read or breaks a rule.
    #[error(transparent)]
    Registry(#[from] crate::RegistryErrors),
    /// The lock cannot be read.
    #[error(transparent)]
    Lock(#[from] ParseLockError),
    /// The package differs from its lock.
    #[error(transparent)]
    Differs(#[from] Differences),
}

/// A package with lines of its own: `versions.lock`, `tests/golden/` and `proto/descriptors.binpb`
/// below its root. Files that do not exist count as empty.
#[derive(Clone, Debug)]
pub struct Package {
    root: PathBuf,
    lines: Vec<LineFormats>,
}

impl Package {
    /// Returns the package at `root` with the lines of its `REGISTRY`.
    pub fn of_registry(root: impl Into<PathBuf>, registry: &Registry) -> Self {
        Self { root: root.into(), lines: LineFormats::of_registry(registry) }
    }

    /// Returns the package at `root` with the lines of its versions.toml.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, LockError> {
        let root = root.into();
        let declarations = crate::read(&root.join("versions.toml"))?;
        Ok(Self::of_declarations(root, &declarations))
    }

    /// Returns the package at `root` with these lines, which may differ from those of its
    /// versions.toml.
    pub fn of_declarations(root: impl Into<PathBuf>, declarations: &crate::Declarations) -> Self {
        Self { root: root.into(), lines: LineFormats::of_declarations(declarations) }
    }

    /// Returns the path of the lock.
    pub fn lock_path(&self) -> PathBuf {
        self.root.join("versions.lock")
    }

    /// Returns the lock of the package; empty if it has none.
    pub fn frozen(&self) -> Result<Lock, LockError> {
        let path = self.lock_path();
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Lock::parse(&path.display().to_string(), &text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Lock::new()),
            Err(source) => Err(LockError::Read { path, source }),
        }
    }

    /// Returns the fingerprints of the present package.
    pub fn found(&self) -> Result<Lock, LockError> {
        let mut lock = Lock::new();
        add_golden(&mut lock, &self.root.join("tests/golden"), "")?;
        let path = self.root.join("proto/descriptors.binpb");
        match fs::read(&path) {
            Ok(bytes) => {
                let set = FileDescriptorSet::decode(bytes.as_slice())
                    .map_err(|source| LockError::Descriptors { path, source })?;
                self.add_descriptors(&mut lock, &set);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(LockError::Read { path, source }),
        }
        Ok(lock)
    }

    /// Returns the differences between the package and its lock.
    pub fn differences(&self) -> Result<Vec<Difference>, LockError> {
        Ok(self.frozen()?.compare(&self.found()?, &self.lines))
    }

    /// Returns the formats in entries that have no golden bytes ([`Difference::NoGolden`]): they
    /// cannot be frozen, so they should not be released.
    pub fn without_golden(&self) -> Result<Vec<Difference>, LockError> {
        Ok(difference::without_golden(&self.found()?, &self.lines))
    }

    /// Checks that the package matches its lock, and that every format has golden bytes.
    ///
    /// # Errors
    ///
    /// [`LockError::Differs`] with every difference and its remedy.
    pub fn check(&self) -> Result<(), LockError> {
        let differences = self.unreleasable()?;
        if differences.is_empty() { Ok(()) } else { Err(Differences(differences).into()) }
    }

    /// Returns the formats in the entries of a line, each once, in their order.
    pub fn formats(&self, line: &str) -> Vec<&str> {
        let line = self.lines.iter().find(|candidate| candidate.name == line);
        let mut found: Vec<&str> = Vec::new();
        for format in line.iter().flat_map(|line| &line.entries).flat_map(|(_, formats)| formats) {
            if !found.contains(&format.as_str()) {
                found.push(format);
            }
        }
        found
    }

    /// Returns the differences between the package and its lock, and the formats without golden
    /// bytes.
    pub fn unreleasable(&self) -> Result<Vec<Difference>, LockError> {
        let mut differences = self.differences()?;
        for missing in self.without_golden()? {
            if !differences.contains(&missing) {
                differences.push(missing);
            }
        }
        Ok(differences)
    }

    /// Returns the changes of the lines that the kinds of their releases do not allow. Files of
    /// golden bytes are not read.
    pub fn broken_releases(&self) -> Result<Vec<Difference>, LockError> {
        Ok(self.frozen()?.broken_releases(&self.lines))
    }

    /// Returns the lines whose release [`rewrite_released`](Self::rewrite_released) would move.
    pub fn moved_releases(&self) -> Result<Vec<LineRelease>, LockError> {
        Ok(self.frozen()?.moved_releases(&self.lines))
    }

    /// Rewrites the lock and returns the differences between the package and the old lock. The
    /// releases in it stay.
    ///
    /// # Errors
    ///
    /// [`LockError::Differs`], without writing, with everything that cannot be frozen:
    /// [`Difference::NotNamed`], [`Difference::NoGolden`], and changes that the release of a line
    /// does not allow.
    pub fn rewrite(&self) -> Result<Vec<Difference>, LockError> {
        self.rewrite_as(|lock| lock)
    }

    /// Rewrites the lock for a release: lines with a release are recorded in their present state.
    ///
    /// # Errors
    ///
    /// As [`rewrite`](Self::rewrite).
    pub fn rewrite_released(&self) -> Result<Vec<Difference>, LockError> {
        self.rewrite_as(|lock| lock.with_releases(&self.lines))
    }

    fn rewrite_as(&self, change: impl FnOnce(Lock) -> Lock) -> Result<Vec<Difference>, LockError> {
        let (frozen, found) = (self.frozen()?, self.found()?);
        let differences = frozen.compare(&found, &self.lines);
        let refused = differences.iter().filter(|difference| {
            !matches!(
                difference,
                Difference::Changed { .. } | Difference::Gone { .. } | Difference::NotFrozen { .. }
            )
        });
        let refused: Vec<Difference> = refused.cloned().collect();
        if !refused.is_empty() {
            return Err(Differences(refused).into());
        }
        let path = self.lock_path();
        let lock = change(frozen.updated(&found, &self.lines));
        crate::file::replace(&path, &lock.render())
            .map_err(|source| LockError::Write { path, source })?;
        Ok(differences)
    }

    fn add_descriptors(&self, lock: &mut Lock, set: &FileDescriptorSet) {
        for file in &set.file {
            let package = file.package();
            let line =
                self.lines.iter().find(|line| line.packages.iter().any(|name| name == package));
            let Some((line, number)) = line.and_then(|line| Some((line, line.newest()?))) else {
                continue;
            };
            let messages =
                file.message_type.iter().map(|message| (message.name(), message.encode_to_vec()));
            let enums = file.enum_type.iter().map(|item| (item.name(), item.encode_to_vec()));
            for (name, bytes) in messages.chain(enums) {
                let (line, message) = (line.name.clone(), format!("{package}.{name}"));
                lock.insert(Item::Descriptor { line, message, number }, &bytes);
            }
        }
    }
}

/// Returns `true` for a page for people, which may change.
fn is_page(item: &str) -> bool {
    item.ends_with(".md")
}

fn add_golden(lock: &mut Lock, directory: &Path, prefix: &str) -> Result<(), LockError> {
    let read = |source| LockError::Read { path: directory.to_owned(), source };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(read(source)),
    };
    for entry in entries {
        let entry = entry.map_err(read)?;
        let path = entry.path();
        let name = match entry.file_name().into_string() {
            Ok(name) if !name.contains(char::is_control) => name,
            _ => return Err(LockError::Name { path }),
        };
        let item = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if is_page(&item) {
            continue;
        }
        if entry.file_type().map_err(read)?.is_dir() {
            add_golden(lock, &path, &item)?;
        } else {
            let bytes =
                fs::read(&path).map_err(|source| LockError::Read { path: path.clone(), source })?;
            lock.insert(Item::Golden { path: item }, &bytes);
        }
    }
    Ok(())
}
