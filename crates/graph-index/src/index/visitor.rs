//! The walk that makes the index of one graph.

use std::collections::HashSet;

use super::{
    calls::{Call, Operation, is_unbound},
    function_equality::FunctionEquality,
    graph_index::{CallingNode, DeprecatedNode, GraphIndex, NodeMismatch},
    index_request::{GraphSize, IndexRequest, RequestedSignatures},
    name_clashes::NameClashes,
    names::NodeNames,
    node::{NodeParts, NodeReader},
    output_shapes::OutputShapes,
    signature,
    top_level_nodes::TopLevelNodes,
};
use crate::{
    GraphError,
    deprecated_uses::DeprecatedUses,
    function_names::{LONGEST_NAME, LibraryFunction},
    growing,
    node_rules::PythonColocation,
    node_signatures::{IgnoredUses, NodeSignatures, SignatureNumber},
    raw_nodes::{Reference, SignatureCache, short_field},
    rules::{LoopRole, is_node_name},
    scan::{Piece, Step, Visitor, is_ascii},
    schema::{
        ATTR_VALUE, ATTR_VALUE_LIST_VALUE, FUNCTION_DEF, FUNCTION_DEF_LIBRARY, Field, GRAPH_DEF,
        META_GRAPH_DEF, MessageId, OP_DEF, SAVED_MODEL,
        fields::{
            attr_value, attr_value_list_value, function_def, function_def_library, graph_def,
            meta_graph_def, op_def, saved_model,
        },
    },
    source::{Extent, MetaGraphSelector, Source},
};

/// The facts about a node that follow from its operation and attributes.
#[derive(Clone, Copy, Debug)]
struct NodeFacts {
    node_signature: SignatureNumber,
    /// The number of the set of its ignored attributes.
    ignored: u32,
    loop_role: LoopRole,
    call: Option<Call>,
    /// True if it calls a placeholder, which only a caller could replace.
    is_unbound: bool,
    /// The output shapes that it declares, if there may be too few.
    shapes: Option<OutputShapes>,
}

/// The position of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Elsewhere,
    /// In a node outside functions.
    Node,
    Library,
    /// In the signature of a function.
    Signature,
    /// In a node of a function.
    BodyNode,
}

/// The result of a walk.
#[derive(Debug)]
pub struct Indexed<'a> {
    pub index: GraphIndex,
    /// The uses of deprecated operations, if requested.
    pub uses: Option<DeprecatedUses>,
    /// The node signatures, if requested.
    pub node_signatures: Option<FoundSignatures<'a>>,
    /// The facts about nodes outside functions that loaders check, if their node signatures were
    /// requested.
    pub top_level: Option<TopLevelNodes>,
}

/// The node signatures, and the names and attributes to be checked for each release.
#[derive(Debug)]
pub struct FoundSignatures<'a> {
    pub node_signatures: NodeSignatures<'a>,
    pub ignored: IgnoredUses,
    pub clashes: NameClashes,
}

/// A walk over one graph.
pub struct IndexVisitor<'a> {
    request: IndexRequest<'a>,
    source: Source<'a>,
    meta_graphs: MetaGraphSelector,
    position: Position,
    /// The position of the next message.
    begins: u64,
    index: GraphIndex,
    names: NodeNames,
    /// The number of nodes outside functions so far.
    nodes: u32,
    node: NodeReader,
    /// The known nodes outside of functions.
    known: SignatureCache<NodeFacts>,
    /// The known nodes of functions, with the set of attributes that releases ignore.
    known_in_functions: SignatureCache<u32>,
    /// The position of the current node.
    node_begins: u64,
    function: Vec<u8>,
    equality: Option<FunctionEquality>,
    /// The number of open messages that `equality` did not enter.
    beneath: u32,
    uses: Option<DeprecatedUses>,
    /// The deprecated operations that nodes outside functions use so far.
    deprecated: HashSet<u32>,
    node_signatures: Option<FoundSignatures<'a>>,
    /// The node facts that loaders check, if there are loaders.
    top_level: Option<TopLevelNodes>,
    /// The error of rereading the signature of a function.
    failure: Option<GraphError>,
}

