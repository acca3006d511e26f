//! Tests on good, odd and broken checkpoints that every verdict, status and reason equals the one
//! recorded from TensorFlow 2.21.
//!
//! `ckpt_verdicts.jsonl` holds one line per operation on a checkpoint in `ckpt/`.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::Value;
use serdes_checkpoints::{StatusCode, data_type::DataType};
use serdes_checkpoints::{
    checkpoint_v1::{CheckpointV1, CheckpointV1Error},
    slice::TensorSlice,
    table::TableError,
    tensor_bundle::{Bundle, BundleError, MemoryFiles, VerifyOptions},
};
use serdes_files::{Phase, Progress, ProgressMonitor};
use serdes_version_registry::VersionRule;

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tensorflow")
}

/// A refusal of an operation: the status, the class of the reason, and the two checksums if the
/// reason is a mismatch of checksums.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    reason: String,
    checksums: Option<[u32; 2]>,
    message: String,
}

fn table_reason(error: &TableError) -> &'static str {
    match error {
        TableError::TooShort { .. } => "table_too_short",
        TableError::BadMagic { .. } => "table_magic",
        TableError::OutOfRange { .. } => "truncated",
        TableError::BlockChecksum { .. } => "table_block_checksum",
        TableError::BlockType { .. } => "table_block_type",
        TableError::BlockCompression { .. } => "table_block_compression",
        _ => "table",
    }
}

fn version_reason(rule: VersionRule) -> &'static str {
    match rule {
        VersionRule::ProducerTooOld => "version_producer_too_old",
        VersionRule::MinConsumer => "version_min_consumer",
        VersionRule::BadConsumer => "version_bad_consumer",
        _ => "version",
    }
}

impl From<BundleError> for Refusal {
    fn from(error: BundleError) -> Self {
        let mut checksums = None;
        let reason = match &error {
            BundleError::IndexMissing { .. } | BundleError::ShardMissing { .. } => {
                "missing_file".to_owned()
            }
            BundleError::Index { source, .. } => table_reason(source).to_owned(),
            BundleError::HeaderBlock { source, .. } => {
                format!("header_unreadable/{}", table_reason(source))
            }
            BundleError::NoHeader { .. } | BundleError::Header { .. } => {
                "header_unreadable".to_owned()
            }
            BundleError::Version { source, .. } => version_reason(source.rule).to_owned(),
            BundleError::TensorNotFound { .. } | BundleError::Lookup { .. } => {
                "missing_tensor".to_owned()
            }
            BundleError::Entry { .. } => "entry_unparsable".to_owned(),
            BundleError::Shape { .. } => "entry_shape".to_owned(),
            BundleError::DataType { .. } | BundleError::DataTypeMismatch { .. } => {
                "entry_dtype".to_owned()
            }
            BundleError::EntrySize { .. } => "entry_size".to_owned(),
            BundleError::EntryOffset { .. } => "entry_offset".to_owned(),
            BundleError::ShardShort { .. } => "truncated".to_owned(),
            BundleError::SlicesMissing { .. } | BundleError::Slice { .. } => "slices".to_owned(),
            BundleError::TensorChecksum { stored, computed, .. } => {
                checksums = Some([*stored, *computed]);
                "tensor_checksum".to_owned()
            }
            BundleError::StringLengthChecksum { stored, computed, .. } => {
                checksums = Some([*stored, *computed]);
                "string_length_checksum".to_owned()
            }
            other => format!("{other:?}"),
        };
        Self { status: error.status(), reason, checksums, message: error.to_string() }
    }
}

impl From<CheckpointV1Error> for Refusal {
    fn from(error: CheckpointV1Error) -> Self {
        let reason = match &error {
            CheckpointV1Error::NoFiles { .. } => "missing_file",
            CheckpointV1Error::Table { source, .. } => table_reason(source),
            CheckpointV1Error::NoHeader { .. } | CheckpointV1Error::Header { .. } => "v1_header",
            CheckpointV1Error::Version { source, .. } => version_reason(source.rule),
            CheckpointV1Error::TensorNotFound { .. } => "missing_tensor",
            CheckpointV1Error::SliceData { .. } => "v1_slice_data",
            _ => "other",
        };
        Self {
            status: error.status(),
            reason: reason.to_owned(),
            checksums: None,
            message: error.to_string(),
        }
    }
}

/// Names, types and shapes.
type Tensors = BTreeMap<String, (String, Vec<i64>)>;

