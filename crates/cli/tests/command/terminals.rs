//! Tests that no command lets strings of files and plug-ins control a terminal: ASCII control
//! characters, U+007F, C1 controls, and characters that change the direction of text.

use std::fs;

use serde_json::{Value, json};

use crate::testkit::{objects, root, serdes, text};

/// A name that ends a control sequence, begins one in C1, and reverses the text that follows.
const EVIL: &str = "a\u{9b}2J\u{7f}\u{85}\u{202e}b\u{61c}\u{1b}[31m\u{9d}";

fn is_harmless(bytes: &[u8]) -> bool {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    !text.contains(|c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202e}' | '\u{61c}')
    })
}

fn safetensors(name: &str, value: u8, metadata: &Value) -> Vec<u8> {
    let header = json!({
        "__metadata__": metadata,
        name: { "dtype": "U8", "shape": [1], "data_offsets": [0, 1] },
    });
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[value]].concat()
}

/// Returns a GraphDef of one node with this name and operation, and no attributes.
fn graph(name: &str) -> Vec<u8> {
    let field = |number: u8, content: &[u8]| {
        [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
    };
    field(1, &[field(1, name.as_bytes()), field(2, name.as_bytes())].concat())
}

#[test]
fn no_command_prints_words_that_act_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let metadata = json!({ EVIL: EVIL });
    let [a, b, c, state, other] =
        ["a.safetensors", "b.safetensors", "c\u{9b}2J.safetensors", "a.sds", "b.sds"].map(path);
    fs::write(&a, safetensors(EVIL, 1, &metadata)).unwrap();
    fs::write(&b, safetensors(EVIL, 2, &metadata)).unwrap();
    fs::write(&c, &safetensors(EVIL, 2, &metadata)[..60]).unwrap();
    let (model, index) = (path("graph.pb"), path("x.safetensors.index.json"));
    fs::write(&model, graph(EVIL)).unwrap();
    fs::write(&index, json!({ "weight_map": { EVIL: "a.safetensors", "x": EVIL } }).to_string())
        .unwrap();
    let pickled = path("pickled.npy");
    let array = format!("{{'descr': [('{EVIL}', '<f4')], 'fortran_order': False, 'shape': (), }}");
    let array = array.replace('\u{1b}', "\\x1b");
    let head = [b"\x93NUMPY\x03\0", &(array.len() as u32).to_le_bytes()[..]].concat();
    fs::write(&pickled, [&head, array.as_bytes(), &[0; 4]].concat()).unwrap();
    // A crate whose list of versions has such strings.
    let listed = folder.path().join("crate");
    fs::create_dir(&listed).unwrap();
    let registry = fs::read_to_string(root().join("versions.toml")).unwrap();
    let (before, summary) = registry.split_once("summary = \"").unwrap();
    fs::write(
        listed.join("versions.toml"),
        format!("{before}summary = \"\u{9b}2J\u{202e}{summary}"),
    )
    .unwrap();
    let patched = path("patched\u{9b}.pb");
    fs::write(&patched, b"\xff\xff").unwrap();
    let commands: &[&[&str]] = &[
        &["check", &a, &b, &c, &model, &index, &pickled, &patched],
        &["check", &model, "--tensorflow", "2.12", "--tensorflow", "2.21"],
        &["check", text(folder.path()), "-v"],
        &["inspect", &a],
        &["inspect", &c],
        &["inspect", &model],
        &["inspect", &index],
        &["inspect", &pickled],
        &["inspect", text(folder.path())],
        &["save", "--from", &a, "-o", &state],
        &["convert", &b, &other],
        &["convert", &pickled, &path("n.sds"), "--skip-unsupported"],
        &["convert", &c, &path("n.sds")],
        &["convert", &index, &path("n.sds")],
        &["diff", &state, &other],
        &["diff", &a, &b],
        &["diff", &pickled, &a],
        &["inspect", &state],
        &["restore", &state, "--to", &path("back.safetensors")],
        &["restore", &state, "--only", EVIL],
        &["restore", &state, "--only", "x\u{9b}"],
        &["merge", &path("m\u{9b}.sds"), "--id", "x"],
        &["ops", "2.21", "x\u{9b}"],
        &["explain", "x\u{9b}"],
        &["plugin", "inspect", &c],
        &["plugin", "check", &c],
        &["abi", "diff", &c, &c],
        &["versions", "--directory", text(&listed)],
    ];
    for command in commands {
        for json in [true, false] {
            let options: &[&str] = if json { &["--json"] } else { &["--color", "never"] };
            let output = serdes(&[command, options].concat());
            for bytes in [&output.stdout, &output.stderr] {
                let shown = String::from_utf8_lossy(bytes);
                assert!(is_harmless(bytes), "{command:?} {json}: {shown:?}");
            }
            if json {
                // Every line is still an object, in which the strings are unchanged.
                drop(objects(&output));
            }
        }
    }
    let found = objects(&serdes(&["inspect", &a, "--json"]));
    assert_eq!(found[0]["tensors"][0]["name"], EVIL);
    let line = String::from_utf8(serdes(&["inspect", &a, "--json"]).stdout).unwrap();
    assert!(line.contains("a\\u009b2J\\u007f\\u0085\\u202eb\\u061c"), "{line}");
}
