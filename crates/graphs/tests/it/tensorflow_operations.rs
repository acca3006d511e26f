//! Tests that every artifact of the corpus of operations gets the verdict of ten releases of
//! TensorFlow, for the same reason and in every way of loading it.
//!
//! `tests/data/tensorflow/op_corpus.zip` holds the artifacts and `verdicts.jsonl`: one line per
//! artifact and way of loading, with the answers of the releases. `SERDES_DIFFERENCES=TEXT cargo
//! test -p serdes-graphs --test it tensorflow_operations -- --nocapture` prints the differences
//! whose line has the text (all for an empty one); `SERDES_CORPUS=DIRECTORY` compares a corpus of
//! one release that `tests/interop/tensorflow_operations.py --keep DIRECTORY` has made.

use std::{
    collections::BTreeMap,
    fs,
    io::{Cursor, Read},
    path::Path,
    sync::Mutex,
};

use serde_json::Value;
use serdes_graphs::graph::{
    self, Form, Graph, GraphError, Graphs, ImportDiagnosticKind, Loader, Message, MetaGraph,
    ReadOptions, StructureDiagnostic, StructureDiagnosticKind,
};
use serdes_operations::Registry;
use serdes_version_registry::Consumer;

const CORPUS: &[u8] = include_bytes!("../../../../tests/data/tensorflow/op_corpus.zip");
const RELEASES: [&str; 10] = [
    "2.12.0", "2.13.1", "2.14.1", "2.15.1", "2.16.2", "2.17.1", "2.18.1", "2.19.1", "2.20.0",
    "2.21.0",
];

/// Reasons that do not follow from the operations of a release, but from TensorFlow's code. If it
/// refuses for one of them, any answer of ours is right; if it accepts, a refusal of ours is still
/// a difference.
const OUTSIDE: [&str; 3] = ["shape_function", "kernel", "placement"];

/// Classes of errors in values of attributes. The one of several wrong values that TensorFlow names
/// first depends on a hash; the corpus has one error per node, random graphs have several.
const VALUES: [&str; 4] = ["attr_kind", "attr_dtype", "attr_allowed", "attr_minimum"];

/// Number of the corpus's lines that are left to [`OUTSIDE`], by way of loading, of 11,270 and
/// 4,340 lines each.
const LEFT: [(&str, usize); 4] =
    [("capi_import", 53), ("capi_load", 20), ("import", 53), ("load_v1", 20)];

/// Artifacts whose refusal has two names: a node with two errors, the first of which depends on the
/// way of loading, or an error whose text and status disagree.
const EITHER: [(&str, [&str; 2]); 5] = [
    ("mutsm_attr_required_gone_body_136", ["function_body", "attr_missing"]),
    ("mutsm_attr_required_gone_body_200", ["function_body", "attr_missing"]),
    ("mutsm_input_added_body_301", ["attr_dtype", "input_count"]),
    ("mutsm_input_dropped_main_295", ["graph_structure", "input_count"]),
    ("probesm_in_n_huge", ["attr_number", "input_count"]),
];

/// Models with a table that `tf.saved_model.load` of 2.12 cannot create, for a reason in its Python
/// code and not in an operation.
const TABLES: [&str; 3] = ["mutsm_attr_required_gone_main_6", "sm16_mod_mtable", "sm21_mod_mtable"];

/// Answer of one release about one artifact in one way of loading it.
#[derive(Clone, Debug)]
struct Answer {
    verdict: String,
    reason: String,
}

/// An artifact with its answers, by way of loading.
struct Artifact {
    id: String,
    path: String,
    tags: Vec<String>,
    answers: BTreeMap<String, Answers>,
}

/// Answers by release; `None` if the release was not asked.
type Answers = Vec<Option<Answer>>;

impl Artifact {
    fn is_text(&self) -> bool {
        self.path.ends_with(".pbtxt")
    }

    fn message(&self) -> Message {
        let is_model = self.answers.contains_key("load_v1");
        if is_model { Message::SavedModel } else { Message::GraphDef }
    }

    fn file(&self) -> String {
        match self.message() {
            Message::SavedModel => format!("{}/saved_model.pb", self.path),
            _ => self.path.clone(),
        }
    }
}

