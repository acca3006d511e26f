//! Tests of files of the kinds in which users keep models: which ones are judged, and what is
//! reported for the others.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serdes_check::{self as check, ArtifactLine, Consumer, Kind, Options, Outcome, Rule, Verdict};

const KINDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/kinds");
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data");

/// The files of the corpus, with their kinds.
const FILES: &[(&str, Kind)] = &[
    ("model.safetensors", Kind::Safetensors),
    ("array.npy", Kind::Npy),
    ("arrays.npz", Kind::Npz),
    ("arrays_compressed.npz", Kind::Npz),
    ("plain.onnx", Kind::Onnx),
    ("pytorch.onnx", Kind::Onnx),
    ("weights.h5", Kind::Hdf5),
    ("model.gguf", Kind::Gguf),
    ("model.keras", Kind::Keras),
    ("model.tflite", Kind::Tflite),
    ("fingerprint.pb", Kind::Fingerprint),
    ("f-0.8.0.jaxexport", Kind::JaxExport),
    ("f-0.10.2.jaxexport", Kind::JaxExport),
    ("f-0.12.0.1.jaxexport", Kind::JaxExport),
    ("f.mlirbc", Kind::StableHlo),
    ("f.mlir", Kind::Text),
    ("orbax", Kind::Orbax),
    ("model.pt", Kind::Torch),
    ("legacy.pt", Kind::Torch),
    ("graph.pb.gz", Kind::Gzip),
    ("notes.zip", Kind::Zip),
    ("login.html", Kind::Html),
    ("config.json", Kind::Json),
    ("error.json", Kind::Json),
    ("notes.md", Kind::Text),
    ("pointer.txt", Kind::Text),
];

/// Returns the names of the corpus files whose kinds are judged, in order.
fn judged() -> Vec<&'static str> {
    let judged = FILES.iter().copied().filter(|(_, kind)| kind.is_judged());
    let mut names: Vec<_> = judged.map(|(name, _)| name).collect();
    names.sort_unstable();
    names
}

fn verifying() -> Options {
    Options::default().with_verify_data(true)
}

fn first(path: &Path, options: &Options) -> Verdict {
    check::all(path, options).next().unwrap().unwrap()
}

fn in_memory(bytes: &[u8]) -> Verdict {
    check::bytes(bytes.to_vec()).check(&Options::default()).unwrap()
}

fn rule(verdict: &Verdict) -> Option<Rule> {
    verdict.reasons().first().map(|reason| reason.rule)
}

/// Decodes hexadecimal digits.
fn hexadecimal(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Creates a file in a new directory, which is removed when the result is dropped.
fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn every_kind_is_told_by_its_name_by_any_name_and_without_one() {
    for &(name, kind) in FILES {
        let path = Path::new(KINDS).join(name);
        let expected = if name == "f-0.8.0.jaxexport" {
            (Outcome::Unacceptable, Some(Rule::TooOld))
        } else if kind.is_judged() {
            (Outcome::Acceptable, None)
        } else {
            (Outcome::Unreadable, Some(Rule::OtherKind))
        };
        let mut verdicts = vec![first(&path, &Options::default()), first(&path, &verifying())];
        if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            let (_folder, other) = file("model.pb", &bytes);
            verdicts.push(first(&other, &Options::default()));
            verdicts.push(in_memory(&bytes));
            verdicts.push(check::reader(&bytes[..], None).unwrap().check(&verifying()).unwrap());
        }
        for verdict in verdicts {
            assert_eq!(verdict.kind, Some(kind), "{name}: {verdict}");
            assert_eq!((verdict.outcome(), rule(&verdict)), expected, "{name}: {verdict}");
            assert_eq!(verdict.warnings(), [], "{name}");
        }
        let artifact = check::path(&path).unwrap();
        assert_eq!(artifact.inspect().unwrap().kind, kind, "{name}");
    }
}

#[test]
fn file_of_another_kind_is_no_graph_even_cut_off() {
    for (name, kind) in FILES.iter().copied().filter(|(_, kind)| !kind.is_judged()) {
        let Ok(bytes) = fs::read(Path::new(KINDS).join(name)) else { continue };
        for length in 1..bytes.len().min(2000) {
            let verdict = in_memory(&bytes[..length]);
            let sure = verdict.outcome() == Outcome::Unreadable
                || verdict.warnings().iter().any(|warning| warning.rule == Rule::Empty);
            assert!(sure, "{name} ({kind}), {length} bytes: {verdict}");
        }
    }
}

