//! Concrete functions after `tf.saved_model.load`: loaded into Python, and exported again.
//!
//! Each argument is one tensor of the declared type, independent of its attributes; each result has
//! the type that the function really returns; the attributes are the remaining placeholders. An
//! imported function brings along only the functions that it calls by name, so one of these that
//! calls a third by name does not find it.
//!
//! Depends on loaded functions, but not on their order.

mod load_definitions;

use std::{cell::OnceCell, collections::HashMap, rc::Rc};

pub(super) use self::load_definitions::LoadDefinitions;
use super::{
    binding::BoundValue,
    by_release::{ByRelease, are_equal, are_one},
    function_memo::Library,
    function_summary::{TriviallyValid, TriviallyValidCall},
    instantiate::{BoxedDiagnostic, FunctionDiagnostic, InstantiationDiagnostic, wrong_binding},
};
use crate::{
    graph::{
        GraphError, ImportDiagnostic, ImportDiagnosticKind,
        attributes::Attributes,
        diagnostic::{BodyDiagnosticKind, Part},
        importer::callee_diagnostics::to_diagnostic,
        index::{Argument, BodyCall, CallingNode, FunctionIndex, call_attributes},
        node_rules::NodeType,
        release::{PerRelease, ReleaseId},
        source::Extent,
    },
    ops::{
        ArgumentDefinition, ArgumentType, AttributeDefinition, Operation, OperationDefinition,
        OperationList, Registry,
    },
};

/// A call in a function.
#[derive(Clone, Debug)]
pub(super) struct ConcreteCall {
    /// The hash of the function's name.
    pub(super) function: u64,
    /// True if the node's operation is the function itself.
    pub(super) direct: bool,
    /// Number of inputs and outputs of the node.
    pub(super) tensors: (u64, u64),
    /// The number of the node.
    pub(super) node: u32,
    /// The mismatch of an argument that the node passes to the function that it names as an
    /// attribute.
    pub(super) wrong_binding: Option<Rc<FunctionDiagnostic>>,
}

impl ConcreteCall {
    /// Returns the diagnostic of this call that is reported when the containing function is built.
    fn diagnostic(&self, callee: &ConcreteFunction) -> Option<Rc<FunctionDiagnostic>> {
        let wrong_binding = self.wrong_binding.clone();
        wrong_binding.or_else(|| callee.call_diagnostic(self.tensors).map(Rc::new))
    }
}

/// A concrete function, as one release sees it.
#[derive(Debug)]
pub(super) struct ConcreteFunction {
    pub(super) place: Extent,
    /// Its signature; other functions and the graph still call it by its name. For a function in
    /// which a release finds nothing, it is read when a call by that name needs it.
    definition: OnceCell<Box<OperationDefinition>>,
    /// The same, computed when an operation is looked up.
    signature: OnceCell<OperationList>,
    /// The types of the inputs and outputs of a node whose operation is this function.
    pub(super) types: Rc<NodeType>,
    /// Least number of tensors that a call must take and give.
    pub(super) needs: (u64, u64),
    /// A node that has an attribute without a value; the function then cannot be called.
    pub(super) unset: Option<BoxedDiagnostic>,
    pub(super) calls: Box<[ConcreteCall]>,
}

impl ConcreteFunction {
    /// A function in which a release finds nothing, with the inputs and outputs of its calls.
    pub(super) fn trivially_valid(
        place: Extent,
        types: &Rc<NodeType>,
        trivially_valid: &TriviallyValid,
        wrong_binding: impl Fn(&BodyCall) -> Option<Rc<FunctionDiagnostic>>,
    ) -> Self {
        let calls =
            trivially_valid.calls.iter().map(|TriviallyValidCall { body, tensors }| ConcreteCall {
                function: body.call.function,
                direct: body.call.direct,
                tensors: *tensors,
                node: body.node,
                wrong_binding: wrong_binding(body),
            });
        Self::without_definition(place, types, calls.collect())
    }

