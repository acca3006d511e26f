//! Verdicts and inspections, as the command's JSON objects.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use pyo3::{exceptions::PyValueError, prelude::*};
use serdes::version::Date;
use serdes_check::{Cancelled, Consumer, Kind, Loader, Options, Rule, Verdict, named_kind};
use serdes_cli::{object_reports, objects};
use serdes_device_state::files::{ProgressMonitor, Tree};
use serdes_operations::OperationDefinition;
use serdes_tensors::{self as tensor_io, Tolerance};

use crate::{failures, locations::storage, work::interruptible};

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Options of a check, and its consumer.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    tensorflow: Vec<String>,
    jax: Vec<String>,
    /// Line, version, and the oldest producer.
    consumer: Vec<(String, i32, i32)>,
    custom_ops: Vec<String>,
    tags: Option<Vec<String>>,
    kind: Option<String>,
    loader: String,
    verify_data: bool,
    strict: bool,
}

/// Parsed options of a check.
#[derive(Clone)]
struct Question {
    consumers: Vec<Consumer>,
    options: Options,
    kind: Option<Kind>,
    tree: Arc<dyn Tree>,
}

impl Asked {
    fn question(&self, threads: usize, monitor: &ProgressMonitor) -> Result<Question, String> {
        let mut consumers = Vec::new();
        for text in &self.tensorflow {
            consumers.extend(Consumer::releases(text).map_err(|error| error.to_string())?);
        }
        if consumers.is_empty() {
            consumers.push(Consumer::newest());
        }
        let operations = || self.custom_ops.iter().map(OperationDefinition::of_name);
        let consumers = consumers.into_iter().map(|mut consumer| {
            for (line, version, min_producer) in &self.consumer {
                consumer = consumer
                    .with_line(line, *version, *min_producer)
                    .map_err(|error| error.to_string())?;
            }
            Ok(consumer.with_operations(operations()))
        });
        let mut consumers = consumers.collect::<Result<Vec<_>, String>>()?;
        for text in &self.jax {
            consumers.extend(Consumer::jax_releases(text).map_err(|error| error.to_string())?);
        }
        let loader = match &*self.loader {
            "load_v1" => Loader::LoadV1,
            "load" => Loader::Load,
            "cpp" => Loader::Cpp,
            found => return Err(format!("loader {found:?}: expected load_v1, load or cpp")),
        };
        let mut options = Options::default()
            .with_loader(loader)
            .with_verify_data(self.verify_data)
            .with_strict(self.strict)
            .with_threads(threads)
            .with_monitor(monitor.clone());
        if let Some(tags) = &self.tags {
            options = options.with_tags(tags.iter().cloned());
        }
        let mut kind = None;
        if let Some(name) = &self.kind {
            let (named, message) = named_kind(name).map_err(|error| format!("kind: {error}"))?;
            kind = Some(named);
            if let Some(message) = message {
                options = options.with_message(message);
            }
        }
        Ok(Question { consumers, options, kind, tree: Arc::new(storage(monitor)) })
    }
}

impl Question {
    /// Returns the verdicts on the artifacts at a path or below it.
    fn walk(&self, path: &Path, monitor: &ProgressMonitor) -> Result<Vec<Verdict>, Cancelled> {
        let mut walk = serdes_check::walk(path, &self.options)
            .in_tree(Arc::clone(&self.tree))
            .for_consumers(self.consumers.iter().cloned());
        if let Some(kind) = self.kind {
            walk = walk.of_kind(kind);
        }
        let mut found = Vec::new();
        while let Some(verdicts) = walk.next_artifact() {
            found.extend(verdicts?.iter().cloned());
            if monitor.is_cancelled() {
                // A caller that cancelled the work needs no answer.
                break;
            }
        }
        Ok(found)
    }
}

fn to_json(verdicts: &[Verdict]) -> PyResult<String> {
    let objects: Result<Vec<_>, _> = verdicts.iter().map(objects::verdict).collect();
    objects
        .and_then(|objects| serde_json::to_string(&objects))
        .map_err(|error| failures::of_json(&error))
}

/// Returns the verdict on one artifact, as a list of one object.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, path: PathBuf, asked: Asked) -> PyResult<String> {
    asked.question(0, &ProgressMonitor::new()).map_err(wrong)?;
    let found = interruptible(py, None, 0, |monitor| {
        let question = asked.question(0, monitor)?;
        question.walk(&path, monitor).map_err(|error| error.to_string())
    })?;
    let verdicts = found.map_err(wrong)?;
    if verdicts.len() != 1 {
        return Err(wrong(format!(
            "{}: {} verdicts where one is asked for; check_all gives one for each artifact and release",
            path.display(),
            verdicts.len()
        )));
    }
    to_json(&verdicts)
}

/// Returns the verdict on an artifact in memory, as a list of one object.
#[pyfunction]
pub(crate) fn check_bytes(py: Python<'_>, bytes: Vec<u8>, asked: Asked) -> PyResult<String> {
    let question = asked.question(0, &ProgressMonitor::new()).map_err(wrong)?;
    let found = py.detach(|| {
        let artifact = serdes_check::reader(&bytes[..], question.kind);
        let artifact = artifact.map_err(|error| error.to_string())?;
        let found = artifact.check_for(&question.consumers, &question.options);
        found.map_err(|error| error.to_string())
    });
    let verdicts: Vec<_> = found.map_err(wrong)?.into_iter().collect();
    if verdicts.len() != 1 {
        return Err(wrong(format!("{} verdicts where one is asked for", verdicts.len())));
    }
    to_json(&verdicts)
}

