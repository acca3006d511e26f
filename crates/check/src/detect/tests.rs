use proptest::prelude::*;
use serdes_testkit::fields::field;

use super::*;

fn told(bytes: &[u8], name: &str) -> Detected {
    detect(&bytes, Some(Path::new(name))).unwrap()
}

fn node(name: &[u8], operation: &[u8]) -> Vec<u8> {
    field(1, &[field(1, name), field(2, operation)].concat())
}

#[test]
fn detection_takes_content_before_the_name() {
    use Detected::{ByContent, ByName, Unmarked};
    assert_eq!(told(b"\x8fSDS\r\n\x1a\n...", "x.pbtxt"), ByContent(Kind::DeviceState));
    assert_eq!(told(b"\x7fELF....", "x.meta"), ByContent(Kind::Plugin));
    assert_eq!(told(b"\x57\xfb\x80\x8b\x24\x75\x47\xdb", "a.index"), ByContent(Kind::TensorBundle));
    assert_eq!(told(b"\x0a\x0e", "x.sds"), ByName(Kind::DeviceState));
    assert_eq!(told(b"\x0a\x14xla::ifrt::Something", "x"), ByContent(Kind::IfrtSerialized));
    // A type name of 32 characters, without data: every byte may occur in a text.
    assert_eq!(
        told(b"\x0a\x20xla::ifrt::ShardingParamSharding", "x"),
        ByContent(Kind::IfrtSerialized)
    );
    assert_eq!(told(b"\x0a\x03x::", "x"), ByContent(Kind::IfrtMessage));
    assert_eq!(told(b"\x0a\x03x::", "x.pb"), Unmarked);
    assert_eq!(foreign(&b"\x0a\x03x::".as_slice()).unwrap(), None);
    assert_eq!(told(b"\x0a\x04x::", "x"), Unmarked);
    assert_eq!(told(b"\x93NUMPY\x01\0", "x.sds"), ByContent(Kind::Npy));
    assert_eq!(told(b"<!DOCTYPE html><p>", "saved_model.pb"), ByContent(Kind::Html));
    assert_eq!(told(b"{\"error\":\"gone\"}", "x.safetensors"), ByContent(Kind::Json));
    // Text has no magic number, so a name that says what the file was meant to be counts more.
    assert_eq!(told(b"not found", "x.safetensors"), ByName(Kind::Safetensors));
    assert_eq!(told(b"not found", "x.sds"), ByName(Kind::DeviceState));
    assert_eq!(told(b"not found", "x.pb"), ByContent(Kind::Text));
    assert_eq!(told(b"node { name: 'a' }", "x.pbtxt"), ByName(Kind::GraphDefText));
    assert_eq!(told(b"damaged", "model.ckpt-1"), ByName(Kind::CheckpointV1));
    assert_eq!(told(b"of step 1", "model.ckpt-1.txt"), ByContent(Kind::Text));
}

#[test]
fn a_file_of_zero_bytes_is_what_its_name_says_and_else_a_graph() {
    use Detected::{ByName, Unmarked};
    for (name, expected) in [
        ("x.pb", Unmarked),
        ("x", Unmarked),
        ("x.weird", Unmarked),
        ("x.sds", ByName(Kind::DeviceState)),
        ("model.ckpt-00000-of-00001", ByName(Kind::CheckpointV1)),
        ("saved_model.pb", ByName(Kind::SavedModel)),
        ("x.safetensors", ByName(Kind::Safetensors)),
        ("x.SafeTensors", ByName(Kind::Safetensors)),
        ("x.npz", ByName(Kind::Npz)),
        ("x.onnx", ByName(Kind::Onnx)),
        ("fingerprint.pb", ByName(Kind::Fingerprint)),
        ("notes.md", ByName(Kind::Text)),
        ("lib.so", ByName(Kind::Plugin)),
        ("serdes3.scalar.xla.ifrt.ShapeProto.binpb", ByName(Kind::IfrtMessage)),
        ("graph.binpb", Unmarked),
    ] {
        assert_eq!(told(b"", name), expected, "{name}");
    }
}

