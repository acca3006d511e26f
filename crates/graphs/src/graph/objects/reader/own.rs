//! Finds the diagnostics of a single object or function, once all of it has been read.
//!
//! Depends on a complete object, but not on its encoding.

use super::ObjectReader;
use crate::{
    graph::{
        objects::{
            diagnostics::{ObjectDiagnostics, Step, Whose},
            facts::{CallerSpec, Concrete, Edge, ObjectKind, Tracing},
            parameters::{Parameter, Spec, SpecReader, name_hash},
            structures::{At, Kind},
            values::ValueDiagnostic,
        },
        rules::shown,
    },
    ops::Registry,
    schema::TENSORFLOW_2_14,
};

const TYPE: &str = "an element type of the release";
const VALUE: &str = "a value that Python can make";

fn in_spec(text: &str) -> String {
    format!("{text} in the description of its parameters")
}

fn in_signature(text: &str) -> String {
    format!("{text} in what it takes and gives")
}

/// Returns true if an object of `kind` is created as such, whatever class is registered for it.
const fn is_built_in(kind: ObjectKind) -> bool {
    matches!(kind, ObjectKind::Capturable | ObjectKind::Resource)
}

impl ObjectReader<'_> {
    /// Returns the kind under which other objects see this one, once its own diagnostics are known.
    pub(super) fn kind_of_object(&mut self, number: u32) -> ObjectKind {
        let kind = self.object.kind;
        let is_other = self.object.is_registered && !is_built_in(kind);
        match is_other {
            true => self.facts.callers.truncate(self.object.callers),
            false => self.judge_object(number),
        }
        if self.object.is_constant_class && kind != ObjectKind::Capturable && self.are_nodes_named {
            self.tell_nameless(number);
        }
        let is_resource = match self.object.is_registered {
            true => self.object.is_hash_table,
            false => kind == ObjectKind::Resource,
        };
        // Only an object that is declared as a resource depends on its creator.
        let has_creator = kind == ObjectKind::Resource && self.object.creator.is_some();
        match is_resource {
            true if !has_creator && !self.object.is_made => ObjectKind::UnmadeResource,
            _ if is_other => ObjectKind::Registered,
            _ => kind,
        }
    }

    /// Records the diagnostics of a single object.
    fn judge_object(&mut self, number: u32) {
        let whose = || Whose::Object(number);
        let tell = |diagnostics: &mut ObjectDiagnostics<'_>, found: String, expected| {
            diagnostics.tell(Step::Objects, |_| true, || (whose(), found, expected));
        };
        match self.object.kind {
            ObjectKind::Unset => {
                let found = "an object that is nothing".to_owned();
                tell(&mut self.diagnostics, found, "a variable, a function or another object");
            }
            ObjectKind::Variable => {
                if self.object.has_bad_mode {
                    let found =
                        "a variable whose synchronization or aggregation is none".to_owned();
                    tell(&mut self.diagnostics, found, "one of 0 to 3");
                }
                let data_type = self.object.data_type;
                let diagnostic = ValueDiagnostic::Type(data_type);
                self.diagnostics.tell_of(
                    || diagnostic.kind(),
                    Step::Objects,
                    |registry| diagnostic.is_found_by(registry),
                    || (whose(), format!("a variable of {}", diagnostic.text()), TYPE),
                );
            }
            ObjectKind::Function | ObjectKind::BareFunction | ObjectKind::CapturedTensor => {
                if let Some(unresolved) = self.object.unresolved.take() {
                    let found = format!("the function {unresolved:?}, which is not in the library");
                    tell(&mut self.diagnostics, found, "a function of the library");
                }
                let is_bare = self.object.kind == ObjectKind::BareFunction;
                match self.object.kind {
                    ObjectKind::CapturedTensor => self.facts.callers.truncate(self.object.callers),
                    _ if is_bare && !self.object.has_spec => {}
                    _ => self.end_of_spec(number),
                }
            }
            ObjectKind::User => self.end_of_user_object(number),
            ObjectKind::Resource => {
                if let Some(to) = self.object.creator
                    && self.facts.has_room::<Edge>(1)
                {
                    self.facts.dependencies.push(Edge { from: number, to });
                }
            }
            ObjectKind::Capturable if self.object.is_nameless => self.tell_nameless(number),
            ObjectKind::Capturable | ObjectKind::UnmadeResource | ObjectKind::Registered => {}
        }
    }

    fn tell_nameless(&mut self, number: u32) {
        let diagnostic = || {
            let found = "a constant that names no node".to_owned();
            (Whose::Object(number), found, "a node of the graph")
        };
        self.diagnostics.tell(Step::Objects, |_| true, diagnostic);
    }

    fn end_of_user_object(&mut self, number: u32) {
        let super::Object { is_list, producer, min_consumer, is_bad_consumer, .. } = self.object;
        // A list of another version is created as a plain object, whose children may have any name.
        let is_list = is_list && producer >= 1 && min_consumer <= 1 && !is_bad_consumer;
        if is_list && self.object.has_named_child {
            let name = shown(&self.named_child);
            self.diagnostics.tell(
                Step::Children,
                |_| true,
                || {
                    let found = format!("an element of a list that is called {name:?}");
                    (Whose::Object(number), found, "its position")
                },
            );
        }
    }

    /// Judges and keeps the parameters of an object that is a function.
    fn end_of_spec(&mut self, number: u32) {
        let mut is_whole = true;
        let (structures, diagnostics) = (&self.structures, &mut self.diagnostics);
        for root in [structures.root(0), structures.root(1)] {
            self.judge.judge(structures, root, |found| {
                let finds = |registry: &Registry| found.is_found_by(registry);
                is_whole &= !matches!(found, ValueDiagnostic::Unset);
                let diagnostic = || (Whose::Object(number), in_spec(&found.text()), VALUE);
                diagnostics.tell_of(|| found.kind(), Step::Objects, finds, diagnostic);
            });
        }
        if !is_whole {
            return;
        }
        let functions = self.functions;
        let hash = |name: &mut dyn Iterator<Item = u8>| functions.hash_of(name);
        let parameters = &mut self.parameters;
        let mut reader = SpecReader { structures, hash, parameters };
        let spec = reader.read(self.object.is_method);
        let has_signature =
            structures.root(1).is_some_and(|at| structures.is_empty(at) != Some(true));
        let parameters = match spec {
            Spec::Known => self.keep_parameters(),
            Spec::Unclear => CallerSpec::Unclear,
            Spec::Refused(found) => {
                let diagnostic =
                    || (Whose::Object(number), found.to_owned(), "parameters of a function");
                diagnostics.tell(Step::Objects, |_| true, diagnostic);
                CallerSpec::Unclear
            }
        };
        for caller in self.facts.callers.iter_mut().skip(self.object.callers) {
            (caller.parameters, caller.has_signature) = (parameters, has_signature);
        }
    }

    fn keep_parameters(&mut self) -> CallerSpec {
        if !self.facts.has_room::<Parameter>(self.parameters.len()) {
            return CallerSpec::Unclear;
        }
        let start = self.facts.parameters.len() as u32;
        self.facts.parameters.extend_from_slice(&self.parameters);
        CallerSpec::Known(start, self.facts.parameters.len() as u32)
    }

    pub(super) fn end_of_function(&mut self) {
        let Some(function) = self.functions.find(&self.function.name) else {
            let name = shown(&self.function.name);
            let found = "a function that is not in the library".to_owned();
            let diagnostic = || (Whose::Function(name), found, "a function of the library");
            return self.diagnostics.tell(Step::Remaining, |_| true, diagnostic);
        };
        let (structures, diagnostics) = (&self.structures, &mut self.diagnostics);
        for root in [structures.root(0), structures.root(1)] {
            self.judge.judge(structures, root, |found| {
                let finds = |registry: &Registry| found.is_found_by(registry);
                let diagnostic = || {
                    let name = shown(&self.function.name);
                    (Whose::Function(name), in_signature(&found.text()), VALUE)
                };
                diagnostics.tell_of(|| found.kind(), Step::Functions, finds, diagnostic);
            });
        }
        let traced = self.tracing();
        if traced == Tracing::NoPair || traced == Tracing::Unnamed {
            // Older releases check this only for a function that is called by its parameters.
            let finds = |registry: &Registry| registry.graph_def_version() >= TENSORFLOW_2_14;
            let diagnostic = || {
                let found = "a function that does not say what it takes by position and by name";
                (Whose::Function(shown(&self.function.name)), found.to_owned(), VALUE)
            };
            self.diagnostics.tell(Step::Functions, finds, diagnostic);
        }
        if !self.facts.has_room::<(u64, Concrete)>(2) {
            return;
        }
        let bound = (self.function.bound as u32, self.facts.bound.len() as u32);
        let known = self.facts.functions.insert(function, Concrete { bound, traced });
        // Of two entries the last one counts, but the first was judged as well.
        self.facts.is_unclear |= known.is_some();
    }

    /// Returns the arguments that the function was traced with.
    fn tracing(&mut self) -> Tracing {
        let structures = &self.structures;
        let Some(signature) = structures.root(0) else { return Tracing::Unclear };
        let is_list = |at: At| matches!(structures.kind(Some(at)), Kind::List | Kind::Tuple);
        match structures.kind(Some(signature)) {
            Kind::None => return Tracing::Absent,
            Kind::List | Kind::Tuple | Kind::NamedTuple => {}
            Kind::Number | Kind::DataType | Kind::TensorSpec => return Tracing::NoPair,
            _ => return Tracing::Unclear,
        }
        let mut pair = structures.children(signature);
        let (Some(positions), Some(names), None) = (pair.next(), pair.next(), pair.next()) else {
            return Tracing::NoPair;
        };
        match structures.kind(Some(names)) {
            Kind::Dict if is_list(positions) => {}
            Kind::None | Kind::Number | Kind::Text | Kind::List | Kind::Tuple => {
                return Tracing::Unnamed;
            }
            _ => return Tracing::Unclear,
        }
        let mut values = structures.children(positions);
        let count = values.clone().count();
        let is_tensor = structures.kind(values.next()) == Kind::TensorSpec;
        let hash = |name: &mut dyn Iterator<Item = u8>| self.functions.hash_of(name);
        let start = self.facts.names.len() as u32;
        for name in structures.children(names) {
            let Some(name) = name_hash(structures.key(name), &hash) else {
                return Tracing::Unclear;
            };
            if !self.facts.has_room::<u64>(1) {
                return Tracing::Unclear;
            }
            self.facts.names.push(name);
        }
        let names = (start, self.facts.names.len() as u32);
        Tracing::Known { positions: u32::try_from(count).unwrap_or(u32::MAX), is_tensor, names }
    }
}