impl<'a> IndexVisitor<'a> {
    pub fn new(source: Source<'a>, request: IndexRequest<'a>) -> Self {
        let node_signatures =
            (request.node_signatures != RequestedSignatures::None).then(|| FoundSignatures {
                node_signatures: NodeSignatures::new(request.releases),
                ignored: IgnoredUses::default(),
                clashes: NameClashes::of(request.releases),
            });
        let has_loaders =
            request.node_signatures == RequestedSignatures::OfAll && source.message() != GRAPH_DEF;
        let room = if request.edges { request.size } else { GraphSize::default() };
        Self {
            request,
            source,
            meta_graphs: MetaGraphSelector::of(source, request.meta_graph),
            position: Position::Elsewhere,
            begins: 0,
            index: GraphIndex::of(source, room.nodes, room.inputs),
            names: NodeNames::of(room.nodes),
            nodes: 0,
            node: NodeReader::default(),
            known: SignatureCache::default(),
            known_in_functions: SignatureCache::default(),
            node_begins: 0,
            function: Vec::new(),
            equality: request.duplicate_functions.then(FunctionEquality::default),
            beneath: 0,
            uses: request.uses.then(DeprecatedUses::default),
            deprecated: HashSet::new(),
            node_signatures,
            top_level: has_loaders.then(TopLevelNodes::default),
            failure: None,
        }
    }

