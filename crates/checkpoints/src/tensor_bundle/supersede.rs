//! Replaces a bundle so that at every moment the old one or the new one can be read.
//!
//! The name of a data file contains the count of all. The new bundle gets another count than the old
//! one, if necessary by adding an empty data file, so that no file of the old one is touched until
//! the rename of the index switches from one to the other. Files that the index does not name are
//! removed afterwards.
//!
//! Does not depend on the contents of the data files.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
};

use serdes_files as files;
use serdes_files::{Durability, Replacement, Turn};

use super::{
    error::BundleError,
    files::{FileSystem, data_path},
    reader::Bundle,
};

/// The files at a prefix before the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// A bundle with this number of data files.
    Bundle(i32),
    /// An index from which the data files cannot be determined.
    Unknown,
}

/// The right to switch bundles in a directory, held by one saver at a time: two at once could pick
/// the same file names.
#[derive(Debug)]
pub(super) struct Switch {
    /// The prefix: a directory without links, and the name of the bundle.
    prefix: PathBuf,
    name: OsString,
    before: Before,
    /// Number of data files of the new bundle.
    count: i32,
    /// Data files that were already renamed; removed unless the index follows.
    appeared: Vec<PathBuf>,
    switched: bool,
    /// Held until the switch is done.
    _turn: Turn,
}

impl Switch {
    /// Waits for its turn and examines the existing files. `directory` has no links; `wanted` is
    /// the smallest number of data files of the new bundle.
    pub(super) fn begin(directory: &Path, name: &OsStr, wanted: i32) -> Result<Self, BundleError> {
        let turn = Turn::take(directory).map_err(|source| io_error(directory, source))?;
        let prefix = directory.join(name);
        let before = match Bundle::open_any(FileSystem, &prefix) {
            Ok(bundle) => Before::Bundle(bundle.header().num_shards),
            Err(BundleError::IndexMissing { .. }) => Before::Nothing,
            Err(_) => Before::Unknown,
        };
        let mut count = wanted;
        match before {
            Before::Nothing => {}
            Before::Bundle(old) => count += i32::from(old == wanted),
            Before::Unknown => {
                let files = data_files(&prefix, name);
                let files = files.map_err(|source| io_error(directory, source))?;
                let taken: BTreeSet<i32> = files.into_iter().map(|(_, count)| count).collect();
                while taken.contains(&count) {
                    count += 1;
                }
            }
        }
        let name = name.to_owned();
        Ok(Self { prefix, name, before, count, appeared: Vec::new(), switched: false, _turn: turn })
    }

    /// Returns the number of data files of the new bundle: the wanted number, or one more.
    pub(super) fn count(&self) -> i32 {
        self.count
    }

    /// Renames the next data file to its final name.
    pub(super) fn put(
        &mut self,
        file: Replacement,
        durability: Durability,
    ) -> Result<(), BundleError> {
        let number = i32::try_from(self.appeared.len()).unwrap_or(i32::MAX);
        let name = data_path(Path::new(&self.name), number, self.count);
        let mut file = file.named(name.as_os_str());
        if let Before::Bundle(old) = self.before {
            // An additional file gets the metadata of the first one.
            let model = if number < old { number } else { 0 };
            file = file.modelled_on(&data_path(&self.prefix, model, old))?;
        }
        file.settle(durability)?;
        file.appear()?;
        self.appeared.push(data_path(&self.prefix, number, self.count));
        Ok(())
    }

    /// Switches to the new bundle by renaming the index.
    pub(super) fn finish(
        mut self,
        mut index: Replacement,
        durability: Durability,
    ) -> Result<(), BundleError> {
        let directory = index.directory().to_owned();
        index.settle(durability)?;
        if durability == Durability::Data {
            // The names of the data files reach the disk before the name of the index does.
            files::sync_directory(&directory)?;
        }
        index.appear()?;
        self.switched = true;
        if durability == Durability::Data {
            files::sync_directory(&directory)?;
        }
        self.remove_superseded();
        Ok(())
    }

