//! Checks the nodes that a meta graph names outside its graph, as loaders do.
//!
//! Python looks up every node of a collection, creates variables, queues and contexts from the
//! messages that it knows, restores variables through the saver, and runs an operation with the
//! paths of assets. `tf.saved_model.load` also makes a function of each signature, which must not
//! need a placeholder that the signature does not feed.
//!
//! The kinds of named nodes, the shapes in signatures, and computations while a model is loaded are
//! left to TensorFlow.
//!
//! Depends on the look-ups of each loader, but not on the encoding of names.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use super::{
    function_memo::Library,
    loaded_graph::{LoadedGraph, Visited},
};
use crate::{
    graph::{
        GraphError, ImportDiagnostic, ImportDiagnosticKind, node_at,
        node_rules::{NodeRules, Strictness},
        references::{
            Asked, CollectionKind, INIT_COLLECTIONS, INIT_SIGNATURE, Named, Names, NoObject,
            Referring, Signature, TensorReference, names_in, node_in_cpp, nodes_named,
        },
        release::{PerRelease, ReleaseId},
        rules::shown,
        source::Extent,
    },
    ops::Operation,
    schema::SAVED_MODEL,
};

/// The collection with the external inputs of a part of a graph.
const UNBOUND: &str = "unbound_inputs";

/// Limit on all nodes that are visited in the search for placeholders that are not fed.
const MOST_STEPS: usize = 1 << 24;

/// The diagnostics that the loaders of a release find.
#[derive(Clone, Debug, Default)]
pub(super) struct ReferenceDiagnostics {
    pub(super) load_v1: Option<ImportDiagnostic>,
    /// The diagnostic in a model without an object graph.
    pub(super) load: Option<ImportDiagnostic>,
    pub(super) cpp: Option<ImportDiagnostic>,
}

/// Returns the diagnostics that the loaders of each release find in a meta graph.
pub(super) fn judge(
    graph: &LoadedGraph<'_>,
) -> Result<PerRelease<ReferenceDiagnostics>, GraphError> {
    let LoadedGraph { library, meta_graph, number, visited, .. } = *graph;
    let (Library { source, release, .. }, has_objects) = (library, graph.has_objects());
    let referring = meta_graph.references.read(source, release)?;
    let is_model = source.message() == SAVED_MODEL;
    let mut lookups = Lookups::of(&referring, is_model);
    if has_objects {
        lookups.load.clear();
    }
    let names: Names<'_> = lookups.all().filter_map(Lookup::node).collect();
    let with_outputs = lookups.all().filter(|lookup| lookup.wants_output());
    let with_outputs: Names<'_> = with_outputs.filter_map(Lookup::node).collect();
    let mut outputs = OutputCounts { library, functions: HashMap::new() };
    let mut nodes = HashMap::with_capacity(names.len());
    for (name, place) in nodes_named(source, number, release, &names)? {
        let outputs = match with_outputs.contains(name) {
            true => outputs.of(place)?,
            false => library.releases.all(None),
        };
        nodes.insert(name, ReferencedNode { place, outputs });
    }
    let mut graph = ReferencedNodes { nodes, visited, steps: 0 };
    let mut unfed = None;
    library.releases.try_map(|release, _| {
        let first = |lookups: &[Lookup]| {
            lookups.iter().find_map(|lookup| graph.diagnostic(lookup, release))
        };
        let (load_v1, cpp) = (first(&lookups.load_v1), first(&lookups.cpp));
        let mut load = first(&lookups.load);
        if load.is_none() && is_model && !has_objects {
            load = match &unfed {
                Some(known) => Option::clone(known),
                None => unfed.insert(graph.unfed(&referring)?).clone(),
            };
        }
        Ok(ReferenceDiagnostics { load_v1, load, cpp })
    })
}

/// The number of outputs of nodes.
struct OutputCounts<'l> {
    library: Library<'l>,
    /// Functions that were looked up, by the offsets of their starts.
    functions: HashMap<u64, Option<u64>>,
}

impl OutputCounts<'_> {
    /// Returns the number of outputs of a node in each release; `None` if its operation does not
    /// determine it.
    fn of(&mut self, place: Extent) -> Result<PerRelease<Option<u64>>, GraphError> {
        let Library { source, names, releases, release, .. } = self.library;
        let node = node_at::read(source, place, None, release)?;
        if let Some(function) = names.find(&node.operation).and_then(|name| names.get(name)) {
            let count = self.of_function(function.place)?;
            return Ok(releases.all(count));
        }
        let operation = std::str::from_utf8(&node.operation).unwrap_or_default();
        let outputs = |release, definition: Option<Operation<'_>>| {
            let definition = definition.filter(|one| !one.is_name_alone())?;
            let registry = releases.registry(release);
            let rules = NodeRules { registry, strictness: Strictness::Load };
            Some(rules.node_type(definition, &node.attributes).ok()?.outputs.len())
        };
        Ok(releases.operations(operation).map(outputs))
    }

    /// Returns the number of results of a function, if each is one tensor.
    fn of_function(&mut self, place: Extent) -> Result<Option<u64>, GraphError> {
        if let Some(known) = self.functions.get(&place.start) {
            return Ok(*known);
        }
        let index = self.library.memo.index(self.library, place)?;
        let mut results = index.results.iter();
        let are_single = results.all(|one| !one.number_attribute && !one.list_attribute);
        let count = are_single.then_some(index.results.len() as u64);
        self.functions.insert(place.start, count);
        Ok(count)
    }
}

