//! Reads and writes TensorFlow checkpoints: both formats in, the V2 format out.
//!
//! ```text
//! tensorflow_checkpoint list CHECKPOINT            one JSON object a tensor
//! tensorflow_checkpoint export CHECKPOINT DIR      each tensor's bytes into a file, and manifest.jsonl
//! tensorflow_checkpoint import DIR PREFIX [SHARDS] the other way round
//! tensorflow_checkpoint verify CHECKPOINT          every checksum
//! tensorflow_checkpoint time list|read|write PREFIX  seconds, best of three
//! ```

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use serde_json::{Value, json};
use serdes_checkpoints::{
    checkpoint_v1::CheckpointV1,
    slice::TensorSlice,
    tensor_bundle::{Bundle, BundleOptions, BundleWriter, VerifyOptions, index_path},
};
use serdes_graph_format::data_type::DataType;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A tensor's value.
enum Contents {
    Numbers(Vec<u8>),
    Strings(Vec<Vec<u8>>),
}

/// A checkpoint in either format, detected from the path.
enum Checkpoint {
    V2(Box<Bundle>),
    V1(CheckpointV1),
}

impl Checkpoint {
    fn open(path: &Path) -> Result<Self> {
        if index_path(path).exists() {
            Ok(Self::V2(Box::new(Bundle::open(path)?)))
        } else {
            Ok(Self::V1(CheckpointV1::open(path)?))
        }
    }

    /// Lists the name, type and shape of every tensor.
    fn list(&self) -> Vec<(String, Option<DataType>, Vec<i64>)> {
        match self {
            Self::V2(bundle) => {
                let tensors = bundle.tensors().tensors.into_iter();
                tensors
                    .map(|tensor| {
                        (tensor.name().into_owned(), tensor.data_type(), tensor.shape().to_vec())
                    })
                    .collect()
            }
            Self::V1(checkpoint) => {
                let tensors = checkpoint.tensors().iter();
                tensors
                    .map(|tensor| {
                        (tensor.name().to_owned(), tensor.data_type(), tensor.shape().to_vec())
                    })
                    .collect()
            }
        }
    }

    fn read(&self, name: &str) -> Result<Contents> {
        match self {
            Self::V2(bundle) => {
                let tensor = bundle.tensor(name)?;
                if tensor.data_type() == Some(DataType::String) {
                    return Ok(Contents::Strings(bundle.strings(&tensor)?));
                }
                let mut bytes = Vec::new();
                bundle.reader(&tensor)?.read_to_end(&mut bytes)?;
                Ok(Contents::Numbers(bytes))
            }
            Self::V1(checkpoint) => {
                let tensor = checkpoint.tensor(name)?;
                if tensor.data_type() == Some(DataType::String) {
                    return Ok(Contents::Strings(checkpoint.strings(tensor)?));
                }
                Ok(Contents::Numbers(checkpoint.read(tensor)?))
            }
        }
    }
}

fn export(path: &Path, directory: &Path) -> Result<()> {
    let checkpoint = Checkpoint::open(path)?;
    fs::create_dir_all(directory)?;
    let mut manifest = fs::File::create(directory.join("manifest.jsonl"))?;
    for (number, (name, data_type, shape)) in checkpoint.list().into_iter().enumerate() {
        let data_type = data_type.ok_or("a type that is not known")?;
        let file = format!("{number}.bin");
        let mut line =
            json!({"name": name, "dtype": data_type.name(), "shape": shape, "file": file});
        let bytes = match checkpoint.read(&name)? {
            Contents::Numbers(bytes) => bytes,
            Contents::Strings(strings) => {
                line["lengths"] = strings.iter().map(Vec::len).collect();
                strings.concat()
            }
        };
        fs::write(directory.join(file), bytes)?;
        writeln!(manifest, "{line}")?;
    }
    Ok(())
}