/// Returns the files of the corpus by path.
fn files() -> BTreeMap<String, Vec<u8>> {
    let mut archive = zip::ZipArchive::new(Cursor::new(CORPUS)).unwrap();
    let mut files = BTreeMap::new();
    for number in 0..archive.len() {
        let mut entry = archive.by_index(number).unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        files.insert(entry.name().unwrap().into_owned(), bytes);
    }
    files
}

/// Returns one answer per release, from runs of releases with the same answer.
fn answers(runs: &Value) -> Answers {
    let text = |run: &Value, key: &str| run[key].as_str().unwrap_or_default().to_owned();
    let position = |run: &Value, key: &str| {
        RELEASES.iter().position(|release| *release == text(run, key)).unwrap()
    };
    let mut answers = vec![None; RELEASES.len()];
    for run in runs.as_array().unwrap() {
        for answer in &mut answers[position(run, "from")..=position(run, "to")] {
            assert!(answer.is_none(), "one answer a release: {runs}");
            *answer = Some(Answer { verdict: text(run, "verdict"), reason: text(run, "reason") });
        }
    }
    answers
}

fn artifacts(verdicts: &[u8]) -> Vec<Artifact> {
    let mut artifacts: BTreeMap<String, Artifact> = BTreeMap::new();
    for line in std::str::from_utf8(verdicts).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| record[key].as_str().unwrap().to_owned();
        let tags = record["props"]["tags"].as_array().map_or_else(
            || vec!["serve".to_owned()],
            |tags| tags.iter().map(|tag| tag.as_str().unwrap().to_owned()).collect(),
        );
        let artifact = artifacts.entry(text("id")).or_insert_with(|| Artifact {
            id: text("id"),
            path: text("path"),
            tags,
            answers: BTreeMap::new(),
        });
        artifact.answers.insert(text("op"), answers(&record["verdicts"]));
    }
    artifacts.into_values().collect()
}

/// Returns the loader of a way of loading. Python's import of a bare graph is the one that
/// `load_v1` uses.
fn loader(operation: &str) -> Loader {
    match operation {
        "capi_import" => Loader::Import,
        "import" | "import_text" | "load_v1" => Loader::LoadV1,
        "load_v2" => Loader::Load,
        "capi_load" => Loader::Cpp,
        other => panic!("{other}"),
    }
}

/// Returns the classes of TensorFlow's reasons for a diagnostic of structure.
fn structure_classes(diagnostic: &StructureDiagnostic) -> &'static [&'static str] {
    match diagnostic.kind {
        StructureDiagnosticKind::DuplicateFunction | StructureDiagnosticKind::UnequalFunction => {
            &["function_name"]
        }
        StructureDiagnosticKind::SecondGradient => &["function_body"],
        StructureDiagnosticKind::CalledFunction => &["function_body", "graph_structure"],
        _ => &["graph_structure"],
    }
}

/// Returns the classes of TensorFlow's reasons for a diagnostic.
fn classes(kind: &ImportDiagnosticKind) -> &'static [&'static str] {
    match kind {
        ImportDiagnosticKind::Structure(diagnostic) => structure_classes(diagnostic),
        ImportDiagnosticKind::UnknownOperation => &["op_unknown"],
        ImportDiagnosticKind::Deprecated(_) => &["op_deprecated"],
        ImportDiagnosticKind::AttributeKind { .. } => &["attr_kind"],
        ImportDiagnosticKind::AttributeType { .. } => &["attr_dtype"],
        ImportDiagnosticKind::AttributeNotAllowed { .. } => &["attr_allowed"],
        ImportDiagnosticKind::AttributeMinimum { .. } => &["attr_minimum"],
        ImportDiagnosticKind::AttributesMissing { .. } => &["attr_missing"],
        ImportDiagnosticKind::AttributeNumber { .. } => &["attr_number"],
        ImportDiagnosticKind::InputCount => &["input_count"],
        ImportDiagnosticKind::InputType { .. } => &["edge_dtype"],
        ImportDiagnosticKind::OutputIndex { .. } => &["output_index"],
        ImportDiagnosticKind::FunctionName => &["function_name"],
        ImportDiagnosticKind::FunctionBody => &["function_body"],
        ImportDiagnosticKind::NoShapeFunction => &["no_shape_function"],
        ImportDiagnosticKind::Shape => &["shape_function"],
        ImportDiagnosticKind::NoKernel => &["kernel"],
        ImportDiagnosticKind::Device => &["device"],
        ImportDiagnosticKind::AttributeUnknown { .. } => &["other"],
        ImportDiagnosticKind::Python => &["other", "attr_dtype"],
        ImportDiagnosticKind::Objects
        | ImportDiagnosticKind::ObjectType
        | ImportDiagnosticKind::SaveFunction => &["other"],
        // Nothing in the corpus is as large.
        ImportDiagnosticKind::Oversized => &[],
        other => panic!("{other:?} has no class"),
    }
}