    fn without_definition(place: Extent, types: &Rc<NodeType>, calls: Box<[ConcreteCall]>) -> Self {
        Self {
            place,
            definition: OnceCell::new(),
            signature: OnceCell::new(),
            needs: (types.inputs.len(), types.outputs.len()),
            types: Rc::clone(types),
            unset: None,
            calls,
        }
    }

    pub(super) fn new(
        place: Extent,
        definition: OperationDefinition,
        types: NodeType,
        needs: (u64, u64),
        unset: Option<BoxedDiagnostic>,
        calls: Box<[ConcreteCall]>,
    ) -> Self {
        let (definition, signature) = (OnceCell::from(Box::new(definition)), OnceCell::new());
        Self { place, definition, signature, types: types.into(), needs, unset, calls }
    }

    /// Reads its signature, if it is not known.
    pub(super) fn read_definition(&self, library: Library<'_>) -> Result<(), GraphError> {
        if self.definition.get().is_none() {
            let function = library.memo.index(library, self.place)?;
            self.definition.get_or_init(|| Box::new(loaded_definition(&function)));
        }
        Ok(())
    }

    /// Returns its signature, if that was [read](Self::read_definition).
    pub(super) fn operation(&self) -> Option<Operation<'_>> {
        let definition = self.definition.get()?;
        let list = || OperationList::new([OperationDefinition::clone(definition)]);
        self.signature.get_or_init(list).operation(&definition.name)
    }

    /// Returns the attributes that it leaves to its callers; empty for a function in which a
    /// release finds nothing.
    fn open_attributes(&self) -> &[AttributeDefinition] {
        self.definition.get().map_or(&[], |definition| &definition.attributes)
    }

    /// Returns true if it leaves an attribute to its callers.
    pub(super) fn is_open(&self) -> bool {
        !self.open_attributes().is_empty()
    }

    fn with(&self, diagnostic: BoxedDiagnostic) -> FunctionDiagnostic {
        FunctionDiagnostic { function: self.place, diagnostic: diagnostic.into() }
    }

    /// Returns the diagnostic of a call with these numbers of inputs and outputs, independent of
    /// the body.
    pub(super) fn call_diagnostic(
        &self,
        (inputs, outputs): (u64, u64),
    ) -> Option<FunctionDiagnostic> {
        let kind = if inputs < self.needs.0 {
            BodyDiagnosticKind::FewInputs
        } else if outputs < self.needs.1 {
            BodyDiagnosticKind::FewOutputs
        } else {
            return None;
        };
        Some(self.with(InstantiationDiagnostic::names(Part::Function, kind)))
    }

    /// Returns the diagnostic for a call whose operation names no function.
    fn unresolved_call(
        &self,
        library: Library<'_>,
        call: &ConcreteCall,
        callee: Option<&Self>,
    ) -> FunctionDiagnostic {
        let mut diagnostic = InstantiationDiagnostic::of(
            Part::Node(call.node),
            ImportDiagnosticKind::UnknownOperation,
        );
        // Reporting this diagnostic reads the same function, and returns the error if it cannot be
        // read.
        let name = |found: &Self| library.memo.names(library, found.place, Part::Function).ok();
        diagnostic.operation = callee.and_then(name).map_or(String::new(), |(name, _)| name);
        self.with(diagnostic)
    }

    /// Returns the mismatch between the attributes that a call gives and those that the function
    /// leaves to it.
    pub(super) fn wrong_binding(
        &self,
        given: &Attributes,
        registry: &Registry,
    ) -> Option<FunctionDiagnostic> {
        self.open_attributes().iter().find_map(|attribute| {
            let AttributeDefinition { name, kind, .. } = attribute;
            let Some(value) = given.get(name) else { return self.ungiven() };
            Some(self.with(wrong_binding(name, *kind, &BoundValue::of(value), registry)?))
        })
    }

    /// Returns the diagnostic of a call without the attributes that the function leaves open, if it
    /// has any.
    fn ungiven(&self) -> Option<FunctionDiagnostic> {
        if !self.is_open() {
            return None;
        }
        let attributes = self.open_attributes().iter().map(|one| one.name.clone()).collect();
        let kind = ImportDiagnosticKind::AttributesMissing { attributes };
        Some(self.with(InstantiationDiagnostic::of(Part::Function, kind)))
    }
}