#[test]
fn texts_are_told_in_the_encodings_that_people_have() {
    let kind = |bytes: &[u8]| told(bytes, "x").kind();
    for (bytes, expected) in [
        (&b"# Title\n\nwords\n"[..], Kind::Text),
        (b"\n\n# Title after blank lines, as long as it takes\n", Kind::Text),
        (b"hi", Kind::Text),
        ("Gr\u{fc}\u{df}e, \u{65e5}\u{672c}".as_bytes(), Kind::Text),
        (b"Gr\xfc\xdfe aus einem alten Programm, in seiner Kodierung", Kind::Text),
        (b"\xff\xfeh\0i\0", Kind::Text),
        (b"\xef\xbb\xbf{\"a\": 1}", Kind::Json),
        (b"{\"a\": 1}\n{\"b\": 2}\n", Kind::Json),
        (b"  [1, 2, 3]", Kind::Json),
        (b"{\"a\": [1, 2", Kind::Json),
        (b"{not json}", Kind::Text),
        // A graph in text form with other text before it.
        (b"{}versions { producer: 1 }", Kind::Text),
        (b"[1] node { name: 'a' }", Kind::Text),
        (b"\r\n <HTML><body>", Kind::Html),
        (b"<?xml version='1.0'?><html>", Kind::Html),
        (b"<?xml version='1.0'?><graph/>", Kind::Text),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", Kind::Text),
        (b"module @f {\n  func.func public @main()\n}\n", Kind::Text),
        (b"\n", Kind::GraphDef),
        (b"\n'\n", Kind::GraphDef),
        // A node of 60 bytes, cut in its name of 40.
        (b"\n<\n(a/name/of/a/node", Kind::GraphDef),
        (b"words and\0a NUL", Kind::GraphDef),
        (b"words and \x01 control", Kind::GraphDef),
    ] {
        assert_eq!(kind(bytes), expected, "{:?}", bytes.escape_ascii().to_string());
    }
    // Longer than the examined part: cut in a JSON value, cut in a character, and a text whose end
    // is not text.
    let long = |piece: &str| piece.repeat(2 * HEAD / piece.len() + 1);
    assert_eq!(kind(format!("[\"{}\"]", long("value ")).as_bytes()), Kind::Json);
    assert_eq!(kind(long("\u{65e5}").as_bytes()), Kind::Text);
    assert_eq!(kind(format!("x{}", long("\u{65e5}")).as_bytes()), Kind::Text);
    assert_eq!(kind(format!("{}\0", long("word ")).as_bytes()), Kind::GraphDef);
}

#[test]
fn formats_of_others_are_none_of_ours() {
    let mut tar = vec![0; 512];
    tar[..5].copy_from_slice(b"x.txt");
    tar[257..262].copy_from_slice(b"ustar");
    for bytes in [
        &b"\xff\xd8\xff\xe0\0\x10JFIF"[..],
        b"\x89PNG\r\n\x1a\n\0",
        b"%PDF-1.7",
        b"BZh91AY&SY",
        b"\x28\xb5\x2f\xfd\x04",
        b"ML\xefR\x0dMLIR21.0\0",
        b"\x80\x04\x95\x0b\0\0\0\0\0\0\0.",
        &tar,
    ] {
        assert_eq!(
            told(bytes, "x.pb"),
            Detected::ByContent(Kind::Other),
            "{:?}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn the_mark_of_hdf5_may_stand_behind_a_block_of_the_users() {
    for at in [0, 512, 1024, 2048] {
        let mut bytes = vec![b' '; at];
        bytes.extend_from_slice(b"\x89HDF\r\n\x1a\n\0");
        assert_eq!(told(&bytes, "x").kind(), Kind::Hdf5, "{at}");
    }
}

#[test]
fn onnx_is_detected_without_a_producer_and_cut_off() {
    let graph = field(7, &[field(1, &field(4, b"Relu")), field(2, b"g")].concat());
    let opset = field(8, &[0x10, 21]);
    let producer = field(2, b"pytorch");
    let version = vec![0x08, 10];
    for parts in [
        vec![version.clone(), graph.clone()],
        vec![version.clone(), producer.clone(), graph.clone(), opset.clone()],
        vec![version.clone(), opset.clone(), graph.clone()],
        vec![producer, opset, graph.clone(), version.clone()],
        vec![version.clone(), graph.clone(), vec![0xca, 0x01, 0]],
    ] {
        let bytes = parts.concat();
        assert_eq!(told(&bytes, "x").kind(), Kind::Onnx);
        assert_eq!(told(&bytes, "saved_model.pb").kind(), Kind::Onnx);
    }
    let bytes = [version.clone(), graph.clone()].concat();
    assert_eq!(told(&bytes[..bytes.len() - 2], "x").kind(), Kind::Onnx);
    // A SavedModel begins with a number as well.
    let saved_model = [vec![0x08, 1], field(2, &field(2, &node(b"a", b"NoOp")))].concat();
    assert_ne!(told(&saved_model, "x").kind(), Kind::Onnx);
    assert_eq!(told(&saved_model, "x.pb"), Detected::Unmarked);
    // Without a version, or with a node.
    assert_ne!(told(&graph, "x").kind(), Kind::Onnx);
    assert_eq!(told(&graph, "x.pb"), Detected::Unmarked);
    assert_eq!(told(&[version, node(b"a", b"NoOp"), graph].concat(), "x"), Detected::Unmarked);
}

#[test]
fn fingerprint_and_graph_of_numbers_are_told_apart() {
    let bytes = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/kinds/fingerprint.pb"
    ))
    .unwrap();
    assert_eq!(told(&bytes, "x").kind(), Kind::Fingerprint);
    // A graph with an operation `Fingerprint`, in a file called `fingerprint.pb`.
    let graph = [node(b"a", b"Fingerprint"), field(4, &[0x08, 0xaa, 0x13])].concat();
    assert_eq!(told(&graph, "fingerprint.pb"), Detected::ByContent(Kind::GraphDef));
    assert_eq!(told(&[0x18, 0x15], "fingerprint.pb"), Detected::ByName(Kind::Fingerprint));
    // An old graph has only its version, in field 3.
    assert_eq!(told(&[0x18, 0x15], "x"), Detected::Unmarked);
    assert_ne!(told(&[0x08, 1, 0x10, 2, 0x18, 3], "x").kind(), Kind::Fingerprint);
    assert_eq!(told(&[0x08, 1, 0x10, 2, 0x18, 3], "x.pb"), Detected::Unmarked);
}