    /// Removes the data files that the index does not name. Failures do not fail the save.
    fn remove_superseded(&self) {
        // Without a readable index it is unknown which bundle the data files belong to.
        if !matches!(self.before, Before::Bundle(_)) {
            return;
        }
        let Ok(files) = data_files(&self.prefix, &self.name) else { return };
        for (path, _) in files.into_iter().filter(|(_, count)| *count != self.count) {
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        if !self.switched {
            for path in &self.appeared {
                let _ = fs::remove_file(path);
            }
        }
    }
}

impl From<files::Error> for BundleError {
    fn from(error: files::Error) -> Self {
        let files::Error { action, path, source } = error;
        let source = io::Error::new(source.kind(), format!("cannot {action} it: {source}"));
        Self::Io { path, source }
    }
}

fn io_error(path: &Path, source: io::Error) -> BundleError {
    BundleError::Io { path: path.to_owned(), source }
}

/// Returns the data files of all bundles at a prefix, with the count in the name of each.
fn data_files(prefix: &Path, name: &OsStr) -> io::Result<Vec<(PathBuf, i32)>> {
    let directory = prefix.parent().unwrap_or(prefix);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let found = entry.file_name();
        let count = found
            .as_encoded_bytes()
            .strip_prefix(name.as_encoded_bytes())
            .and_then(|rest| rest.strip_prefix(b".data-"))
            .and_then(count_in);
        files.extend(count.map(|count| (entry.path(), count)));
    }
    Ok(files)
}