    /// Returns the result.
    pub fn finish(mut self) -> Result<Indexed<'a>, GraphError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.index.name_nodes(&self.names);
        if let Some(equality) = self.equality {
            self.index.duplicate_function = equality.duplicate;
            self.index.second_gradient = equality.second_gradient;
        }
        let Self { index, uses, node_signatures, top_level, .. } = self;
        Ok(Indexed { index, uses, node_signatures, top_level })
    }

    fn parts(&self) -> NodeParts {
        let IndexRequest { edges, calls: call, node_signatures, .. } = self.request;
        let of_bodies = node_signatures != RequestedSignatures::None;
        match self.position {
            Position::BodyNode => NodeParts { edges: false, call: false, attributes: of_bodies },
            _ => {
                NodeParts { edges, call, attributes: node_signatures == RequestedSignatures::OfAll }
            }
        }
    }

    fn is_library_wanted(&self) -> bool {
        self.equality.is_some() || self.uses.is_some() || self.node_signatures.is_some()
    }

    fn are_body_nodes_wanted(&self) -> bool {
        self.uses.is_some() || (self.node_signatures.is_some() && self.request.ignored_in_functions)
    }

    /// Returns the comparison of functions, inside the library.
    fn equality(&mut self) -> Option<&mut FunctionEquality> {
        let is_compared = self.is_in_library() && self.beneath == 0;
        self.equality.as_mut().filter(|_| is_compared)
    }

    fn is_in_library(&self) -> bool {
        match self.position {
            Position::Elsewhere | Position::Node => false,
            Position::Library | Position::Signature | Position::BodyNode => true,
        }
    }

    fn begin_node(&mut self, position: Position) {
        self.position = position;
        self.node_begins = self.begins;
        self.node.clear();
    }

    fn end_of_node(&mut self, end: u64) {
        self.position = Position::Elsewhere;
        let place = Extent { start: self.node_begins, end };
        self.index.oversized |= self.node.is_oversized();
        let colocation = self.node.python_colocation();
        if self.node.bad_device && colocation != PythonColocation::BesideAnother {
            self.index.bad_device.get_or_insert(place);
        }
        if colocation == PythonColocation::Unreadable {
            self.index.bad_class.get_or_insert(place);
        }
        if let Some(top_level) = &mut self.top_level {
            top_level.add(&self.node.operation, self.node.attributes(), place);
            if let Some(name) = self.node.session_device.take() {
                top_level.add_device(name, place);
            }
        }
        let is_deprecated = self.note_deprecated(place);
        // Nodes after an invalid one are never reached.
        if self.index.mismatch.is_some() {
            self.nodes = self.nodes.saturating_add(1);
            return;
        }
        let facts = self.facts();
        // A node whose facts are known by its bytes is not checked for deprecation.
        let is_unreadable = colocation == PythonColocation::Unreadable;
        match is_deprecated || is_unreadable || self.node.is_oversized() {
            true => self.known.forget(),
            false => self.known.learn(facts),
        }
        let name = std::mem::take(&mut self.node.name);
        let mut mismatch = self.node.mismatch(&name);
        if mismatch.no_operation && self.request.functions.find(b"").is_some() {
            mismatch.no_operation = false;
            self.index.nameless_call.get_or_insert(self.nodes);
        }
        self.add_node(&name, place, facts, mismatch);
        self.node.name = name;
    }

    /// Returns the facts about the node that ended.
    fn facts(&mut self) -> NodeFacts {
        let call = if self.request.calls { self.node.call(self.request.functions) } else { None };
        let (node_signature, ignored) =
            if self.request.edges { self.node_signature() } else { (0, 0) };
        let (operation, attributes) = (&self.node.operation, self.node.attributes());
        let has_node_signatures = self.node_signatures.is_some();
        NodeFacts {
            node_signature,
            ignored,
            loop_role: LoopRole::of(operation),
            call,
            is_unbound: has_node_signatures && is_unbound(operation, attributes),
            shapes: OutputShapes::of(0, attributes)
                .filter(|said| !self.is_enough(*said, node_signature)),
        }
    }

    /// Returns true if a node of a signature declares enough output shapes for every release.
    fn is_enough(&self, said: OutputShapes, node_signature: SignatureNumber) -> bool {
        let Some(FoundSignatures { node_signatures, .. }) = &self.node_signatures else {
            return true;
        };
        let types = node_signatures
            .get(node_signature)
            .and_then(|node_signature| node_signatures.types(node_signature.common_types()?));
        types.is_some_and(|types| said.valid >= types.outputs.len())
    }

    /// Adds a node whose inputs are in `self.node`, with its diagnostics.
    fn add_node(&mut self, name: &[u8], place: Extent, facts: NodeFacts, mismatch: NodeMismatch) {
        let number = self.nodes;
        self.nodes = self.nodes.saturating_add(1);
        if let Some(call) = facts.call {
            let inputs = self.node.data_inputs;
            growing::push(&mut self.index.calls, CallingNode { number, place, call, inputs });
        }
        if !self.request.edges {
            return;
        }
        let is_free = self.names.give(name, number);
        self.index.output_shapes.extend(facts.shapes.map(|said| said.at(number)));
        if facts.is_unbound {
            self.index.unbound_calls.push(number);
        }
        let mismatch = NodeMismatch { repeated_name: !is_free, ..mismatch };
        self.index.mismatch = (mismatch != NodeMismatch::default()).then_some(mismatch);
        self.index.add(place, facts.loop_role, facts.node_signature, &self.node.inputs);
        for beside in self.node.beside() {
            let name = self.names.number_of(beside);
            self.index.add_colocation(number, name, &self.names);
        }
    }

    /// Adds a node in the canonical encoding that is like an earlier one.
    fn take_node(&mut self, bytes: &[u8], end: u64, depth: usize) -> bool {
        if self.index.mismatch.is_some() {
            return false;
        }
        let Self { known, names, node, .. } = self;
        node.begin_canonical();
        let canonical = known.read(bytes, depth, |reference| match reference {
            Reference::Input(input, seen) => node.canonical_input(input, seen, names),
            Reference::Colocated(name) => {
                node.canonical_colocation(name, names);
                true
            }
            Reference::Device(device) => node.canonical_device(device),
        });
        let Some(canonical) = canonical.filter(|canonical| is_node_name(canonical.name)) else {
            return false;
        };
        let Some(facts) = known.find(canonical.operation) else { return false };
        if let Some(found) = &mut self.node_signatures {
            found.ignored.again(facts.ignored);
        }
        let place = Extent { start: end - bytes.len() as u64, end };
        self.add_node(canonical.name, place, facts, NodeMismatch::default());
        true
    }

    /// Adds a node of a function that is like an earlier one.
    fn take_body_node(&mut self, bytes: &[u8], depth: usize) -> bool {
        if !self.are_body_nodes_wanted() {
            return self.equality.is_none();
        }
        // A comparison of functions reads each node completely.
        let Some(found) = self.node_signatures.as_mut().filter(|_| self.equality.is_none()) else {
            return false;
        };
        let canonical = self.known_in_functions.read(bytes, depth, |_| true);
        let Some(canonical) = canonical.filter(|canonical| is_ascii(canonical.name)) else {
            return false;
        };
        let Some(ignored) = self.known_in_functions.find(canonical.operation) else { return false };
        found.ignored.again(ignored);
        true
    }

    /// Skips a node that is only counted.
    fn skip_node(&mut self, bytes: &[u8]) -> bool {
        let Some(operation) = operation_alone(bytes) else { return false };
        let is_skipped = self.request.operations.find_entry(operation).is_none()
            && !(self.request.calls
                && Operation::of(operation, self.request.functions) != Operation::Other);
        self.nodes = self.nodes.saturating_add(u32::from(is_skipped));
        is_skipped
    }

    /// Returns the node signature of the node that ended, and the set of its attributes that
    /// releases ignore; 0 unless requested.
    fn node_signature(&mut self) -> (SignatureNumber, u32) {
        let Some(FoundSignatures { node_signatures, ignored, .. }) = &mut self.node_signatures
        else {
            return (0, 0);
        };
        let IndexRequest { functions, .. } = self.request;
        let node = &self.node;
        let signature = || {
            let function = functions.find(&node.operation).and_then(|hash| functions.get(hash));
            let read = |function: LibraryFunction| {
                signature::read(self.source, function.place, self.request.release)
            };
            function.map(read).transpose()
        };
        match node_signatures.of_node(&node.operation, node.attributes(), signature) {
            Ok((node_signature, set)) => {
                ignored.in_graph(
                    node_signatures,
                    set,
                    &node.name,
                    &node.operation,
                    node.attributes(),
                );
                (node_signature, set)
            }
            Err(failure) => {
                self.failure.get_or_insert(failure);
                (0, 0)
            }
        }
    }

    /// Records the node that ended if its operation is deprecated; returns true if it is.
    fn note_deprecated(&mut self, place: Extent) -> bool {
        let number = self.nodes;
        let Some((position, operation)) = self.request.operations.find_entry(&self.node.operation)
        else {
            return false;
        };
        if let Some(uses) = &mut self.uses {
            uses.in_graph(position, operation, &self.node.name);
        }
        let is_first = self.deprecated.insert(position);
        if self.index.mismatch.is_none() && (self.request.edges || is_first) {
            self.index.deprecated.push(DeprecatedNode { number, position, place });
        }
        true
    }

    fn end_of_body_node(&mut self) {
        self.position = Position::Library;
        let found = self.request.operations.find_entry(&self.node.operation);
        if let (Some((position, operation)), Some(uses)) = (found, &mut self.uses) {
            uses.in_function(position, operation, &self.node.name);
        }
        let node = &self.node;
        let mut set = 0;
        if let Some(FoundSignatures { node_signatures, ignored, .. }) = &mut self.node_signatures
            && self.request.functions.find(&node.operation).is_none()
        {
            set = node_signatures.of_body_node(&node.operation, node.attributes());
            ignored.in_function(
                node_signatures,
                set,
                &node.name,
                &node.operation,
                node.attributes(),
            );
        }
        match found.is_some() {
            true => self.known_in_functions.forget(),
            false => self.known_in_functions.learn(set),
        }
    }

    fn begin_function(&mut self) {
        self.position = Position::Library;
        self.function.clear();
        if let Some(uses) = &mut self.uses {
            uses.begin_function();
        }
        if let Some(found) = &mut self.node_signatures {
            found.ignored.begin_function();
        }
    }

    fn end_of_function(&mut self) {
        if let Some(uses) = &mut self.uses {
            uses.end_function(&self.function);
        }
        if let Some(found) = &mut self.node_signatures {
            found.ignored.end_function(&self.function);
            found.clashes.function(&self.function, self.request.releases);
        }
    }

    /// Handles the name of a function, which may arrive in pieces.
    fn name_function(&mut self, piece: &[u8], is: Piece) {
        if is.first {
            self.function.clear();
        }
        let room = (LONGEST_NAME + 1).saturating_sub(self.function.len());
        self.function.extend_from_slice(piece.get(..room).unwrap_or(piece));
    }
}

