//! Verdicts on graphs: GraphDef and MetaGraphDef, and the meta graphs of a SavedModel.
//!
//! The reference is TensorFlow's graph importer: the C import of the same bytes.

use serdes::version::{
    self, evolution::FORWARD_COMPATIBILITY_DAYS as FORWARD_COMPATIBILITY, tensorflow,
};
use serdes_files::ReadAt;
use serdes_graphs::graph::{
    self, DeprecatedUse, Form, Graph, GraphError, Graphs, ImportDiagnostic, ImportDiagnosticKind,
    Judgement, Message, MetaGraph, ReadOptions,
};
use serdes_operations::Registry;

use super::{
    Consumer, Findings, Inspection, Loader, NestedVersion, Options, Outcome, Reason, Remedy, Rule,
    Warning,
    consumer::ArtifactLine,
    each::Each,
    empty,
    error::became_shorter,
    opened::{Bytes, GraphKind},
    operations,
    reading::{Reading, read_each},
    releases::say_which_load,
    rule::messages,
};

/// Limit on the reasons or warnings of one kind that are listed; further ones are only counted.
pub(super) const LISTED: usize = 20;

/// Returns true if every parser refuses the bytes as this message.
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

/// Returns the reason why a graph cannot be read.
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

/// Reads a file of one graph for each consumer.
fn read_file(
    file: &Bytes,
    kind: GraphKind,
    consumers: &Each<&Consumer>,
    options: &Options,
) -> Each<Result<Reading, Box<Reason>>> {
    let read = |message, form| {
        read_each(consumers, options, form, |options| {
            graph::read(&file.source, message, form, options)
                .map_err(|error| Box::new(reason(&error)))
        })
    };
    match kind {
        GraphKind::GraphDef => read(Message::GraphDef, Form::Binary),
        GraphKind::GraphDefText => read(Message::GraphDef, Form::Text),
        GraphKind::MetaGraph => {
            let binary = read(Message::MetaGraphDef, Form::Binary);
            let is_text = |found: &Result<_, Box<Reason>>| {
                found.as_ref().is_err_and(|reason| reason.rule == Rule::Corrupt)
            };
            if !binary.iter().any(is_text) {
                return binary;
            }
            // TensorFlow tries a .meta file as binary first, and as text if that fails.
            let text = read(Message::MetaGraphDef, Form::Text);
            binary.zip(text).map_into(|(binary, text)| match is_text(&binary) {
                true => text.or(binary),
                false => binary,
            })
        }
    }
}

/// Returns the verdict of each consumer on a graph in one file: that of the C import for a
/// GraphDef, in either form, and that of Python's import for a MetaGraphDef, which only Python
/// reads.
pub(super) fn check(
    file: &Bytes,
    kind: GraphKind,
    consumers: &Each<&Consumer>,
    options: &Options,
) -> Each<Findings> {
    let loader = match kind {
        GraphKind::GraphDef | GraphKind::GraphDefText => Loader::Import,
        GraphKind::MetaGraph => Loader::LoadV1,
    };
    let check = |consumers: &Each<&Consumer>| {
        let readings = read_file(file, kind, consumers, options);
        consumers.map(|consumer| *consumer).zip(readings).map_into(|(consumer, reading)| {
            let reading = match reading {
                Ok(reading) => reading,
                Err(reason) => return reason.into(),
            };
            let Some(meta_graph) = reading.graphs.meta_graphs.first() else {
                return Findings::default();
            };
            let mut findings = Findings::of_versions(&meta_graph.graph.versions);
            findings.add(empty::check(&*file.source, kind, &meta_graph.graph));
            let judgement = reading.judgement(&meta_graph.graph);
            let asked = Asked { consumer, judgement, loader, is_object_graph: false };
            findings.add(judge(meta_graph, &asked, None));
            findings
        })
    };
    say_which_load(consumers, check(consumers), check)
}

/// The consumer to judge for, and the known facts about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) consumer: &'a Consumer,
    /// The judgement of the graph for the consumer's operations, if they are known.
    pub(super) judgement: Option<&'a Judgement>,
    pub(super) loader: Loader,
    /// True if the loader imports only the functions of the graph, and never checks its versions.
    pub(super) is_object_graph: bool,
}

