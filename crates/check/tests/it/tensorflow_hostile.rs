//! Tests that damaged and hostile artifacts cause no crash and no hang, and get a verdict that the
//! format allows.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serdes_check::{self as check, Kind, Options, Outcome};
use serdes_graphs::graph::{self, Form, Message, ReadOptions};
use serdes_testkit::fields::field;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tensorflow");

fn read(path: &str) -> Vec<u8> {
    std::fs::read(Path::new(DATA).join(path)).unwrap()
}

/// Returns every flip of one bit, and every truncation.
fn damages(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let flips = (0..bytes.len() * 8).map(|bit| {
        let mut copy = bytes.to_vec();
        copy[bit / 8] ^= 1 << (bit % 8);
        copy
    });
    flips.chain((0..bytes.len()).map(|length| bytes[..length].to_vec()))
}

#[test]
fn damaged_graph_has_a_verdict_without_guessed_versions() {
    for name in ["graphs/basic.pb", "graphs/bad_consumers_V.pb", "graphs/producer_p9999.pbtxt"] {
        let bytes = read(name);
        let form = if name.ends_with("txt") { Form::Text } else { Form::Binary };
        for damaged in damages(&bytes) {
            let whole = graph::read(&damaged, Message::GraphDef, form, &ReadOptions::default());
            let scanned = graph::versions(&damaged, Message::GraphDef, form);
            if let Ok(whole) = whole {
                // The scan accepts everything that the full check accepts, and both find the same
                // versions.
                let scanned = scanned.unwrap();
                let versions =
                    |graphs: &graph::Graphs| graphs.meta_graphs[0].graph.versions.clone();
                assert_eq!(versions(&whole), versions(&scanned));
            }
        }
    }
}

#[test]
fn damaged_model_has_a_verdict_without_guessed_versions() {
    let node = [field(1, b"a"), field(2, b"NoOp"), field(3, b"^b")].concat();
    let other = [field(1, b"b"), field(2, b"Old")].concat();
    let function = field(1, &[field(1, &field(1, b"f")), field(3, &other)].concat());
    let graph = |producer: u8| {
        let parts = [field(1, &node), field(1, &other), field(2, &function)];
        [parts.concat(), field(4, &[8, producer, 16, 1, 26, 2, 3, 4])].concat()
    };
    let meta_graph = |tags: &[&str], producer| {
        let tags: Vec<u8> = tags.iter().flat_map(|tag| field(4, tag.as_bytes())).collect();
        let info = field(1, &[tags, field(5, b"2.21.0")].concat());
        let saver = field(3, &field(1, b"save/Const:0"));
        let input = [field(1, b"x"), field(2, &field(1, b"x:0"))].concat();
        let signature = [field(1, b"serving_default"), field(2, &field(1, &input))].concat();
        [info, field(2, &graph(producer)), saver, field(5, &signature)].concat()
    };
    let graphs = [meta_graph(&["serve"], 9), meta_graph(&["serve", "gpu"], 100)];
    let bytes = [vec![8, 1], field(2, &graphs[0]), field(2, &graphs[1])].concat();
    for (message, bytes) in [(Message::SavedModel, &bytes), (Message::MetaGraphDef, &graphs[1])] {
        let options = ReadOptions::default();
        assert!(graph::read(bytes, message, Form::Binary, &options).is_ok());
        for damaged in damages(bytes) {
            if let Ok(whole) = graph::read(&damaged, message, Form::Binary, &options) {
                let scanned = graph::versions(&damaged, message, Form::Binary).unwrap();
                let seen = |graphs: &graph::Graphs| -> Vec<_> {
                    let graphs = graphs.meta_graphs.iter();
                    graphs.map(|each| (each.tags.clone(), each.graph.versions.clone())).collect()
                };
                assert_eq!(seen(&whole), seen(&scanned));
            }
            let kind =
                if message == Message::SavedModel { Kind::SavedModel } else { Kind::MetaGraph };
            let verdict = check::reader(&damaged[..], Some(kind))
                .unwrap()
                .check(&Options::default())
                .unwrap();
            assert_eq!(verdict.is_acceptable(), verdict.reasons().is_empty());
        }
    }
}

#[test]
fn damaged_checkpoint_is_found_if_its_data_is_verified() {
    let directory = tempfile::tempdir().unwrap();
    let prefix = directory.path().join("ckpt");
    let (index, data) = (read("ckpt/base/ckpt.index"), read("ckpt/base/ckpt.data-00000-of-00001"));
    let index_path = directory.path().join("ckpt.index");
    let data_path = directory.path().join("ckpt.data-00000-of-00001");
    let options = Options::default().with_verify_data(true).with_threads(1);
    let write = |path: &PathBuf, bytes: &[u8]| std::fs::write(path, bytes).unwrap();
    write(&index_path, &index);
    for damaged in damages(&data) {
        write(&data_path, &damaged);
        let verdict = check::all(&prefix, &options).next().unwrap().unwrap();
        assert_eq!(verdict.outcome(), Outcome::Unreadable, "{verdict}");
    }
    write(&data_path, &data);
    assert!(check::all(&prefix, &options).next().unwrap().unwrap().is_acceptable());
    let expected = check::path(&prefix).unwrap().inspect().unwrap();
    for damaged in damages(&index) {
        write(&index_path, &damaged);
        let verdict = check::all(&prefix, &options).next().unwrap().unwrap();
        if verdict.is_acceptable() && verdict.warnings().is_empty() {
            // A varint with one byte more than it needs is the same number.
            let found = check::path(&prefix).unwrap().inspect().unwrap();
            assert_eq!(found.tensors, expected.tensors, "{verdict}");
        }
    }
}