fn run_v2(prefix: &PathBuf, op: &str, line: &Value) -> Result<Option<Tensors>, Refusal> {
    let bundle = Bundle::open(prefix)?;
    match op {
        "open" => {}
        "keys" => {
            let named = |tensor: &serdes_checkpoints::tensor_bundle::TensorEntry| {
                let data_type = tensor.data_type().map_or("?", DataType::name).to_owned();
                (tensor.name().into_owned(), (data_type, tensor.shape().to_vec()))
            };
            return Ok(Some(bundle.tensors().tensors.iter().map(named).collect()));
        }
        "read_all" | "restore_v2" => {
            let report = bundle.verify(&VerifyOptions::default().with_data(true));
            if let Some(error) = report.errors.into_iter().next() {
                return Err(error.into());
            }
            if op == "restore_v2" && report.tensors.is_empty() {
                bundle.tensor("alpha")?;
            }
        }
        "restore_v2_alpha" => {
            let alpha = bundle.tensor("alpha")?;
            alpha.expect_type(DataType::Float32)?;
            bundle.read(&alpha)?;
        }
        "restore_slices" => {
            let tensor = bundle.tensor("sl")?;
            for (i, text) in line["props"]["slices"].as_array().unwrap().iter().enumerate() {
                let (shape, slice) = TensorSlice::parse_specification(text.as_str().unwrap())
                    .map_err(|error| Refusal {
                        status: error.status(),
                        reason: "slices".to_owned(),
                        checksums: None,
                        message: error.to_string(),
                    })?;
                if shape != tensor.shape() {
                    return Err(Refusal {
                        status: StatusCode::InvalidArgument,
                        reason: "entry_shape".to_owned(),
                        checksums: None,
                        message: String::new(),
                    });
                }
                let bytes = bundle.read_slice(&tensor, &slice)?;
                let found: Vec<f64> = bytes
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|bytes| f32::from_le_bytes(*bytes).into())
                    .collect();
                let rows = line["info"]["values"][i].as_array().unwrap();
                let wanted: Vec<f64> = rows
                    .iter()
                    .flat_map(|row| row.as_array().unwrap())
                    .map(|value| value.as_f64().unwrap())
                    .collect();
                assert_eq!(found, wanted, "{text}");
            }
        }
        other => panic!("operation {other}"),
    }
    Ok(None)
}

fn run_v1(path: &PathBuf, op: &str) -> Result<Option<Tensors>, Refusal> {
    let checkpoint = CheckpointV1::open(path)?;
    match op {
        "open" => {}
        "keys" => {
            let named = |tensor: &serdes_checkpoints::checkpoint_v1::TensorV1| {
                let data_type = tensor.data_type().map_or("?", DataType::name).to_owned();
                (tensor.name().to_owned(), (data_type, tensor.shape().to_vec()))
            };
            return Ok(Some(checkpoint.tensors().iter().map(named).collect()));
        }
        _ => {
            let (_, errors) = checkpoint.verify(&VerifyOptions::default().with_data(true));
            if let Some(error) = errors.into_iter().next() {
                return Err(error.into());
            }
            if op != "read_all" && checkpoint.tensors().is_empty() {
                checkpoint.tensor("plain")?;
            }
        }
    }
    Ok(None)
}

/// Returns true if a line is not compared, because it does not record a judgement of the
/// checkpoint.
fn is_left_out(line: &Value) -> bool {
    let (op, code, verdict) =
        (line["op"].as_str(), line["code"].as_str(), line["verdict"].as_str());
    // TensorFlow's Python reader does not do slices and some types of V1; the restore operations
    // do.
    let python_reader = op == Some("read_all") && code == Some("UNIMPLEMENTED");
    // Where the real reader aborts the process on one bad entry, we open, list and report it.
    let aborts = verdict == Some("crash") && matches!(op, Some("open" | "keys"));
    // It lists no tensors at all because of one impossible type; we list the others.
    let one_type = op == Some("keys") && line["reason"] == "entry_dtype";
    // Merging is not reading.
    python_reader || aborts || one_type || op == Some("merge_with")
}