#[test]
fn every_graph_that_tensorflow_takes_stays_a_graph() {
    let text = fs::read_to_string(Path::new(DATA).join("tensorflow/verdicts.jsonl")).unwrap();
    let mut graphs = 0;
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        if record["op"] != "capi_import" || record["verdict"] != "accept" {
            continue;
        }
        let path = Path::new(DATA).join("tensorflow").join(record["path"].as_str().unwrap());
        let artifact = check::bytes(fs::read(&path).unwrap());
        assert_eq!(artifact.kind(), Kind::GraphDef, "{}", path.display());
        graphs += 1;
    }
    assert!(graphs > 80, "{graphs}");
}

#[test]
fn empty_file_is_an_empty_graph_or_unreadable_by_its_name() {
    for name in ["graph.pb", "graph", "graph.bin", "graph.pbtxt"] {
        let (_folder, path) = file(name, b"");
        let verdict = first(&path, &Options::default());
        assert_eq!(verdict.outcome(), Outcome::Acceptable, "{name}: {verdict}");
        let rules: Vec<_> = verdict.warnings().iter().map(|warning| warning.rule).collect();
        assert_eq!(rules, [Rule::Empty], "{name}");
        let strict = Options::default().with_strict(true);
        assert!(!first(&path, &strict).is_acceptable());
    }
    for name in [
        "x.sds",
        "x.safetensors",
        "x.npy",
        "x.npz",
        "x.index",
        "x.meta",
        "model.ckpt-1",
        "saved_model.pb",
        "x.onnx",
        "x.h5",
        "x.keras",
        "x.tflite",
        "x.pt",
        "x.gguf",
        "x.zip",
        "x.gz",
        "x.html",
        "x.json",
        "x.txt",
        "fingerprint.pb",
        "x.mlirbc",
        "lib.so",
    ] {
        let (_folder, path) = file(name, b"");
        let verdict = first(&path, &Options::default());
        assert_eq!(verdict.outcome(), Outcome::Unreadable, "{name}: {verdict}");
    }
    let verdict = in_memory(b"");
    assert_eq!((verdict.kind, verdict.outcome()), (Some(Kind::GraphDef), Outcome::Acceptable));
}

#[test]
fn a_graph_with_versions_and_nothing_else_is_no_empty_one() {
    let verdict = in_memory(&[0x22, 0x03, 0x08, 0xaa, 0x13]);
    assert_eq!((verdict.outcome(), verdict.warnings()), (Outcome::Acceptable, &[][..]));
    // A field that no graph has: TensorFlow accepts and ignores it.
    let verdict = in_memory(&[0x78, 0x01]);
    assert_eq!(verdict.outcome(), Outcome::Acceptable);
    assert_eq!(verdict.warnings()[0].rule, Rule::Empty);
}

#[test]
fn the_kind_that_is_named_overrules_what_the_content_says() {
    let options = Options::default();
    let first_of = |path: &Path, kind: Kind| {
        check::walk(path, &options).of_kind(kind).next().unwrap().unwrap()
    };
    let verdict = first_of(&Path::new(KINDS).join("plain.onnx"), Kind::GraphDef);
    assert_eq!(verdict.kind, Some(Kind::GraphDef));
    assert_ne!(rule(&verdict), Some(Rule::OtherKind));
    let (_folder, path) = file("graph.pb", &[0x22, 0x03, 0x08, 0xaa, 0x13]);
    assert_eq!(rule(&first_of(&path, Kind::Onnx)), Some(Rule::OtherKind));
    assert_eq!(rule(&first_of(&path, Kind::Safetensors)), Some(Rule::Corrupt));
}

