use std::{fs, io::Read as _, path::Path};

use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
use serdes_device_state::{Reader, Versions, WriteOptions};
use serdes_files::{Durability, ProgressMonitor};
use serdes_stream_executor::{Device, Plugin};

use super::*;
use crate::*;

fn device() -> Device {
    Plugin::host().device(0).unwrap()
}

fn options() -> WriteOptions {
    WriteOptions::new(Versions::current()).with_durability(Durability::None)
}

/// Returns a canonical safetensors file with tensors of many kinds.
fn weights() -> Vec<u8> {
    let mut header = concat!(
        r#"{"__metadata__":{"format":"pt"},"#,
        r#""c":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"#,
        r#""a":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},"#,
        r#""b":{"dtype":"BF16","shape":[4],"data_offsets":[32,40]},"#,
        r#""e":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[40,42]},"#,
        r#""n":{"dtype":"I8","shape":[0],"data_offsets":[42,42]},"#,
        r#""p":{"dtype":"F4","shape":[2,2],"data_offsets":[42,44]}}"#,
    )
    .to_owned();
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend((0..44).map(|n: u8| n.wrapping_mul(37)));
    bytes
}

fn save_one(source: &Path, state: &Path) -> Result<SaveReport, Error> {
    save(&[open(source)?], state, &device(), &options(), false, &ProgressMonitor::new())
}

fn restore_all(state: &Path, target: &Path) -> Result<RestoreReport, Error> {
    let reader = Reader::open(state)?;
    let tensors = reader.select::<&str>(&[])?;
    let target = create(target, &options())?;
    restore(&reader, &tensors, &[], &device(), Some(target), &ProgressMonitor::new())
}

#[test]
fn a_safetensors_file_makes_the_trip_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let [source, state, target] =
        ["a.safetensors", "a.sds", "b.safetensors"].map(|name| directory.path().join(name));
    fs::write(&source, weights()).unwrap();
    let saved = save_one(&source, &state).unwrap();
    assert_eq!((saved.moved.tensors, saved.moved.bytes), (6, 46));
    let restored = restore_all(&state, &target).unwrap();
    assert_eq!((restored.moved.tensors, restored.moved.bytes), (6, 46));
    assert!(restored.read_back_verified);
    assert_eq!(fs::read(&target).unwrap(), weights());
}

#[test]
fn tensors_go_from_form_to_form() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let header = concat!(
        r#"{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"#,
        r#""b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}}"#,
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(0..32_u8);
    fs::write(path("0.safetensors"), bytes).unwrap();
    let mut forms = vec!["0.safetensors", "1.sds", "2", "3.sds"];
    if cfg!(feature = "npz") {
        forms.extend(["4.npz", "5.sds"]);
    }
    forms.push("6.safetensors");
    for pair in forms.windows(2) {
        let (from, to) = (path(pair[0]), path(pair[1]));
        let source = open(&from).unwrap();
        let target = create(&to, &options()).unwrap();
        let mut target = target.begin(source.tensors().to_vec(), source.metadata()).unwrap();
        for position in target.order().to_vec() {
            target.write(position, &mut *source.read(position).unwrap()).unwrap();
        }
        target.finish().unwrap();
    }
    let last = open(path("6.safetensors")).unwrap();
    let mut data = Vec::new();
    for position in 0..2 {
        last.read(position).unwrap().read_to_end(&mut data).unwrap();
    }
    assert_eq!(data, (0..32).collect::<Vec<u8>>());
}

