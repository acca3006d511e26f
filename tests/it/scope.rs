//! Tests the page of scope: `docs/scope.md` names every crate, and its line counts, like those in the
//! crates' READMEs, are close to those of the sources. No crate has more lines than the limit.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serdes_testkit::copies::root;

use crate::manifests;

/// Limit on the lines of a crate, without its tests and generated code.
const LARGEST_CRATE: usize = 25_000;

/// Returns true for `tests`, `test` and names that end with `_tests` or `_test`.
fn is_of_tests(name: &str) -> bool {
    let last = name.rsplit('_').next().unwrap_or_default();
    ["test", "tests"].contains(&last)
}

/// Returns the lines of Rust in a file or below a folder, without tests, generated code and the
/// paths in `except`.
fn lines(place: &Path, except: &[PathBuf]) -> usize {
    let stem = place.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_left_out = is_of_tests(stem) || ["generated", "target"].contains(&stem);
    if is_left_out || except.iter().any(|path| path == place) {
        return 0;
    }
    if place.is_dir() {
        let entries = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
        return entries.map(|path| lines(&path, except)).sum();
    }
    if place.extension().is_none_or(|extension| extension != "rs") {
        return 0;
    }
    let text = fs::read_to_string(place).unwrap();
    text.lines().take_while(|line| !matches!(*line, "mod tests {" | "mod test {")).count()
}

/// A row of the page.
struct Row<'a> {
    /// The paths between backticks; those that begin with `:!` are left out of the count.
    paths: Vec<&'a str>,
    /// The text of the count: `2,214`.
    count: &'a str,
}

impl Row<'_> {
    fn lines(&self) -> usize {
        let (except, counted): (Vec<&str>, Vec<&str>) =
            self.paths.iter().partition(|path| path.starts_with(":!"));
        let except: Vec<PathBuf> =
            except.iter().map(|path| root().join(path.trim_start_matches(":!"))).collect();
        counted.iter().map(|path| lines(&root().join(path), &except)).sum()
    }
}

/// Returns the rows of the page: `` | `path`, `path` | 2,214 | why | ``.
fn rows(page: &str) -> Vec<Row<'_>> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let paths = cells.next().unwrap_or_default().split('`').skip(1).step_by(2).collect();
        Row { paths, count: cells.next().unwrap_or_default() }
    })
    .collect()
}

/// Returns the number with commas between thousands.
fn written(number: usize) -> String {
    match number / 1000 {
        0 => number.to_string(),
        thousands => format!("{thousands},{:03}", number % 1000),
    }
}

/// Returns the page with the present count of each row.
fn counted_anew(page: &str) -> String {
    let mut rows = rows(page).into_iter();
    let line = |line: &str| match line.starts_with("| `").then(|| rows.next()).flatten() {
        Some(row) => {
            let (old, new) = (format!(" | {} | ", row.count), written(row.lines()));
            line.replacen(&old, &format!(" | {new} | "), 1) + "\n"
        }
        None => format!("{line}\n"),
    };
    page.lines().map(line).collect()
}

#[test]
fn counts_of_the_page_are_near_those_of_the_sources() {
    let path = root().join("docs/scope.md");
    let page = fs::read_to_string(&path).unwrap();
    if std::env::var_os("SERDES_REGENERATE_SCOPE").is_some() {
        fs::write(path, counted_anew(&page)).unwrap();
        return;
    }
    let rows = rows(&page);
    assert!(rows.len() > 25, "{} rows were found: this test reads the page wrongly", rows.len());
    for row in rows {
        let found: usize = row.count.replace(',', "").parse().unwrap();
        let present = row.lines();
        assert!(
            is_near(found, present),
            "the page counts {found} lines of {:?}, the sources have {present}; \
             `cargo xtask scope` writes the present counts",
            row.paths
        );
    }
}