#[test]
fn file_in_place_of_a_model_is_named() {
    let page = fs::read(Path::new(KINDS).join("login.html")).unwrap();
    let pointer = fs::read(Path::new(KINDS).join("pointer.txt")).unwrap();
    for (bytes, word) in [(&page, "HTML"), (&pointer, "git-lfs")] {
        for name in ["model.safetensors", "state.sds", "graph.pb", "graph.pbtxt", "saved_model.pb"]
        {
            let (_folder, path) = file(name, bytes);
            let verdict = check::path(&path).unwrap().check(&Options::default()).unwrap();
            assert_eq!(rule(&verdict), Some(Rule::OtherKind), "{name}: {verdict}");
            assert!(verdict.reasons()[0].message.contains(word), "{verdict}");
        }
        // The directory says that it is a SavedModel.
        let (folder, _path) = file("saved_model.pb", bytes);
        let verdict = first(folder.path(), &Options::default());
        assert_eq!((verdict.kind, rule(&verdict)), (Some(Kind::SavedModel), Some(Rule::OtherKind)));
        assert!(verdict.reasons()[0].message.contains(word), "{verdict}");
    }
    let verdict = in_memory(b"node { name: 'a' op: 'NoOp' }\n");
    assert_eq!(verdict.kind, Some(Kind::Text));
    assert!(verdict.reasons()[0].remedy.to_string().contains("graph_def_text"), "{verdict}");
}

#[test]
fn files_of_tensors_that_are_not_whole_are_corrupt() {
    let holds_tensors = |kind| !matches!(kind, Kind::JaxExport | Kind::StableHlo);
    for (name, kind) in
        FILES.iter().copied().filter(|(_, kind)| kind.is_judged() && holds_tensors(*kind))
    {
        let bytes = fs::read(Path::new(KINDS).join(name)).unwrap();
        for length in 1..bytes.len() {
            let (_folder, path) = file(name, &bytes[..length]);
            let verdict = first(&path, &verifying());
            assert_eq!(verdict.kind, Some(kind), "{name}, {length} bytes");
            assert_eq!(rule(&verdict), Some(Rule::Corrupt), "{name}, {length} bytes: {verdict}");
        }
        let longer = [&bytes[..], b"more"].concat();
        let (_folder, path) = file(name, &longer);
        // For NumPy files and archives, bytes behind the data give a warning.
        if !matches!(kind, Kind::Npy | Kind::Npz) {
            assert_eq!(rule(&first(&path, &Options::default())), Some(Rule::Corrupt), "{name}");
        }
    }
}

#[test]
fn jax_artifact_is_detected_by_content_and_corrupt_cut_off() {
    let newest = Consumer::newest();
    for name in ["f-0.10.2.jaxexport", "f-0.12.0.1.jaxexport", "f.mlirbc"] {
        let (_, kind) = FILES.iter().copied().find(|(other, _)| *other == name).unwrap();
        let bytes = fs::read(Path::new(KINDS).join(name)).unwrap();
        let judge = |length: usize| {
            check::reader(&bytes[..length], Some(kind)).unwrap().for_consumer(&newest)
        };
        // A flatbuffer ends with a few bytes that readers ignore.
        let read = (1..=bytes.len()).find(|length| judge(*length).is_acceptable()).unwrap();
        assert!(bytes.len() - read < 32, "{name}: {read}");
        for length in 1..read {
            let cut = &bytes[..length];
            let verdict = judge(length);
            assert_eq!(rule(&verdict), Some(Rule::Corrupt), "{name}, {length} bytes: {verdict}");
            // These bytes are the offsets of the fields of a flatbuffer, and the producer's name.
            if length > 200 {
                assert_eq!(in_memory(cut).kind, Some(kind), "{name}, {length} bytes");
            }
        }
    }
}

#[test]
fn each_release_of_jaxlib_has_its_own_verdict() {
    let path = Path::new(KINDS).join("f-0.8.0.jaxexport");
    let releases = Consumer::jax_releases("all").unwrap();
    let verdicts = check::path(&path).unwrap().for_consumers(&releases);
    assert_eq!((verdicts.oldest(), verdicts.newest()), (Some("0.8.0"), Some("0.11.0")));
    // TensorFlow does not load it; the newest jaxlib represents all of its releases.
    let releases = Consumer::releases("all").unwrap();
    let verdicts: Vec<_> =
        check::path(&path).unwrap().for_consumers(&releases).into_iter().collect();
    let [verdict] = verdicts.as_slice() else { panic!("{} verdicts", verdicts.len()) };
    assert_eq!(verdict.release.as_deref(), Consumer::jax_releases("latest").unwrap()[0].jaxlib());
    assert_eq!(verdict.reasons()[0].rule, Rule::TooOld);
    assert!(verdict.reasons()[0].remedy.to_string().contains("0.11.0"), "{verdict}");
}

