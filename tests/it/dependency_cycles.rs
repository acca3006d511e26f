//! Tests that crates and modules without dependency cycles between files stay so: files in a cycle
//! cannot be read one after the other.
//!
//! A file depends on another if it names an item of it, in a `use` or by its path. A re-export
//! (`pub use`) belongs to the file of the item; the re-exporting module depends on that file only
//! if it also uses the item.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serdes_testkit::copies::root;

/// The path of a module: the names from the root of its crate.
type Module = Vec<String>;

/// Crates without a cycle.
const CRATES: [&str; 28] = [
    "abi",
    "check",
    "checkpoints",
    "cli",
    "device-state",
    "doctor",
    "files",
    "graph-format",
    "graphs",
    "host-memory",
    "host-pjrt",
    "host-plugin",
    "jax-artifacts",
    "library-file",
    "mlir-bytecode",
    "operations",
    "pjrt",
    "plugin",
    "proxy",
    "python",
    "releases",
    "report",
    "stablehlo",
    "tensors",
    "testkit",
    "version-registry",
    "wire",
    "xtask",
];

/// Modules of the library without a cycle inside.
const MODULES: [&str; 3] = ["codec", "proto", "version"];

/// Crates with one intended cycle, and the files in it.
const CRATES_WITH_ONE_CYCLE: [(&str, &[&str]); 2] = [
    // The values of attributes are kept in an arena, and a list value is a range of the arena.
    ("graph-index", &["attributes/arena", "attributes/value"]),
    // Device memory comes from an allocator, which gets its own memory from the device; a plug-in
    // keeps its devices, and they keep the plug-in.
    ("stream-executor", &["best_fit/allocator", "device/handle", "device/memory", "plugin_inner"]),
];

/// Modules with one intended cycle, and the files in it.
const MODULES_WITH_ONE_CYCLE: [(&str, &[&str]); 1] = [
    // A value of another kind than requested is distinguished from one of no known kind: the kinds
    // look into the list of all kinds, which contains them.
    ("ifrt", &["ifrt/kinds", "ifrt/registry"]),
];

/// Contents of a file: its code, and its re-exports by name; empty for a file of another crate.
struct Source {
    code: String,
    handed_on: BTreeMap<String, Option<Module>>,
}

/// An import of a `use`: its path, its name, and whether it is re-exported.
struct Import {
    path: Module,
    name: String,
    is_handed_on: bool,
}

/// Returns the text without comments, code that is only compiled for tests, string literals, and
/// visibilities, which are not dependencies.
fn code_of(text: &str) -> String {
    // A module of tests inside a file ends the file.
    let is_inside = |at: &usize| {
        let line = text[*at..].lines().nth(1).unwrap_or_default();
        line.contains("mod ") && line.ends_with('{')
    };
    let end = text.match_indices("#[cfg(test)]\n").map(|(at, _)| at).find(is_inside);
    let text = &text[..end.unwrap_or(text.len())];
    let mut code = String::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        code.extend(line.split('"').step_by(2));
        code.push('\n');
    }
    let mut without_visibilities = String::new();
    for (number, part) in code.split("pub(in ").enumerate() {
        if number == 0 {
            without_visibilities.push_str(part);
        } else {
            without_visibilities.push_str("pub");
            without_visibilities.push_str(part.split_once(')').map_or("", |cut| cut.1));
        }
    }
    without_visibilities
}

/// Finds the modules below a folder of sources, except those of tests.
fn modules(folder: &Path, module: &[String], found: &mut BTreeMap<Module, Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut inside = module.to_vec();
        if !["mod", "lib", "main"].contains(&name.as_str()) {
            inside.push(name.clone());
        }
        if name.ends_with("tests") || name == "testing" || name == "generated" {
            continue;
        }
        if path.is_dir() {
            modules(&path, &inside, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let code = code_of(&fs::read_to_string(&path).unwrap());
            found.insert(inside, Source { code, handed_on: BTreeMap::new() });
        }
    }
}

