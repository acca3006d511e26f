//! Verdicts on SavedModels.
//!
//! One loader decides, by default `tf.compat.v1.saved_model.load`; the outcomes of the others are
//! reported as well.

use std::{cell::RefCell, ffi::OsStr, path::Path, rc::Rc, sync::Arc};

use serdes_files::{ReadAt, Tree};
use serdes_graphs::graph::{
    Form, Graph, GraphError, Graphs, Message, MetaGraph, ReadOptions, callables, interfaces, read,
};

use super::{
    CheckError, Consumer, Findings, Inspection, Kind, Loader, Loaders, ModelSummary, Options,
    Reason, Remedy, Warning, call_modules,
    consumer::ArtifactLine,
    each::{Each, check_beside_graphs},
    graph::{self, Asked, LISTED, name_of, show_tags},
    loaders::{LOADERS, differs},
    opened::{Located, ModelFiles},
    operations, other_kind,
    reading::{Reading, read_each},
    releases::say_which_load,
    restoring::{Beside, has_index, variables_of},
    rule::messages,
    tensor_bundle,
};

const BINARY: &str = "saved_model.pb";
const TEXT: &str = "saved_model.pbtxt";
const CHUNKED: &str = "saved_model.cpb";

/// Files that mark the directory of a SavedModel: a model whose message was lost is still a model,
/// and cannot be loaded.
const MARKS: [&str; 2] = ["fingerprint.pb", "variables/variables.index"];

/// All files of the directory of a SavedModel: in a directory with other files, a mark may have
/// another origin.
const PARTS: [&str; 7] = [
    "fingerprint.pb",
    "keras_metadata.pb",
    "variables",
    "assets",
    "assets.extra",
    "debug",
    "saved_model.json",
];

/// Returns true if a directory holds a SavedModel, or the remains of one.
pub(super) fn is_saved_model(tree: &dyn Tree, directory: &Path) -> bool {
    let has = |name: &&str| tree.has_file(&directory.join(name));
    [BINARY, TEXT, CHUNKED].iter().any(has)
        || (MARKS.iter().any(has)
            && tree.list(directory).is_ok_and(|entries| {
                entries.iter().all(|entry| {
                    PARTS.iter().any(|part| entry.file_name() == Some(OsStr::new(part)))
                })
            }))
}

/// Returns the file with the message, and its form.
fn locate(model: &ModelFiles) -> Result<(Arc<dyn ReadAt>, Form), Box<Reason>> {
    let Located { tree, path: directory } = match model {
        ModelFiles::Message(file) => {
            let is_text = |path: &Path| path.extension().is_some_and(|found| found == "pbtxt");
            let text = file.path.as_deref().is_some_and(is_text);
            return Ok((file.source.clone(), if text { Form::Text } else { Form::Binary }));
        }
        ModelFiles::Directory(directory) => directory,
    };
    for (name, form) in [(BINARY, Form::Binary), (TEXT, Form::Text)] {
        let path = directory.join(name);
        if tree.has_file(&path) {
            let file = tree.open(&path);
            let file =
                file.map_err(|source| CheckError::Io { path: tree.name(&path), source }.reason())?;
            return Ok((file, form));
        }
    }
    Err(if tree.has_file(&directory.join(CHUNKED)) {
        Reason::from(messages::model_in_chunks()).with_remedy(Remedy::SaveUnchunked)
    } else {
        Reason::from(messages::no_message_of_model(BINARY, TEXT)).with_remedy(Remedy::CheckPath)
    }
    .into())
}

/// Reads the message of a model.
fn read_message(
    source: &Arc<dyn ReadAt>,
    form: Form,
    options: &ReadOptions<'_>,
) -> Result<Graphs, Box<Reason>> {
    read(source, Message::SavedModel, form, options).map_err(|error| {
        let instead = match &error {
            // The directory identified the kind, so the name of the file was not considered.
            GraphError::Malformed(_) | GraphError::Text(_) => {
                other_kind::instead_of(Kind::SavedModel, source)
            }
            GraphError::Io(_) => None,
        };
        Box::new(instead.unwrap_or_else(|| graph::reason(&error)))
    })
}

