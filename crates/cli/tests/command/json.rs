//! Tests that the objects of `--json` are those that `docs/cli.md` describes: every field on the
//! page is in the object, and every field of the object is on the page.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::testkit::{data, objects_of, root, text, tiny};

/// Returns the fields that the page documents for the object of a command: each `"name"` at the
/// outermost level of the first braces behind the command's name.
fn documented(name: &str) -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let entry = format!("- `{name}`");
    let rest = page.split_once(&entry).unwrap_or_else(|| panic!("docs/cli.md lists no {entry}")).1;
    let rest = rest.split("\n- ").next().unwrap();
    let mut fields = BTreeSet::new();
    let (mut depth, mut rest) = (0, &rest[rest.find('{').unwrap()..]);
    loop {
        let letter = rest.chars().next().unwrap();
        rest = &rest[letter.len_utf8()..];
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' if depth == 1 => return fields,
            '}' | ']' => depth -= 1,
            '"' => {
                let (word, behind) = rest.split_once('"').unwrap();
                rest = behind;
                // A value follows a colon or a bar.
                let is_field = depth == 1 && !behind.starts_with('|');
                if is_field {
                    fields.insert(word.to_owned());
                }
            }
            ':' => {
                // One value, or several separated by bars.
                let end = rest.find([',', '{', '[', '}']).unwrap();
                if !rest[..end].trim().is_empty() {
                    rest = &rest[end..];
                }
            }
            _ => {}
        }
    }
}

fn fields(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn the_page_describes_each_object_that_a_command_prints() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("a.sds");
    let (tiny, state) = (tiny(), text(&state));
    let model = data("tensorflow/sm/tf1_two");
    let layouts = root().join("crates/abi/layouts.json");
    let [old, new] =
        ["history/2.6.5", "history/2.8.4"].map(|s| format!("{}#{s}", layouts.display()));
    for (name, arguments) in [
        ("versions", &["versions"][..]),
        ("check", &["check", text(&model)]),
        ("explain", &["explain", "corrupt"]),
        ("config", &["config"]),
        ("check --against", &["check", text(&model), "--against", text(&model)]),
        ("inspect", &["inspect", text(&model)]),
        ("ops", &["ops", "2.12", "2.21"]),
        ("save", &["save", "--from", text(&tiny), "-o", state]),
        ("restore", &["restore", state]),
        ("diff", &["diff", state, text(&tiny)]),
        ("convert", &["convert", text(&tiny), state]),
        ("plugin check", &["plugin", "check", "host"]),
        ("plugin verify", &["plugin", "verify", "host"]),
        ("abi diff", &["abi", "diff", &old, &new]),
    ] {
        let found = objects_of(&[arguments, &["--json"]].concat());
        assert_eq!(fields(&found[0]), documented(name), "{name}: {}", found[0]);
    }
}

#[test]
fn json_page_describes_reasons_warnings_and_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    // versions { producer: 2474 min_consumer: 1400 }
    fs::write(folder.path().join("graph.pb"), [0x22, 6, 0x08, 0xaa, 0x13, 0x10, 0xf8, 0x0a])
        .unwrap();
    fs::write(folder.path().join("empty.pb"), []).unwrap();
    let found = objects_of(&["check", text(folder.path()), "--tensorflow", "2.12", "--json"]);
    let first = |name: &str| {
        found.iter().find_map(|object| object[name].get(0)).unwrap_or_else(|| panic!("no {name}"))
    };
    assert_eq!(fields(first("reasons")), documented("reasons"));
    assert_eq!(fields(first("warnings")), documented("warnings"));
    assert_eq!(fields(found.last().unwrap()), documented("summary"));
    let found = objects_of(&["check", text(folder.path()), "--tensorflow", "all", "--json"]);
    let releases = found.iter().find(|object| object["releases"].is_object()).unwrap();
    assert_eq!(fields(releases), documented("releases"));
}

#[cfg(target_os = "linux")]
#[test]
fn the_page_describes_what_a_library_says_of_itself() {
    let (_folder, library) = crate::testkit::stub("");
    let found = objects_of(&["plugin", "inspect", text(&library), "--json"]);
    assert_eq!(fields(&found[0]), documented("plugin inspect"));
}
