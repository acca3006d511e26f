//! Verdicts on graphs: GraphDef and MetaGraphDef, and the meta graphs of a SavedModel.
//!
//! The reference is TensorFlow's graph importer: the C import of the same bytes.

use super::{
    Findings, Inspection, NestedVersion, Options, Reason, Remedy, Rule, Warning,
    consumer::ArtifactLine,
    empty,
    error::became_shorter,
    opened::{Bytes, GraphKind},
    rule::messages,
};
use crate::{
    artifact::graph::{
        self, DeprecatedUse, Form, GraphError, Graphs, Message, MetaGraph, ReadOptions,
    },
    read_at::ReadAt,
    version::{self, evolution::FORWARD_COMPATIBILITY_DAYS as FORWARD_COMPATIBILITY, tensorflow},
};

/// Reasons or warnings of one kind that are listed before they are only counted.
pub(super) const LISTED: usize = 20;

/// Whether every parser refuses the bytes as this message.
pub(super) fn is_refused(source: &dyn ReadAt, message: Message) -> bool {
    matches!(graph::versions(source, message, Form::Binary), Err(GraphError::Malformed(_)))
}

fn read(file: &Bytes, kind: GraphKind, options: &ReadOptions<'_>) -> Result<Graphs, Box<Reason>> {
    let read = |message, form| graph::read(&file.source, message, form, options);
    let graphs = match kind {
        GraphKind::GraphDef => read(Message::GraphDef, Form::Binary),
        GraphKind::GraphDefText => read(Message::GraphDef, Form::Text),
        // TensorFlow tries a .meta file as binary first, and as text if that fails.
        GraphKind::MetaGraph => match read(Message::MetaGraphDef, Form::Binary) {
            Err(GraphError::Malformed(error)) => {
                read(Message::MetaGraphDef, Form::Text).map_err(|_| GraphError::Malformed(error))
            }
            graphs => graphs,
        },
    };
    graphs.map_err(|error| Box::new(reason(&error)))
}

/// Why a graph cannot be read.
pub(super) fn reason(error: &GraphError) -> Reason {
    match error {
        GraphError::Malformed(_) | GraphError::Text(_) => {
            Reason::new(Rule::Corrupt, error.to_string()).with_remedy(Remedy::FetchAgainOrNameKind)
        }
        GraphError::Io(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
            became_shorter()
        }
        GraphError::Io(_) => {
            Reason::new(Rule::Unsupported, error.to_string()).with_remedy(Remedy::MakeReadable)
        }
    }
}

