//! Tests the dependencies between the library's modules and between crates: the tables in
//! `docs/architecture.md` equal the dependencies in the code and the manifests.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serdes_testkit::copies::root;

use crate::manifests;

/// Modules or crates by name, each with those that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Returns the rows of the first table of the page: `` | `module` | for | `used`, `used` | ``.
fn table() -> Uses {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let names =
                |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            let module: Vec<String> = names(cells[1]);
            (module.concat(), names(cells[3]).into_iter().collect())
        })
        .collect()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the text without comments and without code that is only compiled for tests.
fn without_tests(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut kept = String::new();
    let mut rest = code.as_str();
    while let Some(at) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find([';', '{']).unwrap_or(rest.len() - 1);
        let length = if rest[end..].starts_with('{') { end + block(&rest[end..]) } else { end + 1 };
        rest = &rest[length..];
    }
    kept + rest
}

/// Returns the length of the block in braces with which the text begins.
fn block(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

fn leading_name(text: &str) -> String {
    text.trim_start()
        .chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect()
}

/// Returns the modules at the root of the crate that the code names by `crate::`.
fn named_modules(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if !rest.starts_with('{') {
            names.insert(leading_name(rest));
            continue;
        }
        let group = &rest[1..block(rest) - 1];
        let mut depth = 0_usize;
        let top_level = group.split(|letter| {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            letter == ',' && depth == 0
        });
        names.extend(top_level.map(leading_name).filter(|name| !name.is_empty()));
    }
    names
}

/// Returns the dependencies in the code: for each folder or file of `src/`, the others that it
/// names.
fn code() -> Uses {
    let source = root().join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut modules = Uses::new();
    for path in files {
        let inside = path.strip_prefix(&source).unwrap();
        let module = inside.components().next().unwrap().as_os_str().to_str().unwrap();
        let module = module.trim_end_matches(".rs").to_owned();
        let is_test = inside.ancestors().any(|part| {
            part.file_stem()
                .and_then(|stem| stem.to_str())
                .is_some_and(|stem| stem.ends_with("tests"))
        });
        if module != "lib" && !is_test {
            let named = named_modules(&without_tests(&fs::read_to_string(&path).unwrap()));
            modules.entry(module).or_default().extend(named);
        }
    }
    let names: BTreeSet<String> = modules.keys().cloned().collect();
    for (module, used) in &mut modules {
        used.retain(|name| name != module && names.contains(name));
    }
    modules
}

#[test]
fn modules_use_each_other_as_the_page_says() {
    assert_eq!(code(), table(), "left: the code; right: the table in docs/architecture.md");
}

#[test]
fn modules_have_no_dependency_cycle() {
    let mut modules = table();
    // Removes modules without a remaining dependency; the rest is a cycle.
    while let Some(free) =
        modules.iter().find(|(_, used)| used.is_empty()).map(|(module, _)| module.clone())
    {
        modules.remove(&free);
        for used in modules.values_mut() {
            used.remove(&free);
        }
    }
    assert_eq!(modules, Uses::new(), "these modules use each other in a cycle");
}

/// Returns the rows of the page about crates that say what each uses.
fn crates_of_page() -> Uses {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `crates/"));
    rows.filter_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, _, uses, _] = cells[..] else { return None };
        let names = uses.split('`').skip(1).step_by(2);
        let mut used: BTreeSet<String> =
            names.filter_map(|name| name.strip_prefix("crates/")).map(str::to_owned).collect();
        used.extend(uses.contains("the library").then(|| "serdes".to_owned()));
        Some((name.trim_matches('`').strip_prefix("crates/")?.to_owned(), used))
    })
    .collect()
}

/// Returns the crates of the workspace that the crate's manifest depends on.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = root().join("crates").join(name).join("Cargo.toml");
    let text = fs::read_to_string(manifest).unwrap();
    let names = manifests::dependencies(&text, "[dependencies]").filter_map(|name| {
        if name == "serdes" { Some(name) } else { name.strip_prefix("serdes-") }
    });
    names.map(str::to_owned).collect()
}