/// Returns the verdict of each consumer on a SavedModel.
pub(super) fn check(
    model: &ModelFiles,
    consumers: &Each<&Consumer>,
    options: &Options,
) -> Each<Findings> {
    let files = FilesBeside { model, known: RefCell::default() };
    let judged = |consumers: &Each<&Consumer>| {
        let read = read_for(model, consumers, options);
        consumers.map(|consumer| *consumer).zip(read).map_into(|(consumer, reading)| {
            let judged = reading.and_then(|reading| judge(&reading, &files, consumer, options));
            judged.unwrap_or_else(Into::into)
        })
    };
    let findings = say_which_load(consumers, judged(consumers), judged);
    let findings = match locate(model) {
        Ok((source, form)) => call_modules::warn(&*source, form, consumers, findings),
        Err(_) => findings,
    };
    let variables = check_beside_graphs(consumers, options, |options| variables(model, options));
    findings.zip(variables).map_into(|(mut findings, variables)| {
        // Without a graph it is unknown if the variables belong to it.
        if let Some(loaders) = &mut findings.loaders {
            loaders.add(variables.outcome());
            findings.add_new(variables);
        }
        findings
    })
}

/// The other files of a model, by the graphs that were read: consumers that read the same graphs
/// share them.
struct FilesBeside<'m> {
    model: &'m ModelFiles,
    known: RefCell<Vec<Rc<Beside<'m>>>>,
}

impl<'m> FilesBeside<'m> {
    /// Returns the files for the meta graph with this number, as read by this consumer.
    fn of(
        &self,
        reading: &Reading,
        number: usize,
        consumer: &Consumer,
    ) -> Result<Rc<Beside<'m>>, Box<Reason>> {
        let known =
            self.known.borrow().iter().find(|one| one.is_of(&reading.graphs, number)).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let release = consumer.line(ArtifactLine::GraphDef).version;
        let message = locate(self.model)?;
        let beside = Rc::new(Beside::new(self.model, message, &reading.graphs, number, release));
        self.known.borrow_mut().push(Rc::clone(&beside));
        Ok(beside)
    }
}

/// Reads the model for each consumer, in its form.
fn read_for(
    model: &ModelFiles,
    consumers: &Each<&Consumer>,
    options: &Options,
) -> Each<Result<Reading, Box<Reason>>> {
    match locate(model) {
        Ok((source, form)) => {
            read_each(consumers, options, form, |options| read_message(&source, form, options))
        }
        Err(reason) => consumers.map(|_| Err(reason.clone())),
    }
}

/// Judges the graphs of a model for one consumer.
fn judge(
    reading: &Reading,
    files: &FilesBeside<'_>,
    consumer: &Consumer,
    options: &Options,
) -> Result<Findings, Box<Reason>> {
    let meta_graphs = &reading.graphs.meta_graphs;
    let chosen = choose(meta_graphs, options.tags())?;
    let numbers = consumer.line(ArtifactLine::GraphDef);
    let mut findings = Findings::default();
    for (position, meta_graph) in meta_graphs.iter().enumerate() {
        let place = name_of(meta_graph);
        if position == chosen {
            let beside = files.of(reading, chosen, consumer)?;
            let is_only = meta_graphs.len() == 1;
            let judged = judge_chosen(meta_graph, is_only, reading, &beside, consumer, options);
            findings.versions = Some((&meta_graph.graph.versions).into());
            findings.loaders = judged.loaders;
            findings.add(judged);
        } else if let Err(rejection) = numbers.check(&meta_graph.graph.versions) {
            let message = format!("{rejection}; this meta graph is not the one that is loaded");
            let rule = Reason::of_rejection(&rejection).rule;
            findings.warn(Warning::new(rule, message).at(place));
        }
    }
    Ok(findings)
}