/// A name that a loader looks up.
#[derive(Clone, Debug)]
struct Lookup {
    /// The field that refers to the node, in the words of a diagnostic.
    by: Rc<str>,
    target: LookupTarget,
}

/// A name to look up.
#[derive(Clone, Debug)]
enum LookupTarget {
    Name {
        text: String,
        asked: Asked,
    },
    /// The node that the C++ loader reads from a text.
    InCpp(String),
    /// An invalid name: the value found, and the value expected.
    Invalid(String, &'static str),
}

impl Lookup {
    fn new(by: &Rc<str>, text: &str, asked: Asked) -> Self {
        Self { by: Rc::clone(by), target: LookupTarget::Name { text: text.to_owned(), asked } }
    }

    fn in_cpp(by: &Rc<str>, text: &str) -> Self {
        Self { by: Rc::clone(by), target: LookupTarget::InCpp(text.to_owned()) }
    }

    fn invalid(found: impl Into<String>, expected: &'static str) -> Self {
        Self { by: Rc::default(), target: LookupTarget::Invalid(found.into(), expected) }
    }

    fn named(&self) -> Option<Named<'_>> {
        match &self.target {
            LookupTarget::Name { text, asked } => Named::of(text, *asked),
            LookupTarget::InCpp(text) => {
                let (node, _) = node_in_cpp(text);
                Some(Named { node, output: None })
            }
            LookupTarget::Invalid(..) => None,
        }
    }

    /// Returns the name of the node that is looked up.
    fn node(&self) -> Option<&[u8]> {
        self.named().map(|named| named.node.as_bytes())
    }

    fn wants_output(&self) -> bool {
        self.named().is_some_and(|named| named.output.is_some())
    }
}

/// A field with a name of its own, as shown in a diagnostic.
fn whose(what: &str, key: &str) -> Rc<str> {
    format!("the {what} {:?}", shown(key.as_bytes())).into()
}

/// The names that each loader looks up, in its order.
#[derive(Debug, Default)]
struct Lookups {
    load_v1: Vec<Lookup>,
    load: Vec<Lookup>,
    cpp: Vec<Lookup>,
}

impl Lookups {
    /// Returns the lookups of a model, or of a single meta graph, of which only the collections are
    /// checked.
    fn of(referring: &Referring, is_model: bool) -> Self {
        let mut lookups = Self { load_v1: collections(referring), ..Self::default() };
        if !is_model {
            return lookups;
        }
        if let Some(saver) = &referring.saver {
            let by = Rc::from("the saver");
            lookups.load_v1.push(Lookup::new(&by, &saver.filename, Asked::Tensor));
            lookups.load_v1.push(Lookup::new(&by, &saver.restore, Asked::Any));
        }
        let (python, cpp) = init(referring);
        lookups.cpp.extend(cpp);
        let (has_init, mut fed) = (python.is_some(), HashSet::new());
        lookups.load_v1.extend(python);
        lookups.load.clone_from(&lookups.load_v1);
        for asset in &referring.assets {
            let text = match asset {
                TensorReference::Name(text) => text,
                _ => "",
            };
            let lookup = Lookup::new(&Rc::from("an asset"), text, Asked::Tensor);
            if has_init {
                lookups.load_v1.push(lookup.clone());
                lookups.cpp.push(Lookup::in_cpp(&lookup.by, text));
                if !fed.insert(node_in_cpp(text)) {
                    let found = format!("two assets name {:?}", shown(text.as_bytes()));
                    lookups.cpp.push(Lookup::invalid(found, "a tensor for each asset"));
                }
            }
            lookups.load.push(lookup);
        }
        let signatures = referring.signatures.iter();
        lookups.load.extend(signatures.flat_map(|(key, one)| of_signature(key, one)));
        lookups
    }

    fn all(&self) -> impl Iterator<Item = &Lookup> {
        self.load_v1.iter().chain(&self.load).chain(&self.cpp)
    }
}

