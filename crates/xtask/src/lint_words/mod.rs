//! The lint of wording: `cargo xtask lint-words [--lower | --record] [PATH ...]`.
//!
//! It reads comments and identifiers of all Rust files of the workspace, the pages of `docs`, each
//! README, and the names of all files. Findings are doc comments whose first sentence has no
//! subject, documentation of public functions that begins with a noun, vague words, and the private
//! words of `crates/xtask/terms.toml`.
//! `crates/xtask/words.toml`, if it exists, has the number of known findings per file: the lint
//! fails if a file has more. `--lower` writes counts that became smaller; `--record` writes all
//! counts, for moved or merged files.

mod baseline;
mod comments;
mod rules;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use baseline::{Comparison, Counts};
use rules::{Finding, Terms};

/// Path of the terms, relative to the workspace's root.
const TERMS: &str = "crates/xtask/terms.toml";
/// Path of the baseline, relative to the workspace's root. Removed once there are no known
/// findings.
const BASELINE: &str = "crates/xtask/words.toml";

/// Option that writes all counts.
const RECORD: &str = "--record";
/// Options that write the baseline.
const OPTIONS: [&str; 2] = ["--lower", RECORD];

/// Runs the lint over the workspace at `root`. With paths, prints all findings in these, known or
/// not, and compares only their counts with the baseline.
///
/// Returns true if no file has more findings than the baseline says.
///
/// # Errors
///
/// If a file cannot be read, or the terms or the baseline cannot be parsed.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let (options, paths): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| argument.starts_with("--"));
    if let Some(unknown) = options.iter().find(|option| !OPTIONS.contains(&option.as_str())) {
        return Err(format!("unknown option {unknown}; there are {}", OPTIONS.join(" and ")));
    }
    if !options.is_empty() && !paths.is_empty() {
        return Err("the baseline is of the whole workspace: leave out the paths".to_owned());
    }
    let is_recorded = options.iter().any(|option| *option == RECORD);
    let terms = read_terms(root)?;
    let mut known = read_baseline(root)?;
    let mut files = Vec::new();
    if paths.is_empty() {
        collect(root, &mut files)?;
    } else {
        for path in &paths {
            let path = root.join(path.trim_end_matches('/'));
            collect(&path, &mut files)?;
        }
        known.retain(|known, _| paths.iter().any(|path| Path::new(known).starts_with(path)));
    }
    files.sort();
    let mut found = Counts::new();
    for file in files {
        let name = name(root, &file);
        let findings = findings(&terms, &file, &name)?;
        let is_new = !is_recorded && findings.len() > known.get(&name).copied().unwrap_or_default();
        if is_new || !paths.is_empty() {
            for Finding { line, message } in &findings {
                println!("{name}:{line}: {message}");
            }
        }
        if !findings.is_empty() {
            found.insert(name, findings.len());
        }
    }
    if is_recorded {
        known.clone_from(&found);
    }
    let comparison = Comparison::new(&found, &known);
    if !options.is_empty() {
        write_baseline(root, &baseline::lowered(&found, &known))?;
    } else {
        for (name, found, known) in &comparison.shrunk {
            println!("{name}: {found} findings, {known} known: run cargo xtask lint-words --lower");
        }
    }
    for (name, found, known) in &comparison.grown {
        println!("{name}: {found} findings, {known} known: reword the new ones");
    }
    let total: usize = found.values().sum();
    println!("{total} findings in {} files", found.len());
    Ok(comparison.grown.is_empty())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn read_terms(root: &Path) -> Result<Terms, String> {
    let table: toml::Table =
        read(&root.join(TERMS))?.parse().map_err(|error| format!("{TERMS}: {error}"))?;
    let row = |(word, term): (String, toml::Value)| match term {
        toml::Value::String(term) => Ok((word, term)),
        other => Err(format!(
            "{TERMS}: `{word}` has a value of type {}, and needs a string",
            other.type_str()
        )),
    };
    table.into_iter().map(row).collect::<Result<_, _>>().map(Terms)
}