/// Returns the findings of a loader, in its order: versions, structure, and then the operations,
/// node by node. `place` is the meta graph in a SavedModel.
pub(super) fn judge(meta_graph: &MetaGraph, asked: &Asked<'_>, place: Option<&str>) -> Findings {
    let graph = &meta_graph.graph;
    let consumer = asked.consumer.line(ArtifactLine::GraphDef);
    let mut findings = Findings::of_versions(&graph.versions);
    let diagnostic = asked.judgement.and_then(|judgement| judgement.diagnostic(asked.loader));
    let is_first =
        asked.judgement.is_some_and(|judgement| judgement.is_before_versions(asked.loader));
    if !is_first
        && !asked.is_object_graph
        && let Err(rejection) = consumer.check(&graph.versions)
    {
        return findings.refused(Reason::of_rejection(&rejection).at_any(place));
    }
    let judged = asked.judgement.zip(asked.consumer.registry());
    let is_refused = match judged {
        Some((_, registry)) => match diagnostic {
            Some(diagnostic) => {
                refuse(&mut findings, graph, diagnostic, registry);
                true
            }
            None => false,
        },
        None => refuse_without_operations(&mut findings, graph),
    };
    if is_refused && findings.outcome() == Outcome::Unreadable && is_found_at_once(graph) {
        return findings;
    }
    warn_of_deprecated(&mut findings, graph);
    if let Some((judgement, registry)) = judged.filter(|_| !is_refused) {
        for attribute in judgement.ignored.iter().take(LISTED) {
            findings.warn(operations::ignored(attribute, registry));
        }
    }
    if let Some(warning) = forward_compatibility(meta_graph, &consumer, judged.is_some()) {
        findings.warn(warning.at_any(place));
    }
    findings
}

/// Returns true if the diagnostic of the structure is found before any node is visited.
fn is_found_at_once(graph: &Graph) -> bool {
    graph.structure.as_ref().is_some_and(|diagnostic| !diagnostic.kind.is_found_on_the_way())
}

/// Adds the reason that a loader gives, and, for deprecated operations, all further ones.
fn refuse(
    findings: &mut Findings,
    graph: &Graph,
    diagnostic: &ImportDiagnostic,
    registry: &Registry,
) {
    let ImportDiagnosticKind::Deprecated(operation) = &diagnostic.kind else {
        return findings.refuse(operations::reason(diagnostic, registry));
    };
    let producer = graph.versions.producer;
    let uses = refused_for_deprecation(graph);
    let (first, others): (Vec<_>, Vec<_>) =
        uses.into_iter().partition(|found| found.operation.name == operation.name);
    if first.is_empty() || diagnostic.function.is_some() {
        return findings.refuse(operations::reason(diagnostic, registry));
    }
    for found in first.into_iter().chain(others).take(LISTED) {
        findings.refuse(deprecated(found, producer));
    }
}

/// Returns the deprecated operations of the graph that are refused, up to the point where the
/// importer stops.
fn refused_for_deprecation(graph: &Graph) -> Vec<&DeprecatedUse> {
    let uses = graph.deprecated_before_diagnostic().iter();
    uses.filter(|found| graph.versions.producer >= found.operation.version).collect()
}

/// Adds the reasons against a graph for a consumer with unknown operations; returns true if there
/// were any.
fn refuse_without_operations(findings: &mut Findings, graph: &Graph) -> bool {
    let producer = graph.versions.producer;
    let refused = refused_for_deprecation(graph);
    for found in refused.iter().take(LISTED) {
        findings.refuse(deprecated(found, producer));
    }
    if refused.is_empty()
        && let Some(diagnostic) = &graph.structure
    {
        findings.refuse(operations::of_structure(diagnostic));
    }
    !findings.reasons().is_empty()
}

/// Warns about deprecated operations that are not refused yet.
fn warn_of_deprecated(findings: &mut Findings, graph: &Graph) {
    let producer = graph.versions.producer;
    let allowed = graph.deprecated_before_diagnostic().iter();
    let allowed = allowed.filter(|found| producer < found.operation.version);
    for found in allowed.take(LISTED) {
        findings.warn(still_allowed(found, producer));
    }
    for found in graph.deprecated_in_functions.iter().take(LISTED) {
        findings.warn(deprecated_in_function(found));
    }
}

