//! Verdicts on graphs: GraphDef, MetaGraphDef, SavedModel.
//!
//! The reference is TensorFlow's graph importer: the C import of the same bytes for a GraphDef, and for a SavedModel its graph loader
//! (C++ and compat.v1). What other loaders would do goes into warnings.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::artifact::{Artifact, CheckError, Place, with_suffix};
use super::{
    Inspection, Kind, NestedVersion, Options, Reason, Rule, Verdict, Warning, empty, other_kind,
    tensor_bundle,
};
use crate::artifact::ReadAt;
use crate::artifact::graph::{
    self, DeprecatedOperation, DeprecatedUse, Form, Graph, GraphError, Graphs, Message, MetaGraph,
    ReadOptions,
};
use crate::version::evolution::FORWARD_COMPATIBILITY_DAYS as FORWARD_COMPATIBILITY;
use crate::version::{self, tensorflow};

/// Reasons or warnings of one kind that are listed before they are only counted.
const LISTED: usize = 20;

const BINARY: &str = "saved_model.pb";
const TEXT: &str = "saved_model.pbtxt";
const CHUNKED: &str = "saved_model.cpb";

/// What a SavedModel has beside its message: a model whose message was lost is still one, and cannot be loaded.
const MARKS: [&str; 2] = ["fingerprint.pb", "variables/variables.index"];

/// All that stands in the directory of a SavedModel: where there is more, a mark may have come there otherwise.
const PARTS: [&str; 7] = [
    "fingerprint.pb",
    "keras_metadata.pb",
    "variables",
    "assets",
    "assets.extra",
    "debug",
    "saved_model.json",
];

/// Whether a directory holds a SavedModel, or what is left of one.
pub(super) fn is_saved_model(directory: &Path) -> bool {
    let has = |name: &&str| directory.join(name).is_file();
    [BINARY, TEXT, CHUNKED].iter().any(has)
        || (MARKS.iter().any(has)
            && std::fs::read_dir(directory).is_ok_and(|mut entries| {
                entries.all(|entry| {
                    entry.is_ok_and(|entry| PARTS.iter().any(|part| entry.file_name() == *part))
                })
            }))
}

/// The file that holds the message, and how.
fn locate(artifact: &Artifact) -> Result<(Arc<dyn ReadAt>, Message, Form), Box<Reason>> {
    let message = message(artifact.kind);
    let is_text = |path: &Path| path.extension().is_some_and(|extension| extension == "pbtxt");
    match &artifact.place {
        Place::Source(source) => {
            let text = artifact.kind == Kind::GraphDefText
                || (artifact.kind == Kind::SavedModel
                    && artifact.path.as_deref().is_some_and(is_text));
            Ok((source.clone(), message, if text { Form::Text } else { Form::Binary }))
        }
        Place::Directory(directory) => {
            for (name, form) in [(BINARY, Form::Binary), (TEXT, Form::Text)] {
                let path = directory.join(name);
                if path.is_file() {
                    let file = File::open(&path).map_err(|source| {
                        CheckError::Io { path: path.to_string_lossy().into_owned(), source }
                            .reason()
                    })?;
                    return Ok((Arc::new(file), message, form));
                }
            }
            if directory.join(CHUNKED).is_file() {
                return Err(Reason::new(
                    Rule::Unsupported,
                    "the SavedModel is split into chunks (saved_model.cpb), which this build does not read",
                    "save it again without chunks",
                )
                .into());
            }
            Err(Reason::new(
                Rule::NotFound,
                format!("the directory has neither {BINARY} nor {TEXT}"),
                "check the path",
            )
            .into())
        }
        Place::Prefix(path) => {
            Err(CheckError::NotFound { path: path.to_string_lossy().into_owned() }.reason().into())
        }
    }
}

