//! Reads the graphs of a file: the fast walk first, and the index and its judgement only if that is
//! not enough.

use std::{borrow::Cow, collections::HashMap};

use super::{
    DeprecatedOperations, Form, Graph, GraphError, Graphs, Message, MetaGraph,
    fast::{Depth, GraphVisitor, ScannedGraph},
    importer::{
        self, CheckedNodes, Context, Evidence, FunctionMemo, Library, LoadedGraph,
        StructureDiagnostics, Visited,
    },
    index::{
        GraphIndex, GraphSize, IndexRequest, IndexVisitor, Indexed, RequestedSignatures,
        TopLevelNodes,
    },
    name_of,
    objects::ObjectGraph,
    release::{PerRelease, Releases},
    source::Source,
};
use crate::{files::ReadAt, ops::Registry};

/// Reads the versions of every graph in `source`, and the tags that distinguish the meta graphs of
/// a SavedModel, skipping everything else.
///
/// The binary form is read in a window of at most 256 KiB, however large the file is. Skipped parts
/// are not checked: damage in them is not reported.
///
/// ```
/// use serdes_graphs::graph::{self, Form, Message};
///
/// let bytes: &[u8] = &[0x22, 0x03, 0x08, 0xaa, 0x13]; // versions { producer: 2474 }
/// let graphs = graph::versions(bytes, Message::GraphDef, Form::Binary)?;
/// assert_eq!(graphs.meta_graphs[0].graph.versions.producer, 2474);
/// # Ok::<(), serdes_graphs::graph::GraphError>(())
/// ```
///
/// # Errors
/// [`GraphError`], if no parser accepts the file or the system cannot read it.
pub fn versions(
    source: &(impl ReadAt + ?Sized),
    message: Message,
    form: Form,
) -> Result<Graphs, GraphError> {
    let none = DeprecatedOperations::default();
    let source = Source::new(&source, message, form);
    let mut visitor =
        GraphVisitor::new(source.message(), source.size()?, Depth::Versions, &none, i32::MAX);
    source.walk(&mut visitor)?;
    let (scanned, overflow) = visitor.finish();
    let meta_graphs = scanned.into_iter().map(|scanned| scanned.meta_graph).collect();
    Ok(Graphs { meta_graphs, overflow })
}

/// Options of [`read()`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadOptions<'a> {
    deprecated: &'a DeprecatedOperations,
    count_operations: bool,
    release: i32,
    releases: Releases<'a>,
    shapes: bool,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        Self {
            deprecated: DeprecatedOperations::tensorflow(),
            count_operations: false,
            release: i32::MAX,
            releases: Releases::NONE,
            shapes: true,
        }
    }
}

impl<'a> ReadOptions<'a> {
    /// Sets the deprecated operations to look for, in place of TensorFlow's.
    #[must_use]
    pub fn with_deprecated(self, deprecated: &'a DeprecatedOperations) -> Self {
        Self { deprecated, ..self }
    }

    /// Sets whether operations are counted by type.
    #[must_use]
    pub fn with_operations_counted(self, count_operations: bool) -> Self {
        Self { count_operations, ..self }
    }

    /// Sets the registries of operations for which the graph is judged as well
    /// ([`Graph::judgements`]). The number of walks over the file does not change.
    #[must_use]
    pub fn with_registries(self, registries: &'a [Registry]) -> Self {
        Self { releases: Releases::new(registries), ..self }
    }

    /// Sets whether the shapes of tensors are inferred, which is the default: finds diagnostics
    /// that only shape functions report, as far as these are known
    /// ([`ImportDiagnosticKind::Shape`]).
    ///
    /// The shapes of a graph of over [`MOST_SHAPED_NODES`](Self::MOST_SHAPED_NODES) nodes,
    /// including those in functions, are not inferred: this needs the whole graph, and a second
    /// pass over the nodes.
    ///
    /// [`ImportDiagnosticKind::Shape`]: super::ImportDiagnosticKind::Shape
    #[must_use]
    pub fn with_shapes(self, shapes: bool) -> Self {
        Self { shapes, ..self }
    }

    /// Limit on the nodes of a graph whose shapes are inferred.
    pub const MOST_SHAPED_NODES: u64 = 1 << 17;

    /// Returns true if the shapes of a graph are inferred.
    fn follows_shapes(&self, graph: &Graph) -> bool {
        let nodes = graph.nodes.saturating_add(graph.function_nodes);
        self.shapes && !self.releases.is_empty() && nodes <= Self::MOST_SHAPED_NODES
    }

    /// Returns true if the shapes of every graph in a file of `size` bytes are inferred, for any
    /// number of nodes: the graphs then take the slow path in any case.
    fn surely_follows_shapes(&self, size: u64) -> bool {
        self.shapes && size / SHORTEST_NODE <= Self::MOST_SHAPED_NODES
    }

    /// Sets the GraphDef version of the release whose parser is reproduced: older releases do not
    /// know every field, which a parser of the binary form skips and one of the text form refuses;
    /// their text parsers also read some numbers and escapes differently. The default knows
    /// everything that TensorFlow 2.21 does.
    #[must_use]
    pub fn with_release(self, release: i32) -> Self {
        Self { release, ..self }
    }
}