/// The concrete functions that were loaded so far, by their positions in the library.
pub(super) struct ConcreteFunctions<'a> {
    library: Library<'a>,
    functions: Vec<OnceCell<ByRelease<ConcreteFunction>>>,
    /// True for functions in which no release finds anything and that call no others; each is
    /// created on first use.
    leaves: Vec<bool>,
    /// The diagnostic that keeps each function from being called once all of them are loaded.
    diagnostics: HashMap<usize, ByRelease<FunctionDiagnostic>>,
}

impl<'a> ConcreteFunctions<'a> {
    /// Returns the state for a library whose functions were not loaded.
    pub(super) fn of(library: Library<'a>) -> Self {
        Self { library, functions: Vec::new(), leaves: Vec::new(), diagnostics: HashMap::new() }
    }

    /// Allocates memory for all functions.
    pub(super) fn begin(&mut self) {
        let places = self.library.names.places();
        self.functions.resize_with(places, OnceCell::new);
        self.leaves.resize(places, false);
    }

    /// Returns the functions as a release has them.
    pub(super) fn of_release(&self, release: ReleaseId) -> ConcreteFunctionsOfRelease<'_, 'a> {
        ConcreteFunctionsOfRelease { functions: self, release }
    }

    /// Returns true if a function was loaded for the releases.
    pub(super) fn is_loaded(&self, position: usize) -> bool {
        let is_kept = self.functions.get(position).is_some_and(|cell| cell.get().is_some());
        is_kept || self.leaves.get(position) == Some(&true)
    }

    /// Adds a function that calls no others and is the same for all releases that are asking.
    pub(super) fn add_leaf(&mut self, position: usize) {
        if let Some(leaf) = self.leaves.get_mut(position) {
            *leaf = true;
        }
    }

    /// Adds a function as loaded by each release, whose callees were added before; `asking` are the
    /// releases without a diagnostic so far.
    pub(super) fn add(
        &mut self,
        position: usize,
        concrete: PerRelease<Option<Rc<ConcreteFunction>>>,
        asking: impl Fn(ReleaseId) -> bool,
    ) {
        self.find(position, &concrete, &asking, |_| false);
        let concrete = ByRelease::of(concrete, asking, are_one);
        if let (Some(cell), Some(concrete)) = (self.functions.get_mut(position), concrete) {
            *cell = OnceCell::from(concrete);
        }
    }

    /// Finds the diagnostic that keeps a function from being called, whose callees were added
    /// before; `is_gone` returns true for those that exist under another name only.
    fn find(
        &mut self,
        position: usize,
        concrete: &PerRelease<Option<Rc<ConcreteFunction>>>,
        asking: impl Fn(ReleaseId) -> bool,
        is_gone: impl Fn(u64) -> bool,
    ) {
        let diagnostics = self.library.releases.map(|release, _| {
            self.of_release(release).diagnostic(concrete[release].as_ref()?, &is_gone)
        });
        match ByRelease::of(diagnostics, asking, are_equal) {
            Some(found) => _ = self.diagnostics.insert(position, found),
            None => _ = self.diagnostics.remove(&position),
        }
    }

    /// Records that functions were loaded a second time, under another name; `last` has the last
    /// time by position, and `order` is the order in which all were first loaded. Callers by the
    /// first name then find no function.
    pub(super) fn rename(
        &mut self,
        last: &HashMap<usize, usize>,
        order: impl Iterator<Item = (usize, usize)>,
    ) {
        let names = self.library.names;
        for (time, position) in order {
            let Some(cell) = self.functions.get(position) else { continue };
            let known = |release, _: &Registry| cell.get()?.get(release).cloned();
            let concrete = self.library.releases.map(known);
            let is_gone = |callee| {
                let last = names.position(callee).and_then(|position| last.get(&position));
                last.is_some_and(|last| *last > time)
            };
            self.find(position, &concrete, |_| true, is_gone);
        }
    }
}