#[test]
fn checkpoint_with_strings_is_saved_and_restored() {
    use serdes_checkpoints::tensor_bundle::{Bundle, BundleOptions, BundleWriter};
    use serdes_graph_format::data_type::DataType;

    let directory = tempfile::tempdir().unwrap();
    let [source, state, target] =
        ["ckpt-1", "a.sds", "ckpt-2"].map(|name| directory.path().join(name));
    let mut writer = BundleWriter::create(&source, BundleOptions::default()).unwrap();
    writer.add_bytes("w", DataType::Float32, &[2], &[1; 8]).unwrap();
    writer.add_strings("words", &[2], &["", "caf\u{e9}"]).unwrap();
    writer.finish().unwrap();
    let saved = save_one(&source, &state).unwrap();
    assert_eq!(saved.moved.tensors, 2);
    restore_all(&state, &target).unwrap();
    let bundle = Bundle::open(&target).unwrap();
    let words = bundle.strings(&bundle.tensor("words").unwrap()).unwrap();
    assert_eq!(words, [&b""[..], "caf\u{e9}".as_bytes()]);
    assert_eq!(bundle.read(&bundle.tensor("w").unwrap()).unwrap(), [1; 8]);
    // safetensors cannot hold strings: nothing is written, and the old file stays.
    let other = directory.path().join("x.safetensors");
    fs::write(&other, "old").unwrap();
    assert!(matches!(restore_all(&state, &other), Err(Error::Refused { .. })));
    assert_eq!(fs::read(&other).unwrap(), b"old");
}

#[test]
fn unsupported_tensor_is_refused_by_name_or_left_out_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let (path, state) = (directory.path().join("a.safetensors"), directory.path().join("a.sds"));
    let header = concat!(
        r#"{"odd":{"dtype":"Q3","shape":[1],"data_offsets":[0,1]},"#,
        r#""good":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#,
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(b"xy");
    fs::write(&path, bytes).unwrap();
    let error = save_one(&path, &state).unwrap_err().to_string();
    assert!(error.contains("odd") && error.contains("Q3"), "{error}");
    assert!(!state.exists());
    let sources = [open(&path).unwrap()];
    let report =
        save(&sources, &state, &device(), &options(), true, &ProgressMonitor::new()).unwrap();
    assert_eq!((report.moved.tensors, report.skipped.len()), (1, 1));
}

#[test]
fn two_sources_with_a_name_in_common_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (path, state) = (directory.path().join("a.safetensors"), directory.path().join("a.sds"));
    fs::write(&path, weights()).unwrap();
    let sources = [open(&path).unwrap(), open(&path).unwrap()];
    let result = save(&sources, &state, &device(), &options(), false, &ProgressMonitor::new());
    let Err(Error::DeviceState(error)) = result else { panic!("{result:?}") };
    assert!(matches!(*error, serdes_device_state::Error::DuplicateName { .. }));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn other_files_are_named_as_what_they_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.bin");
    assert!(matches!(open(&path), Err(Error::Io { .. })));
    fs::write(&path, "hello, world").unwrap();
    assert!(matches!(open(&path), Err(Error::UnknownForm { .. })));
    fs::write(&path, weights()).unwrap();
    assert_eq!(open(&path).unwrap().kind(), "safetensors");
}

#[cfg(unix)]
#[test]
fn a_device_of_the_system_is_no_prefix_of_a_checkpoint() {
    let refused = create("/dev/null", &options()).map(|_| ());
    assert!(matches!(refused, Err(Error::UnknownForm { .. })), "{refused:?}");
}

/// Writes an npy file of 32-bit floats.
fn npy(path: &Path, values: &[f32]) {
    let shape = Shape::new([values.len() as i64]).unwrap();
    let info = TensorInfo::new("", DType::F32, shape).unwrap();
    let target = create(path, &options()).unwrap();
    let mut target = target.begin(vec![info], &None).unwrap();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    target.write(0, &mut &bytes[..]).unwrap();
    target.finish().unwrap();
}

fn compare(a: &Path, b: &Path, tolerance: Option<Tolerance>) -> Vec<Difference> {
    let (a, b) = (open(a).unwrap(), open(b).unwrap());
    diff(&*a, &*b, tolerance, &ProgressMonitor::new(), |_| {}).unwrap()
}