/// Finds the paths in a tree of imports, `a::{b, c::d}`, with the name that each gets.
fn leaves(tree: &str, before: &[String], found: &mut Vec<(Module, String)>) {
    let (mut depth, mut begin) = (0_usize, 0);
    let mut branches = Vec::new();
    for (at, letter) in tree.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                branches.push(&tree[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    branches.push(&tree[begin..]);
    for branch in branches.into_iter().map(str::trim).filter(|branch| !branch.is_empty()) {
        let mut path = before.to_vec();
        let (head, group) = match branch.split_once('{') {
            Some((head, group)) => (head, group.strip_suffix('}')),
            None => (branch, None),
        };
        let (head, alias) = head.split_once(" as ").unwrap_or((head, ""));
        path.extend(head.split("::").map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned));
        match group {
            Some(group) => leaves(group, &path, found),
            None => {
                if path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                let last = path.last().cloned().unwrap_or_default();
                found.push((path, if alias.is_empty() { last } else { alias.trim().to_owned() }));
            }
        }
    }
}

/// Returns the imports of the code, and the code without them and without declarations of modules.
fn imports(code: &str) -> (Vec<Import>, String) {
    let (mut found, mut rest) = (Vec::new(), String::new());
    for statement in code.split_inclusive(';') {
        let is_import = |at: &usize| {
            let before = statement[..*at].trim_end();
            before.is_empty()
                || before.ends_with(['}', ')', ']', '{', '\n'])
                || before.ends_with("pub")
        };
        let at = statement.match_indices("use ").map(|(at, _)| at).filter(is_import).last();
        let Some(at) = at else {
            // The declaration of a submodule is not a use of it.
            let is_module = statement.split_whitespace().rev().nth(1) == Some("mod");
            rest.push_str(if is_module { "" } else { statement });
            continue;
        };
        let before = &statement[..at];
        rest.push_str(before);
        let is_handed_on = before.trim_end().ends_with(['b', ')']);
        let tree = statement[at + "use ".len()..].trim_end_matches(';');
        let mut brought = Vec::new();
        leaves(tree, &[], &mut brought);
        found.extend(brought.into_iter().map(|(path, name)| Import { path, name, is_handed_on }));
    }
    (found, rest)
}

/// Returns the paths in the code that begin with `crate`, `super` or one of these submodules.
fn spots(code: &str, inside: &[&str]) -> Vec<Module> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut found = Vec::new();
    for begin in ["crate", "super"].iter().chain(inside) {
        for (at, _) in code.match_indices(&format!("{begin}::")) {
            if code[..at].ends_with(|letter: char| is_name(letter) || letter == ':') {
                continue;
            }
            let end = code[at..].find(|letter: char| !is_name(letter) && letter != ':');
            let path = &code[at..end.map_or(code.len(), |end| at + end)];
            // A tree of imports continues behind it.
            if !path.ends_with(':') {
                found.push(path.split("::").map(str::to_owned).collect());
            }
        }
    }
    found
}

/// Returns the path from the root of the crate; `None` for a path of another crate.
fn absolute(path: &[String], module: &Module, all: &BTreeMap<Module, Source>) -> Option<Module> {
    let mut from = module.clone();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => {
            from.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|name| name == "super") {
                from.pop()?;
                rest = &rest[1..];
            }
        }
        // A submodule of this one.
        name => {
            let inside = [module.as_slice(), &[name.to_owned()]].concat();
            all.contains_key(&inside).then_some(())?;
        }
    }
    from.extend_from_slice(rest);
    Some(from)
}

/// Returns true if the code has the word.
fn has_word(code: &str, word: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    code.split(|letter| !is_name(letter)).any(|found| found == word)
}

/// Returns the file of the item that a path names.
fn home(path: &Module, all: &BTreeMap<Module, Source>, steps: usize) -> Option<Module> {
    let length = (0..=path.len()).rev().find(|length| all.contains_key(&path[..*length]))?;
    let module = path[..length].to_vec();
    let handed_on = path.get(length).and_then(|name| all[&module].handed_on.get(name));
    match handed_on {
        Some(None) => None,
        Some(Some(there)) if steps > 0 => {
            let there = [there.as_slice(), &path[length + 1..]].concat();
            home(&there, all, steps - 1)
        }
        _ => Some(module),
    }
}

