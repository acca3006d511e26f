//! Compares this project's C header with its Rust types: the system's C compiler tells the offset
//! of every field of every layout.

use std::{fmt::Write as _, path::Path, process::Command};

use serdes_abi::{LAYOUTS, Layout};

/// Returns the name of a layout in the header.
fn selector(layout: &Layout) -> String {
    format!("SERDES_SE_{}", layout.name.replace(['-', '.'], "_").to_uppercase())
}

/// Returns one line per struct and field, as both sides print it.
fn described(layout: &Layout) -> String {
    let mut text = String::new();
    for structure in layout.structs {
        writeln!(text, "{} {} {}", structure.name, structure.size_of, structure.struct_size)
            .unwrap();
        for field in structure.fields {
            writeln!(text, "{}.{} {} {}", structure.name, field.name, field.offset, field.size)
                .unwrap();
        }
    }
    text
}

/// Returns a C program that prints the same from the header.
fn program(layout: &Layout) -> String {
    let mut text = format!(
        "#define SERDES_SE_LAYOUT {}\n#include \"serdes_stream_executor.h\"\n#include <stdio.h>\nint main(void) {{\n",
        selector(layout)
    );
    for structure in layout.structs {
        let name = structure.name;
        writeln!(
            text,
            "printf(\"{name} %zu %zu\\n\", sizeof({name}), (size_t){});",
            structure.struct_size_macro
        )
        .unwrap();
        for field in structure.fields {
            let field = field.name;
            writeln!(
                text,
                "printf(\"{name}.{field} %zu %zu\\n\", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));"
            )
            .unwrap();
        }
    }
    text.push_str("return 0;\n}\n");
    text
}

#[test]
fn the_c_header_has_the_layouts_of_the_rust_types() {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler `cc` on this machine");
        return;
    }
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let directory = tempfile::tempdir().unwrap();
    for layout in LAYOUTS {
        let source = directory.path().join("offsets.c");
        let binary = directory.path().join("offsets");
        std::fs::write(&source, program(layout)).unwrap();
        let compiled = Command::new("cc")
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
            .arg(&include)
            .arg(&source)
            .arg("-o")
            .arg(&binary)
            .output()
            .unwrap();
        assert!(
            compiled.status.success(),
            "layout {}: {}",
            layout.name,
            String::from_utf8_lossy(&compiled.stderr)
        );
        let printed = Command::new(&binary).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&printed.stdout), described(layout), "{}", layout.name);
    }
}

/// Returns the marks of a layout: what the header says about zero in each field, from its text
/// without the parts of other layouts.
fn marks(text: &str) -> Vec<(String, String, String)> {
    let mut marks = Vec::new();
    let mut structure = String::new();
    // Line ends mean nothing to C, and comments may be long.
    let text = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join(" ");
    let mut rest = text.as_str();
    loop {
        let (opens, begins) = (rest.find("typedef struct "), rest.find("/* ["));
        match (opens, begins) {
            (Some(opens), begins) if begins.is_none_or(|begins| opens < begins) => {
                rest = &rest[opens + "typedef struct ".len()..];
                structure = rest.split_whitespace().next().unwrap().to_owned();
            }
            (_, Some(begins)) => {
                rest = &rest[begins + "/* [".len()..];
                let mark = &rest[..rest.find(']').unwrap()];
                let declaration = &rest[rest.find("*/").unwrap() + 2..];
                let declaration = &declaration[..declaration.find(';').unwrap()];
                // The name of a function pointer is in brackets behind a star, that of any other
                // field is at the end.
                let name = match declaration.split_once("(*") {
                    Some((_, name)) => name.split(')').next().unwrap(),
                    None => declaration.split([' ', '*']).next_back().unwrap(),
                };
                marks.push((structure.clone(), name.to_owned(), mark.to_owned()));
            }
            _ => return marks,
        }
    }
}

#[test]
fn c_header_and_layouts_agree_on_zero_fields() {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler `cc` on this machine");
        return;
    }
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/serdes_stream_executor.h");
    for layout in LAYOUTS {
        let preprocessed = Command::new("cc")
            .args(["-E", "-C", "-P"])
            .arg(format!("-DSERDES_SE_LAYOUT={}", selector(layout)))
            .arg(&header)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&preprocessed.stdout);
        // The legend at the top and the system's headers have no marks of fields.
        let text = &text[text.find("typedef struct SP_TimerFns").unwrap()..];
        let mut expected = Vec::new();
        for structure in layout.structs {
            for field in structure.fields {
                let name = |name: &str| name.to_owned();
                expected.push((name(structure.name), name(field.name), name(field.zero.as_str())));
            }
        }
        let mut found = marks(text);
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{}", layout.name);
    }
}