#[test]
fn archive_of_arrays_is_verified_to_the_last_byte() {
    for name in ["arrays.npz", "arrays_compressed.npz"] {
        let bytes = fs::read(Path::new(KINDS).join(name)).unwrap();
        let opened = first(&Path::new(KINDS).join(name), &Options::default());
        assert!(opened.is_acceptable());
        // A position in the data of the first entry; the second entry begins behind it.
        let second = 4 + bytes[4..].windows(4).position(|mark| mark == b"PK\x03\x04").unwrap();
        let mut damaged = bytes.clone();
        damaged[second - 6] ^= 1;
        let (_folder, path) = file(name, &damaged);
        let verdict = first(&path, &verifying());
        assert_eq!(rule(&verdict), Some(Rule::Corrupt), "{name}: {verdict}");
    }
}

#[test]
fn arrays_that_cannot_be_moved_are_whole_or_not_all_the_same() {
    let npy = |descr: &str, shape: &str, data: usize| {
        let mut text =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        text.push_str(&" ".repeat(117 - text.len()));
        text.push('\n');
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        in_memory(&bytes)
    };
    for (descr, item) in [("<U10", 40), ("|S5", 5), ("<M8[ns]", 8), ("|V8", 8), ("<c32", 32)] {
        let whole = npy(descr, "(3,)", 3 * item);
        assert!(whole.is_acceptable(), "{descr}: {whole}");
        assert_eq!(whole.warnings()[0].rule, Rule::Unsupported, "{descr}");
        assert_eq!(rule(&npy(descr, "(3,)", 3 * item - 1)), Some(Rule::Corrupt), "{descr}");
    }
    // The header does not tell the size of Python objects, and NumPy does not load them.
    assert_eq!(rule(&npy("|O", "(3,)", 17)), Some(Rule::PickledObjects));
}