/// Returns the files of a crate that are in a cycle, with the files of the cycle that they depend
/// on.
fn cycles(sources: &Path, within: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    modules(sources, &[], &mut all);
    assert!(!all.is_empty(), "there are no sources in {}", sources.display());
    let names: Vec<Module> = all.keys().cloned().collect();
    for module in &names {
        let (brought, _) = imports(&all[module].code);
        let handed_on = brought.into_iter();
        let handed_on = handed_on.map(|it| (it.name, absolute(&it.path, module, &all))).collect();
        all.get_mut(module).unwrap().handed_on = handed_on;
    }
    let mut knows: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for module in names.iter().filter(|module| module.starts_with(within)) {
        let inside =
            names.iter().filter(|name| name.split_last().is_some_and(|(_, m)| m == module));
        let inside: Vec<&str> = inside.filter_map(|name| Some(name.last()?.as_str())).collect();
        let (brought, rest) = imports(&all[module].code);
        let used = brought.into_iter().filter(|it| !it.is_handed_on || has_word(&rest, &it.name));
        let named = used.map(|it| it.path).chain(spots(&rest, &inside));
        let homes = named.filter_map(|path| home(&absolute(&path, module, &all)?, &all, 9));
        let others = homes.filter(|other| other != module && other.starts_with(within));
        knows.insert(module.clone(), others.collect());
    }
    // Removes files that depend on no remaining file, and files on which no remaining file depends.
    loop {
        let known: BTreeSet<Module> = knows.values().flatten().cloned().collect();
        let left = |module: &Module, others: &BTreeSet<Module>| {
            !others.is_empty() && known.contains(module)
        };
        let free: Vec<Module> = knows
            .iter()
            .filter(|(module, others)| !left(module, others))
            .map(|(module, _)| module.clone())
            .collect();
        if free.is_empty() {
            break;
        }
        for module in &free {
            knows.remove(module);
            for others in knows.values_mut() {
                others.remove(module);
            }
        }
    }
    let shown = |module: Module| module.join("/");
    knows
        .into_iter()
        .map(|(m, others)| (shown(m), others.into_iter().map(shown).collect()))
        .collect()
}

#[test]
fn crates_have_no_dependency_cycle_between_files() {
    for name in CRATES {
        let found = cycles(&root().join("crates").join(name).join("src"), &[]);
        assert!(found.is_empty(), "crates/{name}: {found:#?}");
    }
    for (name, files) in CRATES_WITH_ONE_CYCLE {
        let found = cycles(&root().join("crates").join(name).join("src"), &[]);
        assert!(found.keys().eq(files), "crates/{name}: {found:#?}");
    }
}

#[test]
fn modules_have_no_dependency_cycle_between_files() {
    for module in MODULES {
        let found = cycles(&root().join("src"), &[module.to_owned()]);
        assert!(found.is_empty(), "src/{module}: {found:#?}");
    }
    for (module, files) in MODULES_WITH_ONE_CYCLE {
        let found = cycles(&root().join("src"), &[module.to_owned()]);
        assert!(found.keys().eq(files), "src/{module}: {found:#?}");
    }
}

#[test]
fn cycle_through_a_reexport_is_found() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dependency-cycles");
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("lib.rs", "mod a;\nmod b;\nmod c;\n\npub use a::A;\n");
    write("a.rs", "use crate::b::B;\n\npub struct A(B);\n");
    write("c.rs", "// crate::a\npub struct C;\n");
    write("b.rs", "use super::c::C;\n\npub struct B(C);\n");
    assert_eq!(cycles(&folder, &[]), BTreeMap::new());
    write("b.rs", "pub struct B(Option<Box<crate::A>>);\n");
    let found: Vec<String> = cycles(&folder, &[]).into_keys().collect();
    assert_eq!(found, ["a", "b"]);
    // A re-export is not a dependency, unless the file also uses the item.
    write("b.rs", "pub(in crate::a) struct B(crate::Own);\n");
    write("lib.rs", "mod a;\nmod b;\nmod c;\n\npub use a::A;\npub struct Own;\n");
    assert_eq!(cycles(&folder, &[]), BTreeMap::new());
    write("lib.rs", "mod a;\nmod b;\nmod c;\n\npub use a::A;\npub struct Own(Box<A>);\n");
    let found: Vec<String> = cycles(&folder, &[]).into_keys().collect();
    assert_eq!(found, ["", "a", "b"]);
}
