//! Files that know each other in a circle cannot be read one after the other. The crates and rooms
//! that have no such circle keep it so.
//!
//! A file knows another if it names something of it, in a `use` or on the spot; what a module hands
//! on (`pub use`) counts as its own file's.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The path of a module: names from the root of its crate on.
type Module = Vec<String>;

/// Crates without a circle.
const CRATES: [&str; 5] = ["cli", "host-memory", "python", "version-registry", "xtask"];

/// Rooms of the library without a circle inside of them.
const ROOMS: [&str; 6] = ["codec", "proto", "storage", "tensor_io", "trips", "version"];

/// What is in a file: its code, and what it hands on by name.
struct Source {
    code: String,
    handed_on: BTreeMap<String, Module>,
}

/// The text without comments, without what is only compiled for tests, and without what stands in
/// quotes.
fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut code = String::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        code.extend(line.split('"').step_by(2));
        code.push('\n');
    }
    code
}

/// The modules below a folder of sources, but for those of tests.
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

/// The paths of a tree of imports, `a::{b, c::d}`, with the name under which each is known.
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

/// What the code imports, with the names it gives.
fn imports(code: &str) -> Vec<(Module, String)> {
    let mut found = Vec::new();
    for statement in code.split(';') {
        let is_import = |at: &usize| {
            let before = statement[..*at].trim_end();
            before.is_empty()
                || before.ends_with(['}', ')', ']', '{', '\n'])
                || before.ends_with("pub")
        };
        let at = statement.match_indices("use ").map(|(at, _)| at).filter(is_import).last();
        if let Some(at) = at {
            leaves(&statement[at + "use ".len()..], &[], &mut found);
        }
    }
    found
}

/// The paths on the spot that begin with `crate`, `super` or one of these modules inside.
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
            // A tree of imports goes on behind it.
            if !path.ends_with(':') {
                found.push(path.split("::").map(str::to_owned).collect());
            }
        }
    }
    found
}

/// The path from the root of the crate on; nothing for another crate's.
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
        // A module inside of this one.
        name => {
            let inside = [module.as_slice(), &[name.to_owned()]].concat();
            all.contains_key(&inside).then_some(())?;
        }
    }
    from.extend_from_slice(rest);
    Some(from)
}

/// The file that what is named by a path is in.
fn home(path: &Module, all: &BTreeMap<Module, Source>, steps: usize) -> Option<Module> {
    let length = (0..=path.len()).rev().find(|length| all.contains_key(&path[..*length]))?;
    let module = path[..length].to_vec();
    let handed_on = path.get(length).and_then(|name| all[&module].handed_on.get(name));
    match handed_on {
        Some(there) if steps > 0 => {
            let there = [there.as_slice(), &path[length + 1..]].concat();
            home(&there, all, steps - 1)
        }
        _ => Some(module),
    }
}

/// Of the sources of a crate, those that know each other in a circle, with what they know of these.
fn circles(sources: &Path, room: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    modules(sources, &[], &mut all);
    assert!(!all.is_empty(), "there are no sources in {}", sources.display());
    let names: Vec<Module> = all.keys().cloned().collect();
    for module in &names {
        let named = imports(&all[module].code);
        let handed_on = named
            .into_iter()
            .filter_map(|(path, name)| Some((name, absolute(&path, module, &all)?)));
        let handed_on: BTreeMap<String, Module> = handed_on.collect();
        all.get_mut(module).unwrap().handed_on = handed_on;
    }
    let mut knows: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for module in names.iter().filter(|module| module.starts_with(room)) {
        let code = &all[module].code;
        let inside =
            names.iter().filter(|name| name.split_last().is_some_and(|(_, m)| m == module));
        let inside: Vec<&str> = inside.filter_map(|name| Some(name.last()?.as_str())).collect();
        let named = imports(code).into_iter().map(|(path, _)| path).chain(spots(code, &inside));
        let homes = named.filter_map(|path| home(&absolute(&path, module, &all)?, &all, 9));
        let others = homes.filter(|other| other != module && other.starts_with(room));
        knows.insert(module.clone(), others.collect());
    }
    // Takes away what knows nobody that is left, and whom nobody that is left knows.
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn no_files_of_these_crates_know_each_other_in_a_circle() {
    for name in CRATES {
        let found = circles(&root().join("crates").join(name).join("src"), &[]);
        assert!(found.is_empty(), "crates/{name}: {found:#?}");
    }
}

#[test]
fn no_files_of_these_rooms_know_each_other_in_a_circle() {
    for room in ROOMS {
        let found = circles(&root().join("src"), &[room.to_owned()]);
        assert!(found.is_empty(), "src/{room}: {found:#?}");
    }
}

#[test]
fn a_circle_is_found_through_what_a_module_hands_on() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("circles");
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("lib.rs", "mod a;\nmod b;\nmod c;\n\npub use a::A;\n");
    write("a.rs", "use crate::b::B;\n\npub struct A(B);\n");
    write("c.rs", "// crate::a\npub struct C;\n");
    write("b.rs", "use super::c::C;\n\npub struct B(C);\n");
    assert_eq!(circles(&folder, &[]), BTreeMap::new());
    write("b.rs", "pub struct B(Option<Box<crate::A>>);\n");
    let found: Vec<String> = circles(&folder, &[]).into_keys().collect();
    assert_eq!(found, ["a", "b"]);
}
