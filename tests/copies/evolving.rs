//! Tests that the steps in `docs/evolving.md` for a new kind of sharding are complete: the edits of
//! the page, made in a copy of the sources, give a library with which the program of the page
//! behaves as described.

use std::{fs, path::Path};

use serdes_testkit::{
    copies::{cargo, workplace},
    pages::{Block, apply, blocks, copy_sources},
    protos,
};

use crate::scratch;

/// Puts an entry behind the others of the line.
fn add_entry(registry: &Path, line: &str, entry: &str) {
    let text = fs::read_to_string(registry).unwrap();
    let start = text.find(&format!("name = \"{line}\"")).unwrap();
    let end = text[start..].find("\n[[line]]\n").map_or(text.len(), |end| start + end + 1);
    fs::write(registry, format!("{}{entry}\n{}", &text[..end], &text[end..])).unwrap();
}

#[test]
#[ignore = "compiles a copy of the sources; `.ci/run copies` runs it"]
fn a_new_kind_of_sharding_is_three_edits_and_a_message() {
    let folder = workplace(scratch(), "evolving");
    let [serdes, program] = ["serdes", "program"].map(|name| folder.join(name));
    copy_sources(&serdes, &["src", "proto", "crates"]);
    let mut expected = None;
    let page = blocks("docs/evolving.md", "A new kind of sharding, from end to end");
    for Block { language, subject, text } in page {
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
    fs::copy(serdes.join("Cargo.lock"), program.join("Cargo.lock")).unwrap();

    let output = cargo(scratch())
        .args(["run", "--quiet", "--manifest-path"])
        .arg(program.join("Cargo.toml"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "", "what the page shows compiles without a warning");
    assert_eq!(Some(String::from_utf8_lossy(&output.stdout).into_owned()), expected);
}