/// Returns the library's answer about an artifact for one of the registries of the check: the
/// classes of the reason, none if it accepts the artifact, and the diagnostic as text.
fn ours(
    graphs: &Result<Graphs, GraphError>,
    artifact: &Artifact,
    (place, registry): (usize, &Registry),
    loader: Loader,
) -> Option<(&'static [&'static str], String)> {
    let graphs = match graphs {
        Ok(graphs) => graphs,
        Err(error) => return Some((&["parse"], error.to_string())),
    };
    let chosen = graphs.meta_graphs.iter().find(|meta_graph| {
        artifact.message() == Message::GraphDef || has_tags(meta_graph, &artifact.tags)
    });
    let Some(MetaGraph { graph, has_object_graph, .. }) = chosen else {
        return Some((&["tags"], "no meta graph".to_owned()));
    };
    let judgement = &graph.judgements[place];
    let diagnostic = judgement.diagnostic(loader);
    let is_asked = match loader {
        Loader::Load if *has_object_graph => false,
        loader => !judgement.is_before_versions(loader),
    };
    if let Some(refusal) = refused_by_version(graph, registry).filter(|_| is_asked) {
        return Some((&["version"], refusal));
    }
    diagnostic.map(|diagnostic| (classes(&diagnostic.kind), format!("{diagnostic:?}")))
}

fn has_tags(meta_graph: &MetaGraph, tags: &[String]) -> bool {
    meta_graph.tags.len() == tags.len() && tags.iter().all(|tag| meta_graph.tags.contains(tag))
}

fn refused_by_version(graph: &Graph, registry: &Registry) -> Option<String> {
    let consumer = Consumer::new("graph_def", "graph", registry.graph_def_version(), 0);
    consumer.check(&graph.versions).err().map(|refusal| refusal.to_string())
}

fn registries() -> &'static [Registry] {
    static REGISTRIES: std::sync::OnceLock<Vec<Registry>> = std::sync::OnceLock::new();
    REGISTRIES.get_or_init(|| {
        RELEASES.iter().map(|release| Registry::tensorflow(release).unwrap()).collect()
    })
}

/// Outcome of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Both give the same answer, for the same reason.
    Same,
    /// TensorFlow's reason is one of [`OUTSIDE`], or it ends the process.
    Outside,
    /// Both refuse, for different reasons.
    OtherReason,
    /// TensorFlow accepts the artifact, and we do not.
    WronglyRefused,
    /// TensorFlow refuses the artifact, and we do not.
    WronglyTaken,
}

fn compare(id: &str, answer: &Answer, ours: Option<&(&[&str], String)>) -> Outcome {
    let outside = answer.verdict == "crash"
        || OUTSIDE.contains(&answer.reason.as_str())
        || answer.reason == "other" && TABLES.contains(&id);
    match (answer.verdict.as_str(), ours) {
        ("accept", None) => Outcome::Same,
        ("accept", Some(_)) => Outcome::WronglyRefused,
        (_, Some((classes, _))) if classes.contains(&answer.reason.as_str()) => Outcome::Same,
        _ if outside => Outcome::Outside,
        (_, None) => Outcome::WronglyTaken,
        (_, Some((classes, _))) => {
            let either = EITHER.iter().any(|(known, reasons)| {
                *known == id && classes.iter().any(|class| reasons.contains(class))
            });
            let are_values = std::env::var_os("SERDES_CORPUS").is_some()
                && VALUES.contains(&answer.reason.as_str())
                && classes.iter().any(|class| VALUES.contains(class));
            // A refusal by Python itself has no class of TensorFlow's.
            if either || are_values || answer.reason == "other" {
                Outcome::Same
            } else {
                Outcome::OtherReason
            }
        }
    }
}