#[test]
fn no_bare_message_of_ifrt_passes_for_a_graph() {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![Path::new(DATA).join("ifrt/golden")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    assert!(files.len() > 100);
    for path in files {
        let bytes = fs::read(&path).unwrap();
        // The shape of a scalar has no bytes, which are an empty graph as well.
        if bytes.is_empty() {
            continue;
        }
        let verdict = in_memory(&bytes);
        let is_known = matches!(verdict.kind, Some(Kind::IfrtMessage | Kind::IfrtSerialized));
        assert!(is_known, "{}: {verdict}", path.display());
        // TensorFlow reads it as a graph, and its name can say that it is meant as one.
        let (_folder, graph) = file("message.pb", &bytes);
        assert_ne!(first(&graph, &Options::default()).kind, Some(Kind::IfrtMessage));
    }
}

#[test]
fn messages_that_real_clients_sent_are_no_graphs() {
    let mut messages = 0;
    for entry in fs::read_dir(Path::new(DATA).join("ifrt/captured")).unwrap() {
        let path = entry.unwrap().path();
        for line in fs::read_to_string(&path).unwrap().lines() {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            let name = record["message"].as_str().unwrap();
            let bytes = hexadecimal(record["hex"].as_str().unwrap());
            let kind = in_memory(&bytes).kind;
            let is_known = matches!(kind, Some(Kind::IfrtMessage | Kind::IfrtSerialized));
            assert!(is_known || bytes.is_empty(), "{}: {name}: {kind:?}", path.display());
            messages += 1;
        }
    }
    assert!(messages > 500, "{messages}");
}

#[test]
fn a_walk_counts_what_is_of_no_kind_that_is_judged() {
    let options = Options::default();
    let mut walk = check::walk(KINDS, &options);
    let verdicts: Vec<_> = walk.by_ref().map(Result::unwrap).collect();
    let checked: Vec<_> =
        verdicts.iter().map(|verdict| verdict.path.rsplit('/').next().unwrap()).collect();
    let judged = judged();
    assert_eq!(checked, judged);
    assert!(walk.is_of_directory() && walk.found_any());
    // All files of the corpus that are not judged, and its manifest.
    assert_eq!(walk.skipped().count, (FILES.len() - judged.len() + 1) as u64);
    assert!(walk.skipped().paths.iter().any(|path| path.ends_with("orbax")));
    let refused: Vec<_> = verdicts.iter().filter(|verdict| !verdict.is_acceptable()).collect();
    assert!(refused.len() == 1 && refused[0].path.ends_with("f-0.8.0.jaxexport"), "{refused:?}");
    let mut walk = check::walk(Path::new(KINDS).join("array.npy"), &options);
    assert_eq!(walk.by_ref().count(), 1);
    assert!(!walk.is_of_directory());
}

#[test]
fn a_page_that_is_called_like_a_model_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["model.pb", "model.safetensors", "model.onnx", "README.md"] {
        fs::copy(Path::new(KINDS).join("login.html"), folder.path().join(name)).unwrap();
    }
    let options = Options::default();
    let mut walk = check::walk(folder.path(), &options);
    let verdicts: Vec<_> = walk.by_ref().map(Result::unwrap).collect();
    let checked: Vec<_> =
        verdicts.iter().map(|verdict| verdict.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(checked, ["model.pb", "model.safetensors"]);
    assert!(verdicts.iter().all(|verdict| rule(verdict) == Some(Rule::OtherKind)));
    assert_eq!(walk.skipped().count, 2);
}

#[test]
fn parts_of_an_artifact_are_neither_checked_nor_skipped() {
    let options = Options::default();
    for (path, checked) in [
        ("tensorflow/ckpt/saver_v2", 2),
        ("../golden/device_state/v0", 2),
        ("tensorflow/sm/tf1_two", 1),
    ] {
        let mut walk = check::walk(Path::new(DATA).join(path), &options);
        assert_eq!(walk.by_ref().count(), checked, "{path}");
        assert_eq!(walk.skipped().paths, Vec::<PathBuf>::new(), "{path}");
    }
    // A shard without its index and parts without their state belong to nothing.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ckpt.data-00000-of-00001"), b"\x01\x02\x03").unwrap();
    let mut walk = check::walk(folder.path(), &options);
    assert_eq!(walk.by_ref().count(), 1);
    assert!(!walk.found_any());
    assert_eq!(walk.skipped().count, 1);
}

#[test]
fn directory_without_a_message_is_a_saved_model_if_alone() {
    let folder = tempfile::tempdir().unwrap();
    let copy =
        |name: &str| fs::copy(Path::new(KINDS).join(name), folder.path().join(name)).unwrap();
    copy("fingerprint.pb");
    fs::create_dir(folder.path().join("variables")).unwrap();
    let verdict = first(folder.path(), &Options::default());
    assert_eq!((verdict.kind, rule(&verdict)), (Some(Kind::SavedModel), Some(Rule::NotFound)));
    copy("array.npy");
    let verdict = first(folder.path(), &Options::default());
    assert_eq!((verdict.kind, verdict.outcome()), (Some(Kind::Npy), Outcome::Acceptable));
}

#[test]
fn excluded_paths_are_neither_checked_nor_skipped_nor_entered() {
    let options = Options::default();
    let mut walk = check::walk(KINDS, &options)
        .without(|path, is_directory| is_directory || path == Path::new("array.npy"));
    let judged = judged().len();
    assert_eq!(walk.by_ref().count(), judged - 1);
    // All files of the corpus that are not judged, with its manifest and without its directory.
    assert_eq!(walk.skipped().count, (FILES.len() - judged + 1 - 1) as u64);
}

#[test]
fn at_most_a_hundred_skipped_paths_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..130 {
        fs::write(folder.path().join(format!("{number:03}.txt")), "words").unwrap();
    }
    let options = Options::default();
    let mut walk = check::walk(folder.path(), &options);
    assert_eq!(walk.by_ref().count(), 1);
    assert_eq!((walk.skipped().count, walk.skipped().paths.len()), (130, 100));
}

#[cfg(unix)]
#[test]
fn links_pipes_and_loops_are_said_and_never_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(folder.path(), at("loop")).unwrap();
    std::os::unix::fs::symlink(at("self"), at("self")).unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("gone")).unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("gone.pb")).unwrap();
    std::os::unix::fs::symlink(Path::new(KINDS).join("array.npy"), at("link.npy")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(at("pipe.pb")).status().unwrap();
    assert!(pipe.success());
    let options = Options::default();
    let mut walk = check::walk(folder.path(), &options);
    let verdicts: Vec<_> = walk.by_ref().map(Result::unwrap).collect();
    let found: Vec<_> = verdicts
        .iter()
        .map(|verdict| (verdict.path.rsplit('/').next().unwrap(), verdict.outcome()))
        .collect();
    assert_eq!(found, [("gone.pb", Outcome::Unreadable), ("link.npy", Outcome::Acceptable)]);
    let skipped: Vec<_> =
        walk.skipped().paths.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(skipped, ["gone", "loop", "pipe.pb", "self"]);
}