/// Warns about a producer that is too new for TensorFlow's compatibility promise. Patch releases of
/// one MAJOR.MINOR are compatible in both directions, independent of their numbers. If the
/// operations of the consumer are known, they have decided already, unless the producer is newer
/// than every release with known operations, whose meaning is then unknown.
fn forward_compatibility(
    meta_graph: &MetaGraph,
    consumer: &version::Consumer,
    is_judged: bool,
) -> Option<Warning> {
    let producer = meta_graph.graph.versions.producer;
    if is_judged && producer <= newest_known_operations() {
        return None;
    }
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

/// Returns the GraphDef version of the newest release whose operations are known.
fn newest_known_operations() -> i32 {
    let newest = Registry::releases().last().and_then(|name| Registry::tensorflow(name).ok());
    newest.map_or(i32::MIN, |registry| registry.graph_def_version())
}

/// Returns true if a graph was written by a release with the consumer's MAJOR and MINOR.
fn is_of_same_minor(meta_graph: &MetaGraph, consumer: &version::Consumer) -> bool {
    let known = tensorflow::graph_def(meta_graph.graph.versions.producer).release;
    let producer = match (meta_graph.tensorflow_version.as_str(), known) {
        ("", Some(release)) => release.version,
        (written, _) => written,
    };
    let consumer = consumer.release.as_deref().and_then(|name| name.strip_prefix("TensorFlow "));
    consumer.and_then(minor).is_some_and(|consumer| minor(producer) == Some(consumer))
}

/// Returns the MAJOR.MINOR of a release; `None` for a build before one (`2.17.0-dev20240101`,
/// `2.17.0rc0`).
fn minor(release: &str) -> Option<&str> {
    let (minor, patch) = release.rsplit_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(patch) && minor.split('.').count() == 2 && minor.split('.').all(digits))
        .then_some(minor)
}

fn deprecated(found: &DeprecatedUse, producer: i32) -> Reason {
    let DeprecatedUse { operation, node, count, .. } = found;
    let message = messages::operation_is_deprecated(
        &operation.name,
        operation.version,
        producer,
        operations::show_count(*count),
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
        operations::show_count(*count),
    );
    Warning::from(message).at(node.clone())
}

fn deprecated_in_function(found: &DeprecatedUse) -> Warning {
    let DeprecatedUse { operation, node, function, count, .. } = found;
    let replacement = operation.replacement.as_ref().map(|other| format!("; use {other} instead"));
    let message = messages::function_uses_deprecated(
        &operation.name,
        operation.version,
        operations::show_count(*count),
        replacement.unwrap_or_default(),
    );
    let function = function.as_deref().unwrap_or_default();
    Warning::from(message).at(format!("function {function}, node {node}"))
}

/// Describes the contents of a graph in one file.
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

/// Records the versions of the loaded graph, with their date and release.
pub(super) fn date(meta_graph: &MetaGraph, inspection: &mut Inspection) {
    let versions = &meta_graph.graph.versions;
    inspection.versions = Some(versions.into());
    let known = tensorflow::graph_def(versions.producer);
    inspection.date = known.date.map(|date| date.to_string());
    inspection.release = known.release.map(|release| release.version.to_owned());
}

/// Records what a meta graph says about itself.
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

/// Records the details that are given only for the loaded meta graph.
pub(super) fn describe_loaded(meta_graph: &MetaGraph, inspection: &mut Inspection) {
    inspection.stripped_default_attrs = Some(meta_graph.stripped_default_attrs);
    inspection.stripped_op_list = Some(meta_graph.listed_operations);
}

/// Returns the name of a meta graph in verdicts: its tags.
pub(super) fn name_of(meta_graph: &MetaGraph) -> String {
    format!("meta graph {}", show_tags(&meta_graph.tags))
}

/// Formats tags: `[serve,gpu]`.
pub(super) fn show_tags(tags: &[String]) -> String {
    format!("[{}]", tags.join(","))
}