/// Whether every parser refuses the bytes as the message that artifacts of this kind hold.
pub(super) fn is_refused(source: &dyn ReadAt, kind: Kind) -> bool {
    let message = message(kind);
    matches!(graph::versions(source, message, Form::Binary), Err(GraphError::Malformed(_)))
}

fn message(kind: Kind) -> Message {
    match kind {
        Kind::SavedModel => Message::SavedModel,
        Kind::MetaGraph => Message::MetaGraphDef,
        _ => Message::GraphDef,
    }
}

/// Reads the graphs of an artifact.
fn read(artifact: &Artifact, options: &ReadOptions<'_>) -> Result<Graphs, Box<Reason>> {
    let (source, message, form) = locate(artifact)?;
    let read = |form| graph::read(&source, message, form, options);
    let result = match read(form) {
        // TensorFlow tries a .meta file as binary first, and as text if that fails.
        Err(GraphError::Malformed(error)) if message == Message::MetaGraphDef => {
            read(Form::Text).map_err(|_| GraphError::Malformed(error))
        }
        result => result,
    };
    result.map_err(|error| {
        let instead = match (&error, artifact.kind) {
            // The name of the file was not asked where the directory says what it is.
            (GraphError::Malformed(_) | GraphError::Text(_), Kind::SavedModel) => {
                other_kind::instead_of(artifact.kind, &source)
            }
            _ => None,
        };
        Box::new(instead.unwrap_or_else(|| reason_of(&error)))
    })
}

fn reason_of(error: &GraphError) -> Reason {
    match error {
        GraphError::Malformed(_) | GraphError::Text(_) => Reason::new(
            Rule::Corrupt,
            error.to_string(),
            "fetch the file again from where it came from, or name its kind if it is not what its name says",
        ),
        GraphError::Io(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
            Reason::new(
                Rule::Corrupt,
                "the file became shorter while it was read",
                "check it again once it is written",
            )
        }
        GraphError::Io(_) => Reason::new(
            Rule::Unsupported,
            error.to_string(),
            "make the file readable, and check that the disk is sound",
        ),
    }
}

/// The verdict on a graph.
pub(super) fn check(artifact: &Artifact, options: &Options, verdict: &mut Verdict) {
    let Some(consumer) = options.consumer.line("graph_def") else { return };
    let read_options = ReadOptions {
        deprecated: &options.consumer.bans_on(&options.deprecated),
        count_operations: false,
        release: consumer.version,
    };
    let graphs = match read(artifact, &read_options) {
        Ok(graphs) => graphs,
        Err(reason) => return verdict.refuse(*reason),
    };
    if graphs.overflow {
        return verdict.refuse(Reason::new(
            Rule::Unsupported,
            "there are more meta graphs or tags than any real model has",
            "check where the file comes from",
        ));
    }
    if artifact.kind != Kind::SavedModel {
        if let Some(meta_graph) = graphs.meta_graphs.first() {
            verdict.versions = Some((&meta_graph.graph.versions).into());
            empty::check(artifact, &meta_graph.graph, verdict);
            judge(meta_graph, &consumer, None, verdict);
        }
        return;
    }
    let chosen = match choose(&graphs.meta_graphs, options.tags.as_deref()) {
        Ok(chosen) => chosen,
        Err(reason) => return verdict.refuse(*reason),
    };
    for (position, meta_graph) in graphs.meta_graphs.iter().enumerate() {
        let place = format!("meta graph {}", show_tags(&meta_graph.tags));
        if position == chosen {
            verdict.versions = Some((&meta_graph.graph.versions).into());
            judge(meta_graph, &consumer, Some(&place), verdict);
            variables(artifact, meta_graph, options, verdict);
            if meta_graph.has_object_graph && graphs.meta_graphs.len() == 1 {
                other_loader(&meta_graph.graph, &consumer, &place, verdict);
            }
        } else if let Err(rejection) = consumer.check(&meta_graph.graph.versions) {
            let message = format!("{rejection}; this meta graph is not the one that is loaded");
            verdict.warn(Warning::new(Reason::of_rejection(&rejection).rule, message).at(place));
        }
    }
}

