//! Tests that the steps in `docs/evolving.md` for a new kind of sharding and for a type of no
//! family are complete: with the page's edits in a copy of the sources, the programs of the page
//! behave as described.

use std::{fs, path::Path};

use serdes_testkit::{
    copies::{cargo, workplace},
    pages::{Block, apply, blocks, copy_sources},
    protos,
};

use crate::scratch;

/// Appends an entry to the line.
fn add_entry(registry: &Path, line: &str, entry: &str) {
    let text = fs::read_to_string(registry).unwrap();
    let start = text.find(&format!("name = \"{line}\"")).unwrap();
    let end = text[start..].find("\n[[line]]\n").map_or(text.len(), |end| start + end + 1);
    fs::write(registry, format!("{}{entry}\n{}", &text[..end], &text[end..])).unwrap();
}

/// Makes the edits of a section in the copy of the sources, and returns what its program prints.
fn follow(section: &str, serdes: &Path, program: &Path) -> Option<String> {
    let mut expected = None;
    for Block { language, subject, text } in blocks("docs/evolving.md", section) {
        let subject: Vec<&str> = subject.iter().map(String::as_str).collect();
        match (language.as_str(), &subject[..]) {
            ("toml", [registry, line]) => add_entry(&serdes.join(registry), line, &text),
            ("diff", [file]) => apply(&serdes.join(file), &text),
            ("rust", [file @ ("src/main.rs" | "src/bin/checksum.rs")]) => {
                let file = program.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
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
    expected
}

#[test]
#[ignore = "compiles a copy of the sources; `.ci/run copies` runs it"]
fn new_sharding_and_new_type_take_three_edits_and_a_message() {
    let folder = workplace(scratch(), "evolving");
    let [serdes, program] = ["serdes", "program"].map(|name| folder.join(name));
    copy_sources(&serdes, &["src", "proto", "crates", "tests/it"]);
    let expected = [
        ("program", "A new kind of sharding, from end to end"),
        ("checksum", "A type of no family, from end to end"),
    ]
    .map(|(binary, section)| (binary, follow(section, &serdes, &program)));
    protos::write(&serdes, &protos::generate(&serdes));
    let manifest = "[package]\nname = \"program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
                    serdes = { path = \"../serdes\", default-features = false }\n\n[workspace]\n";
    fs::write(program.join("Cargo.toml"), manifest).unwrap();
    fs::copy(serdes.join("Cargo.lock"), program.join("Cargo.lock")).unwrap();

    for (binary, expected) in expected {
        let output = cargo(scratch())
            .args(["run", "--quiet", "--bin", binary, "--manifest-path"])
            .arg(program.join("Cargo.toml"))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{binary}: {errors}");
        assert_eq!(errors, "", "{binary}: what the page shows compiles without a warning");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(expected, Some(printed), "{binary}");
    }
}