#[test]
fn two_npy_files_are_compared_whatever_they_are_called() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    npy(&place("before.npy"), &[1.0, 2.0, 3.0]);
    npy(&place("after.npy"), &[1.0, 2.5, 3.0]);
    let found = compare(&place("before.npy"), &place("after.npy"), None);
    let [found] = &found[..] else { panic!("{found:?}") };
    assert_eq!((found.comparison, found.max_abs), (Comparison::Differs, Some(0.5)));
    assert_eq!((found.elements, found.differing), (3, Some(1)));
    let same = &compare(&place("before.npy"), &place("before.npy"), None)[0];
    assert_eq!((same.comparison, same.elements, same.max_abs), (Comparison::Equal, 3, Some(0.0)));
    // The same when it is compared with a file of one tensor; with a file of several, names decide.
    let one = place("one.sds");
    save_one(&place("before.npy"), &one).unwrap();
    assert_eq!(compare(&place("after.npy"), &one, None)[0].differing, Some(1));
    fs::write(place("many.safetensors"), weights()).unwrap();
    assert_eq!(compare(&place("after.npy"), &place("many.safetensors"), None).len(), 7);
}

#[test]
fn numbers_within_the_tolerance_are_equal_with_their_distance() {
    let directory = tempfile::tempdir().unwrap();
    let [a, b] = ["a.npy", "b.npy"].map(|name| directory.path().join(name));
    npy(&a, &[1.0, f32::NAN, 0.0, f32::INFINITY]);
    npy(&b, &[1.25, -f32::NAN, -0.0, f32::INFINITY]);
    let exact = &compare(&a, &b, None)[0];
    assert_eq!((exact.comparison, exact.differing), (Comparison::Differs, Some(3)));
    let wide = &compare(&a, &b, Tolerance::new(0.2, 0.0))[0];
    assert_eq!((wide.comparison, wide.max_abs), (Comparison::Equal, Some(0.25)));
    let narrow = &compare(&a, &b, Tolerance::new(0.1, 0.1))[0];
    assert_eq!((narrow.comparison, narrow.differing), (Comparison::Differs, Some(1)));
}

#[test]
fn paths_of_other_kinds_and_folders_are_no_checkpoint_prefixes() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    fs::create_dir(place("folder")).unwrap();
    for name in [
        "a.pt",
        "a.PTH",
        "a.bin",
        "a.h5",
        "a.hdf5",
        "a.keras",
        "a.onnx",
        "a.pb",
        "a.tflite",
        "a.GGUF",
        "a.msgpack",
        "a.zip",
        "a.json",
        ".pt",
        "folder",
        "folder/",
        "new/",
        "folder/.",
        "..",
    ] {
        let refused = create(place(name), &options()).map(|_| ());
        assert!(matches!(refused, Err(Error::UnknownForm { .. })), "{name}: {refused:?}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    for name in ["ckpt-1000", "model.ckpt", "a.pt.1", "apt", "folder/ckpt"] {
        assert!(create(place(name), &options()).is_ok(), "{name}");
    }
}