/// The prefix of the checkpoint that belongs to a SavedModel.
fn variables_prefix(artifact: &Artifact) -> Option<PathBuf> {
    let directory = match &artifact.place {
        Place::Directory(directory) => directory.as_path(),
        Place::Source(_) => artifact.path.as_deref()?.parent()?,
        Place::Prefix(_) => return None,
    };
    Some(directory.join("variables").join("variables"))
}

/// The variables of the meta graph that is loaded.
fn variables(
    artifact: &Artifact,
    meta_graph: &MetaGraph,
    options: &Options,
    verdict: &mut Verdict,
) {
    let Some(prefix) = variables_prefix(artifact) else { return };
    if with_suffix(&prefix, ".index").is_file() {
        tensor_bundle::check_variables(&prefix, options, verdict);
    } else if meta_graph.has_saver {
        let message = "the model has variables, and their index is missing; the C++ loader leaves them uninitialised, and the Python \
                       loaders refuse the model";
        verdict.warn(Warning::new(Rule::NotFound, message).at("variables/variables.index"));
    }
}

fn show_tags(tags: &[String]) -> String {
    format!("[{}]", tags.join(","))
}

/// Whether two lists have the same tags, in any order, however often.
fn same_tags<'t>(left: &[String], right: impl Iterator<Item = &'t str> + Clone) -> bool {
    left.iter().all(|tag| right.clone().any(|other| other == tag))
        && right.clone().all(|tag| left.iter().any(|other| other == tag))
}

/// The meta graph with the tags; without any, `serve` or the only one.
fn choose(meta_graphs: &[MetaGraph], tags: Option<&[String]>) -> Result<usize, Box<Reason>> {
    let with = |tags: &[&str]| {
        meta_graphs.iter().position(|meta_graph| same_tags(&meta_graph.tags, tags.iter().copied()))
    };
    let found = match tags {
        Some(tags) => with(&tags.iter().map(String::as_str).collect::<Vec<_>>()),
        None => with(&["serve"]).or(if meta_graphs.len() == 1 { Some(0) } else { None }),
    };
    found.ok_or_else(|| {
        let there: Vec<String> =
            meta_graphs.iter().take(LISTED).map(|meta_graph| show_tags(&meta_graph.tags)).collect();
        let wanted =
            tags.map_or_else(|| "[serve], and there is not exactly one".to_owned(), show_tags);
        let there = if there.is_empty() { "none at all".to_owned() } else { there.join(", ") };
        Reason::new(
            Rule::NotFound,
            format!("no meta graph has the tags {wanted}; there is {there}"),
            "name the tags of the meta graph to load (--tags)",
        )
        .with_numbers(there, wanted)
        .into()
    })
}