/// Returns the count in `00000-of-00001`; `None` if the text is not the end of a data file's name.
fn count_in(end: &[u8]) -> Option<i32> {
    let (number, count) = str::from_utf8(end).ok()?.split_once("-of-")?;
    let digits = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(number) && digits(count)).then(|| count.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serdes_graph_format::data_type::DataType;

    use super::{
        super::{BundleOptions, BundleWriter},
        *,
    };

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn begin(prefix: &Path, shards: u16, value: u8) -> BundleWriter {
        let options = BundleOptions::default().with_shards(shards);
        let mut writer = BundleWriter::create(prefix, options).unwrap();
        writer.add_bytes("w", DataType::Uint8, &[1], &[value]).unwrap();
        writer
    }

    fn read(prefix: &Path) -> u8 {
        let bundle = Bundle::open(prefix).unwrap();
        let tensor = bundle.tensor("w").unwrap();
        let mut byte = [0];
        io::Read::read_exact(&mut bundle.reader(&tensor).unwrap(), &mut byte).unwrap();
        byte[0]
    }

    #[test]
    fn bundle_with_as_many_data_files_gets_one_more_and_stays_alone() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("ckpt");
        for value in 0..4 {
            begin(&prefix, 1, value).finish().unwrap();
            assert_eq!(read(&prefix), value);
            let expected: &[&str] = match value % 2 {
                0 => &["ckpt.data-00000-of-00001", "ckpt.index"],
                _ => &["ckpt.data-00000-of-00002", "ckpt.data-00001-of-00002", "ckpt.index"],
            };
            assert_eq!(names(directory.path()), expected);
        }
        begin(&prefix, 3, 9).finish().unwrap();
        assert_eq!(read(&prefix), 9);
        assert_eq!(names(directory.path()).len(), 4);
    }

    #[test]
    fn old_bundle_is_read_until_the_index_is_renamed() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("ckpt");
        begin(&prefix, 1, 1).finish().unwrap();
        let before = names(directory.path());
        let index = Replacement::create_beside(&directory.path().join("ckpt.index")).unwrap();
        let mut switch = Switch::begin(directory.path(), OsStr::new("ckpt"), 1).unwrap();
        assert_eq!(switch.count(), 2);
        for _ in 0..2 {
            switch.put(index.another().unwrap(), Durability::None).unwrap();
            assert_eq!(read(&prefix), 1);
        }
        drop((switch, index));
        assert_eq!(read(&prefix), 1);
        assert_eq!(names(directory.path()), before);
    }

    /// Files of a bundle that is saved again, a given number of times, whenever a data file is
    /// opened; two saves at once, so that the second has the file names of the bundle that is being
    /// read.
    #[derive(Debug)]
    struct Restless {
        prefix: PathBuf,
        left: std::sync::atomic::AtomicU8,
    }

    impl super::super::Files for Restless {
        fn open(&self, path: &Path) -> io::Result<std::sync::Arc<dyn serdes_files::ReadAt>> {
            let left = self.left.load(std::sync::atomic::Ordering::Relaxed);
            if left > 0 && path.to_string_lossy().contains(".data-") {
                self.left.store(left - 1, std::sync::atomic::Ordering::Relaxed);
                begin(&self.prefix, 1, 100 + left).finish().unwrap();
                if left.is_multiple_of(2) {
                    begin(&self.prefix, 1, left).finish().unwrap();
                }
            }
            FileSystem.open(path)
        }
    }

    #[test]
    fn a_bundle_that_is_replaced_while_it_is_opened_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("ckpt");
        for left in [1, 2, 5] {
            begin(&prefix, 1, 50).finish().unwrap();
            let files = Restless { prefix: prefix.clone(), left: left.into() };
            let bundle = Bundle::open_in(files, &prefix).unwrap();
            let report = bundle.verify(&super::super::VerifyOptions::default().with_data(true));
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            assert_eq!(bundle.read(&bundle.tensor("w").unwrap()).unwrap(), [101]);
        }
    }

    #[test]
    fn a_bundle_that_is_open_is_read_though_another_takes_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("ckpt");
        begin(&prefix, 1, 1).finish().unwrap();
        let bundle = Bundle::open(&prefix).unwrap();
        begin(&prefix, 1, 2).finish().unwrap();
        assert_eq!(bundle.read(&bundle.tensor("w").unwrap()).unwrap(), [1]);
        assert_eq!(read(&prefix), 2);
    }

    #[test]
    fn leftovers_of_a_dead_saver_go_with_the_next_save() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("ckpt");
        begin(&prefix, 1, 1).finish().unwrap();
        // Killed before the renames, and between the renames of the data and of the index.
        let dead = directory.path().join(".ckpt.index.0123456789abcdef.partial");
        fs::write(dead, "dead").unwrap();
        fs::write(directory.path().join("ckpt.data-00000-of-00002"), "dead").unwrap();
        fs::write(directory.path().join("ckpt.data-00000-of-00007"), "dead").unwrap();
        fs::write(directory.path().join("ckpt.data-of-00007"), "something else").unwrap();
        fs::write(directory.path().join("ckpt2.data-00000-of-00007"), "something else").unwrap();
        begin(&prefix, 1, 2).finish().unwrap();
        assert_eq!(read(&prefix), 2);
        let expected = [
            "ckpt.data-00000-of-00002",
            "ckpt.data-00001-of-00002",
            "ckpt.data-of-00007",
            "ckpt.index",
            "ckpt2.data-00000-of-00007",
        ];
        assert_eq!(names(directory.path()), expected);
    }

    #[test]
    fn the_data_of_an_index_that_cannot_be_read_stays() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("ckpt");
        begin(&prefix, 1, 1).finish().unwrap();
        begin(&prefix, 1, 2).finish().unwrap();
        fs::write(directory.path().join("ckpt.data-00000-of-00001"), "of whom?").unwrap();
        fs::write(directory.path().join("ckpt.index"), "damaged").unwrap();
        begin(&prefix, 1, 3).finish().unwrap();
        assert_eq!(read(&prefix), 3);
        // One, two and three files, and the index.
        assert_eq!(names(directory.path()).len(), 7);
        assert_eq!(
            fs::read(directory.path().join("ckpt.data-00000-of-00001")).unwrap(),
            b"of whom?"
        );
    }

    #[test]
    fn an_index_that_is_no_file_stops_the_save_before_any_work() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("ckpt");
        fs::create_dir(directory.path().join("ckpt.index")).unwrap();
        assert!(BundleWriter::create(&prefix, BundleOptions::default()).is_err());
        assert_eq!(names(directory.path()), ["ckpt.index"]);
        // A prefix without a name would create hidden files.
        let folder = directory.path().join("folder/");
        assert!(BundleWriter::create(&folder, BundleOptions::default()).is_err());
    }

    #[test]
    fn a_directory_that_was_made_for_a_bundle_goes_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("made/ckpt");
        drop(begin(&prefix, 1, 1));
        assert!(names(directory.path()).is_empty());
        begin(&prefix, 1, 1).finish().unwrap();
        assert_eq!(read(&prefix), 1);
    }

    #[test]
    fn concurrent_savers_of_one_prefix_leave_one_bundle() {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("ckpt");
        for round in 0..10 {
            std::thread::scope(|scope| {
                for value in 0..4 {
                    let prefix = &prefix;
                    scope.spawn(move || begin(prefix, 1, 4 * round + value).finish().unwrap());
                }
            });
            assert_eq!(read(&prefix) / 4, round);
            let shards = Bundle::open(&prefix).unwrap().header().num_shards as usize;
            assert_eq!(names(directory.path()).len(), shards + 1);
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_modes_of_a_bundle_are_kept() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().join("ckpt");
        begin(&prefix, 1, 1).finish().unwrap();
        for name in names(directory.path()) {
            let path = directory.path().join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        begin(&prefix, 1, 2).finish().unwrap();
        for name in names(directory.path()) {
            let mode = fs::metadata(directory.path().join(&name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}