#[test]
fn every_recorded_verdict_is_ours() {
    let lines = std::fs::read_to_string(data().join("ckpt_verdicts.jsonl")).unwrap();
    let mut compared = 0;
    let mut wrong = Vec::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if is_left_out(&line) {
            continue;
        }
        let (id, op) = (line["id"].as_str().unwrap(), line["op"].as_str().unwrap());
        let path = data().join(line["path"].as_str().unwrap());
        let found =
            if line["kind"] == "ckpt_v1" { run_v1(&path, op) } else { run_v2(&path, op, &line) };
        compared += 1;
        let accepted = line["verdict"] == "accept";
        let agrees = match &found {
            Ok(tensors) => {
                let listed = tensors.as_ref().is_none_or(|tensors| {
                    let wanted: Tensors =
                        serde_json::from_value(line["info"]["tensors"].clone()).unwrap_or_default();
                    let many = line["info"]["tensors"].is_null();
                    *tensors == wanted || (many && tensors.len() == 300)
                });
                accepted && listed
            }
            Err(refusal) => {
                // Python lost some codes; a lost one is null or UNKNOWN.
                let code = line["code"].as_str().filter(|code| *code != "UNKNOWN");
                let reason = line["reason"].as_str().unwrap_or_default();
                // The Python reader looks into the garbage and finds no tensor.
                let reason_agrees =
                    reason == refusal.reason || (op == "read_all" && reason == "missing_tensor");
                let checksums: Option<[u32; 2]> =
                    serde_json::from_value(line["checksums"].clone()).ok();
                let checksums_agree = refusal.checksums.is_none() || checksums == refusal.checksums;
                let code_agrees = code.is_none_or(|code| code == refusal.status.name())
                    || (op == "read_all" && reason == "missing_tensor");
                !accepted
                    && reason_agrees
                    && code_agrees
                    && checksums_agree
                    && !refusal.message.contains('\n')
            }
        };
        if !agrees {
            wrong.push(format!(
                "{id} {op}: {} {} {}: {found:?}",
                line["verdict"], line["code"], line["reason"]
            ));
        }
    }
    assert!(compared > 350, "{compared}");
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn defect_that_tensorflow_ignores_is_a_warning() {
    let warned = |name: &str, path: &str| -> Vec<String> {
        let bundle = Bundle::open(data().join("ckpt").join(name).join(path)).unwrap();
        let report = bundle.verify(&VerifyOptions::default());
        assert!(report.errors.is_empty());
        report
            .warnings
            .iter()
            .map(|warning| format!("{warning:?}").split([' ', '(']).next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(warned("base", "ckpt"), [""; 0]);
    assert_eq!(warned("hdr_missing", "ckpt"), ["HeaderMissing"]);
    assert_eq!(warned("flip_meta_crc", "ckpt"), ["TableDefect"]);
    assert_eq!(
        warned("unsorted", "ckpt").iter().filter(|warning| *warning == "TensorNotFound").count(),
        2
    );
    assert_eq!(warned("ent_shape_neg", "ckpt"), ["Shape"]);
    assert_eq!(warned("ent_garbage", "ckpt"), ["Entry"]);
    assert_eq!(warned("data_missing", "ckpt"), ["ShardMissing"; 4]);
    assert_eq!(warned("slice_hole", "ckpt"), ["SlicesMissing"]);
}

/// Counts the bytes that it hears of.
#[derive(Default)]
struct RecordedProgress {
    bytes: AtomicU64,
}

impl Progress for RecordedProgress {
    fn begin(&self, _: Phase, _: u64) {}

    fn advance(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[test]
fn verified_bytes_are_those_of_the_data_files() {
    for name in ["base", "dtypes", "many", "shards3", "saver_v2"] {
        let directory = data().join("ckpt").join(name);
        let bundle = Bundle::open(directory.join("ckpt")).unwrap();
        let stored: u64 = std::fs::read_dir(&directory)
            .unwrap()
            .map(Result::unwrap)
            .filter(|file| file.file_name().to_string_lossy().contains(".data-"))
            .map(|file| file.metadata().unwrap().len())
            .sum();
        let told = Arc::new(RecordedProgress::default());
        let monitor = ProgressMonitor::new().with_progress(told.clone());
        let report =
            bundle.verify(&VerifyOptions::default().with_data(true).with_monitor(&monitor));
        assert!(report.errors.is_empty() && report.warnings.is_empty(), "{name}: {report:?}");
        assert_eq!(report.verified_bytes, stored, "{name}");
        assert_eq!(told.bytes.load(Ordering::Relaxed), stored, "{name}");
    }
}

fn bytes_of(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().unwrap_or_default().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Cases in which this library's code differs from TensorFlow's although both refuse, or does
/// better on purpose.
const DIFFERS: &[&str] = &[
    // Sizes that it tries to allocate, and offsets that it hands to the system.
    "ent_size_int64max a",
    "str_huge_n a",
    "ent_off_max a",
    // It knows no size of handles; we know that there is no value.
    "ent_resource a",
    // Pieces of types that it does not join and we do, which verification warns of; pieces of
    // strings neither of us joins.
    "slice_half a",
    "slice_uint16 a",
    "slice_uint32 a",
    "slice_uint64 a",
    "slice_float8_e5m2 a",
    "slice_qint16 a",
    "slice_string a",
    // It takes the slice for another that overlaps.
    "slice_bad_extent a",
    // Python fails to decode the name of the piece.
    "slice_orphan open",
    // It compares with the type that was asked for.
    "v1_dt34 t",
];

#[test]
fn crafted_tables_and_entries_are_judged_as_by_tensorflow() {
    let lines = std::fs::read_to_string(data().join("ckpt_mutations.jsonl")).unwrap();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let id = line["id"].as_str().unwrap();
        let mut files = MemoryFiles::new();
        let table = bytes_of(&line["table"]);
        let mut outcomes = Vec::new();
        let mut keys = None;
        let restores = line["restore"].as_object().unwrap();
        if line["kind"] == "v1" {
            files.insert("c", table);
            let consumer = serdes_checkpoints::checkpoint_v1::default_consumer();
            let opened = CheckpointV1::open_files(&files, &[PathBuf::from("c")], Some(&consumer));
            outcomes.push((
                "open".to_owned(),
                opened.as_ref().map(drop).map_err(|error| error.status().name()),
            ));
            for (name, _) in restores {
                let restored = match &opened {
                    Ok(checkpoint) => {
                        checkpoint.tensor(name).and_then(|tensor| checkpoint.read(tensor)).map(drop)
                    }
                    Err(_) => continue,
                };
                outcomes.push((name.clone(), restored.map_err(|error| error.status().name())));
            }
        } else {
            files.insert("c.index", table);
            files.insert("c.data-00000-of-00001", bytes_of(&line["data"]));
            let opened = Bundle::open_any(files, "c").and_then(|bundle| {
                bundle.check_versions(&serdes_checkpoints::tensor_bundle::default_consumer())?;
                Ok(bundle)
            });
            outcomes.push((
                "open".to_owned(),
                opened.as_ref().map(drop).map_err(|error| error.status().name()),
            ));
            if let Ok(bundle) = &opened {
                keys = Some(
                    bundle
                        .tensors()
                        .tensors
                        .iter()
                        .map(|tensor| tensor.name().into_owned())
                        .collect::<Vec<_>>(),
                );
                for (name, wanted) in restores {
                    let wanted = DataType::from_name(
                        &wanted[0].as_str().unwrap().replace("half", "float16"),
                    )
                    .unwrap();
                    let restored = bundle.tensor(name).and_then(|tensor| {
                        tensor.expect_type(wanted)?;
                        match wanted {
                            DataType::String => bundle.strings(&tensor).map(drop),
                            _ => bundle.read(&tensor).map(drop),
                        }
                    });
                    outcomes.push((name.clone(), restored.map_err(|error| error.status().name())));
                }
            }
        }
        for (what, outcome) in outcomes {
            let theirs = if what == "open" { &line["open"] } else { &line["restore"][&what][1] };
            let theirs = theirs.as_str().unwrap();
            compared += 1;
            let agrees = match (theirs, outcome) {
                // Where the real process dies, ours only must not.
                ("CRASH", _) => true,
                ("OK", outcome) => outcome.is_ok(),
                ("REFUSED", outcome) => outcome.is_err(),
                (code, outcome) => outcome == Err(code),
            };
            if !agrees && !DIFFERS.contains(&format!("{id} {what}").as_str()) {
                wrong.push(format!("{id} {what}: {theirs}, and ours is {outcome:?}"));
            }
        }
        if let (Some(mut keys), Some(theirs)) = (keys, line["keys"].as_array()) {
            keys.sort();
            keys.dedup();
            if theirs.iter().filter_map(Value::as_str).ne(keys.iter().map(String::as_str)) {
                wrong.push(format!("{id} keys: {theirs:?}, and ours are {keys:?}"));
            }
        }
    }
    assert!(compared > 150, "{compared}");
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
}