/// Reads graphs as this consumer does, and stops where there are too many.
pub(super) fn read_for(
    consumer: &version::Consumer,
    options: &Options,
    read: impl FnOnce(&ReadOptions<'_>) -> Result<Graphs, Box<Reason>>,
) -> Result<Graphs, Box<Reason>> {
    let banned = options.banned();
    let read_options =
        ReadOptions::default().with_deprecated(&banned).with_release(consumer.version);
    let graphs = read(&read_options)?;
    if graphs.overflow {
        let reason = Reason::from(messages::too_many_meta_graphs());
        return Err(reason.with_remedy(Remedy::CheckOrigin).into());
    }
    Ok(graphs)
}

/// The verdict on a graph in one file.
pub(super) fn check(file: &Bytes, kind: GraphKind, options: &Options) -> Findings {
    let consumer = options.consumer().line(ArtifactLine::GraphDef);
    let graphs = match read_for(&consumer, options, |options| read(file, kind, options)) {
        Ok(graphs) => graphs,
        Err(reason) => return reason.into(),
    };
    let Some(meta_graph) = graphs.meta_graphs.first() else { return Findings::default() };
    let mut findings = Findings::of_versions(&meta_graph.graph.versions);
    findings.add(empty::check(&*file.source, kind, &meta_graph.graph));
    findings.add(judge(meta_graph, &consumer, None));
    findings
}

/// What the importer finds, in its order: versions, structure, and on its way through the nodes
/// deprecated operations and what only shows there. `place` is the meta graph in a SavedModel.
pub(super) fn judge(
    meta_graph: &MetaGraph,
    consumer: &version::Consumer,
    place: Option<&str>,
) -> Findings {
    let graph = &meta_graph.graph;
    let mut findings = Findings::of_versions(&graph.versions);
    if let Err(rejection) = consumer.check(&graph.versions) {
        return findings.refused(Reason::of_rejection(&rejection).at_any(place));
    }
    let producer = graph.versions.producer;
    let (refused, allowed): (Vec<_>, Vec<_>) = graph
        .deprecated_before_fault()
        .iter()
        .partition(|found| producer >= found.operation.version);
    for found in refused.iter().take(LISTED) {
        findings.refuse(deprecated(found, producer));
    }
    if refused.is_empty()
        && let Some(fault) = &graph.structure
    {
        let reason = Reason::from(messages::nodes_do_not_fit(fault));
        findings.refuse(reason.with_remedy(Remedy::ExportAgain).at(fault.node.clone()));
        if !fault.kind.is_found_on_the_way() {
            return findings;
        }
    }
    for found in allowed.iter().take(LISTED) {
        findings.warn(still_allowed(found, producer));
    }
    for found in graph.deprecated_in_functions.iter().take(LISTED) {
        findings.warn(deprecated_in_function(found));
    }
    if let Some(warning) = forward_compatibility(meta_graph, consumer) {
        findings.warn(warning.at_any(place));
    }
    findings
}

/// Warns of a producer that is so far ahead that TensorFlow promises nothing. Patch releases of one
/// MAJOR.MINOR are compatible with one another in both directions, whatever their numbers.
fn forward_compatibility(meta_graph: &MetaGraph, consumer: &version::Consumer) -> Option<Warning> {
    let producer = meta_graph.graph.versions.producer;
    let ahead = i64::from(producer) - i64::from(consumer.version);
    if ahead <= FORWARD_COMPATIBILITY || is_of_same_minor(meta_graph, consumer) {
        return None;
    }
    let attributes = if meta_graph.stripped_default_attrs {
        "; attributes with their default values were left out of it, so that those at least are no obstacle"
    } else {
        ""
    };
    let message = messages::producer_is_ahead(
        producer,
        ahead,
        consumer.version,
        FORWARD_COMPATIBILITY,
        attributes,
    );
    Some(message.into())
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

fn deprecated(found: &DeprecatedUse, producer: i32) -> Reason {
    let DeprecatedUse { operation, node, count, .. } = found;
    let message = messages::operation_is_deprecated(
        &operation.name,
        operation.version,
        producer,
        show_count(*count),
    );
    let replacement = operation.replacement.clone();
    Reason::from(message)
        .with_remedy(Remedy::ReplaceOperation { replacement })
        .with_numbers(producer, format_args!("< {}", operation.version))
        .at(node.clone())
}

fn still_allowed(found: &DeprecatedUse, producer: i32) -> Warning {
    let DeprecatedUse { operation, node, count, .. } = found;
    let message = messages::operation_is_still_allowed(
        &operation.name,
        operation.version,
        producer,
        show_count(*count),
    );
    Warning::from(message).at(node.clone())
}

fn deprecated_in_function(found: &DeprecatedUse) -> Warning {
    let DeprecatedUse { operation, node, function, count, .. } = found;
    let replacement = operation.replacement.as_ref().map(|other| format!("; use {other} instead"));
    let message = messages::function_uses_deprecated(
        &operation.name,
        operation.version,
        show_count(*count),
        replacement.unwrap_or_default(),
    );
    let function = function.as_deref().unwrap_or_default();
    Warning::from(message).at(format!("function {function}, node {node}"))
}

/// What is in a graph in one file.
pub(super) fn inspect(
    file: &Bytes,
    kind: GraphKind,
    mut inspection: Inspection,
) -> Result<Inspection, Box<Reason>> {
    let options = ReadOptions::default().with_operations_counted(true);
    for (position, meta_graph) in read(file, kind, &options)?.meta_graphs.iter().enumerate() {
        count(meta_graph, &mut inspection);
        if kind == GraphKind::MetaGraph {
            describe(meta_graph, &mut inspection);
        }
        if position == 0 {
            date(meta_graph, &mut inspection);
            if kind == GraphKind::MetaGraph {
                describe_loaded(meta_graph, &mut inspection);
            }
        }
    }
    Ok(inspection)
}

/// Counts operations and functions.
pub(super) fn count(meta_graph: &MetaGraph, inspection: &mut Inspection) {
    for (name, count) in &meta_graph.graph.operations {
        *inspection.operations.entry(name.clone()).or_default() += count;
    }
    *inspection.functions.get_or_insert_default() += meta_graph.graph.functions;
}

/// Notes the versions of the graph that is loaded, and what they stand for.
pub(super) fn date(meta_graph: &MetaGraph, inspection: &mut Inspection) {
    let versions = &meta_graph.graph.versions;
    inspection.versions = Some(versions.into());
    let known = tensorflow::graph_def(versions.producer);
    inspection.date = known.date.map(|date| date.to_string());
    inspection.release = known.release.map(|release| release.version.to_owned());
}

/// Notes what a meta graph records of itself.
pub(super) fn describe(meta_graph: &MetaGraph, inspection: &mut Inspection) {
    let place = name_of(meta_graph);
    let producer = Some(i64::from(meta_graph.graph.versions.producer));
    inspection.nested.push(NestedVersion::new(place.clone(), "tensorflow.GraphDef", producer));
    if !meta_graph.tensorflow_version.is_empty() {
        inspection.details.insert(
            format!("{place} written by TensorFlow"),
            meta_graph.tensorflow_version.clone(),
        );
    }
}

/// Notes what is only told of the meta graph that is loaded.
pub(super) fn describe_loaded(meta_graph: &MetaGraph, inspection: &mut Inspection) {
    inspection.stripped_default_attrs = Some(meta_graph.stripped_default_attrs);
    inspection.stripped_op_list = Some(meta_graph.listed_operations);
}

/// A meta graph by its tags, as verdicts name it.
pub(super) fn name_of(meta_graph: &MetaGraph) -> String {
    format!("meta graph {}", show_tags(&meta_graph.tags))
}

/// Tags as they are shown: `[serve,gpu]`.
pub(super) fn show_tags(tags: &[String]) -> String {
    format!("[{}]", tags.join(","))
}