/// Compares one artifact: returns an outcome and a line of text for each way of loading and
/// release.
fn compare_artifact(artifact: &Artifact, file: &[u8]) -> Vec<(String, usize, Outcome, String)> {
    let form = if artifact.is_text() { Form::Text } else { Form::Binary };
    let asked: Vec<usize> = (0..RELEASES.len())
        .filter(|release| artifact.answers.values().any(|answers| answers[*release].is_some()))
        .collect();
    let registries: Vec<Registry> =
        asked.iter().map(|release| registries()[*release].clone()).collect();
    let options = ReadOptions::default().with_registries(&registries);
    let whole = graph::read(file, artifact.message(), form, &options);
    let mut lines = Vec::new();
    for (place, release) in asked.into_iter().enumerate() {
        // The parser of the text form depends on the release; that of the binary form does not.
        let of_release = artifact.is_text().then(|| {
            let version = registries[place].graph_def_version();
            graph::read(file, artifact.message(), form, &options.clone().with_release(version))
        });
        let graphs = of_release.as_ref().unwrap_or(&whole);
        for (operation, answers) in &artifact.answers {
            let Some(answer) = &answers[release] else { continue };
            let ours = ours(graphs, artifact, (place, &registries[place]), loader(operation));
            let outcome = compare(&artifact.id, answer, ours.as_ref());
            let ours = ours.map_or("accept".to_owned(), |(classes, text)| {
                format!("{} {text}", classes.join(" or "))
            });
            let line = format!(
                "{outcome:?} {operation} {} {}: TensorFlow {} {}; ours {ours}",
                RELEASES[release], artifact.id, answer.verdict, answer.reason
            );
            lines.push((operation.clone(), release, outcome, line));
        }
    }
    lines
}

/// Result of comparing a corpus.
struct Comparison {
    /// Number of lines.
    all: usize,
    /// The number of times that TensorFlow's reason is one of [`OUTSIDE`] and not found here, by
    /// way of loading.
    outside: Vec<(String, usize)>,
    differences: Vec<String>,
}

/// Compares a corpus whose files `file` finds; prints how often the answers agree, and the
/// requested differences.
fn compare_corpus(verdicts: &[u8], file: impl Fn(&str) -> Vec<u8> + Sync) -> Comparison {
    let artifacts = artifacts(verdicts);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (artifacts, file, results) = (&artifacts, &file, &results);
            scope.spawn(move || {
                for artifact in artifacts.iter().skip(worker).step_by(2) {
                    let found = compare_artifact(artifact, &file(&artifact.file()));
                    results.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort();
    let mut counts: BTreeMap<(&str, Outcome), usize> = BTreeMap::new();
    for (operation, _, outcome, _) in &results {
        *counts.entry((operation, *outcome)).or_default() += 1;
    }
    for ((operation, outcome), count) in &counts {
        println!("{operation:12} {outcome:?}: {count}");
    }
    let outside = counts.iter().filter(|((_, outcome), _)| *outcome == Outcome::Outside);
    let outside =
        outside.map(|((operation, _), count)| ((*operation).to_owned(), *count)).collect();
    let all = results.len();
    if let Some(wanted) = std::env::var_os("SERDES_DIFFERENCES") {
        let wanted = wanted.to_string_lossy();
        let least =
            if wanted.contains("Outside") { Outcome::Outside } else { Outcome::OtherReason };
        for (_, _, outcome, line) in &results {
            if *outcome >= least && line.contains(&*wanted) {
                println!("{line}");
            }
        }
    }
    let differences: Vec<String> = results
        .into_iter()
        .filter(|(_, _, outcome, _)| *outcome > Outcome::Outside)
        .map(|(_, _, _, line)| line)
        .collect();
    println!("{} of {all} differ", differences.len());
    Comparison { all, outside, differences }
}

#[test]
fn every_artifact_gets_the_verdict_of_every_release_in_every_way_of_loading_it() {
    if let Some(directory) = std::env::var_os("SERDES_CORPUS") {
        let directory = Path::new(&directory);
        let read = |name: &str| fs::read(directory.join(name)).unwrap();
        compare_corpus(&read("verdicts.jsonl"), read);
        return;
    }
    let files = files();
    let Comparison { all, outside, differences } =
        compare_corpus(&files["verdicts.jsonl"], |name| files[name].clone());
    assert_eq!(all, 35_950, "every line of the corpus and every release");
    let outside: Vec<(&str, usize)> = outside.iter().map(|(o, n)| (o.as_str(), *n)).collect();
    assert_eq!(outside, LEFT, "what shape functions refuse, and what crashes, by way of loading");
    let first = differences.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differ, the first are\n{first}", differences.len());
}