fn read_baseline(root: &Path) -> Result<Counts, String> {
    match fs::read_to_string(root.join(BASELINE)) {
        Ok(text) => baseline::parse(&text).map_err(|error| format!("{BASELINE}: {error}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Counts::new()),
        Err(error) => Err(format!("{BASELINE}: {error}")),
    }
}

/// Writes the baseline, or removes it if it is empty.
fn write_baseline(root: &Path, counts: &Counts) -> Result<(), String> {
    let path = root.join(BASELINE);
    let done = match (counts.is_empty(), path.exists()) {
        (true, false) => Ok(()),
        (true, true) => fs::remove_file(&path),
        (false, _) => fs::write(&path, baseline::format(counts)),
    };
    done.map_err(|error| format!("{BASELINE}: {error}"))
}

/// Returns the findings of a file with the relative path `name`: those of the name, and those of
/// its text if it is read.
fn findings(terms: &Terms, file: &Path, name: &str) -> Result<Vec<Finding>, String> {
    let mut findings: Vec<_> = terms.in_path(name).into_iter().collect();
    if is_read(file) {
        let text = read(file)?;
        let is_rust = file.extension().is_some_and(|extension| extension == "rs");
        findings.extend(if is_rust { terms.in_rust(&text) } else { terms.in_markdown(&text) });
    }
    Ok(findings)
}

/// Returns the path of a file from the root, with slashes on every system.
fn name(root: &Path, file: &Path) -> String {
    let parts = file.strip_prefix(root).unwrap_or(file).components();
    parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Adds the files at `path`, without following links, and without generated folders, build results
/// and hidden folders other than `.ci`.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let kind = fs::symlink_metadata(path).map_err(failed)?.file_type();
    if kind.is_file() {
        files.push(path.to_owned());
    } else if kind.is_dir() {
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_hidden = name.starts_with('.') && name != ".ci";
            if !is_hidden && name != "target" && name != "generated" {
                collect(&entry.path(), files)?;
            }
        }
    }
    Ok(())
}

/// Returns true for Rust files, pages in a folder `docs`, and READMEs.
fn is_read(path: &Path) -> bool {
    let is = |extension: &str| path.extension().is_some_and(|other| other == extension);
    is("rs")
        || path.file_name().is_some_and(|name| name == "README.md")
        || (is("md") && path.components().any(|part| part.as_os_str() == "docs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a workspace of these files, and a list of terms without a row.
    fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files.iter().chain(&[(TERMS, "")]) {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn lint(folder: &tempfile::TempDir, arguments: &[&str]) -> Result<bool, String> {
        let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        run(folder.path(), &arguments)
    }

    #[test]
    fn known_findings_pass_and_new_ones_do_not() {
        let files = [("src/a.rs", "/// What a.\n"), (BASELINE, "\"src/a.rs\" = 1\n")];
        let folder = workspace(&files);
        assert_eq!(lint(&folder, &[]), Ok(true));
        fs::write(folder.path().join("src/a.rs"), "/// What a.\nx\n// nobody\n").unwrap();
        assert_eq!(lint(&folder, &[]), Ok(false));
        assert_eq!(lint(&folder, &["src"]), Ok(false));
        assert_eq!(lint(&folder, &["crates"]), Ok(true));
    }

    #[test]
    fn lowering_never_raises_and_removes_what_is_empty() {
        let known = "\"a.rs\" = 2\n\"b.rs\" = 1\n";
        let folder = workspace(&[("a.rs", "/// What.\n"), ("b.rs", ""), (BASELINE, known)]);
        assert_eq!(lint(&folder, &["--lower"]), Ok(true));
        assert_eq!(read_baseline(folder.path()).unwrap(), Counts::from([("a.rs".to_owned(), 1)]));
        fs::write(folder.path().join("a.rs"), "// nobody\n/// What.\n").unwrap();
        assert_eq!(lint(&folder, &["--lower"]), Ok(false));
        assert_eq!(read_baseline(folder.path()).unwrap()["a.rs"], 1);
        fs::write(folder.path().join("a.rs"), "").unwrap();
        assert_eq!(lint(&folder, &["--lower"]), Ok(true));
        assert!(!folder.path().join(BASELINE).exists());
    }

    #[test]
    fn recording_writes_the_counts_as_they_are() {
        let folder = workspace(&[("a.rs", "/// What.\n"), (BASELINE, "\"gone.rs\" = 2\n")]);
        assert_eq!(lint(&folder, &["--record"]), Ok(true));
        assert_eq!(read_baseline(folder.path()).unwrap(), Counts::from([("a.rs".to_owned(), 1)]));
    }

    #[test]
    fn build_results_and_generated_code_are_not_read() {
        let bad = "/// What a.\n";
        let folder = workspace(&[
            ("target/a.rs", bad),
            ("src/generated/b.rs", bad),
            (".cache/c.rs", bad),
            ("CHANGELOG.md", "nobody"),
            ("data.txt", "nobody"),
        ]);
        assert_eq!(lint(&folder, &[]), Ok(true));
        for read in ["README.md", "docs/a.md", "docs/b/c.md", "x.rs"] {
            let folder = workspace(&[(read, "// nobody\n")]);
            assert_eq!(lint(&folder, &[]), Ok(false), "{read}");
        }
    }

    #[test]
    fn names_of_files_are_read_whatever_is_in_them() {
        let lint = |name: &str| {
            let folder = workspace(&[(name, "")]);
            fs::write(folder.path().join(TERMS), "habits = \"faults\"").unwrap();
            run(folder.path(), &[])
        };
        for name in [".ci/habits", "tests/interop/habits.py", "src/habits/mod.rs"] {
            assert_eq!(lint(name), Ok(false), "{name}");
        }
        for name in ["target/habits.py", ".git/habits", "src/habit.rs"] {
            assert_eq!(lint(name), Ok(true), "{name}");
        }
    }

    #[test]
    fn mistakes_of_the_caller_are_errors() {
        let folder = workspace(&[(BASELINE, "a = \"b\"\n")]);
        assert!(lint(&folder, &["--raise"]).unwrap_err().contains("--raise"));
        assert!(lint(&folder, &["--lower", "src"]).unwrap_err().contains("whole workspace"));
        assert!(lint(&folder, &[]).unwrap_err().contains(BASELINE));
        let folder = workspace(&[]);
        assert!(lint(&folder, &["missing"]).unwrap_err().contains("missing"));
        fs::write(folder.path().join(TERMS), "a = 1\n").unwrap();
        assert!(lint(&folder, &[]).unwrap_err().contains(TERMS));
    }
}