/// The concrete functions that one release has loaded so far.
#[derive(Clone, Copy)]
pub(super) struct ConcreteFunctionsOfRelease<'r, 'a> {
    functions: &'r ConcreteFunctions<'a>,
    release: ReleaseId,
}

impl<'r> ConcreteFunctionsOfRelease<'r, '_> {
    /// Returns a function by the hash of its name.
    pub(super) fn get(self, function: u64) -> Option<&'r Rc<ConcreteFunction>> {
        let ConcreteFunctions { library, functions, leaves, .. } = self.functions;
        let position = library.names.position(function)?;
        let cell = functions.get(position)?;
        if leaves.get(position) != Some(&true) {
            return cell.get()?.get(self.release);
        }
        if cell.get().is_none() {
            let (_, function) = library.names.at(position)?;
            let summary = library.memo.known(*library, function.last)?;
            let types = summary.judged.as_deref()?.types.as_ref()?;
            let leaf = ConcreteFunction::without_definition(function.last, types, Box::default());
            return cell.get_or_init(|| ByRelease::Same(Rc::new(leaf))).get(self.release);
        }
        cell.get()?.get(self.release)
    }

    fn diagnostic_of(self, function: u64) -> Option<Rc<FunctionDiagnostic>> {
        if self.functions.diagnostics.is_empty() {
            return None;
        }
        let position = self.functions.library.names.position(function)?;
        self.functions.diagnostics.get(&position)?.get(self.release).cloned()
    }

    fn diagnostic(
        self,
        concrete: &ConcreteFunction,
        is_gone: impl Fn(u64) -> bool,
    ) -> Option<Rc<FunctionDiagnostic>> {
        let own = concrete.unset.clone().map(|diagnostic| Rc::new(concrete.with(diagnostic)));
        own.or_else(|| {
            concrete.calls.iter().find_map(|call| {
                let callee = self.get(call.function)?;
                if call.direct && is_gone(call.function) {
                    let library = self.functions.library;
                    return Some(Rc::new(concrete.unresolved_call(library, call, Some(callee))));
                }
                call.diagnostic(callee).or_else(|| self.diagnostic_of(call.function))
            })
        })
    }

    /// Returns the diagnostic of a node of the graph, in a release, that calls a function with this
    /// number of tensors.
    pub(super) fn import_diagnostic(
        self,
        registry: &Registry,
        node: &CallingNode,
        tensors: (u64, u64),
    ) -> Result<Option<ImportDiagnostic>, GraphError> {
        if !node.call.inside {
            return Ok(None);
        }
        let library = self.functions.library;
        let Some(callee) = self.get(node.call.function) else { return Ok(None) };
        let mut found = None;
        if callee.is_open() {
            let (source, release) = (library.source, library.release);
            let given = call_attributes(source, node.place, node.call.direct, release)?;
            found = callee.wrong_binding(&given, registry).map(Rc::new);
        }
        let found = found
            .or_else(|| self.diagnostic_of(node.call.function))
            .or_else(|| callee.call_diagnostic(tensors).map(Rc::new));
        found.map(|found| to_diagnostic(library, node.place, &found)).transpose()
    }
}

/// Returns the signature of a function once it is loaded: each argument and result is one tensor of
/// the declared type, and no attributes remain.
pub(super) fn loaded_definition(function: &FunctionIndex) -> OperationDefinition {
    let fixed = |(argument, written): (&Argument, &ArgumentDefinition)| ArgumentDefinition {
        name: written.name.clone(),
        element: ArgumentType::Fixed(argument.data_type),
        number_attribute: None,
        is_reference: false,
    };
    let signature = &function.signature;
    OperationDefinition {
        name: signature.name.clone(),
        inputs: function.arguments.iter().zip(&signature.inputs).map(fixed).collect(),
        outputs: function.results.iter().zip(&signature.outputs).map(fixed).collect(),
        ..OperationDefinition::default()
    }
}
