//! Lists the public items of each published library: `cargo xtask api [--check]`.
//!
//! rustdoc writes the items as JSON, whose format changes with Rust: the lists are made with one
//! release. Built only with the feature `api`, so that other tasks do not compile the JSON reader.

use std::{
    collections::BTreeMap,
    error::Error,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

use crate::api_texts;

/// The Rust release whose JSON the `public-api` of `Cargo.toml` reads, and that `.ci/run` uses.
const RUST: &str = "1.95";

/// Modules generated from other files of the repository, where changes of them are visible.
const GENERATED: [&str; 2] = ["serdes::proto::", "serdes_abi::pjrt::args::"];

/// Output of `cargo metadata`.
#[derive(Deserialize)]
struct Workspace {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    /// Permitted registries; empty if it is never published.
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Writes the lists, or with `--check` compares them. Returns true if they match the code.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<bool, Box<dyn Error>> {
    let check = match arguments {
        [] => false,
        [argument] if argument == "--check" => true,
        others => {
            return Err(format!("found the arguments {others:?}; expected none or --check").into());
        }
    };
    let found = output(Command::new("rustc").arg("--version"))?;
    if !found.starts_with(&format!("rustc {RUST}.")) {
        return Err(format!(
            "found {}; expected rustc {RUST}, whose JSON is read here; `cargo +{RUST} xtask api` has it \
             (`rustup toolchain install {RUST}`)",
            found.trim()
        )
        .into());
    }
    let metadata = ["metadata", "--no-deps", "--locked", "--format-version", "1"];
    let workspace = output(Command::new("cargo").args(metadata).current_dir(root))?;
    let workspace: Workspace = serde_json::from_str(&workspace)?;
    document(root)?;
    let mut texts = BTreeMap::new();
    for (name, library) in workspace.packages.iter().filter_map(library) {
        let json = workspace.target_directory.join("doc").join(format!("{library}.json"));
        texts.insert(name.to_owned(), text(&json)?);
    }
    Ok(api_texts::compare(&root.join("docs/api"), &texts, check)?)
}

/// Returns the names of a package and its library, if it is published and has a usable library.
fn library(package: &Package) -> Option<(&str, String)> {
    if package.publish.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    let is_library = |target: &&Target| target.kind.iter().any(|kind| kind == "lib");
    let target = package.targets.iter().find(is_library)?;
    Some((&package.name, target.name.replace('-', "_")))
}

/// Runs rustdoc to write the JSON of every library, with all features.
fn document(root: &Path) -> Result<(), Box<dyn Error>> {
    let mut cargo = Command::new("cargo");
    cargo.args([
        "doc",
        "--quiet",
        "--workspace",
        "--lib",
        "--all-features",
        "--no-deps",
        "--locked",
    ]);
    // An option for rustdoc only: one for all of Cargo would rerun build scripts that read it, and
    // recompile their dependents.
    cargo.env("RUSTDOC", root.join(".ci/rustdoc-json").canonicalize()?);
    // With these flags Cargo distinguishes this documentation from the HTML pages.
    cargo.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json --cap-lints allow");
    output(cargo.current_dir(root)).map(drop)
}

/// Lists the items of a library, one per line, without generated modules, and without blanket, auto
/// and derived implementations.
fn text(json: &Path) -> Result<String, Box<dyn Error>> {
    let items = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| format!("{} cannot be read: {error}", json.display()))?;
    let items = items.items().map(|item| format!("{item}\n"));
    Ok(items.filter(|line| !api_texts::is_of(line, &GENERATED)).collect())
}

/// Returns the standard output of a successful command; its errors go to standard error.
fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
