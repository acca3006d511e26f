//! Tests of SavedModels whose variables or assets are missing, damaged, or those of another model,
//! with the outcome of each of TensorFlow's loaders (`tests/interop/tensorflow_variables.py` asks
//! the real ones).

use std::{
    fs,
    path::{Path, PathBuf},
};

use Outcome::{Acceptable, Unacceptable, Unreadable};
use serdes_check::{self as check, Consumer, Loader, Options, Outcome, Rule, Verdict};
use serdes_checkpoints::tensor_bundle::{Bundle, BundleOptions, BundleWriter};
use serdes_graph_format::data_type::DataType;
use serdes_testkit::fields::field;
use tempfile::TempDir;

const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tensorflow/variables");

/// A copy of a model, which a test damages.
struct Model {
    folder: TempDir,
}

impl Model {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&Path::new(MODELS).join(name), folder.path());
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn index(&self) -> PathBuf {
        self.path("variables/variables.index")
    }

    fn data(&self) -> PathBuf {
        self.path("variables/variables.data-00000-of-00001")
    }

    fn checked(&self, options: &Options) -> Verdict {
        check::path(self.folder.path()).unwrap().check(options).unwrap()
    }

    fn verdict(&self) -> Verdict {
        self.checked(&Options::default())
    }

    /// Returns the outcomes of `load_v1`, `load` and `cpp`.
    fn loaders(&self) -> [Outcome; 3] {
        let loaders = self.verdict().loaders.unwrap();
        [loaders.load_v1, loaders.load, loaders.cpp]
    }

    /// Writes the checkpoint again, with each tensor as `change` leaves it.
    fn rewrite(&self, change: impl Fn(&mut Tensor) -> bool) {
        let prefix = self.path("variables/variables");
        let mut tensors = tensors(&prefix);
        tensors.retain_mut(change);
        write(&prefix, &tensors);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// A tensor of a checkpoint.
#[derive(Clone)]
struct Tensor {
    name: String,
    data_type: DataType,
    shape: Vec<i64>,
    bytes: Vec<u8>,
    texts: Vec<Vec<u8>>,
}

fn tensors(prefix: &Path) -> Vec<Tensor> {
    let bundle = Bundle::open(prefix).unwrap();
    let tensor = |entry: &serdes_checkpoints::tensor_bundle::TensorEntry| {
        let data_type = entry.data_type().unwrap();
        let (mut bytes, mut texts) = (Vec::new(), Vec::new());
        match data_type {
            DataType::String => texts = bundle.strings(entry).unwrap(),
            _ => drop(std::io::copy(&mut bundle.reader(entry).unwrap(), &mut bytes).unwrap()),
        }
        let (name, shape) = (entry.name().into_owned(), entry.shape().to_vec());
        Tensor { name, data_type, shape, bytes, texts }
    };
    bundle.tensors().tensors.iter().map(tensor).collect()
}

fn write(prefix: &Path, tensors: &[Tensor]) {
    let mut writer = BundleWriter::create(prefix, BundleOptions::default()).unwrap();
    for Tensor { name, data_type, shape, bytes, texts } in tensors {
        match data_type {
            DataType::String => writer.add_strings(name, shape, texts).unwrap(),
            _ => writer.add_bytes(name, *data_type, shape, bytes).unwrap(),
        }
    }
    writer.finish().unwrap();
}

fn first_rule(verdict: &Verdict) -> Rule {
    verdict.reasons()[0].rule
}

const WHOLE: [&str; 8] =
    ["references", "resources", "table", "objects", "tables", "unread", "nothing", "old_format"];

#[test]
fn saved_model_as_exported_is_taken_by_every_loader() {
    for name in WHOLE {
        let model = Model::new(name);
        for release in Consumer::releases("all").unwrap() {
            let verdict = model.checked(&Options::default().with_consumer(release));
            assert!(verdict.reasons().is_empty(), "{verdict}");
        }
        assert!(model.verdict().warnings().is_empty(), "{}", model.verdict());
        assert_eq!(model.loaders(), [Acceptable; 3], "{name}");
    }
}

#[test]
fn saved_model_without_variables_is_unreadable_in_python() {
    for name in ["references", "resources", "objects", "tables", "old_format"] {
        let model = Model::new(name);
        fs::remove_dir_all(model.path("variables")).unwrap();
        // The C++ loader continues without it.
        assert_eq!(model.loaders(), [Unreadable, Unreadable, Acceptable], "{name}");
        let verdict = model.verdict();
        assert_eq!(first_rule(&verdict), Rule::NotFound, "{verdict}");
        assert!(verdict.warnings().iter().all(|one| one.rule == Rule::LoaderDiffers), "{verdict}");
        let cpp = model.checked(&Options::default().with_loader(Loader::Cpp));
        assert!(cpp.reasons().is_empty(), "{cpp}");
        assert!(cpp.warnings().iter().any(|one| one.rule == Rule::NotFound), "{cpp}");
    }
}

#[test]
fn saved_model_that_restores_nothing_needs_no_data() {
    let model = Model::new("nothing");
    fs::remove_file(model.data()).unwrap();
    // The data file describes the objects, and only one loader creates objects.
    assert_eq!(model.loaders(), [Acceptable, Unreadable, Acceptable]);
    fs::write(model.index(), b"").unwrap();
    assert_eq!(model.loaders(), [Acceptable, Unreadable, Acceptable]);
    assert!(model.verdict().warnings().iter().any(|one| one.rule == Rule::Corrupt));
}

#[test]
fn saved_model_with_a_lost_or_cut_data_file_is_unreadable() {
    for name in ["references", "resources", "objects", "tables"] {
        let model = Model::new(name);
        let bytes = fs::read(model.data()).unwrap();
        fs::write(model.data(), &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(model.loaders(), [Unreadable; 3], "{name}");
        assert_eq!(first_rule(&model.verdict()), Rule::Corrupt, "{name}");
        fs::remove_file(model.data()).unwrap();
        assert_eq!(model.loaders(), [Unreadable; 3], "{name}");
        let verdict = model.verdict();
        assert_eq!(first_rule(&verdict), Rule::NotFound, "{verdict}");
        // No warning repeats a reason for which the model is refused.
        let lost: Vec<_> = verdict.reasons().iter().map(|one| one.message.clone()).collect();
        assert!(verdict.warnings().iter().all(|one| !lost.contains(&one.message)), "{verdict}");
    }
}

#[test]
fn saved_model_with_a_damaged_index_is_unreadable() {
    for name in ["references", "objects"] {
        for index in
            [&b""[..], b"no table at all, and long enough to have been one of them, or nearly so"]
        {
            let model = Model::new(name);
            fs::write(model.index(), index).unwrap();
            assert_eq!(model.loaders(), [Unreadable; 3], "{name}");
        }
    }
}

#[test]
fn saved_model_with_variables_of_another_is_refused() {
    for (name, other) in [("references", "table"), ("objects", "tables"), ("tables", "objects")] {
        let model = Model::new(name);
        fs::remove_dir_all(model.path("variables")).unwrap();
        copy(&Path::new(MODELS).join(other).join("variables"), &model.path("variables"));
        assert_eq!(model.loaders(), [Unacceptable; 3], "{name}");
        assert_eq!(first_rule(&model.verdict()), Rule::VariableMismatch, "{name}");
        let strict = Options::default().with_verify_data(true).with_strict(true);
        assert!(!model.checked(&strict).is_acceptable(), "{name}");
    }
}

#[test]
fn saved_model_lacking_one_variable_names_it() {
    for (name, lost) in [
        ("references", "kernel"),
        ("objects", "list/0/.ATTRIBUTES/VARIABLE_VALUE"),
        ("tables", "mutable/.ATTRIBUTES/table-values"),
    ] {
        let model = Model::new(name);
        model.rewrite(|tensor| tensor.name != lost);
        assert_eq!(model.loaders(), [Unacceptable; 3], "{name}");
        let verdict = model.verdict();
        assert_eq!(verdict.reasons()[0].place.as_deref(), Some(lost), "{verdict}");
        // An additional one is ignored.
        let model = Model::new(name);
        let prefix = model.path("variables/variables");
        let mut more = tensors(&prefix);
        more.push(Tensor { name: "zzz".to_owned(), ..more[0].clone() });
        write(&prefix, &more);
        assert_eq!(model.loaders(), [Acceptable; 3], "{name}");
    }
}

#[test]
fn saved_model_with_a_variable_of_another_type_is_refused() {
    for (name, variable) in [
        ("references", "kernel"),
        ("resources", "kernel"),
        ("objects", "kernel/.ATTRIBUTES/VARIABLE_VALUE"),
    ] {
        let model = Model::new(name);
        model.rewrite(|tensor| {
            if tensor.name == variable {
                tensor.data_type = DataType::Int32;
            }
            true
        });
        assert_eq!(model.loaders(), [Unacceptable; 3], "{name}");
        let verdict = model.verdict();
        let reason = &verdict.reasons()[0];
        let numbers = (reason.found.as_deref(), reason.expected.as_deref());
        assert_eq!(numbers, (Some("int32"), Some("float32")), "{verdict}");
    }
}

#[test]
fn saved_model_with_a_variable_of_another_shape() {
    let refused = |name: &str, variable: &str| {
        let model = Model::new(name);
        model.rewrite(|tensor| {
            if tensor.name == variable {
                tensor.shape = vec![1, tensor.shape.iter().product()];
            }
            true
        });
        model.loaders()
    };
    // Assignment to a reference variable checks the shape; a resource variable takes any shape,
    // except where objects are created.
    assert_eq!(refused("references", "kernel"), [Unacceptable; 3]);
    assert_eq!(refused("resources", "kernel"), [Acceptable; 3]);
    let variable = "list/0/.ATTRIBUTES/VARIABLE_VALUE";
    assert_eq!(refused("objects", variable), [Acceptable, Unacceptable, Acceptable]);
    // This variable declares that it takes any number of rows.
    assert_eq!(refused("objects", "any_rows/.ATTRIBUTES/VARIABLE_VALUE"), [Acceptable; 3]);
    assert_eq!(refused("tables", "mutable/.ATTRIBUTES/table-keys"), [Unacceptable; 3]);
}

#[test]
fn saved_model_whose_objects_are_not_described() {
    let model = Model::new("objects");
    model.rewrite(|tensor| tensor.name != "_CHECKPOINTABLE_OBJECT_GRAPH");
    assert_eq!(model.loaders(), [Unacceptable; 3]);
    let model = Model::new("objects");
    model.rewrite(|tensor| {
        tensor.texts.iter_mut().for_each(|text| text.truncate(text.len() / 2));
        true
    });
    // The tensors that the saver reads exist; those of the objects do not.
    assert_eq!(model.loaders(), [Acceptable, Unreadable, Acceptable]);
}

#[test]
fn saved_model_without_an_asset() {
    for name in ["table", "tables"] {
        let model = Model::new(name);
        fs::write(model.path("assets/words.txt"), b"").unwrap();
        assert_eq!(model.loaders(), [Unreadable; 3], "{name}");
        assert_eq!(first_rule(&model.verdict()), Rule::Corrupt, "{name}");
        fs::remove_dir_all(model.path("assets")).unwrap();
        assert_eq!(model.loaders(), [Unreadable; 3], "{name}");
        assert_eq!(first_rule(&model.verdict()), Rule::NotFound, "{name}");
    }
    // Nothing reads this asset before a function is called.
    let model = Model::new("unread");
    fs::remove_dir_all(model.path("assets")).unwrap();
    assert_eq!(model.loaders(), [Acceptable; 3]);
    assert_eq!(model.verdict().warnings()[0].rule, Rule::NotFound);
}

#[test]
fn saved_model_whose_table_has_lines_that_no_table_takes() {
    for name in ["table", "tables"] {
        let model = Model::new(name);
        for (text, said) in [
            ("one\ntwo\none\n", "line 3 has the key \"one\""),
            ("one\r\ntwo\nbut\none", "line 4 has the key"),
            ("one\n\ntwo\n", "line 2 is empty"),
        ] {
            fs::write(model.path("assets/words.txt"), text).unwrap();
            assert_eq!(model.loaders(), [Unreadable; 3], "{name}: {text:?}");
            let verdict = model.verdict();
            assert_eq!(first_rule(&verdict), Rule::Corrupt, "{verdict}");
            assert!(verdict.to_string().contains(said), "{verdict}");
        }
        fs::write(model.path("assets/words.txt"), "one\ntwo\nthree").unwrap();
        assert_eq!(model.loaders(), [Acceptable; 3], "{name}");
    }
    // Nothing reads this asset before a function is called.
    let model = Model::new("unread");
    fs::write(model.path("assets/words.txt"), "one\none\n").unwrap();
    assert_eq!(model.loaders(), [Acceptable; 3]);
}

#[test]
fn saved_model_with_two_assets_for_one_tensor() {
    let asset = |file: &str| {
        let info = field(1, b"asset_path_initializer:0");
        field(6, &[field(1, &info), field(2, file.as_bytes())].concat())
    };
    // Of two files with one name, Python takes the last, an object takes its own, and a session
    // takes neither.
    for (files, load_v1, load) in [
        (["words.txt", "words.txt"], Acceptable, Acceptable),
        (["words.txt", "other.txt"], Unreadable, Acceptable),
        (["other.txt", "words.txt"], Acceptable, Unreadable),
    ] {
        let model = Model::new("tables");
        let path = model.path("saved_model.pb");
        let bytes = fs::read(&path).unwrap();
        // The version of the model, then its meta graph with three bytes of length.
        let (version, meta_graph) = (&bytes[..2], &bytes[6..]);
        let one = asset("words.txt");
        let at = meta_graph.windows(one.len()).position(|window| window == one).unwrap();
        let (before, behind) = (&meta_graph[..at], &meta_graph[at + one.len()..]);
        let meta_graph = [before, &files.map(asset).concat(), behind].concat();
        fs::write(&path, [version, &field(2, &meta_graph)].concat()).unwrap();
        assert_eq!(model.loaders(), [load_v1, load, Unreadable], "{files:?}");
    }
}

#[test]
fn saved_model_whose_table_has_its_path_in_a_variable() {
    // tensorflow/serving#1437.
    let verdict = Model::new("path_unset").verdict();
    let loaders = verdict.loaders.unwrap();
    assert_eq!([loaders.load_v1, loaders.load, loaders.cpp], [Unreadable; 3], "{verdict}");
    assert_eq!(verdict.reasons()[0].place.as_deref(), Some("index_asset_path"), "{verdict}");
    // The variable is restored as well: either the restored or the assigned value may be used.
    let verdict = Model::new("path_restored").verdict();
    assert_eq!(verdict.outcome(), Acceptable, "{verdict}");
    let [warning] = verdict.warnings() else { panic!("one warning: {verdict}") };
    assert_eq!(warning.place.as_deref(), Some("index_asset_path"), "{verdict}");
}

#[test]
fn saved_model_whose_table_is_filled_from_elsewhere() {
    let verdict = Model::new("table_elsewhere").verdict();
    assert_eq!(verdict.outcome(), Acceptable, "{verdict}");
    let [warning] = verdict.warnings() else { panic!("one warning: {verdict}") };
    assert_eq!(warning.rule, Rule::NotFound);
    assert_eq!(warning.place.as_deref(), Some("/data/vocabulary/words.txt"));
    // The path of an asset is a constant as well.
    for name in ["table", "tables", "unread"] {
        assert!(Model::new(name).verdict().warnings().is_empty(), "{name}");
    }
}

#[test]
fn saved_model_with_a_changed_byte_of_a_variable() {
    let model = Model::new("references");
    let mut bytes = fs::read(model.data()).unwrap();
    bytes[0] ^= 1;
    fs::write(model.data(), bytes).unwrap();
    assert_eq!(model.loaders(), [Acceptable; 3]);
    let verdict = model.checked(&Options::default().with_verify_data(true));
    assert_eq!(first_rule(&verdict), Rule::Corrupt, "{verdict}");
}
