//! Compares or writes the lists in `docs/api`, one per library with one item per line.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

/// Writes the lists to the folder, or with `check` prints the differences. Returns true if there
/// are none.
pub(crate) fn compare(
    folder: &Path,
    texts: &BTreeMap<String, String>,
    check: bool,
) -> io::Result<bool> {
    let mut differ = false;
    for path in without_library(folder, texts)? {
        differ = true;
        if check {
            println!("{} is of a library that is not there", path.display());
        } else {
            fs::remove_file(path)?;
        }
    }
    for (name, text) in texts {
        let path = folder.join(format!("{name}.txt"));
        let kept = fs::read_to_string(&path).unwrap_or_default();
        if kept == *text {
            continue;
        }
        differ = true;
        println!("{name}\n{}", differences(&kept, text));
        if !check {
            fs::create_dir_all(folder)?;
            fs::write(path, text)?;
        }
    }
    if check && differ {
        println!(
            "The public items are not those of docs/api; `cargo xtask api` accepts the change."
        );
    }
    Ok(!differ || !check)
}

/// Returns true if the line is an item of one of the modules, or an implementation for such an
/// item.
pub(crate) fn is_of(line: &str, modules: &[&str]) -> bool {
    let name = if line.starts_with("impl") {
        let of = line.rsplit_once(" for ").or_else(|| line.rsplit_once(' '));
        of.map_or("", |(_, name)| name)
    } else {
        // The kind and modifiers of the item precede its name.
        let head = line.split(['(', ':', '=']).next().unwrap_or_default();
        line.get(head.rfind(' ').map_or(0, |at| at + 1)..).unwrap_or_default()
    };
    modules.iter().any(|module| name.starts_with(module))
}

/// Returns the lists of removed libraries.
fn without_library(folder: &Path, texts: &BTreeMap<String, String>) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut gone = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.strip_suffix(".txt").is_some_and(|name| !texts.contains_key(name)) {
            gone.push(path);
        }
    }
    gone.sort();
    Ok(gone)
}

/// Returns the different items of two lists: `-` marks removed ones, `+` new ones.
fn differences(kept: &str, present: &str) -> String {
    let (kept, present): (BTreeSet<&str>, BTreeSet<&str>) =
        (kept.lines().collect(), present.lines().collect());
    let sign = |line| if present.contains(line) { '+' } else { '-' };
    let changed = kept.symmetric_difference(&present);
    changed.map(|line| format!("{} {line}\n", sign(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("serdes-one".to_owned(), text.to_owned())])
    }

    #[test]
    fn differences_have_the_items_of_one_text_alone() {
        let kept = "pub mod one\npub fn one::f(u8)\npub fn one::g()\n";
        let present = "pub mod one\npub fn one::f(u16)\npub fn one::g()\n";
        assert_eq!(differences(kept, present), "+ pub fn one::f(u16)\n- pub fn one::f(u8)\n");
        assert_eq!(differences(kept, kept), "");
    }

    #[test]
    fn is_of_knows_items_by_the_module_they_are_in() {
        let inside = [
            "pub mod one::made::v1",
            "#[non_exhaustive] pub struct one::made::A<T>",
            "pub one::made::A::field: one::B",
            "pub fn one::made::A::f(one::B) -> one::B",
            "pub const fn one::made::A::size() -> usize",
            "impl one::made::A",
            "impl core::fmt::Debug for one::made::A",
        ];
        let outside = [
            "pub mod one::made",
            "pub one::B::field: one::made::A",
            "pub fn one::f(one::made::A)",
            "impl core::convert::From<one::made::A> for one::B",
        ];
        let found = |line: &&str| is_of(line, &["one::made::"]);
        assert_eq!(inside.iter().filter(|line| !found(line)).collect::<Vec<_>>(), [&""; 0]);
        assert_eq!(outside.iter().filter(|line| found(line)).collect::<Vec<_>>(), [&""; 0]);
    }

    #[test]
    fn compare_fails_until_the_texts_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("api");
        let before = texts("pub mod one\n");
        assert!(!compare(&folder, &before, true).unwrap());
        assert!(compare(&folder, &before, false).unwrap());
        assert!(compare(&folder, &before, true).unwrap());
        assert!(!compare(&folder, &texts("pub mod two\n"), true).unwrap());
        assert_eq!(fs::read_to_string(folder.join("serdes-one.txt")).unwrap(), "pub mod one\n");
    }

    #[test]
    fn text_of_a_library_that_is_gone_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("serdes-gone.txt");
        fs::write(&gone, "pub mod gone\n").unwrap();
        let present = texts("pub mod one\n");
        fs::write(folder.path().join("serdes-one.txt"), "pub mod one\n").unwrap();
        assert!(!compare(folder.path(), &present, true).unwrap());
        assert!(gone.exists());
        assert!(compare(folder.path(), &present, false).unwrap());
        assert!(!gone.exists());
        assert!(compare(folder.path(), &present, true).unwrap());
    }
}