fn import(directory: &Path, prefix: &Path, shards: u16) -> Result<()> {
    let mut writer = BundleWriter::create(prefix, BundleOptions::default().with_shards(shards))?;
    for line in BufReader::new(fs::File::open(directory.join("manifest.jsonl"))?).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        let text = |key: &str| line[key].as_str().ok_or(format!("no {key}"));
        let numbers = |key: &str| -> Option<Vec<i64>> {
            line[key].as_array()?.iter().map(Value::as_i64).collect()
        };
        let (name, shape) = (text("name")?, numbers("shape").ok_or("no shape")?);
        let data_type = DataType::from_name(text("dtype")?).ok_or("no such type")?;
        let bytes = fs::read(directory.join(text("file")?))?;
        if let Some(lengths) = numbers("lengths") {
            let mut rest = bytes.as_slice();
            let mut strings = Vec::new();
            for length in lengths {
                let (string, after) =
                    rest.split_at_checked(length as usize).ok_or("the strings are short")?;
                strings.push(string);
                rest = after;
            }
            writer.add_strings(name, &shape, &strings)?;
        } else if let Some(text) = line["slice"].as_str() {
            let (shape, slice) = TensorSlice::parse_specification(text)?;
            let mut piece = writer.add_slice(name, data_type, &shape, &slice)?;
            piece.write_all(&bytes)?;
            piece.finish()?;
        } else {
            writer.add_bytes(name, data_type, &shape, &bytes)?;
        }
    }
    writer.finish()?;
    Ok(())
}

fn text<E: std::fmt::Display>(found: &[E]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

/// Returns the shortest of three run times, in seconds. `before` runs ahead of each and is not
/// timed.
fn best(
    mut before: impl FnMut() -> Result<()>,
    mut run: impl FnMut() -> Result<()>,
) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        before()?;
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// Removes a checkpoint with one data file, if it exists.
fn remove(prefix: &Path) -> Result<()> {
    for suffix in ["index", "data-00000-of-00001"] {
        let path = PathBuf::from(format!("{}.{suffix}", prefix.display()));
        if path.exists() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn time(what: &str, prefix: &Path) -> Result<f64> {
    let nothing = || Ok(());
    match what {
        "list" => best(nothing, || {
            let listing = Bundle::open(prefix)?.tensors();
            assert!(listing.defects.is_empty());
            Ok(())
        }),
        "read" => best(nothing, || {
            let bundle = Bundle::open(prefix)?;
            for tensor in &bundle.tensors().tensors {
                bundle.read(tensor)?;
            }
            Ok(())
        }),
        "write" => {
            let bundle = Bundle::open(prefix)?;
            let mut tensors = Vec::new();
            for tensor in bundle.tensors().tensors {
                let bytes = bundle.read(&tensor)?;
                tensors.push((
                    tensor.name().into_owned(),
                    tensor.data_type(),
                    tensor.shape().to_vec(),
                    bytes,
                ));
            }
            let copy = PathBuf::from(format!("{}-copy", prefix.display()));
            // Writes to a fresh prefix, as the TensorFlow run does: replacing an old checkpoint
            // would add the file system's work on it to the time.
            let fresh = || remove(&copy);
            best(fresh, || {
                let mut writer = BundleWriter::create(&copy, BundleOptions::default())?;
                for (name, data_type, shape, bytes) in &tensors {
                    writer.add_bytes(name, data_type.ok_or("no type")?, shape, bytes)?;
                }
                writer.finish()?;
                Ok(())
            })
        }
        other => Err(format!("there is nothing called {other} to time").into()),
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["list", path] => {
            for (name, data_type, shape) in Checkpoint::open(Path::new(path))?.list() {
                println!(
                    "{}",
                    json!({"name": name, "dtype": data_type.map(DataType::name), "shape": shape})
                );
            }
        }
        ["export", path, directory] => export(Path::new(path), Path::new(directory))?,
        ["import", directory, prefix] => import(Path::new(directory), Path::new(prefix), 1)?,
        ["import", directory, prefix, shards] => {
            import(Path::new(directory), Path::new(prefix), shards.parse()?)?
        }
        ["verify", path] => {
            let options = VerifyOptions::default().with_data(true);
            let (warnings, errors) = match Checkpoint::open(Path::new(path))? {
                Checkpoint::V2(bundle) => {
                    let report = bundle.verify(&options);
                    (text(&report.warnings), text(&report.errors))
                }
                Checkpoint::V1(checkpoint) => {
                    let (warnings, errors) = checkpoint.verify(&options);
                    (text(&warnings), text(&errors))
                }
            };
            for warning in warnings {
                println!("warning: {warning}");
            }
            if let Some(error) = errors.into_iter().next() {
                return Err(error.into());
            }
        }
        ["time", what, prefix] => println!("{}", time(what, Path::new(prefix))?),
        _ => return Err("see the head of this example for how to call it".into()),
    }
    Ok(())
}