/// Returns a graph of this producer, without nodes.
fn graph_of(producer: i32) -> Vec<u8> {
    let number = [producer as u8 & 0x7f | 0x80, (producer >> 7) as u8];
    [&[0x22, 3, 0x08][..], &number].concat()
}

#[test]
fn producer_is_ahead_of_the_window_from_day_22_on() {
    let consumer = Consumer::tensorflow("2.21").unwrap();
    let ours = consumer.line(ArtifactLine::GraphDef).version;
    for (ahead, warned) in [(0, false), (1, false), (21, false), (22, true), (400, true)] {
        let verdict = check::bytes(graph_of(ours + ahead)).for_consumer(&consumer);
        assert!(verdict.is_acceptable(), "{verdict}");
        let rules: Vec<_> = verdict.warnings().iter().map(|warning| warning.rule).collect();
        assert_eq!(rules.contains(&Rule::ForwardCompatibility), warned, "{ahead}: {verdict}");
        let options = Options::for_consumer(consumer.clone()).with_strict(true);
        let strict = check::bytes(graph_of(ours + ahead)).check(&options).unwrap();
        assert_eq!(strict.is_acceptable(), !warned, "{ahead}: {strict}");
    }
}

/// Returns a SavedModel of one meta graph, with the release that wrote it, whether default
/// attributes were stripped, and its producer.
fn saved_model(release: &str, stripped: bool, producer: i32) -> Vec<u8> {
    let field =
        |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8], content].concat();
    let operations = field(1, &field(1, b"NoOp"));
    let info = [
        field(2, &operations),
        field(4, b"serve"),
        field(5, release.as_bytes()),
        vec![0x38, u8::from(stripped)],
    ];
    let meta_graph = [field(1, &info.concat()), field(2, &graph_of(producer))].concat();
    [vec![0x08, 1], field(2, &meta_graph)].concat()
}

#[test]
fn patches_of_one_release_are_compatible_with_one_another() {
    let consumer = Consumer::tensorflow("2.16").unwrap();
    // Newer than every release whose operations are known, so that operations do not decide.
    let far = Consumer::newest().line(ArtifactLine::GraphDef).version + 300;
    for (release, warned) in [
        ("2.16.1", false),
        ("2.16.99", false),
        ("2.17.0", true),
        ("2.1.6", true),
        ("2.16.0-dev20240101", true),
        ("", true),
        ("unknown", true),
    ] {
        let (_folder, path) = file("saved_model.pb", &saved_model(release, false, far));
        let verdict = check::path(&path).unwrap().for_consumer(&consumer);
        let rules: Vec<_> = verdict.warnings().iter().map(|warning| warning.rule).collect();
        assert_eq!(rules.contains(&Rule::ForwardCompatibility), warned, "{release}: {verdict}");
    }
    // A consumer with custom numbers is not a release.
    let consumer = consumer.with("graph_def=1000").unwrap();
    let (_folder, path) = file("saved_model.pb", &saved_model("2.16.1", false, 1400));
    assert_eq!(check::path(&path).unwrap().for_consumer(&consumer).warnings().len(), 1);
}

#[test]
fn stripped_attributes_of_a_meta_graph_are_reported() {
    for stripped in [false, true] {
        let bytes = saved_model("2.21.0", stripped, 3000);
        let (_folder, path) = file("saved_model.pb", &bytes);
        let artifact = check::path(&path).unwrap();
        let inspection = artifact.inspect().unwrap();
        assert_eq!(inspection.stripped_default_attrs, Some(stripped));
        assert_eq!(inspection.stripped_op_list, Some(1));
        let verdict = artifact.for_consumer(&Consumer::tensorflow("2.12").unwrap());
        let message = &verdict.warnings()[0].message;
        assert_eq!(message.contains("left out"), stripped, "{message}");
    }
    let graph = check::bytes(graph_of(2474)).inspect().unwrap();
    assert_eq!((graph.stripped_default_attrs, graph.stripped_op_list), (None, None));
}

#[test]
fn loader_refuses_functions_with_deprecated_operations() {
    let path = Path::new(DATA).join("tensorflow/sm/sm_tf2_dep_op_in_functions");
    let artifact = check::path(path).unwrap();
    // With known operations, and without.
    for consumer in [Consumer::newest(), Consumer::newest().with("graph_def=2473").unwrap()] {
        let verdict = artifact.for_consumer(&consumer);
        assert!(verdict.is_acceptable(), "{verdict}");
        assert_eq!(verdict.loaders.unwrap().load, Outcome::Unacceptable, "{verdict}");
        let about: Vec<_> =
            verdict.warnings().iter().filter(|w| w.rule == Rule::LoaderDiffers).collect();
        assert_eq!(about.len(), 1, "{verdict}");
        assert!(about[0].message.contains("tf.saved_model.load refuses"), "{verdict}");
        assert!(about[0].message.contains("deprecated_op"), "{verdict}");
    }
}