/// What the importer finds, in its order: versions, structure, and on its way through the nodes deprecated operations and what only
/// shows there.
fn judge(
    meta_graph: &MetaGraph,
    consumer: &version::Consumer,
    place: Option<&str>,
    verdict: &mut Verdict,
) {
    let graph = &meta_graph.graph;
    let at = |reason: Reason| match place {
        Some(place) => reason.at(place),
        None => reason,
    };
    if let Err(rejection) = consumer.check(&graph.versions) {
        return verdict.refuse(at(Reason::of_rejection(&rejection)));
    }
    let producer = graph.versions.producer;
    let (refused, allowed): (Vec<_>, Vec<_>) = graph
        .deprecated_before_fault()
        .iter()
        .partition(|found| producer >= found.operation.version);
    for found in refused.iter().take(LISTED) {
        verdict.refuse(deprecated(found, producer));
    }
    if refused.is_empty()
        && let Some(fault) = &graph.structure
    {
        verdict.refuse(
            Reason::new(
                Rule::Corrupt,
                format!("the nodes of the graph do not fit together: {fault}"),
                "export the graph again; no release loads it",
            )
            .at(fault.node.clone()),
        );
        if !fault.kind.is_found_on_the_way() {
            return;
        }
    }
    for found in allowed.iter().take(LISTED) {
        let DeprecatedUse { operation, node, count, .. } = found;
        let message = format!(
            "{} is deprecated from GraphDef version {} on; this graph of producer {producer} may still use it ({})",
            operation.name,
            operation.version,
            show_count(*count),
        );
        verdict.warn(Warning::new(Rule::DeprecatedOp, message).at(node.clone()));
    }
    for found in graph.deprecated_in_functions.iter().take(LISTED) {
        let DeprecatedUse { operation, node, function, count, .. } = found;
        let function = function.as_deref().unwrap_or_default();
        let message = format!(
            "a function uses {}, which is deprecated from GraphDef version {} on; it fails when the function runs, unless the graph's \
             producer is older ({}){}",
            operation.name,
            operation.version,
            show_count(*count),
            show_replacement(found),
        );
        verdict.warn(
            Warning::new(Rule::DeprecatedOp, message)
                .at(format!("function {function}, node {node}")),
        );
    }
    forward_compatibility(meta_graph, consumer, place, verdict);
}

/// Warns of a producer that is so far ahead that TensorFlow promises nothing. Patch releases of one MAJOR.MINOR are compatible with one
/// another in both directions, whatever their numbers.
fn forward_compatibility(
    meta_graph: &MetaGraph,
    consumer: &version::Consumer,
    place: Option<&str>,
    verdict: &mut Verdict,
) {
    let producer = meta_graph.graph.versions.producer;
    let ahead = i64::from(producer) - i64::from(consumer.version);
    if ahead <= FORWARD_COMPATIBILITY || is_of_same_minor(meta_graph, consumer) {
        return;
    }
    let attributes = if meta_graph.stripped_default_attrs {
        "; attributes with their default values were left out of it, so that those at least are no obstacle"
    } else {
        ""
    };
    let message = format!(
        "the producer {producer} is {ahead} versions (about as many days) ahead of the consumer {}; TensorFlow promises to load \
         graphs of producers up to {FORWARD_COMPATIBILITY} ahead, and an operation or attribute that the consumer does not know \
         would make the import fail{attributes}",
        consumer.version,
    );
    let warning = Warning::new(Rule::ForwardCompatibility, message);
    verdict.warn(match place {
        Some(place) => warning.at(place),
        None => warning,
    });
}

/// Whether a graph was written by a release that has the MAJOR and MINOR of the consumer's.
fn is_of_same_minor(meta_graph: &MetaGraph, consumer: &version::Consumer) -> bool {
    let known = tensorflow::graph_def(meta_graph.graph.versions.producer).release;
    let producer = match (meta_graph.tensorflow_version.as_str(), known) {
        ("", Some(release)) => release.version,
        (written, _) => written,
    };
    let consumer = consumer.release.as_deref().and_then(|name| name.strip_prefix("TensorFlow "));
    consumer.and_then(minor).is_some_and(|consumer| minor(producer) == Some(consumer))
}

/// MAJOR.MINOR of a release; none of what was built before one (`2.17.0-dev20240101`, `2.17.0rc0`).
fn minor(release: &str) -> Option<&str> {
    let (minor, patch) = release.rsplit_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(patch) && minor.split('.').count() == 2 && minor.split('.').all(digits))
        .then_some(minor)
}

fn show_count(count: u64) -> String {
    if count == 1 { "one node".to_owned() } else { format!("{count} nodes") }
}

fn show_replacement(found: &DeprecatedUse) -> String {
    found
        .operation
        .replacement
        .as_ref()
        .map_or_else(String::new, |other| format!("; use {other} instead"))
}

