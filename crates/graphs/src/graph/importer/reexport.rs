//! Finds the diagnostics of `tf.saved_model.load` in a library of functions: it loads all of them,
//! called or not.
//!
//! A function is loaded after the functions that it names, by operations and by function-valued
//! attributes. One that names a missing function, or itself, can never be loaded.
//!
//! Depends on the references between functions, but not on their diagnostics.

mod named;
mod order;
mod summarized;

use std::{collections::HashMap, rc::Rc};

pub(super) use self::named::{Named, named_by};
use self::{
    order::order,
    summarized::{Summarized, Unloaded},
};
use super::{
    body_shapes::{self, ShapeReader},
    callee_diagnostics::to_diagnostic,
    concrete_functions::{ConcreteFunction, ConcreteFunctions, LoadDefinitions},
    function_graph::{reexport, signatures_in_graph},
    function_memo::Library,
    function_summary::{ComparedFunction, FunctionSummary, TriviallyValid},
    instantiate::{FunctionDiagnostic, InstantiationDiagnostic, numbered},
};
use crate::{
    graph::{
        DeprecatedOperations, GraphError, ImportDiagnostic, ImportDiagnosticKind,
        StructureDiagnostic, StructureDiagnosticKind,
        attributes::Attributes,
        diagnostic::Part,
        function_names::LibraryFunction,
        index::{FunctionIndex, call_attributes},
        node_rules::NodeType,
        release::{PerRelease, ReleaseId},
        shapes::BodyMismatch,
        source::Extent,
    },
    ops::{DefinitionId, Registry},
};

/// The results of loading the functions of a library and exporting them again.
pub(super) struct ReexportedFunctions<'a> {
    /// The first diagnostic that `tf.saved_model.load` finds.
    pub(super) diagnostics: PerRelease<Option<ImportDiagnostic>>,
    /// The functions as loaded; all of them if there is no diagnostic.
    pub(super) functions: ConcreteFunctions<'a>,
    /// The first diagnostic that the C++ loader finds before it looks at the graph.
    pub(super) unsaved: Option<ImportDiagnostic>,
    /// The first function in which a name occurs twice, or that has an unreadable tensor:
    /// TensorFlow does not find it equal to itself, which it checks when Python adds the function
    /// again.
    pub(super) unequal: PerRelease<Option<ImportDiagnostic>>,
    /// The same for functions in their original form, which the loaders of TensorFlow 1 import.
    pub(super) unequal_as_written: PerRelease<Option<ImportDiagnostic>>,
}

impl<'a> ReexportedFunctions<'a> {
    /// Returns the results for a library whose functions were not loaded.
    pub(super) fn none(library: Library<'a>) -> Self {
        let functions = ConcreteFunctions::of(library);
        let none = library.releases.all(None);
        Self {
            diagnostics: none.clone(),
            functions,
            unsaved: None,
            unequal: none.clone(),
            unequal_as_written: none,
        }
    }
}

/// Loads the functions of a library, as `tf.saved_model.load` does.
pub(super) fn load<'a>(
    library: Library<'a>,
    deprecated: &'a DeprecatedOperations,
) -> Result<ReexportedFunctions<'a>, GraphError> {
    let mut found = ReexportedFunctions::none(library);
    let functions = Summarized::read(library)?;
    let unsaved = functions.first_diagnostic(|judged| judged.unsaved.as_ref());
    let unsaved = unsaved.map(|found| to_diagnostic(library, Extent::default(), &found));
    found.unsaved = unsaved.transpose()?;
    for (_, function) in functions.iter() {
        let summary = (function.place, &*function.summary);
        note_unequal(library, summary, ComparedFunction::Reexported, &mut found.unequal)?;
        note_unequal(library, summary, ComparedFunction::Written, &mut found.unequal_as_written)?;
    }
    let order = match order(&functions) {
        Ok(order) => order,
        Err(diagnostic) => {
            let diagnostic = to_diagnostic(library, Extent::default(), &diagnostic)?;
            found.diagnostics = library.releases.all(Some(diagnostic));
            return Ok(found);
        }
    };
    let shapes = ShapeReader::default();
    found.functions.begin();
    Loading { library, deprecated, found, shapes, steps: 0 }.all(&order, &functions)
}

/// Returns the first function that TensorFlow does not find equal to itself; see
/// [`ReexportedFunctions::unequal`].
pub(super) fn unequal(
    library: Library<'_>,
) -> Result<PerRelease<Option<ImportDiagnostic>>, GraphError> {
    let mut found = library.releases.all(None);
    for (_, LibraryFunction { place, .. }) in library.names.iter() {
        let summary = library.memo.summary(library, place)?;
        note_unequal(library, (place, &summary), ComparedFunction::Written, &mut found)?;
    }
    Ok(found)
}