#[test]
fn a_check_that_is_stopped_has_no_verdict() {
    let monitor = serdes_device_state::ProgressMonitor::new();
    let options = verifying().with_monitor(monitor.clone());
    let path = Path::new(KINDS).join("model.safetensors");
    assert!(check::path(&path).unwrap().check(&options).is_ok());
    monitor.cancel();
    let cancelled = check::path(&path).unwrap().check(&options).unwrap_err();
    assert_eq!(Path::new(&cancelled.path), path);
    // The walk ends with this error.
    let all: Vec<_> = check::all(KINDS, &options).collect();
    assert!(matches!(&all[..], [Err(_)]), "{all:?}");
}

#[test]
fn an_unfinished_checkpoint_of_orbax_is_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default();
    let make = |name: &str, files: &[(&str, &str)]| {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        for (file, text) in files {
            fs::write(path.join(file), text).unwrap();
        }
        fs::create_dir(path.join("ocdbt.process_0")).unwrap();
        first(&path, &options)
    };
    let begun = r#"{"init_timestamp_nsecs": 1, "commit_timestamp_nsecs": null}"#;
    let whole = r#"{"init_timestamp_nsecs": 1, "commit_timestamp_nsecs": 2}"#;
    for (name, files, is_finished) in [
        ("7", &[("_CHECKPOINT_METADATA", whole), ("_METADATA", "{}")][..], true),
        ("6", &[("_METADATA", "{}")], true),
        ("8.orbax-checkpoint-tmp-1700000000", &[("_CHECKPOINT_METADATA", whole)], false),
        ("8.orbax-checkpoint-tmp", &[], false),
        ("9", &[("_CHECKPOINT_METADATA", begun)], false),
        ("10", &[], false),
    ] {
        let verdict = make(name, files);
        assert_eq!((verdict.kind, rule(&verdict)), (Some(Kind::Orbax), Some(Rule::OtherKind)));
        let said = verdict.reasons()[0].message.contains("was not finished");
        assert_eq!(said, !is_finished, "{name}: {verdict}");
    }
}

#[test]
fn a_msgpack_file_of_flax_is_of_another_kind() {
    let array = b"\x93\x91\x01\xa5uint8\xc4\x01a";
    let bytes = [&b"\x81\xa6params\x81\xa1w"[..], &[0xc7, array.len() as u8, 1], array].concat();
    for name in ["flax_model.msgpack", "checkpoint_7", "x.pb", "x.safetensors"] {
        let (_folder, path) = file(name, &bytes);
        let verdict = first(&path, &Options::default());
        assert_eq!((verdict.kind, rule(&verdict)), (Some(Kind::Flax), Some(Rule::OtherKind)));
    }
}

#[test]
fn safetensors_with_a_type_of_their_own_are_refused() {
    for dtype in ["f32", "Q3", "F32 "] {
        let header = format!(r#"{{"a":{{"dtype":"{dtype}","shape":[1],"data_offsets":[0,4]}}}}"#);
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend([0; 4]);
        let found = check::bytes(file).check(&Options::default()).unwrap();
        let rules: Vec<_> = found.reasons().iter().map(|reason| reason.rule).collect();
        assert_eq!(rules, [Rule::Unsupported], "{dtype}: {found}");
        assert!(found.to_string().contains("none that the format has"), "{found}");
    }
}

#[test]
fn checkpoint_without_a_name_of_its_own_has_its_data_beside() {
    let folder = tempfile::tempdir().unwrap();
    let base = Path::new(DATA).join("tensorflow/ckpt/base/ckpt");
    for name in ["index", "data-00000-of-00001"] {
        let path = folder.path().join(format!(".{name}"));
        fs::copy(base.with_extension(name), path).unwrap();
    }
    for path in [folder.path().join(""), folder.path().join(".index")] {
        let found = first(&path, &verifying());
        assert!(found.is_acceptable() && found.warnings().is_empty(), "{path:?}: {found}");
    }
}