#[test]
fn crates_depend_on_each_other_as_the_page_says() {
    let page = crates_of_page();
    assert!(page.len() > 8, "{page:#?}");
    let cargo: Uses = page.keys().map(|name| (name.clone(), dependencies(name))).collect();
    assert_eq!(cargo, page, "left: the manifests; right: the tables in docs/architecture.md");
}

#[test]
fn page_of_architecture_has_a_row_of_every_crate() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    for name in manifests::crates() {
        let row = format!("| `crates/{name}` | ");
        let rows = page.lines().filter(|line| line.starts_with(&row)).count();
        assert_eq!(rows, 1, "rows of crates/{name} in the tables of docs/architecture.md");
    }
}

#[test]
fn every_module_opens_with_its_contract() {
    for module in table().keys() {
        let folder = root().join("src").join(module);
        let file = Some(folder.join("mod.rs")).filter(|file| file.exists());
        let file = file.unwrap_or_else(|| folder.with_extension("rs"));
        let text = fs::read_to_string(&file).unwrap();
        let contract: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        assert!(
            contract.contains("does not depend on"),
            "{}: its first comment does not say what the module does not depend on",
            file.display()
        );
    }
}

#[test]
fn named_modules_leave_out_comments_and_tests() {
    let code = without_tests(
        "use crate::{a::{x, y}, b}; // crate::c\n#[cfg(test)]\nmod tests { use crate::d; }\n#[cfg(test)]\nmod more;\nfn f() { crate::e::g() }",
    );
    assert_eq!(named_modules(&code), ["a", "b", "e"].map(str::to_owned).into());
}

/// Returns the lints that the root of a crate denies.
fn denied(root_file: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(root_file)).unwrap();
    let denials = text.split("deny(").skip(1).filter_map(|rest| rest.split(')').next());
    let lints = denials.flat_map(|list| list.split(',')).map(|lint| lint.trim().to_owned());
    lints.filter(|lint| !lint.is_empty() && !lint.ends_with("disallowed_methods")).collect()
}

/// The roots of the crates that users run. (Lints of the workspace would also apply to tests and
/// benchmarks, which may panic.)
const SHIPPED: [&str; 25] = [
    "crates/abi/src/lib.rs",
    "crates/check/src/lib.rs",
    "crates/checkpoints/src/lib.rs",
    "crates/cli/src/lib.rs",
    "crates/device-state/src/lib.rs",
    "crates/doctor/src/lib.rs",
    "crates/files/src/lib.rs",
    "crates/graph-format/src/lib.rs",
    "crates/graph-index/src/lib.rs",
    "crates/graphs/src/lib.rs",
    "crates/host-memory/src/lib.rs",
    "crates/jax-artifacts/src/lib.rs",
    "crates/library-file/src/lib.rs",
    "crates/mlir-bytecode/src/lib.rs",
    "crates/operations/src/lib.rs",
    "crates/pjrt/src/lib.rs",
    "crates/plugin/src/lib.rs",
    "crates/proxy/src/lib.rs",
    "crates/python/src/lib.rs",
    "crates/report/src/lib.rs",
    "crates/stablehlo/src/lib.rs",
    "crates/stream-executor/src/lib.rs",
    "crates/tensors/src/lib.rs",
    "crates/version-registry/src/lib.rs",
    "crates/wire/src/lib.rs",
];

#[test]
fn every_crate_that_is_shipped_denies_the_same_panics() {
    let library = denied("src/lib.rs");
    for lint in ["expect_used", "indexing_slicing", "panic", "string_slice", "unwrap_used"] {
        assert!(library.contains(&format!("clippy::{lint}")), "{lint}");
    }
    for root_file in SHIPPED {
        assert_eq!(denied(root_file), library, "{root_file}");
    }
}
