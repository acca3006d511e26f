//! Verdicts on SavedModels.
//!
//! The reference is TensorFlow's graph loader (C++ and compat.v1). What other loaders would do goes
//! into warnings.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    CheckError, Findings, Inspection, Kind, Options, Reason, Remedy, Warning,
    consumer::ArtifactLine,
    graph::{self, LISTED, name_of, show_tags},
    opened::{Bytes, ModelFiles, with_suffix},
    other_kind,
    rule::messages,
    tensor_bundle,
};
use crate::{
    artifact::graph::{
        DeprecatedOperation, Form, Graph, GraphError, Graphs, Message, MetaGraph, ReadOptions, read,
    },
    read_at::ReadAt,
    version,
};

const BINARY: &str = "saved_model.pb";
const TEXT: &str = "saved_model.pbtxt";
const CHUNKED: &str = "saved_model.cpb";

/// What a SavedModel has beside its message: a model whose message was lost is still one, and
/// cannot be loaded.
const MARKS: [&str; 2] = ["fingerprint.pb", "variables/variables.index"];

/// All that stands in the directory of a SavedModel: where there is more, a mark may have come
/// there otherwise.
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
            && fs::read_dir(directory).is_ok_and(|mut entries| {
                entries.all(|entry| {
                    entry.is_ok_and(|entry| PARTS.iter().any(|part| entry.file_name() == *part))
                })
            }))
}

/// The file that holds the message, and how.
fn locate(model: &ModelFiles) -> Result<(Arc<dyn ReadAt>, Form), Box<Reason>> {
    let directory = match model {
        ModelFiles::Message(file) => {
            let is_text = |path: &Path| path.extension().is_some_and(|found| found == "pbtxt");
            let text = file.path.as_deref().is_some_and(is_text);
            return Ok((file.source.clone(), if text { Form::Text } else { Form::Binary }));
        }
        ModelFiles::Directory(directory) => directory,
    };
    for (name, form) in [(BINARY, Form::Binary), (TEXT, Form::Text)] {
        let path = directory.join(name);
        if path.is_file() {
            let file = File::open(&path).map_err(|source| {
                CheckError::Io { path: path.to_string_lossy().into_owned(), source }.reason()
            })?;
            return Ok((Arc::new(file), form));
        }
    }
    Err(if directory.join(CHUNKED).is_file() {
        Reason::from(messages::model_in_chunks()).with_remedy(Remedy::SaveUnchunked)
    } else {
        Reason::from(messages::no_message_of_model(BINARY, TEXT)).with_remedy(Remedy::CheckPath)
    }
    .into())
}

fn read_model(model: &ModelFiles, options: &ReadOptions<'_>) -> Result<Graphs, Box<Reason>> {
    let (source, form) = locate(model)?;
    read(&source, Message::SavedModel, form, options).map_err(|error| {
        let instead = match &error {
            // The name of the file was not asked where the directory says what it is.
            GraphError::Malformed(_) | GraphError::Text(_) => {
                other_kind::instead_of(Kind::SavedModel, &source)
            }
            GraphError::Io(_) => None,
        };
        Box::new(instead.unwrap_or_else(|| graph::reason(&error)))
    })
}

/// The verdict on a SavedModel.
pub(super) fn check(model: &ModelFiles, options: &Options) -> Findings {
    let consumer = options.consumer().line(ArtifactLine::GraphDef);
    let graphs = graph::read_for(&consumer, options, |options| read_model(model, options));
    let chosen = graphs.and_then(|graphs| {
        let chosen = choose(&graphs.meta_graphs, options.tags())?;
        Ok((graphs.meta_graphs, chosen))
    });
    let (meta_graphs, chosen) = match chosen {
        Ok(found) => found,
        Err(reason) => return reason.into(),
    };
    let mut findings = Findings::default();
    for (position, meta_graph) in meta_graphs.iter().enumerate() {
        let place = name_of(meta_graph);
        if position == chosen {
            findings.versions = Some((&meta_graph.graph.versions).into());
            findings.add(graph::judge(meta_graph, &consumer, Some(&place)));
            findings.add(variables(model, meta_graph, options));
            if meta_graph.has_object_graph && meta_graphs.len() == 1 {
                let is_refused = !findings.reasons().is_empty();
                let other = other_loader(&meta_graph.graph, &consumer, is_refused);
                if let Some(warning) = other {
                    findings.warn(warning.at(place));
                }
            }
        } else if let Err(rejection) = consumer.check(&meta_graph.graph.versions) {
            let message = format!("{rejection}; this meta graph is not the one that is loaded");
            let rule = Reason::of_rejection(&rejection).rule;
            findings.warn(Warning::new(rule, message).at(place));
        }
    }
    findings
}

/// The prefix of the checkpoint that belongs to a SavedModel.
fn variables_prefix(model: &ModelFiles) -> Option<PathBuf> {
    let directory = match model {
        ModelFiles::Directory(directory) => directory.as_path(),
        ModelFiles::Message(Bytes { path, .. }) => path.as_deref()?.parent()?,
    };
    Some(directory.join("variables").join("variables"))
}

/// The variables of the meta graph that is loaded.
fn variables(model: &ModelFiles, meta_graph: &MetaGraph, options: &Options) -> Findings {
    let mut findings = Findings::default();
    let Some(prefix) = variables_prefix(model) else { return findings };
    if with_suffix(&prefix, ".index").is_file() {
        findings.add(tensor_bundle::check_variables(&prefix, options));
    } else if meta_graph.has_saver {
        let warning = Warning::from(messages::index_of_variables_missing());
        findings.warn(warning.at("variables/variables.index"));
    }
    findings
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
        let asked =
            tags.map_or_else(|| "[serve], and there is not exactly one".to_owned(), show_tags);
        let there = if there.is_empty() { "none at all".to_owned() } else { there.join(", ") };
        Reason::from(messages::no_such_tags(&asked, &there))
            .with_remedy(Remedy::ChooseTags)
            .with_numbers(there, asked)
            .into()
    })
}

/// What `tf.saved_model.load` does otherwise with a model in the TF2 format: it never looks at the
/// versions nor at the nodes outside of functions, and builds every function anew as if it were
/// made by the consumer.
fn other_loader(graph: &Graph, consumer: &version::Consumer, is_refused: bool) -> Option<Warning> {
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
        return Some(messages::load_refuses(in_functions.join(", ")).into());
    }
    is_refused.then(|| messages::load_takes().into())
}

/// What is in a SavedModel.
pub(super) fn inspect(
    model: &ModelFiles,
    mut inspection: Inspection,
) -> Result<Inspection, Box<Reason>> {
    let options = ReadOptions::default().with_operations_counted(true);
    let graphs = read_model(model, &options)?;
    let chosen = choose(&graphs.meta_graphs, None).ok();
    for (position, meta_graph) in graphs.meta_graphs.iter().enumerate() {
        graph::count(meta_graph, &mut inspection);
        graph::describe(meta_graph, &mut inspection);
        if Some(position) == chosen {
            graph::describe_loaded(meta_graph, &mut inspection);
            graph::date(meta_graph, &mut inspection);
        }
    }
    Ok(match variables_prefix(model) {
        Some(prefix) => tensor_bundle::inspect_variables(&prefix, inspection),
        None => inspection,
    })
}