#[test]
fn bytes_of_any_kind_have_a_verdict_as_every_kind() {
    let options = Options::default().with_verify_data(true);
    for &kind in Kind::ALL {
        for name in [
            "graphs/basic.pb",
            "ckpt/base/ckpt.index",
            "ckpt/saver_v1_plain/model.ckpt",
            "sm/tf2/saved_model.pb",
        ] {
            let walk = check::walk(Path::new(DATA).join(name), &options).of_kind(kind);
            let verdicts: Vec<_> = walk.map(Result::unwrap).collect();
            assert_eq!(verdicts.len(), 1);
            assert_eq!(verdicts[0].kind, Some(kind));
        }
    }
}

#[test]
fn a_graph_that_nests_without_end_is_refused_without_recursion() {
    let bytes = vec![0x0b; 2_000_000];
    let error = graph::versions(&bytes, Message::GraphDef, Form::Binary).unwrap_err();
    assert!(error.to_string().contains("100 messages"), "{error}");
    let text = "node{attr{key:\"a\" value{list{func{attr{value{".repeat(10_000).into_bytes();
    assert!(graph::versions(&text, Message::GraphDef, Form::Text).is_err());
}

#[test]
fn model_with_too_many_meta_graphs_is_unsupported() {
    let bytes = [0x12, 0x00].repeat(3_000_000);
    let artifact = check::reader(&bytes[..], Some(Kind::SavedModel)).unwrap();
    let verdict = artifact.check(&Options::default()).unwrap();
    assert_eq!(verdict.reasons()[0].rule.id(), "unsupported", "{verdict}");
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_default().to_string().replace("\\u{", "\\U").replace('}', ""))
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for message in [Message::GraphDef, Message::MetaGraphDef, Message::SavedModel] {
            for form in [Form::Binary, Form::Text] {
                let _ = graph::read(&bytes, message, form, &ReadOptions::default());
            }
        }
    }

    #[test]
    fn a_graph_reads_the_same_in_both_forms(
        nodes in proptest::collection::vec(("[a-z]{1,8}", "[A-Z][a-z]{0,10}", "[ -~]{0,200}"), 0..200),
        producer in 0_i32..3000,
    ) {
        let (mut binary, mut text) = (Vec::new(), String::new());
        for (position, (name, operation, device)) in nodes.iter().enumerate() {
            let name = format!("{name}{position}");
            let parts = [field(1, name.as_bytes()), field(2, operation.as_bytes()), field(4, device.as_bytes())];
            binary.extend(field(1, &parts.concat()));
            text += &format!("node {{ name: {} op: {}, device: {} }}\n", quoted(&name), quoted(operation), quoted(device));
        }
        let mut versions = vec![0x08];
        let mut number = producer;
        while number >= 0x80 {
            versions.push(number as u8 | 0x80);
            number >>= 7;
        }
        versions.push(number as u8);
        binary.extend(field(4, &versions));
        text += &format!("versions < producer: {producer:#x} >");
        let options = ReadOptions::default();
        let binary = graph::read(&binary, Message::GraphDef, Form::Binary, &options).unwrap();
        let text = graph::read(&text.into_bytes(), Message::GraphDef, Form::Text, &options).unwrap();
        for graphs in [&binary, &text] {
            let graph = &graphs.meta_graphs[0].graph;
            prop_assert_eq!(graph.nodes, nodes.len() as u64);
            prop_assert_eq!(graph.versions.producer, producer);
            prop_assert!(graph.structure.is_none());
        }
    }

    #[test]
    fn strings_of_any_length_cross_windows(length in 0_usize..700_000, shift in 0_usize..9) {
        // Characters of two to four bytes, so that they cross the borders of windows.
        let device: String = "é€𝄞".chars().cycle().take(length / 3).collect();
        let node = [field(1, b"a"), field(4, &vec![b'x'; shift]), field(2, b"NoOp"), field(4, device.as_bytes())].concat();
        let graph = [field(1, &node), field(4, &[0x08, 0x07])].concat();
        let graphs = graph::read(&graph, Message::GraphDef, Form::Binary, &ReadOptions::default()).unwrap();
        prop_assert_eq!(graphs.meta_graphs[0].graph.versions.producer, 7);
        if let Some(position) = graph.iter().rposition(|byte| *byte >= 0xc3) {
            let mut broken = graph.clone();
            broken[position] = 0xff;
            prop_assert!(graph::read(&broken, Message::GraphDef, Form::Binary, &ReadOptions::default()).is_err());
        }
    }
}