/// Reads every graph in `source`, checking every nested message.
///
/// # Errors
/// [`GraphError`], if no parser accepts the file or the system cannot read it. A graph whose nodes
/// do not fit together is not an error here: see [`Graph::structure`].
pub fn read(
    source: &(impl ReadAt + ?Sized),
    message: Message,
    form: Form,
    options: &ReadOptions<'_>,
) -> Result<Graphs, GraphError> {
    let source = Source::new(&source, message, form);
    let depth = if options.count_operations { Depth::Counted } else { Depth::Whole };
    let size = source.size()?;
    let mut visitor =
        GraphVisitor::new(source.message(), size, depth, options.deprecated, options.release)
            .with_releases(options.releases, !options.surely_follows_shapes(size));
    source.walk(&mut visitor)?;
    let (scanned, overflow) = visitor.finish();
    let mut meta_graphs = Vec::with_capacity(scanned.len());
    let is_only = scanned.len() == 1;
    for (number, mut scanned) in scanned.into_iter().enumerate() {
        let is_asked = !options.releases.is_empty();
        let follows_shapes = options.follows_shapes(&scanned.meta_graph.graph);
        let place = MetaGraphPlace { number, is_only, overflow };
        if scanned.needs_no_slow_path()
            && (!is_asked || (scanned.accepted.is_some() && !follows_shapes))
        {
            judge_without_index(source, place, &mut scanned, options)?;
        } else if !overflow {
            // In a file that exceeds the limits no graph is judged, as each would need its own
            // walk.
            take_slow_path(source, place, &mut scanned, options)?;
        }
        scanned.meta_graph.objects = scanned.objects;
        meta_graphs.push(scanned.meta_graph);
    }
    Ok(Graphs { meta_graphs, overflow })
}

/// A meta graph of a file.
#[derive(Clone, Copy)]
struct MetaGraphPlace {
    number: usize,
    /// True if the file has no other meta graph.
    is_only: bool,
    /// True if the file exceeds the limits.
    overflow: bool,
}

/// Judges a graph whose nodes every release accepts.
fn judge_without_index(
    source: Source<'_>,
    place: MetaGraphPlace,
    scanned: &mut ScannedGraph,
    options: &ReadOptions<'_>,
) -> Result<(), GraphError> {
    let (releases, release) = (options.releases, options.release);
    let follows_shapes = options.follows_shapes(&scanned.meta_graph.graph);
    let (names, memo) = (&scanned.functions, &FunctionMemo::default());
    let library = Library { source, names, memo, releases, release, follows_shapes };
    let graph = LoadedGraph {
        library,
        deprecated: options.deprecated,
        meta_graph: &scanned.meta_graph,
        number: place.number,
        is_only: place.is_only,
        index: None,
        visited: None,
        top_level: importer::top_level_nodes(library, place.number, scanned.accepted.take())?,
        objects: Some(&scanned.objects).filter(|_| !place.overflow),
    };
    let judgements = importer::judge_loaders(&graph, releases.all(Evidence::default()))?;
    scanned.meta_graph.graph.judgements = judgements.into_vec();
    Ok(())
}

/// Judges a graph on the slow path: makes its index first.
fn take_slow_path(
    source: Source<'_>,
    place: MetaGraphPlace,
    scanned: &mut ScannedGraph,
    options: &ReadOptions<'_>,
) -> Result<(), GraphError> {
    let own = std::mem::take(&mut scanned.deprecated_functions);
    let uses = !own.is_empty();
    // For a node that calls a deprecated function, the importer checks only the function's
    // deprecation.
    let operations = match uses {
        true => Cow::Owned(options.deprecated.clone().with(own)),
        false => Cow::Borrowed(options.deprecated),
    };
    let refused = scanned.diagnostic_before_visits().cloned();
    let is_judged = refused.is_none();
    // Shape inference needs all nodes.
    let follows_shapes = options.follows_shapes(&scanned.meta_graph.graph);
    let accepted = scanned.accepted.take().filter(|_| is_judged && !follows_shapes);
    let node_signatures = match (is_judged && !options.releases.is_empty(), &accepted) {
        (false, _) => RequestedSignatures::None,
        (true, Some(_)) => RequestedSignatures::OfBodies,
        (true, None) => RequestedSignatures::OfAll,
    };
    let is_faulty = scanned.meta_graph.graph.structure.is_some();
    let size = size_of(source, scanned)?;
    let ScannedGraph { meta_graph, functions, objects, .. } = scanned;
    let functions = &*functions;
    let request = IndexRequest {
        meta_graph: place.number,
        size,
        release: options.release,
        operations: &operations,
        functions,
        edges: scanned.needs_order || is_faulty || node_signatures == RequestedSignatures::OfAll,
        calls: is_judged && !functions.is_empty(),
        duplicate_functions: is_judged && functions.repeated(),
        uses,
        node_signatures,
        ignored_in_functions: scanned.may_ignore_in_functions,
        releases: options.releases,
    };
    let mut visitor = IndexVisitor::new(source, request);
    source.walk(&mut visitor)?;
    let mut found = visitor.finish()?;
    if let Some(uses) = found.uses.take() {
        let graph = &mut meta_graph.graph;
        (graph.deprecated_nodes, graph.deprecated_in_functions) = uses.finish();
    }
    let memo = FunctionMemo::default();
    let (release, releases) = (options.release, options.releases);
    let library =
        Library { source, names: functions, memo: &memo, releases, release, follows_shapes };
    let slow_path = SlowPath { library, request, is_only: place.is_only, objects };
    match refused {
        None => slow_path.judge(meta_graph, found, accepted),
        Some(diagnostic) => {
            let evidence = importer::structure_evidence(&diagnostic, releases);
            slow_path.judge_loaders(meta_graph, &found.index, None, None, evidence)
        }
    }
}

