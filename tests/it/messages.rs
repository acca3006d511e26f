//! Tests of the library's messages: they name no option of a command, and the text of each error
//! includes its cause.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serdes_testkit::copies::root;

/// Returns the sources of the library and of the crates below it, without the command.
fn sources() -> Vec<(PathBuf, String)> {
    let mut pending: Vec<PathBuf> = [
        "src",
        "crates/abi/src",
        "crates/check/src",
        "crates/checkpoints/src",
        "crates/device-state/src",
        "crates/files/src",
        "crates/graph-format/src",
        "crates/graph-index/src",
        "crates/graphs/src",
        "crates/library-file/src",
        "crates/mlir-bytecode/src",
        "crates/operations/src",
        "crates/pjrt/src",
        "crates/plugin/src",
        "crates/proxy/src",
        "crates/host-memory/src",
        "crates/stablehlo/src",
        "crates/stream-executor/src",
        "crates/tensors/src",
        "crates/version-registry/src",
        "crates/wire/src",
    ]
    .map(|folder| root().join(folder))
    .into();
    let mut found = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.file_stem().unwrap().to_str().unwrap().ends_with("tests")
        {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            found.push((path, code.to_owned()));
        }
    }
    assert!(found.len() > 200, "{}", found.len());
    found
}

/// Returns the string literals of a source, raw ones included, but not those in comments.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (letter, behind) = (rest.as_bytes()[at], &rest[at + 1..]);
        rest = match letter {
            b'/' if behind.starts_with('/') => behind.split_once('\n').map_or("", |(_, rest)| rest),
            b'"' => {
                let hashes = rest[..at].len() - rest[..at].trim_end_matches('#').len();
                let end = if hashes > 0 {
                    behind.find(&format!("\"{}", "#".repeat(hashes))).unwrap_or(behind.len())
                } else {
                    end_of_literal(behind)
                };
                found.push(behind[..end].to_owned());
                behind.get(end + 1..).unwrap_or_default()
            }
            // A character literal, which may be a quote; a lifetime has no closing quote.
            b'\'' => {
                let body = behind.strip_prefix('\\').map_or(0, |_| 1);
                let letter = behind[body..].chars().next().map_or(0, char::len_utf8);
                behind[body + letter..].strip_prefix('\'').unwrap_or(behind)
            }
            _ => behind,
        };
    }
    found
}

fn end_of_literal(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    });
    end.unwrap_or(text.len())
}

/// Returns true if a text names an option: two hyphens and a letter, at its beginning or not
/// directly behind a word.
fn names_an_option(text: &str) -> bool {
    text.match_indices("--").any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + 2..].chars().next();
        behind.is_some_and(|letter| letter.is_ascii_lowercase())
            && before.is_none_or(|letter| !letter.is_alphanumeric() && letter != '-')
    })
}

#[test]
fn options_are_found_in_literals_and_not_in_comments() {
    let code = "// \"--not\"\nlet a = 'x'; let q = '\"'; f(\"name the tags (--tags)\"); r#\"with \"--raw\" x\"#";
    let found: Vec<_> = literals(code).into_iter().filter(|text| names_an_option(text)).collect();
    assert_eq!(found, ["name the tags (--tags)", "with \"--raw\" x"]);
    assert!(!names_an_option("a -- b, 2020--2021, ---"));
}

#[test]
fn no_text_of_the_library_names_an_option_of_the_command() {
    for (path, code) in sources() {
        for text in literals(&code) {
            assert!(!names_an_option(&text), "{}: {text:?}", path.display());
        }
    }
}

/// Returns the variants of errors that have a cause: the content of `#[error(…)]`, and the fields.
fn variants_with_causes(code: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("#[error(") {
        let attribute = &code[at..];
        let Some(end) = attribute.find(")]\n") else { continue };
        let (attribute, rest) = attribute.split_at(end);
        let rest = &rest[")]".len()..];
        let Some(start) = rest.find(['{', '(', ',']) else { continue };
        let body = &rest[start..];
        let close = match body.as_bytes()[0] {
            b'{' => '}',
            b'(' => ')',
            _ => continue,
        };
        let body = &body[..body.find(&format!("{close},")).unwrap_or(body.len())];
        if body.contains(" source:") || body.contains("#[source]") || body.contains("#[from]") {
            found.push((attribute.to_owned(), body.to_owned()));
        }
    }
    found
}

#[test]
fn every_error_with_a_cause_says_it_in_its_own_text() {
    let mut count = 0;
    for (path, code) in sources() {
        for (attribute, body) in variants_with_causes(&code) {
            count += 1;
            let says =
                ["source", "{0", ".0", "transparent"].iter().any(|word| attribute.contains(word));
            assert!(
                says,
                "{}: {attribute} has a cause that it does not say: {body}",
                path.display()
            );
        }
    }
    assert!(count > 30, "{count}");
}

/// Diagnostics inside an error, which derive `Error` for their texts.
const WITHOUT_KIND: [&str; 4] =
    ["BodyDiagnostic", "BodyDiagnosticKind", "StructureDiagnostic", "StructureDiagnosticKind"];

/// Returns true for sources of crates whose errors reach programs: not internal crates, nor the
/// build tool of `versions.toml`.
fn is_of_programs(path: &Path) -> bool {
    let internal = ["graph-format", "library-file", "version-registry", "wire", "files"];
    !internal.iter().any(|name| path.starts_with(root().join("crates").join(name)))
}

/// Returns the public types of a source that derive `Error`.
fn public_errors(code: &str) -> Vec<&str> {
    let derived = code.match_indices("thiserror::Error").map(|(at, _)| &code[at..]);
    let named = derived.filter_map(|rest| {
        let line = rest.lines().find(|line| {
            let line = line.trim_start();
            ["pub enum ", "pub struct ", "enum ", "struct ", "pub("]
                .iter()
                .any(|start| line.starts_with(start))
        })?;
        let name = line.strip_prefix("pub enum ").or_else(|| line.strip_prefix("pub struct "))?;
        name.split(|letter: char| !letter.is_alphanumeric()).next()
    });
    named.collect()
}

#[test]
fn public_errors_are_found_by_their_derive() {
    let code = "#[derive(Debug, thiserror::Error)]\n#[error(\"x\")]\npub struct Gone;\n\
                #[derive(thiserror::Error)]\npub(crate) enum Inside {\n#[derive(thiserror::Error)]\npub enum Out {";
    assert_eq!(public_errors(code), ["Gone", "Out"]);
}

#[test]
fn every_public_error_answers_its_kind() {
    let mut count = 0;
    for (path, code) in sources().iter().filter(|(path, _)| is_of_programs(path)) {
        for name in public_errors(code).iter().filter(|name| !WITHOUT_KIND.contains(name)) {
            count += 1;
            let opening = format!("impl {name} {{");
            let answers = code
                .split(&opening)
                .skip(1)
                .map(|rest| rest.split("\n}").next().unwrap_or_default())
                .any(|methods| methods.contains("fn kind(&self) -> ErrorKind"));
            assert!(answers, "{}: {name} has no method kind", path.display());
        }
    }
    assert!(count > 25, "{count}");
}