/// Returns the names in collections, in the order of the collections' names.
fn collections(referring: &Referring) -> Vec<Lookup> {
    let mut lookups = Vec::new();
    if let Some(unbound) = referring.collections.get(UNBOUND)
        && !unbound.values.is_empty()
    {
        let found = format!("the collection {UNBOUND:?} with inputs");
        lookups.push(Lookup::invalid(found, "a graph that needs nothing of another one"));
    }
    for (key, collection) in &referring.collections {
        let by = whose("collection", key);
        for value in &collection.values {
            match collection.kind {
                CollectionKind::Nodes => {
                    lookups.push(Lookup::new(&by, &String::from_utf8_lossy(value), Asked::Any));
                }
                CollectionKind::Bytes => match names_in(key, value) {
                    Ok(names) => lookups
                        .extend(names.iter().map(|(text, asked)| Lookup::new(&by, text, *asked))),
                    Err(NoObject(expected)) => {
                        let found = format!("{by} with a message that is none");
                        lookups.push(Lookup::invalid(found, expected));
                    }
                },
                _ => {}
            }
        }
    }
    lookups
}

/// Returns the operation that is run once variables are restored, if there is one: as Python looks
/// it up, and as the C++ loader does.
fn init(referring: &Referring) -> (Option<Lookup>, Option<Lookup>) {
    if let Some(signature) = referring.signatures.get(INIT_SIGNATURE) {
        let by = whose("signature", INIT_SIGNATURE);
        return match signature.outputs.get(INIT_SIGNATURE) {
            Some(TensorReference::Name(text)) => {
                (Some(Lookup::new(&by, text, Asked::Node)), run_in_cpp(&by, text))
            }
            found => {
                let is_there = found.is_some();
                let diagnostic = Lookup::invalid(
                    format!("{by} without the name of an output {INIT_SIGNATURE:?}"),
                    "the name of an operation",
                );
                (Some(diagnostic.clone()), (!is_there).then_some(diagnostic))
            }
        };
    }
    let found =
        INIT_COLLECTIONS.iter().find_map(|key| Some((key, referring.collections.get(*key)?)));
    let Some((key, collection)) = found else { return (None, None) };
    let by = whose("collection", key);
    let names = match collection.kind {
        CollectionKind::Nodes => &*collection.values,
        _ => &[],
    };
    let [name] = names else {
        let found = format!("{by} of {} names", names.len());
        let diagnostic = Lookup::invalid(found, "the name of one operation");
        return (Some(diagnostic.clone()), Some(diagnostic));
    };
    // Python tests the truth of the value of all collections but the last, which fails for a
    // tensor.
    let asked = if Some(key) == INIT_COLLECTIONS.last() { Asked::Any } else { Asked::Node };
    let name = String::from_utf8_lossy(name);
    (Some(Lookup::new(&by, &name, asked)), run_in_cpp(&by, &name))
}

/// Returns the lookup of the C++ loader for an operation to run; `None` if it has no name.
fn run_in_cpp(by: &Rc<str>, text: &str) -> Option<Lookup> {
    (!text.is_empty()).then(|| Lookup::in_cpp(by, text))
}

/// Returns the lookups of `tf.saved_model.load` for a signature.
fn of_signature(key: &str, signature: &Signature) -> Vec<Lookup> {
    let by = whose("signature", key);
    let mut lookups = Vec::new();
    let mut fed = HashSet::new();
    let inputs = signature.inputs.values().map(|one| (one, Asked::Tensor));
    let outputs = signature.outputs.values().map(|one| (one, Asked::Any));
    for (tensor, asked) in inputs.chain(outputs) {
        match tensor {
            TensorReference::None => {
                lookups.push(Lookup::invalid(
                    format!("{by} with a tensor that has no name"),
                    "the name of a tensor",
                ));
            }
            TensorReference::Name(text) => {
                lookups.push(Lookup::new(&by, text, asked));
                let named = Named::of(text, Asked::Tensor).filter(|_| asked == Asked::Tensor);
                if named.is_some_and(|named| !fed.insert((named.node, named.output))) {
                    let found = format!("{by} with {:?} as two inputs", shown(text.as_bytes()));
                    lookups.push(Lookup::invalid(found, "each tensor as one input"));
                }
            }
            TensorReference::Sparse(texts) => {
                lookups.extend(texts.iter().map(|text| Lookup::new(&by, text, Asked::Tensor)));
            }
            TensorReference::Composite => {}
        }
    }
    lookups
}

/// A node that is named by a field.
#[derive(Debug)]
struct ReferencedNode {
    place: Extent,
    /// The number of its outputs, if one of them is looked up.
    outputs: PerRelease<Option<u64>>,
}

/// The nodes that are named.
struct ReferencedNodes<'g> {
    nodes: HashMap<&'g [u8], ReferencedNode>,
    visited: Option<Visited<'g>>,
    /// Number of nodes that were searched for placeholders.
    steps: usize,
}