/// Records a function that is not found equal to itself, for the releases that have none so far.
fn note_unequal(
    library: Library<'_>,
    (place, summary): (Extent, &FunctionSummary),
    form: ComparedFunction,
    found: &mut PerRelease<Option<ImportDiagnostic>>,
) -> Result<(), GraphError> {
    let judged = summary.judged.as_deref();
    let Some(unequal) = judged.and_then(|judged| judged.unequal.as_deref()) else {
        return Ok(());
    };
    for (release, known) in found.iter_mut() {
        if known.is_none()
            && let Some(diagnostic) = unequal.in_release(library.releases.registry(release), form)
        {
            let diagnostic = FunctionDiagnostic { function: place, diagnostic: diagnostic.into() };
            *known = Some(not_the_same(to_diagnostic(library, Extent::default(), &diagnostic)?));
        }
    }
    Ok(())
}

/// Reports the function with this diagnostic as not equal to itself.
fn not_the_same(diagnostic: ImportDiagnostic) -> ImportDiagnostic {
    let name = diagnostic.function.clone().unwrap_or_default();
    let body = match diagnostic.kind {
        ImportDiagnosticKind::Structure(diagnostic) => diagnostic.body,
        _ => None,
    };
    let node = name.clone();
    let kind = StructureDiagnostic { node, kind: StructureDiagnosticKind::UnequalFunction, body };
    ImportDiagnostic { kind: ImportDiagnosticKind::Structure(kind), ..diagnostic }
}

/// The key by which releases are grouped while a function is loaded: its operations and the element
/// types.
type Key = (Vec<Option<(Option<DefinitionId>, usize)>>, u64);

/// Functions that are being loaded.
struct Loading<'a> {
    library: Library<'a>,
    deprecated: &'a DeprecatedOperations,
    found: ReexportedFunctions<'a>,
    shapes: ShapeReader<'a>,
    /// Number of steps taken so far; see [`reexport`].
    steps: u64,
}