#[cfg(test)]
mod tests {
    use serdes_graphs::graph::IgnoredAttribute;

    use super::*;

    fn unknown() -> ImportDiagnostic {
        ImportDiagnostic {
            kind: ImportDiagnosticKind::UnknownOperation,
            node: "n".to_owned(),
            function: None,
            operation: "OurFusedOp".to_owned(),
            found: String::new(),
            expected: String::new(),
        }
    }

    /// Returns the rules for which TensorFlow 2.12 refuses a graph and those of which it warns; the
    /// graph has this min_consumer and an operation that the loaders `refusing` refuse.
    fn rules(
        loader: Loader,
        is_object_graph: bool,
        min_consumer: i32,
        refusing: &[Loader],
    ) -> (Vec<Rule>, Vec<Rule>) {
        let mut meta_graph = MetaGraph::default();
        let versions = &mut meta_graph.graph.versions;
        (versions.producer, versions.min_consumer) = (2474, min_consumer);
        let ignored = IgnoredAttribute {
            node: "m".to_owned(),
            function: None,
            operation: "MatMul".to_owned(),
            attribute: "grad_a".to_owned(),
            value: "true".to_owned(),
            since: Some("2.16"),
            nodes: 1,
        };
        let judgement = Judgement::of(refusing, &unknown(), vec![ignored]);
        let consumer = Consumer::tensorflow("2.12").unwrap();
        let asked =
            Asked { consumer: &consumer, judgement: Some(&judgement), loader, is_object_graph };
        let findings = judge(&meta_graph, &asked, None);
        let reasons = findings.reasons().iter().map(|reason| reason.rule).collect();
        (reasons, findings.warnings().iter().map(|warning| warning.rule).collect())
    }

    #[test]
    fn empty_operation_in_a_body_is_unknown_or_corrupt() {
        let mut meta_graph = MetaGraph::default();
        let mut structure = graph::StructureDiagnostic {
            node: "c".to_owned(),
            kind: graph::StructureDiagnosticKind::CalledFunction,
            body: None,
        };
        structure.body = Some(graph::BodyDiagnostic {
            function: "f".to_owned(),
            part: "a".to_owned(),
            kind: graph::BodyDiagnosticKind::NoOperation,
        });
        meta_graph.graph.structure = Some(structure);
        let diagnostic = ImportDiagnostic {
            function: Some("f".to_owned()),
            operation: String::new(),
            ..unknown()
        };
        let judgement = Judgement::of(Loader::ALL, &diagnostic, Vec::new());
        let consumer = Consumer::tensorflow("2.12").unwrap();
        let loader = Loader::Import;
        for (judgement, rule) in [(Some(&judgement), Rule::UnknownOp), (None, Rule::Corrupt)] {
            let asked = Asked { consumer: &consumer, judgement, loader, is_object_graph: false };
            assert_eq!(judge(&meta_graph, &asked, None).reasons()[0].rule, rule);
        }
    }

    #[test]
    fn versions_come_before_operations_but_for_the_cpp_loader() {
        for (loader, rule) in [
            (Loader::Import, Rule::MinConsumer),
            (Loader::LoadV1, Rule::MinConsumer),
            (Loader::Load, Rule::MinConsumer),
            (Loader::Cpp, Rule::UnknownOp),
        ] {
            assert_eq!(rules(loader, false, 2000, Loader::ALL).0, [rule]);
            assert_eq!(rules(loader, false, 0, Loader::ALL), (vec![Rule::UnknownOp], vec![]));
        }
    }

    #[test]
    fn an_object_graph_is_never_asked_for_its_versions() {
        let taken = (vec![], vec![Rule::AttributeDropped]);
        assert_eq!(rules(Loader::Load, true, 2000, &[Loader::LoadV1]), taken);
        assert_eq!(rules(Loader::Load, true, 2000, &[Loader::Load]).0, [Rule::UnknownOp]);
    }

    #[test]
    fn newer_producer_is_judged_by_its_operations() {
        // 2474 is far ahead of 2.12, and all of its operations are known.
        let taken = (vec![], vec![Rule::AttributeDropped]);
        assert_eq!(rules(Loader::Import, false, 0, &[Loader::Cpp]), taken);
    }
}