#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_state_and_its_tensors_go_down_a_stream_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("a.safetensors");
    fs::write(&source, weights()).unwrap();
    let stream = Shared::default();
    let sources = [open(&source).unwrap()];
    let saved = save_stream(
        &sources,
        stream.clone(),
        &device(),
        &options(),
        false,
        &ProgressMonitor::new(),
    )
    .unwrap();
    let state = std::mem::take(&mut *stream.0.lock().unwrap());
    assert_eq!(saved.file_bytes, state.len() as u64);
    let reader = Reader::from_source(state.clone(), "the stream").unwrap();
    for form in [Form::Safetensors, Form::DeviceState] {
        let stream = Shared::default();
        let target = create_stream(stream.clone(), form, &options()).unwrap();
        let tensors = reader.select::<&str>(&[]).unwrap();
        restore(&reader, &tensors, &[], &device(), Some(target), &ProgressMonitor::new()).unwrap();
        let written = std::mem::take(&mut *stream.0.lock().unwrap());
        match form {
            Form::Safetensors => assert_eq!(written, weights()),
            _ => assert_eq!(written[..8], state[..8]),
        }
        // The format is detected from the content, or given by the caller.
        assert_eq!(open_stream(&written[..], "-", None).unwrap().kind(), form.as_str());
        assert!(open_stream(&written[..], "-", Some(Form::Npy)).is_err());
    }
    for form in [Form::Npz, Form::TensorBundle] {
        assert!(create_stream(Shared::default(), form, &options()).is_err(), "{form}");
    }
    assert_eq!("npz".parse::<Form>().unwrap(), Form::Npz);
    assert!("graph_def".parse::<Form>().is_err());
    assert!(matches!(open_stream(&b"words"[..], "-", None), Err(Error::UnknownForm { .. })));
    assert!(open_stream(&b""[..], "-", None).is_err());
}

#[test]
fn a_tensor_of_very_many_names_is_not_written_out_under_each() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("a.sds");
    let names = (0..300).map(|number| format!("\"other-{number}\": \"w\"")).collect::<Vec<_>>();
    let metadata = vec![("serdes_ml.aliases".to_owned(), format!("{{{}}}", names.join(", ")))];
    let spec = ArraySpec::new(
        DType::U8,
        Shape::new([1 << 20]).unwrap(),
        SingleDeviceSharding::new(DeviceId(0)),
    );
    let mut writer = options().with_metadata(Some(metadata)).create(&state).unwrap();
    writer.add_bytes("w", &spec, &vec![7; 1 << 20]).unwrap();
    writer.finish().unwrap();
    let into = |name: &str| {
        let target = directory.path().join(name);
        let made = create(&target, &options()).unwrap();
        convert(&[open(&state).unwrap()], made, &ConvertOptions::new(), &ProgressMonitor::new())
    };
    let said = into("b.safetensors").unwrap_err().to_string();
    assert!(said.contains("so many names"), "{said}");
    assert!(!directory.path().join("b.safetensors").exists());
    assert_eq!(into("b.sds").unwrap().moved.tensors, 1);
    let reader = Reader::open(&state).unwrap();
    let tensors = select(&reader, &[]).unwrap();
    let target = create(directory.path().join("c.safetensors"), &options()).unwrap();
    let restored =
        restore(&reader, &tensors, &[], &device(), Some(target), &ProgressMonitor::new());
    let said = restored.unwrap_err().to_string();
    assert!(said.contains("so many names"), "{said}");
}

/// Writes a state of two tensors, one of which has two more names; returns the bytes of both.
fn aliased(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let aliases = r#"{"head": "w", "tail/w": "w"}"#;
    let metadata = [("serdes_ml.aliases", aliases), ("step", "7")];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let mut state = options().with_metadata(Some(metadata.to_vec())).create(path).unwrap();
    let (w, b) = (vec![1, 2, 3], vec![9, 8]);
    for (name, bytes) in [("w", &w), ("b", &b)] {
        let shape = Shape::new([bytes.len() as i64]).unwrap();
        let spec = ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)));
        state.add_bytes(name, &spec, bytes).unwrap();
    }
    state.finish().unwrap();
    (w, b)
}

/// Returns names and bytes of the tensors in a file.
fn contents(path: &Path) -> Vec<(String, Vec<u8>)> {
    let source = open(path).unwrap();
    let tensors = source.tensors().iter().enumerate().map(|(position, info)| {
        let mut bytes = Vec::new();
        source.read(position).unwrap().read_to_end(&mut bytes).unwrap();
        (info.name.clone(), bytes)
    });
    let mut found: Vec<_> = tensors.collect();
    found.sort();
    found
}