fn deprecated(found: &DeprecatedUse, producer: i32) -> Reason {
    let DeprecatedUse { operation, node, count, .. } = found;
    let message = format!(
        "the operation {} is deprecated from GraphDef version {} on, and the graph's producer is {producer} ({})",
        operation.name,
        operation.version,
        show_count(*count),
    );
    let remedy = match &operation.replacement {
        Some(replacement) => format!("use {replacement} instead, and export the graph again"),
        None => "remove the operation, and export the graph again".to_owned(),
    };
    Reason::new(Rule::DeprecatedOp, message, remedy)
        .with_numbers(producer, format_args!("< {}", operation.version))
        .at(node.clone())
}

/// What `tf.saved_model.load` does otherwise with a model in the TF2 format: it never looks at the versions nor at the nodes outside of
/// functions, and builds every function anew as if it were made by the consumer.
fn other_loader(graph: &Graph, consumer: &version::Consumer, place: &str, verdict: &mut Verdict) {
    let mut in_functions: Vec<&str> = Vec::new();
    for found in &graph.deprecated_in_functions {
        let DeprecatedOperation { name, version, .. } = &found.operation;
        // Several functions may use one operation.
        if consumer.version >= *version && !in_functions.contains(&name.as_str()) {
            in_functions.push(name);
        }
        if in_functions.len() == LISTED {
            break;
        }
    }
    if !in_functions.is_empty() {
        let message = format!(
            "tf.saved_model.load refuses this model, whatever its producer, because its functions use {}",
            in_functions.join(", ")
        );
        verdict.warn(Warning::new(Rule::LoaderDiffers, message).at(place));
    } else if !verdict.is_acceptable() {
        let message = "tf.saved_model.load looks neither at the versions nor at the nodes outside of functions of a model in the TF2 \
                       format, and would load this one";
        verdict.warn(Warning::new(Rule::LoaderDiffers, message).at(place));
    }
}

/// What is in a graph.
pub(super) fn inspect(artifact: &Artifact) -> Result<Inspection, Box<Reason>> {
    let graphs = read(artifact, &ReadOptions { count_operations: true, ..ReadOptions::default() })?;
    let mut inspection = Inspection::new(artifact.label.clone(), artifact.kind);
    let chosen = match artifact.kind {
        Kind::SavedModel => choose(&graphs.meta_graphs, None).ok(),
        _ => Some(0),
    };
    for (position, meta_graph) in graphs.meta_graphs.iter().enumerate() {
        for (name, count) in &meta_graph.graph.operations {
            *inspection.operations.entry(name.clone()).or_default() += count;
        }
        *inspection.functions.get_or_insert_default() += meta_graph.graph.functions;
        if artifact.kind != Kind::GraphDef && artifact.kind != Kind::GraphDefText {
            let place = format!("meta graph {}", show_tags(&meta_graph.tags));
            let producer = Some(i64::from(meta_graph.graph.versions.producer));
            inspection.nested.push(NestedVersion::new(
                place.clone(),
                "tensorflow.GraphDef",
                producer,
            ));
            if !meta_graph.tensorflow_version.is_empty() {
                inspection.details.insert(
                    format!("{place} written by TensorFlow"),
                    meta_graph.tensorflow_version.clone(),
                );
            }
        }
        if Some(position) == chosen {
            if matches!(artifact.kind, Kind::SavedModel | Kind::MetaGraph) {
                inspection.stripped_default_attrs = Some(meta_graph.stripped_default_attrs);
                inspection.stripped_op_list = Some(meta_graph.listed_operations);
            }
            let versions = &meta_graph.graph.versions;
            inspection.versions = Some(versions.into());
            let known = tensorflow::graph_def(versions.producer);
            inspection.date = known.date.map(|date| date.to_string());
            inspection.release = known.release.map(|release| release.version.to_owned());
        }
    }
    if artifact.kind == Kind::SavedModel
        && let Some(prefix) = variables_prefix(artifact)
    {
        tensor_bundle::inspect_variables(&prefix, &mut inspection);
    }
    Ok(inspection)
}
