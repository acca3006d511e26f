//! What `docs/evolving.md` says of a new kind of sharding is what there is to do: the edits of the
//! page, made in a copy of the sources, give a library in which the program of the page does what
//! the page says.

mod copies;
mod protos;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use copies::{copy_directory, root};

/// What is edited, and what is built.
const COPIED: [&str; 4] = ["build.rs", "Cargo.lock", "versions.lock", "versions.toml"];
const COPIED_DIRECTORIES: [&str; 3] = ["src", "proto", "crates"];

/// A block of code of the page.
struct Block {
    /// `rust`, `diff` and so on.
    language: String,
    /// What stands behind it: a path, and for an entry the line.
    subject: Vec<String>,
    text: String,
}

/// The blocks of the section.
fn blocks() -> Vec<Block> {
    let page = fs::read_to_string(root().join("docs/evolving.md")).unwrap();
    let (_, section) = page.split_once("\n## A new kind of sharding, from end to end\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let parts: Vec<&str> = section.split("\n```").collect();
    let blocks = parts.iter().skip(1).step_by(2).map(|block| {
        let (head, text) = block.split_once('\n').unwrap();
        let mut words = head.split(' ').map(str::to_owned);
        let language = words.next().unwrap();
        Block { language, subject: words.collect(), text: format!("{text}\n") }
    });
    blocks.collect()
}

/// Puts an entry behind the others of the line.
fn add_entry(registry: &Path, line: &str, entry: &str) {
    let text = fs::read_to_string(registry).unwrap();
    let start = text.find(&format!("name = \"{line}\"")).unwrap();
    let end = text[start..].find("\n[[line]]\n").map_or(text.len(), |end| start + end + 1);
    fs::write(registry, format!("{}{entry}\n{}", &text[..end], &text[end..])).unwrap();
}

/// Makes the change where its unchanged and its old lines stand, which is in one place.
fn apply(file: &Path, change: &str) {
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

/// The sources that the edits of the page are made in.
fn sources(directory: &Path) -> PathBuf {
    let copy = directory.join("serdes");
    fs::create_dir_all(&copy).unwrap();
    for file in COPIED {
        fs::copy(root().join(file), copy.join(file)).unwrap();
    }
    for directory in COPIED_DIRECTORIES {
        copy_directory(&root().join(directory), &copy.join(directory));
    }
    // Tests, benches and examples are neither copied nor built.
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut is_kept = true;
    let kept = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            is_kept = !["[[test]]", "[[bench]]", "[[example]]"].contains(line);
        }
        is_kept
    });
    fs::write(copy.join("Cargo.toml"), kept.collect::<Vec<_>>().join("\n")).unwrap();
    copy
}

#[test]
fn a_new_kind_of_sharding_is_three_edits_and_a_message() {
    let directory = tempfile::tempdir().unwrap();
    let serdes = sources(directory.path());
    let program = directory.path().join("program");
    let mut expected = None;
    for Block { language, subject, text } in blocks() {
        let subject: Vec<&str> = subject.iter().map(String::as_str).collect();
        match (language.as_str(), &subject[..]) {
            ("toml", [registry, line]) => add_entry(&serdes.join(registry), line, &text),
            ("diff", [file]) => apply(&serdes.join(file), &text),
            ("rust", ["src/main.rs"]) => {
                fs::create_dir_all(program.join("src")).unwrap();
                fs::write(program.join("src/main.rs"), text).unwrap();
            }
            ("proto" | "rust", [file]) => {
                let file = serdes.join(file);
                assert!(!file.exists(), "{} is there already", file.display());
                fs::write(file, text).unwrap();
            }
            ("text", []) => expected = Some(text),
            other => panic!("{other:?}: no edit and no output"),
        }
    }
    protos::write(&serdes, &protos::generate(&serdes));
    let manifest = "[package]\nname = \"program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
                    serdes = { path = \"../serdes\", default-features = false }\n\n[workspace]\n";
    fs::write(program.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root().join("Cargo.lock"), program.join("Cargo.lock")).unwrap();

    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--quiet", "--offline", "--manifest-path"])
        .arg(program.join("Cargo.toml"))
        // A directory of its own: the one in use is locked by the cargo that runs this test.
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("evolving"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "", "what the page shows compiles without a warning");
    assert_eq!(Some(String::from_utf8_lossy(&output.stdout).into_owned()), expected);
}