impl ReferencedNodes<'_> {
    /// Returns the diagnostic of a name that cannot be looked up.
    fn diagnostic(&self, lookup: &Lookup, release: ReleaseId) -> Option<ImportDiagnostic> {
        let (text, expected) = match &lookup.target {
            LookupTarget::Invalid(found, expected) => {
                return Some(diagnostic_of(found.clone(), expected));
            }
            LookupTarget::Name { text, asked } => (text, asked.expected()),
            LookupTarget::InCpp(text) => (text, Asked::Any.expected()),
        };
        if lookup.named().is_some_and(|named| self.has(named, release)) {
            return None;
        }
        let found = format!("{} names {:?}", lookup.by, shown(text.as_bytes()));
        Some(diagnostic_of(found, expected))
    }

    fn has(&self, named: Named<'_>, release: ReleaseId) -> bool {
        let Some(node) = self.nodes.get(named.node.as_bytes()) else { return false };
        node.outputs[release].is_none_or(|outputs| named.is_of(outputs))
    }

    /// Returns the first placeholder that a signature or another pruned function needs and does not
    /// feed. `None` without an index of the graph.
    fn unfed(&mut self, referring: &Referring) -> Result<Option<ImportDiagnostic>, GraphError> {
        let Some(visited) = self.visited else { return Ok(None) };
        let name = |tensor: &TensorReference| match tensor {
            TensorReference::Name(text) => vec![text.clone()],
            TensorReference::Sparse(texts) => texts.to_vec(),
            TensorReference::None | TensorReference::Composite => Vec::new(),
        };
        let mut functions = Vec::new();
        if let Some(saver) = &referring.saver {
            let saved = (vec![saver.filename.clone()], vec![saver.restore.clone()]);
            functions.push((Rc::from("the saver"), saved.0, saved.1));
        }
        if let (Some(Lookup { by, target: LookupTarget::Name { text, .. } }), _) = init(referring) {
            functions.push((by, referring.assets.iter().flat_map(name).collect(), vec![text]));
        }
        for (key, Signature { inputs, outputs }) in &referring.signatures {
            let is_composite = |one: &TensorReference| *one == TensorReference::Composite;
            if !inputs.values().chain(outputs.values()).any(is_composite) {
                let by = whose("signature", key);
                let of = |tensors: &mut dyn Iterator<Item = &TensorReference>| {
                    tensors.flat_map(name).collect::<Vec<_>>()
                };
                functions.push((by, of(&mut inputs.values()), of(&mut outputs.values())));
            }
        }
        for (by, fed, fetched) in functions {
            if let Some(node) = self.placeholder_behind(visited, &fed, &fetched)? {
                let found = format!("{by} without an input for the placeholder {node:?}");
                let diagnostic =
                    diagnostic_of(found, "an input for each placeholder that it needs");
                return Ok(Some(diagnostic));
            }
        }
        Ok(None)
    }

    /// Returns the first placeholder that is found on the way back from the fetched tensors,
    /// without passing a fed one.
    fn placeholder_behind(
        &mut self,
        Visited { context, .. }: Visited<'_>,
        fed: &[String],
        fetched: &[String],
    ) -> Result<Option<String>, GraphError> {
        let node = |text: &String| {
            let named = Named::of(text, Asked::Any)?;
            context.node_at(self.nodes.get(named.node.as_bytes())?.place).transpose()
        };
        let mut seen: HashSet<u32, foldhash::fast::RandomState> =
            fed.iter().filter_map(node).collect::<Result<_, _>>()?;
        let mut open: Vec<u32> = fetched.iter().filter_map(node).collect::<Result<_, _>>()?;
        while let Some(node) = open.pop() {
            if !seen.insert(node) {
                continue;
            }
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Ok(None);
            }
            let Some(signature) = context.signature_of(node) else { return Ok(None) };
            let known = context.node_signatures.operation(signature);
            let is_placeholder =
                known.is_some_and(|known| !known.is_function() && known.name() == "Placeholder");
            if is_placeholder {
                let place = context.index.place_of(context.source, node)?;
                let found = node_at::read(context.source, place, None, context.release)?;
                return Ok(Some(shown(&found.name)));
            }
            let inputs = context.index.inputs(node).iter();
            open.extend(inputs.filter_map(|input| context.index.source(*input)));
        }
        Ok(None)
    }
}

fn diagnostic_of(found: String, expected: &str) -> ImportDiagnostic {
    ImportDiagnostic {
        kind: ImportDiagnosticKind::NodeReference,
        node: String::new(),
        function: None,
        operation: String::new(),
        found,
        expected: expected.to_owned(),
    }
}