#[test]
fn a_tensor_of_several_names_comes_back_under_each_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let (w, b) = aliased(&place("a.sds"));
    let state = Reader::open(place("a.sds")).unwrap();
    let back = |only: &[&str], target: &str| {
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        let tensors = select(&state, &only).unwrap();
        let target = create(place(target), &options()).unwrap();
        restore(&state, &tensors, &only, &device(), Some(target), &ProgressMonitor::new()).unwrap();
    };
    let named = |names: &[(&str, &Vec<u8>)]| -> Vec<(String, Vec<u8>)> {
        names.iter().map(|(name, bytes)| ((*name).to_owned(), (*bytes).clone())).collect()
    };
    back(&[], "all.safetensors");
    let all = named(&[("b", &b), ("head", &w), ("tail/w", &w), ("w", &w)]);
    assert_eq!(contents(&place("all.safetensors")), all);
    let metadata = open(place("all.safetensors")).unwrap().metadata().clone().unwrap();
    assert_eq!(metadata, [("step".to_owned(), "7".to_owned())]);
    back(&["head"], "head.safetensors");
    assert_eq!(contents(&place("head.safetensors")), named(&[("head", &w)]));
    // A state keeps its tensors and metadata.
    back(&[], "b.sds");
    let again = Reader::open(place("b.sds")).unwrap();
    assert_eq!((again.len(), again.metadata()), (2, state.metadata()));
    back(&["*/w", "head"], "some.sds");
    let some = Reader::open(place("some.sds")).unwrap();
    assert_eq!(some.names().collect::<Vec<_>>(), ["head"]);
    assert_eq!(contents(&place("some.sds")), named(&[("head", &w), ("tail/w", &w)]));
    let error = select(&state, &["nothing".to_owned()]).unwrap_err();
    assert!(matches!(error, serdes_device_state::Error::NoSuchTensor { .. }));
}

/// Opens a TensorFlow model of the test data.
fn model(name: &str) -> Box<dyn Source> {
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tensorflow/variables");
    open(Path::new(models).join(name)).unwrap()
}

fn converted(
    source: Box<dyn Source>,
    target: &Path,
    skip_unsupported: bool,
) -> Result<(u64, Vec<String>), Error> {
    let target = create(target, &options())?;
    let choice = ConvertOptions::new().with_skip_unsupported(skip_unsupported);
    let report = convert(&[source], target, &choice, &ProgressMonitor::new())?;
    let skipped = report.skipped.into_iter().map(|skipped| skipped.name).collect();
    Ok((report.moved.tensors, skipped))
}

#[test]
fn convert_takes_a_saved_model_without_its_bookkeeping() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    // The folder of the model works like the prefix of its checkpoint.
    let bookkeeping = vec!["_CHECKPOINTABLE_OBJECT_GRAPH".to_owned()];
    for target in ["a.safetensors", "a.npy"] {
        let made = converted(model("unread"), &place(target), false).unwrap();
        assert_eq!(made, (1, bookkeeping.clone()), "{target}");
    }
    let prefix = model("unread/variables/variables");
    assert_eq!(converted(prefix, &place("b.safetensors"), false).unwrap(), (1, bookkeeping));
    // Formats with strings can hold this model.
    assert_eq!(converted(model("unread"), &place("a.sds"), false).unwrap(), (2, Vec::new()));
    assert_eq!(converted(model("unread"), &place("a-1"), false).unwrap(), (2, Vec::new()));
    let made = open(place("a.safetensors")).unwrap();
    assert_eq!(made.tensors()[0].name, "value/.ATTRIBUTES/VARIABLE_VALUE");
}

#[test]
fn convert_of_strings_names_a_state_or_leaves_them_out() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("a.safetensors");
    let error = converted(model("objects"), &target, false).unwrap_err().to_string();
    assert!(error.contains("list/1/text") && error.contains(".sds"), "{error}");
    assert!(!target.exists());
    let (moved, skipped) = converted(model("objects"), &target, true).unwrap();
    assert_eq!((moved, skipped.len()), (4, 2), "{skipped:?}");
}