/// Returns true if a count in a page is close enough to the present number of lines.
fn is_near(found: usize, present: usize) -> bool {
    found.abs_diff(present) <= present / 10 + 200
}

/// Returns the count in the README of a crate, and true if it includes tests: a line begins with
/// `14,300 lines with their tests`, or with `**Size**: about 4,300 lines without tests`.
fn count_of_readme(readme: &str) -> Option<(usize, bool)> {
    readme.lines().find_map(|line| {
        let (count, rest) = line.trim_start_matches("**Size**: about ").split_once(" lines ")?;
        let includes_tests = rest.starts_with("with their tests");
        let is_count = includes_tests || rest.starts_with("without tests");
        let count = count.replace(',', "").parse().ok()?;
        is_count.then_some((count, includes_tests))
    })
}

/// Returns the number of lines of Rust below a folder, with tests and generated code.
fn lines_with_tests(place: &Path) -> usize {
    if place.is_dir() {
        let entries = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
        return entries.map(|path| lines_with_tests(&path)).sum();
    }
    let is_rust = place.extension().is_some_and(|extension| extension == "rs");
    if is_rust { fs::read_to_string(place).unwrap().lines().count() } else { 0 }
}

#[test]
fn counts_of_readmes_are_near_those_of_the_sources() {
    let mut counted = 0;
    for name in manifests::crates() {
        let folder = root().join("crates").join(&name);
        let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
        let Some((found, includes_tests)) = count_of_readme(&readme) else { continue };
        let present = if includes_tests { lines_with_tests(&folder) } else { lines(&folder, &[]) };
        assert!(
            is_near(found, present),
            "the README of crates/{name} says {found} lines, and there are {present}"
        );
        counted += 1;
    }
    assert!(counted > 12, "{counted} READMEs have a count: this test reads them wrongly");
}

#[test]
fn page_of_scope_has_a_row_of_every_crate() {
    let page = fs::read_to_string(root().join("docs/scope.md")).unwrap();
    let rows = rows(&page);
    let named = |name: &String| {
        let path = format!("crates/{name}");
        rows.iter().any(|row| row.paths.contains(&path.as_str()))
    };
    let missing: Vec<String> =
        manifests::crates().into_iter().filter(|name| !named(name)).collect();
    assert!(missing.is_empty(), "docs/scope.md has no row of these crates: {missing:?}");
    let paths = rows.iter().flat_map(|row| &row.paths);
    let gone: Vec<&&str> =
        paths.filter(|path| !root().join(path.trim_start_matches(":!")).exists()).collect();
    assert!(gone.is_empty(), "docs/scope.md has rows of what is not there: {gone:?}");
}

#[test]
fn no_crate_is_larger_than_its_limit() {
    let mut sizes: Vec<(String, usize)> = manifests::crates()
        .into_iter()
        .map(|name| (format!("crates/{name}"), lines(&root().join("crates").join(name), &[])))
        .collect();
    sizes.push(("src".to_owned(), lines(&root().join("src"), &[])));
    for (name, size) in sizes {
        assert!(
            size <= LARGEST_CRATE,
            "{name} has {size} lines outside of its tests, {LARGEST_CRATE} are the most; \
             a part of it can be a crate of its own"
        );
    }
}

#[test]
fn lines_of_tests_and_generated_code_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("src/lib.rs", "a\nb\n#[cfg(test)]\nmod tests {\nc\n}\n");
    write("src/latest.rs", "d\n");
    write("src/parts/one.rs", "e\n");
    write("src/lib_tests.rs", "f\n");
    write("src/generated/g.rs", "g\n");
    write("tests/it/main.rs", "h\n");
    write("src/notes.txt", "i\n");
    assert_eq!(lines(folder.path(), &[]), 5);
    assert_eq!(lines(folder.path(), &[folder.path().join("src/parts")]), 4);
    assert_eq!(["12", "2,014", "12,345"].map(str::to_owned), [12, 2014, 12_345].map(written));
}