/// Returns the verdicts on all artifacts at the paths and below them, in their order.
#[pyfunction]
#[pyo3(signature = (paths, asked, threads))]
pub(crate) fn check_all(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    asked: Asked,
    threads: Option<usize>,
) -> PyResult<String> {
    asked.question(0, &ProgressMonitor::new()).map_err(wrong)?;
    let threads = threads.unwrap_or(0);
    let found = interruptible(py, None, 0, |monitor| {
        let question = asked.question(threads, monitor)?;
        check_paths(&question, &paths, threads, monitor)
    })?;
    to_json(&found.map_err(wrong)?)
}

/// Checks several paths in parallel.
fn check_paths(
    question: &Question,
    paths: &[PathBuf],
    threads: usize,
    monitor: &ProgressMonitor,
) -> Result<Vec<Verdict>, String> {
    let available = || thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if threads == 0 { available() } else { threads };
    let next = Mutex::new(paths.iter().enumerate());
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    let each = || {
        let mut found = Vec::new();
        while let Some((number, path)) = take() {
            let verdicts = question.walk(path, monitor).map_err(|error| error.to_string())?;
            found.push((number, verdicts));
        }
        Ok(found)
    };
    let shares = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(paths.len())).map(|_| scope.spawn(each)).collect();
        let panicked = |_| Err("a thread that judged ended".to_owned());
        let mut shares = vec![each()];
        shares.extend(others.into_iter().map(|other| other.join().unwrap_or_else(panicked)));
        shares
    });
    let mut found = shares.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    found.sort_by_key(|(number, _)| *number);
    Ok(found.into_iter().flat_map(|(_, verdicts)| verdicts).collect())
}

/// Returns a report of verdicts, which are a list of objects, in one of the forms of the command.
#[pyfunction]
pub(crate) fn report(py: Python<'_>, verdicts: &str, loader: &str, form: &str) -> PyResult<String> {
    let verdicts: Vec<serde_json::Value> = serde_json::from_str(verdicts).map_err(wrong)?;
    py.detach(|| {
        let mut text = Vec::new();
        object_reports::write(&verdicts, loader, form, &mut text).map_err(wrong)?;
        String::from_utf8(text).map_err(wrong)
    })
}

/// Contents of an artifact, as an object.
#[pyfunction]
#[pyo3(signature = (path, kind))]
pub(crate) fn inspect(py: Python<'_>, path: PathBuf, kind: Option<String>) -> PyResult<String> {
    let kind = kind.as_deref().map(str::parse::<Kind>).transpose().map_err(wrong)?;
    let inspection = interruptible(py, None, 0, |monitor| {
        let artifact = serdes_check::path_in(Arc::new(storage(monitor)), &path, kind);
        artifact.map(|artifact| artifact.inspect())
    })?
    .map_err(|error| failures::of_path(py, &error, &path))?
    .map_err(|reason| failures::of_reason(py, &reason, Some(&path)))?;
    objects::inspection(&inspection)
        .map(|object| object.to_string())
        .map_err(|error| failures::of_json(&error))
}

/// Returns every entry of every line of versions on a day, as a list of objects.
#[pyfunction]
#[pyo3(signature = (as_of))]
pub(crate) fn versions(as_of: Option<&str>) -> PyResult<String> {
    let as_of = as_of.map(str::parse::<Date>).transpose().map_err(wrong)?;
    serde_json::to_string(&objects::versions(as_of)).map_err(|error| failures::of_json(&error))
}

/// Explanation of a rule.
#[pyfunction]
pub(crate) fn explain(rule: &str) -> PyResult<String> {
    rule.parse::<Rule>().map(objects::explanation).map_err(wrong)
}

/// Differences between the tensors of two files, as a list of objects.
#[pyfunction]
#[pyo3(signature = (a, b, tolerance))]
pub(crate) fn difference(
    py: Python<'_>,
    a: PathBuf,
    b: PathBuf,
    tolerance: Option<(f64, f64)>,
) -> PyResult<String> {
    let tolerance = tolerance.map(|(relative, absolute)| {
        Tolerance::new(relative, absolute)
            .ok_or_else(|| wrong("rtol and atol: expected numbers, 0 or more"))
    });
    let tolerance = tolerance.transpose()?;
    let found = interruptible(py, None, 0, |monitor| {
        let storage = storage(monitor);
        let open = |path: &Path| tensor_io::open_in(&storage, path);
        let (a, b) = (open(&a)?, open(&b)?);
        tensor_io::diff(&*a, &*b, tolerance, monitor, |_| {})
    })?;
    let found = found.map_err(|error| failures::of_tensors(py, error))?;
    let objects: Vec<_> = found.iter().map(objects::difference).collect();
    serde_json::to_string(&objects).map_err(|error| failures::of_json(&error))
}