/// A graph on the slow path.
struct SlowPath<'c> {
    library: Library<'c>,
    request: IndexRequest<'c>,
    is_only: bool,
    objects: &'c ObjectGraph,
}

impl SlowPath<'_> {
    /// Judges a graph whose nodes are visited; `accepted` has the facts that loaders check about
    /// nodes outside functions, if every registry accepts all of these.
    fn judge(
        &self,
        meta_graph: &mut MetaGraph,
        found: Indexed<'_>,
        accepted: Option<TopLevelNodes>,
    ) -> Result<(), GraphError> {
        let Library { source, names, memo, releases, release, follows_shapes } = self.library;
        let Indexed { index, node_signatures, top_level, .. } = found;
        let graph = &mut meta_graph.graph;
        let mut structure = importer::judge(self.library, &index)?;
        let producer = graph.versions.producer;
        let context = node_signatures.as_ref().map(|found| Context {
            source,
            index: &index,
            functions: names,
            memo,
            node_signatures: &found.node_signatures,
            releases,
            release,
            deprecated: self.request.operations,
            producer,
            follows_shapes,
        });
        let checked = match (&context, &node_signatures) {
            (Some(context), Some(found)) => importer::check_nodes(context, found, &structure)?,
            _ => CheckedNodes::accepted(releases),
        };
        let CheckedNodes { evidence, do_shapes_fit } = checked;
        let visits = structure.visits.take();
        let visited = context.as_ref().zip(visits.as_ref());
        let visited = visited.map(|(context, visits)| Visited { context, visits, do_shapes_fit });
        apply(source, graph, structure, self.request.operations, self.request)?;
        self.judge_loaders(meta_graph, &index, visited, accepted.or(top_level), evidence)
    }

    /// Judges a graph, given the importer's evidence.
    fn judge_loaders(
        &self,
        meta_graph: &mut MetaGraph,
        index: &GraphIndex,
        visited: Option<Visited<'_>>,
        top_level: Option<TopLevelNodes>,
        evidence: PerRelease<Evidence>,
    ) -> Result<(), GraphError> {
        let number = self.request.meta_graph;
        let graph = LoadedGraph {
            library: self.library,
            deprecated: self.request.operations,
            meta_graph,
            number,
            is_only: self.is_only,
            index: Some(index),
            visited,
            top_level: importer::top_level_nodes(self.library, number, top_level)?,
            objects: Some(self.objects),
        };
        let judgements = importer::judge_loaders(&graph, evidence)?;
        meta_graph.graph.judgements = judgements.into_vec();
        Ok(())
    }
}

/// Length in bytes of the shortest possible node, and of the shortest input.
const SHORTEST_NODE: u64 = 8;
const SHORTEST_INPUT: u64 = 3;

/// Returns the size of a graph: the counted parts, but no more than the file can hold.
fn size_of(source: Source<'_>, scanned: &ScannedGraph) -> Result<GraphSize, GraphError> {
    let bytes = source.size()?;
    let count = |count: u64, shortest: u64| usize::try_from(count.min(bytes / shortest));
    let nodes = count(scanned.meta_graph.graph.nodes, SHORTEST_NODE).unwrap_or(usize::MAX);
    let inputs = count(scanned.inputs, SHORTEST_INPUT).unwrap_or(usize::MAX);
    Ok(GraphSize { nodes, inputs })
}

/// Corrects what the fast walk could not know.
pub(super) fn apply(
    source: Source<'_>,
    graph: &mut Graph,
    structure: StructureDiagnostics,
    operations: &DeprecatedOperations,
    request: IndexRequest<'_>,
) -> Result<(), GraphError> {
    graph.structure = structure.nameless_call.or(structure.diagnostic);
    graph.visited_before_diagnostic = structure.visited_before_diagnostic;
    let Some(order) = structure.deprecated.filter(|_| request.edges) else { return Ok(()) };
    let uses = std::mem::take(&mut graph.deprecated_nodes).into_iter();
    let mut uses: HashMap<_, _> =
        uses.map(|found| (operations.position(found.operation.name.as_bytes()), found)).collect();
    for first in order {
        if let Some(mut found) = uses.remove(&Some(first.position as usize)) {
            found.node = name_of::node(source, first.place, request.release)?;
            graph.deprecated_nodes.push(found);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
