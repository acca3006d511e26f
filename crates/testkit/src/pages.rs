//! Documentation pages with edits: applies their blocks of code to a copy of the sources.
//!
//! The text after a block's three backticks is its purpose: `diff FILE` has changed lines, with
//! context that occurs once in the file; `rust FILE` or `proto FILE` is a new file, or is appended
//! to an existing one.

use std::{fs, path::Path};

use crate::copies::{copy_directory, root};

/// Files that every copy has.
const COPIED: [&str; 4] = ["build.rs", "Cargo.lock", "versions.lock", "versions.toml"];

/// A block of code of a page.
pub struct Block {
    /// `rust`, `diff` or another language.
    pub language: String,
    /// Words after the language: a path, and for an entry the line.
    pub subject: Vec<String>,
    /// The lines of the block.
    pub text: String,
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// Returns the blocks of a page, without the indentation of lists.
pub fn blocks_of_page(page: &str) -> Vec<Block> {
    blocks_in(&read(page))
}

/// Returns the blocks of a section of a page, without the indentation of lists.
pub fn blocks(page: &str, heading: &str) -> Vec<Block> {
    let page = read(page);
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    blocks_in(section.split_once("\n## ").map_or(section, |(section, _)| section))
}

fn blocks_in(text: &str) -> Vec<Block> {
    let mut lines = text.lines();
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        let Some(head) = line.trim_start().strip_prefix("```") else { continue };
        let indentation = line.len() - line.trim_start().len();
        let content = lines.by_ref().take_while(|line| line.trim_start() != "```");
        let text = content.map(|line| format!("{}\n", line.get(indentation..).unwrap_or("")));
        let mut words = head.split(' ').map(str::to_owned);
        let language = words.next().unwrap();
        blocks.push(Block { language, subject: words.collect(), text: text.collect() });
    }
    blocks
}

/// Applies a change at the only place with its unchanged and old lines.
pub fn apply(file: &Path, change: &str) {
    let side = |dropped: char| -> String {
        let lines = change.lines().filter(|line| !line.starts_with(dropped));
        lines.map(|line| format!("{}\n", line.get(1..).unwrap_or_default())).collect()
    };
    let (before, after) = (side('+'), side('-'));
    let text = fs::read_to_string(file).unwrap();
    let places = text.matches(&before).count();
    assert_eq!(places, 1, "{}: the change fits {places} places:\n{change}", file.display());
    fs::write(file, text.replace(&before, &after)).unwrap();
}

/// Dependencies that the library's own tests do not use with the features in a page.
const OF_OTHERS: [&str; 6] =
    ["buffa", "criterion", "object_store", "peak_alloc", "quick-protobuf", "zip"];

/// Returns the manifest without other targets than the library, and without optimization levels,
/// which take longer than they save here.
fn manifest() -> String {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut table = "";
    let kept = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            table = line;
        }
        let package = line.split(['.', ' ']).next().unwrap_or_default();
        let is_of_others = table == "[dev-dependencies]" && OF_OTHERS.contains(&package);
        let is_dropped = ["[[test]]", "[[bench]]", "[[example]]"].contains(&table);
        !is_of_others && !is_dropped && !table.starts_with("[profile.")
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// Copies the sources and these directories to a folder, without other targets than the library.
pub fn copy_sources(to: &Path, directories: &[&str]) {
    for directory in directories {
        copy_directory(&root().join(directory), &to.join(directory));
    }
    for file in COPIED {
        fs::copy(root().join(file), to.join(file)).unwrap();
    }
    fs::write(to.join("Cargo.toml"), manifest()).unwrap();
}