#[test]
fn graph_is_detected_whatever_its_nodes_are_called() {
    let versions = field(4, &[0x08, 0xaa, 0x13]);
    let names: [&[u8]; 9] =
        [b"TFL3", b"TFL3/TFL3", b"GGUF", b"html", b"x", b"xla", b"ML", b"ustar", &[b'n'; 300]];
    for name in names {
        for graph in [
            [node(name, b"NoOp"), versions.clone()].concat(),
            node(name, b"NoOp"),
            [versions.clone(), node(name, b"NoOp")].concat(),
            [field(2, b""), node(name, b"NoOp")].concat(),
        ] {
            assert_eq!(
                told(&graph, "x"),
                Detected::Unmarked,
                "{:?}",
                graph.escape_ascii().to_string()
            );
        }
    }
    // The magic letters of a tar archive at their offset.
    let mut graph = node(&[b'n'; 240], b"NoOp");
    let filler = node(b"a", b"NoOp");
    while graph.len() < 600 {
        graph.extend_from_slice(&filler);
    }
    assert_eq!(told(&graph, "x"), Detected::Unmarked);
    assert_eq!(told(&versions, "x"), Detected::Unmarked);
    assert_eq!(told(&field(4, b""), "x"), Detected::Unmarked);
    // Only a library of one function; and an old graph with its version.
    let function = field(1, &field(1, &field(1, b"f")));
    assert_eq!(told(&field(2, &function), "x"), Detected::Unmarked);
    let old = [node(b"a", b"NoOp"), vec![0x18, 0x15]].concat();
    assert_eq!(told(&old, "x"), Detected::Unmarked);
    // All of it looks like text, except the tag of the operation.
    let graph = node(&[b'n'; 32], &[b'o'; 32]);
    assert_eq!(told(&graph, "x"), Detected::Unmarked);
}

#[test]
fn archive_is_detected_by_its_members_or_else_its_name() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/kinds"));
    for (file, kind) in [
        ("model.keras", Kind::Keras),
        ("model.pt", Kind::Torch),
        ("arrays.npz", Kind::Npz),
        ("arrays_compressed.npz", Kind::Npz),
        ("notes.zip", Kind::Zip),
    ] {
        let bytes = std::fs::read(folder.join(file)).unwrap();
        assert_eq!(told(&bytes, "x"), Detected::ByContent(kind), "{file}");
        // In a truncated archive the first entry still tells the kind.
        assert_eq!(told(&bytes[..bytes.len() - 30], "x"), Detected::ByContent(kind), "{file}");
        // A comment, as some programs leave it.
        let mut longer = bytes.clone();
        let end = longer.len();
        longer[end - 2] = 7;
        longer.extend_from_slice(b"comment");
        assert_eq!(told(&longer, "x"), Detected::ByContent(kind), "{file}");
    }
    let notes = std::fs::read(folder.join("notes.zip")).unwrap();
    assert_eq!(told(&notes, "x.npz").kind(), Kind::Npz);
    assert_eq!(told(&notes, "x.pth").kind(), Kind::Torch);
    assert_eq!(told(b"PK\x05\x06", "x").kind(), Kind::Zip);
    assert_eq!(told(b"PK\x03\x04", "x").kind(), Kind::Zip);
}

/// The first bytes of formats whose contents are inspected.
const MARKS: &[&[u8]] = &[
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x08\x0a",
    b"\x40\0\0\0",
    b"\x1c\0\0\0TFL3",
    b"\x10\0\0\0\0\0\0\0{",
    b"{\"",
    b"",
];

/// No end record, and that of an archive whose directory is beyond 4 GiB.
const ENDS: &[&[u8]] =
    &[b"", b"PK\x05\x06\0\0\0\0\x01\0\x01\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_bytes_do_anything_but_get_a_kind(
        mark in proptest::sample::select(MARKS),
        rest in proptest::collection::vec(any::<u8>(), 0..300),
        end in proptest::sample::select(ENDS),
    ) {
        let bytes = [mark, &rest[..], end].concat();
        let _ = told(&bytes, "x.bin");
        let _ = foreign(&bytes);
    }

    #[test]
    fn a_node_of_any_name_and_operation_stays_a_graph(
        name in "[A-Za-z0-9.][A-Za-z0-9_./]{0,200}",
        operation in "[A-Za-z][A-Za-z0-9]{0,60}",
    ) {
        prop_assert_eq!(told(&node(name.as_bytes(), operation.as_bytes()), "x"), Detected::Unmarked);
    }
}