/// Returns the operation of a canonically encoded node.
fn operation_alone(bytes: &[u8]) -> Option<&[u8]> {
    let mut operation = None;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (tag, content, after) = short_field(rest)?;
        rest = after;
        match tag {
            0x12 if operation.is_none() => operation = Some(content),
            0x0a | 0x1a | 0x22 | 0x2a => {}
            _ => return None,
        }
    }
    operation
}

impl Visitor for IndexVisitor<'_> {
    fn begins(&mut self, at: u64) {
        self.begins = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let own = match (message, field.number) {
            (SAVED_MODEL, saved_model::META_GRAPHS) => {
                if self.meta_graphs.enter() {
                    Step::Into
                } else {
                    Step::Over
                }
            }
            (META_GRAPH_DEF, meta_graph_def::GRAPH_DEF) => {
                self.index.begin_graph(self.begins);
                Step::Into
            }
            (GRAPH_DEF, graph_def::NODE) => {
                self.begin_node(Position::Node);
                Step::Into
            }
            (GRAPH_DEF, graph_def::LIBRARY) if self.is_library_wanted() => {
                self.position = Position::Library;
                return Step::Into;
            }
            (FUNCTION_DEF_LIBRARY, function_def_library::FUNCTION) => {
                self.begin_function();
                Step::Into
            }
            (FUNCTION_DEF, function_def::SIGNATURE) => {
                self.position = Position::Signature;
                Step::Into
            }
            (FUNCTION_DEF, function_def::NODE_DEF) if self.are_body_nodes_wanted() => {
                self.begin_node(Position::BodyNode);
                Step::Into
            }
            _ if matches!(self.position, Position::Node | Position::BodyNode) => {
                let parts = self.parts();
                self.node.enter(message, field, parts)
            }
            _ => Step::Over,
        };
        let compared =
            self.equality().map_or(Step::Over, |equality| equality.enter(message, field));
        if compared == Step::Into {
            return compared;
        }
        let is_left_out = self.equality.is_some() && self.is_in_library();
        self.beneath += u32::from(own == Step::Into && is_left_out);
        own
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        if self.beneath > 0 {
            self.beneath -= 1;
        } else if let Some(equality) = self.equality() {
            equality.leave(message, field);
        }
        match (message, field.number) {
            (GRAPH_DEF, graph_def::NODE) => self.end_of_node(at),
            (GRAPH_DEF, graph_def::LIBRARY) => self.position = Position::Elsewhere,
            (FUNCTION_DEF_LIBRARY, function_def_library::FUNCTION) => self.end_of_function(),
            (FUNCTION_DEF, function_def::SIGNATURE) => self.position = Position::Library,
            (FUNCTION_DEF, function_def::NODE_DEF) if self.are_body_nodes_wanted() => {
                self.end_of_body_node();
            }
            _ if matches!(self.position, Position::Node | Position::BodyNode) => {
                let parts = self.parts();
                self.node.leave(message, field, parts);
            }
            _ => {}
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        if matches!(self.position, Position::Node | Position::BodyNode) {
            self.node.integer(message, field, value);
        }
        if let Some(equality) = self.equality() {
            equality.integer(message, field, value);
        }
    }

    fn floats(&mut self, message: MessageId, field: &'static Field, count: u64, bytes: &[u8]) {
        if matches!(self.position, Position::Node | Position::BodyNode) {
            self.node.floats(message, field, count, bytes);
        }
        if let Some(equality) = self.equality() {
            for four in bytes.as_chunks::<4>().0 {
                equality.integer(message, field, u32::from_le_bytes(*four).into());
            }
        }
    }

    fn long_bytes(&mut self, message: MessageId, field: &'static Field, length: u64) {
        if matches!(self.position, Position::Node | Position::BodyNode) {
            self.node.long_bytes(message, field, length);
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        if let Some(equality) = self.equality() {
            equality.string(message, field, piece, is);
        }
        match self.position {
            Position::Node | Position::BodyNode => {
                let parts = self.parts();
                let edges = parts.edges && self.index.mismatch.is_none();
                let lists = (&mut self.names, self.request.functions);
                let parts = NodeParts { edges, ..parts };
                self.node.string(message, field, piece, is, lists, parts);
            }
            Position::Signature if (message, field.number) == (OP_DEF, op_def::NAME) => {
                self.name_function(piece, is);
            }
            Position::Elsewhere | Position::Library | Position::Signature => {}
        }
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        match self.position {
            Position::Elsewhere => false,
            Position::Node => message == ATTR_VALUE_LIST_VALUE || self.node.wants_packed(message),
            Position::Library | Position::Signature => self.equality.is_some(),
            Position::BodyNode => self.equality.is_some() || self.node.wants_packed(message),
        }
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        let is_node = matches!(self.position, Position::Node | Position::BodyNode);
        if is_node && self.node.wants_bytes(message, field) {
            return true;
        }
        // A string replaces another value.
        matches!(
            (message, field.number),
            (ATTR_VALUE, attr_value::S) | (ATTR_VALUE_LIST_VALUE, attr_value_list_value::S)
        )
    }

    fn release(&self) -> i32 {
        self.request.release
    }

    fn wants_whole(&self, message: MessageId, field: &'static Field) -> bool {
        match (message, field.number) {
            (GRAPH_DEF, graph_def::NODE) => self.request.edges,
            (FUNCTION_DEF, function_def::NODE_DEF) => {
                self.node_signatures.is_some() && self.are_body_nodes_wanted()
            }
            _ => false,
        }
    }

    fn take(
        &mut self,
        message: MessageId,
        field: &'static Field,
        bytes: &[u8],
        end: u64,
        depth: usize,
    ) -> bool {
        match (message, field.number) {
            (GRAPH_DEF, graph_def::NODE) if self.request.edges => self.take_node(bytes, end, depth),
            (GRAPH_DEF, graph_def::NODE) => self.skip_node(bytes),
            (FUNCTION_DEF, function_def::NODE_DEF) => self.take_body_node(bytes, depth),
            _ => false,
        }
    }
}