impl<'a> Loading<'a> {
    /// Loads the functions in the given order.
    fn all(
        mut self,
        order: &[u32],
        functions: &Summarized<'a>,
    ) -> Result<ReexportedFunctions<'a>, GraphError> {
        let names = self.library.names;
        let mut there = vec![false; names.places()];
        let mut again = HashMap::new();
        for (time, position) in order.iter().enumerate() {
            let position = *position as usize;
            let Some(function) = functions.get(position) else { continue };
            let is_there = |function| {
                names.position(function).is_some_and(|one| there.get(one) == Some(&true))
            };
            if let Some(signature) = function.needs_later(is_there) {
                self.refuse(&function, signature)?;
            }
            match there.get_mut(position) {
                Some(known) if !*known => *known = true,
                _ => _ = again.insert(position, time),
            }
            let is_first = !self.found.functions.is_loaded(position);
            if is_first && self.found.diagnostics.values().any(Option::is_none) {
                self.load(position, &function)?;
            }
        }
        if !again.is_empty() {
            let mut seen = vec![false; names.places()];
            let firsts = order.iter().enumerate().filter_map(|(time, position)| {
                let position = *position as usize;
                let known = seen.get_mut(position).filter(|known| !**known)?;
                *known = true;
                Some((time, position))
            });
            self.found.functions.rename(&again, firsts);
        }
        Ok(self.found)
    }

    /// The values that a function passes to functions in attributes that leave something to their
    /// callers, by the number of the node.
    fn given(
        &self,
        Unloaded { place, summary, .. }: &Unloaded,
    ) -> Result<HashMap<u32, Attributes>, GraphError> {
        let Library { source, release, .. } = self.library;
        let mut given = HashMap::new();
        let is_open = |function| {
            let of_release = |release| self.found.functions.of_release(release).get(function);
            let mut releases = self.library.releases.ids().filter_map(of_release);
            releases.any(|loaded| loaded.is_open())
        };
        if !summary.calls.iter().any(|call| !call.direct && call.inside && is_open(call.function)) {
            return Ok(given);
        }
        let function = self.library.memo.index(self.library, *place)?;
        let calls = function.calls.iter().filter(|call| is_open(call.call.function));
        for call in calls.filter(|call| !call.call.direct) {
            given.insert(call.node, call_attributes(source, call.place, false, release)?);
        }
        Ok(given)
    }

    /// Records that a function cannot be loaded, because nodes of a signature need one that is
    /// loaded later.
    fn refuse(&mut self, unloaded: &Unloaded, signature: u32) -> Result<(), GraphError> {
        let index = self.library.memo.index(self.library, unloaded.place)?;
        let node = numbered(&index.nodes).find(|(_, node)| node.signature == signature);
        let node = node.map_or(0, |(number, _)| number);
        let diagnostic =
            InstantiationDiagnostic::of(Part::Node(node), ImportDiagnosticKind::Python)
                .of_operation(&index, node)
                .with(
                    "a function as an attribute that is loaded later",
                    "one that is loaded before",
                );
        let found = FunctionDiagnostic { function: unloaded.place, diagnostic: diagnostic.into() };
        let diagnostic = to_diagnostic(self.library, Extent::default(), &found)?;
        for (_, known) in self.found.diagnostics.iter_mut() {
            known.get_or_insert_with(|| diagnostic.clone());
        }
        Ok(())
    }

    /// Loads one function for each release that has no diagnostic yet; equal releases share the
    /// result.
    fn load(&mut self, position: usize, unloaded: &Unloaded) -> Result<(), GraphError> {
        let shapes = body_shapes::alone(unloaded.place, (self.library, &mut self.shapes))?;
        if shapes.is_none() && unloaded.summary.is_leaf() {
            self.found.functions.add_leaf(position);
            return Ok(());
        }
        let concrete = self.in_each_release(unloaded, shapes.as_ref())?;
        let diagnostics = &self.found.diagnostics;
        let asking = |release| diagnostics[release].is_none();
        self.found.functions.add(position, concrete, asking);
        Ok(())
    }

    /// Returns the function as loaded by each release that has no diagnostic yet, and finds none in
    /// it.
    fn in_each_release(
        &mut self,
        unloaded: &Unloaded,
        shapes: Option<&BodyMismatch>,
    ) -> Result<PerRelease<Option<Rc<ConcreteFunction>>>, GraphError> {
        let Unloaded { place, summary, .. } = unloaded;
        let mut valid: Vec<(&Rc<TriviallyValid>, Rc<ConcreteFunction>)> = Vec::new();
        let mut judged: Vec<(Key, Rc<ConcreteFunction>)> = Vec::new();
        let mut whole = None;
        let library = self.library;
        let given = self.given(unloaded)?;
        let mut all = library.releases.all(None);
        for (release, registry) in library.releases.iter() {
            if self.found.diagnostics[release].is_some() {
                continue;
            }
            let (names, loaded) = (library.names, self.found.functions.of_release(release));
            let definitions = LoadDefinitions { names, registry, loaded, given: &given };
            if shapes.is_none()
                && let Some((types, found)) = accepted_by(summary, release)
            {
                let known = valid.iter().find(|(known, _)| Rc::ptr_eq(known, found));
                let concrete = match known {
                    Some((_, known)) => Rc::clone(known),
                    None => {
                        Rc::new(ConcreteFunction::trivially_valid(*place, types, found, |call| {
                            definitions.wrong_binding(call)
                        }))
                    }
                };
                all[release] = Some(Rc::clone(&concrete));
                valid.push((found, concrete));
                continue;
            }
            let function = match &whole {
                Some(function) => Rc::clone(function),
                None => library.memo.index(library, *place)?,
            };
            let function = &**whole.insert(function);
            definitions.read_functions(library, function)?;
            let key = key(function, &definitions, registry);
            // A diagnostic has the texts of its own release.
            if let Some((_, known)) = judged.iter().find(|(known, _)| *known == key) {
                all[release] = Some(Rc::clone(known));
                continue;
            }
            let concrete = match function.oversized {
                true => Err(FunctionDiagnostic {
                    function: *place,
                    diagnostic: InstantiationDiagnostic::oversized().into(),
                }),
                false => {
                    let node_signatures = signatures_in_graph(function, &definitions);
                    let function = (function, *place);
                    reexport(
                        function,
                        &node_signatures,
                        shapes,
                        &definitions,
                        self.deprecated,
                        &mut self.steps,
                    )
                }
            };
            match concrete {
                Ok(concrete) => {
                    let concrete = Rc::new(concrete);
                    all[release] = Some(Rc::clone(&concrete));
                    judged.push((key, concrete));
                }
                Err(found) => {
                    let diagnostic = to_diagnostic(library, Extent::default(), &found)?;
                    self.found.diagnostics[release] = Some(diagnostic);
                }
            }
        }
        Ok(all)
    }
}

/// Returns the types of a function's arguments and results, and its calls, if a release certainly
/// finds nothing wrong in it.
fn accepted_by(
    summary: &FunctionSummary,
    release: ReleaseId,
) -> Option<(&Rc<NodeType>, &Rc<TriviallyValid>)> {
    let judged = summary.judged.as_deref()?;
    Some((judged.types.as_ref()?, judged.trivially_valid(release)?))
}

fn key(function: &FunctionIndex, definitions: &LoadDefinitions<'_>, registry: &Registry) -> Key {
    let node_signatures =
        function.node_signatures.iter().map(|signature| definitions.identity(&signature.operation));
    (node_signatures.collect(), registry.types())
}