/// Judges the loaded meta graph for each loader. `tf.saved_model.load` loads the object graph of a
/// model that has one, if its meta graph is the only one.
fn judge_chosen(
    meta_graph: &MetaGraph,
    is_only: bool,
    reading: &Reading,
    beside: &Beside<'_>,
    consumer: &Consumer,
    options: &Options,
) -> Findings {
    let place = name_of(meta_graph);
    let judgement = reading.judgement(&meta_graph.graph);
    let is_object_graph = meta_graph.has_object_graph && is_only;
    let by = |loader| {
        let is_object_graph = is_object_graph && loader == Loader::Load;
        let mut findings = if is_object_graph && judgement.is_none() {
            by_functions_alone(&meta_graph.graph, consumer)
        } else {
            let asked = Asked { consumer, judgement, loader, is_object_graph };
            graph::judge(meta_graph, &asked, Some(&place))
        };
        // A loader restores only after it has built the graph.
        if findings.reasons().is_empty() {
            let reasons = beside.reasons(loader, is_object_graph);
            reasons.into_iter().for_each(|reason| findings.refuse(reason));
            let warnings = beside.warnings(loader, is_object_graph);
            warnings.into_iter().for_each(|warning| findings.warn(warning));
        }
        findings
    };
    let each = LOADERS.map(by);
    let mut findings = by(options.loader());
    let mut differences = Vec::new();
    for (loader, other) in LOADERS.into_iter().zip(&each) {
        if let Some(warning) = differs(loader, findings.reasons(), other.reasons()) {
            differences.push(warning.at(place.clone()));
        }
    }
    differences.into_iter().for_each(|warning| findings.warn(warning));
    findings.loaders = Some(Loaders::of(each.each_ref().map(Findings::outcome)));
    findings
}

/// Returns the findings of `tf.saved_model.load` in a model in the TF2 format, as far as they do
/// not depend on the operations of the consumer: it never checks the versions or the nodes outside
/// functions, and rebuilds every function as if the consumer had produced it.
fn by_functions_alone(graph: &Graph, consumer: &Consumer) -> Findings {
    let version = consumer.line(ArtifactLine::GraphDef).version;
    let mut uses = graph.deprecated_in_functions.iter();
    match uses.find(|found| version >= found.operation.version) {
        Some(found) => Findings::default().refused(operations::built_by_consumer(
            &found.operation,
            &found.node,
            found.function.as_deref(),
        )),
        None => Findings::default(),
    }
}

/// Returns the variables of a model, if it has a checkpoint.
fn variables(model: &ModelFiles, options: &Options) -> Findings {
    match variables_of(model).filter(has_index) {
        Some(variables) => tensor_bundle::check_variables(&variables, options),
        None => Findings::default(),
    }
}

/// Returns true if two lists have the same tags, independent of order and repetition.
fn same_tags<'t>(left: &[String], right: impl Iterator<Item = &'t str> + Clone) -> bool {
    left.iter().all(|tag| right.clone().any(|other| other == tag))
        && right.clone().all(|tag| left.iter().any(|other| other == tag))
}

/// Returns the meta graph with these tags; without tags, `serve` or the only one.
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

/// Describes the contents of a SavedModel.
pub(super) fn inspect(
    model: &ModelFiles,
    mut inspection: Inspection,
) -> Result<Inspection, Box<Reason>> {
    let options = ReadOptions::default().with_operations_counted(true);
    let (source, form) = locate(model)?;
    let graphs = read_message(&source, form, &options)?;
    let chosen = choose(&graphs.meta_graphs, None).ok();
    for (position, meta_graph) in graphs.meta_graphs.iter().enumerate() {
        graph::count(meta_graph, &mut inspection);
        graph::describe(meta_graph, &mut inspection);
        if Some(position) == chosen {
            graph::describe_loaded(meta_graph, &mut inspection);
            graph::date(meta_graph, &mut inspection);
        }
    }
    let found = interfaces(&source, Message::SavedModel, form).map_err(|e| graph::reason(&e))?;
    if found.overflow {
        let words = "more than is listed (4 MiB)".to_owned();
        inspection.details.insert("signatures".to_owned(), words);
    }
    let directory = match model {
        ModelFiles::Directory(directory) => Some(directory),
        ModelFiles::Message(_) => None,
    };
    let functions = callables(&source, form).map_err(|e| graph::reason(&e))?;
    inspection.model = Some(ModelSummary::of(found, functions, directory));
    Ok(match variables_of(model) {
        Some(variables) => tensor_bundle::inspect_variables(&variables, inspection),
        None => inspection,
    })
}
