//! Reads an object graph (`tensorflow.SavedObjectGraph`) in one walk, and reports the diagnostics
//! of single objects and functions.
//!
//! Depends on the encoding of objects; the relations between them are judged when all have been
//! read.

mod own;

use super::{
    diagnostics::ObjectDiagnostics,
    facts::{Caller, CallerSpec, Edge, Facts, ObjectKind, Saveable},
    names::is_no_integer,
    parameters::Parameter,
    structures::Structures,
    values::ValueJudge,
};
use crate::{
    graph::{function_names::FunctionNames, rules::shown, whole_text::WholeText},
    scan::{Piece, Step, Visitor},
    schema::{
        CAPTURED_TENSOR, FUNCTION_SPEC, Field, MessageId, SAVEABLE_OBJECT,
        SAVED_BARE_CONCRETE_FUNCTION, SAVED_CONCRETE_FUNCTION, SAVED_CONSTANT, SAVED_FUNCTION,
        SAVED_OBJECT, SAVED_OBJECT_GRAPH, SAVED_OBJECT_GRAPH_CONCRETE_FUNCTIONS_ENTRY,
        SAVED_OBJECT_SAVEABLE_OBJECTS_ENTRY, SAVED_USER_OBJECT, SAVED_VARIABLE,
        TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_OBJECT_REFERENCE,
        TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_SLOT_VARIABLE_REFERENCE, VERSION_DEF,
        fields::{
            captured_tensor, function_spec, saveable_object, saved_bare_concrete_function,
            saved_concrete_function, saved_function, saved_object, saved_object_graph,
            saved_object_graph_concrete_functions_entry, saved_object_saveable_objects_entry,
            saved_user_object, saved_variable,
            trackable_object_graph_trackable_object_object_reference as object_reference,
            trackable_object_graph_trackable_object_slot_variable_reference as slot_reference,
            version_def,
        },
    },
};

/// The key under which an object is saved whole: its functions take all of its tensors at once, and
/// loaders do not call them.
const WHOLE_OBJECT: &[u8] = b"_serialize_to_tensors";

/// The child of a resource that creates it.
const CREATOR: &[u8] = b"_create_resource";

/// A class of TensorFlow itself that is created like any resource.
const HASH_TABLE: &[u8] = b"tf.StaticHashTable";

/// The class of TensorFlow itself that creates a constant, whatever kind the object declares.
const CONSTANT_CLASS: &[u8] = b"tf.TrackableConstant";

/// The type name of a list.
const LIST: &[u8] = b"trackable_list_wrapper";

/// The largest value of a variable's synchronization and aggregation; the smallest is 0.
const LAST_MODE: u64 = 3;

/// An object that is being read.
#[derive(Debug, Default)]
struct Object {
    kind: ObjectKind,
    is_registered: bool,
    is_hash_table: bool,
    is_constant_class: bool,
    is_method: bool,
    has_spec: bool,
    /// The position in [`Facts::callers`] at which its functions begin.
    callers: usize,
    /// A function that the object calls and the library does not have.
    unresolved: Option<String>,
    data_type: i32,
    has_bad_mode: bool,
    is_list: bool,
    producer: i32,
    min_consumer: i32,
    is_bad_consumer: bool,
    creator: Option<i32>,
    /// True if it has a dependency under the name of the function that creates a resource.
    is_made: bool,
    /// True if it is a constant without a node.
    is_nameless: bool,
    /// True if a child has a name that is not a number.
    has_named_child: bool,
    /// The hashes of the names under which it is saved, and whether one of the names is
    /// [`WHOLE_OBJECT`].
    saved_as: Vec<u64>,
    is_saved_whole: bool,
    /// The position in [`Facts::saveables`] at which the functions that save it begin.
    saveables: usize,
}

/// A function of the library that is being read.
#[derive(Debug, Default)]
struct Function {
    name: Vec<u8>,
    bound: usize,
}

/// A reference to an object by its number.
#[derive(Debug, Default)]
struct Reference {
    to: i32,
    other: i32,
    /// True if it has a name, which is then in [`ObjectReader::child_name`].
    is_named: bool,
}

/// A walk over an object graph.
pub(super) struct ObjectReader<'r> {
    functions: &'r FunctionNames,
    release: i32,
    /// True if each node outside of functions has a name.
    are_nodes_named: bool,
    pub(super) facts: Facts,
    pub(super) diagnostics: ObjectDiagnostics<'r>,
    structures: Structures,
    judge: ValueJudge,
    text: WholeText,
    parameters: Vec<Parameter>,
    object: Object,
    function: Function,
    reference: Reference,
    /// The name of the child that is being read.
    child_name: Vec<u8>,
    /// The first name of a child that is not a number.
    named_child: Vec<u8>,
}

impl<'r> ObjectReader<'r> {
    pub(super) fn new(
        functions: &'r FunctionNames,
        diagnostics: ObjectDiagnostics<'r>,
        release: i32,
        are_nodes_named: bool,
    ) -> Self {
        Self {
            functions,
            release,
            are_nodes_named,
            facts: Facts::default(),
            diagnostics,
            structures: Structures::new(release),
            judge: ValueJudge::default(),
            text: WholeText::default(),
            parameters: Vec::new(),
            object: Object::default(),
            function: Function::default(),
            reference: Reference::default(),
            child_name: Vec::new(),
            named_child: Vec::new(),
        }
    }

    /// Returns the facts and diagnostics, once everything has been read.
    pub(super) fn finish(self) -> (Facts, ObjectDiagnostics<'r>) {
        let Self { mut facts, diagnostics, structures, judge, text, .. } = self;
        facts.is_unclear |= structures.is_oversized || judge.is_unclear || text.oversized;
        (facts, diagnostics)
    }

    fn begin_object(&mut self) {
        let mut saved_as = std::mem::take(&mut self.object.saved_as);
        saved_as.clear();
        let callers = self.facts.callers.len();
        let saveables = self.facts.saveables.len();
        self.object = Object { callers, saveables, saved_as, ..Object::default() };
        self.structures.clear();
    }

    /// Sets the kind of the object, replacing the previous one.
    fn set_kind(&mut self, kind: ObjectKind) {
        if self.object.kind == kind {
            return;
        }
        self.facts.callers.truncate(self.object.callers);
        self.structures.clear();
        let object = std::mem::take(&mut self.object);
        self.object = Object {
            kind,
            callers: object.callers,
            saveables: object.saveables,
            is_registered: object.is_registered,
            is_hash_table: object.is_hash_table,
            is_constant_class: object.is_constant_class,
            creator: object.creator,
            is_made: object.is_made,
            has_named_child: object.has_named_child,
            saved_as: object.saved_as,
            is_saved_whole: object.is_saved_whole,
            ..Object::default()
        };
    }

    /// Records that the object calls a function.
    fn call(&mut self, name: &[u8], is_bare: bool) {
        if is_bare {
            self.facts.callers.truncate(self.object.callers);
            self.object.unresolved = None;
        }
        let Some(function) = self.functions.find(name) else {
            self.object.unresolved.get_or_insert_with(|| shown(name));
            return;
        };
        if self.facts.has_room::<Caller>(1) {
            let object = self.facts.number();
            let (parameters, has_signature) = (CallerSpec::Absent, false);
            let caller = Caller { object, function, parameters, has_signature, is_bare };
            self.facts.callers.push(caller);
        }
    }

    fn end_of_reference(&mut self, field: &Field) {
        let Reference { to, other, is_named } = std::mem::take(&mut self.reference);
        let edge = Edge { from: self.facts.number(), to };
        match field.number {
            saved_object::CHILDREN => {
                self.facts.child(edge);
                let name: &[u8] = if is_named { &self.child_name } else { b"" };
                if name == CREATOR {
                    self.object.creator = Some(to);
                }
                if !self.object.has_named_child && is_no_integer(name) {
                    self.object.has_named_child = true;
                    self.named_child.clear();
                    self.named_child.extend_from_slice(name);
                }
            }
            saved_object::DEPENDENCIES => {
                self.object.is_made |= is_named && self.child_name == CREATOR;
                if self.facts.has_room::<Edge>(1) {
                    self.facts.dependencies.push(edge);
                }
            }
            _ => {
                if self.facts.has_room::<(i32, i32)>(1) {
                    self.facts.slots.push((to, other));
                }
            }
        }
    }

    fn end_of_saveable(&mut self) {
        if self.facts.has_room::<Saveable>(1) {
            let (object, is_called) = (self.facts.number(), true);
            let Reference { to: save, other: restore, .. } = std::mem::take(&mut self.reference);
            self.facts.saveables.push(Saveable { object, save, restore, is_called });
        }
    }

    fn end_of_object(&mut self) {
        if !self.facts.has_room::<ObjectKind>(1) {
            return;
        }
        let number = self.facts.number();
        let kind = self.object.kind;
        let calls_one = matches!(kind, ObjectKind::BareFunction | ObjectKind::CapturedTensor);
        let has_called = self.facts.callers.len() > self.object.callers;
        if calls_one && !has_called && self.object.unresolved.is_none() {
            // A missing string field is an empty string.
            self.call(b"", true);
        }
        let kind = self.kind_of_object(number);
        self.facts.kinds.push(kind);
        self.object.saved_as.sort_unstable();
        let names = self.object.saved_as.len();
        self.object.saved_as.dedup();
        self.facts.is_unclear |= names != self.object.saved_as.len();
        let is_called = !(self.object.is_saved_whole && names == 1);
        for saveable in self.facts.saveables.iter_mut().skip(self.object.saveables) {
            saveable.is_called = is_called;
        }
    }

    fn begin_function(&mut self) {
        self.function.name.clear();
        self.function.bound = self.facts.bound.len();
        self.structures.clear();
    }
}

impl Visitor for ObjectReader<'_> {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (SAVED_OBJECT_GRAPH, saved_object_graph::NODES) => self.begin_object(),
            (SAVED_OBJECT_GRAPH, _) => self.begin_function(),
            (SAVED_OBJECT, saved_object::USER_OBJECT) => self.set_kind(ObjectKind::User),
            (SAVED_OBJECT, saved_object::FUNCTION) => self.set_kind(ObjectKind::Function),
            (SAVED_OBJECT, saved_object::BARE_CONCRETE_FUNCTION) => {
                self.set_kind(ObjectKind::BareFunction);
            }
            (SAVED_OBJECT, saved_object::VARIABLE) => self.set_kind(ObjectKind::Variable),
            (SAVED_OBJECT, saved_object::CAPTURED_TENSOR) => {
                self.set_kind(ObjectKind::CapturedTensor);
            }
            (SAVED_OBJECT, saved_object::ASSET) => {
                self.set_kind(ObjectKind::Capturable);
                self.object.is_nameless = false;
                return Step::Over;
            }
            (SAVED_OBJECT, saved_object::CONSTANT) => {
                self.set_kind(ObjectKind::Capturable);
                self.object.is_nameless = self.are_nodes_named;
            }
            (SAVED_OBJECT, saved_object::RESOURCE) => {
                self.set_kind(ObjectKind::Resource);
                return Step::Over;
            }
            (SAVED_OBJECT, saved_object::SERIALIZED_USER_PROTO) => return Step::Over,
            (SAVED_FUNCTION, saved_function::FUNCTION_SPEC)
            | (SAVED_BARE_CONCRETE_FUNCTION, saved_bare_concrete_function::FUNCTION_SPEC) => {
                self.object.has_spec = true;
            }
            (SAVED_VARIABLE, _) => return Step::Over,
            _ => return self.structures.enter(message, field),
        }
        Step::Into
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        match (message, field.number) {
            (SAVED_OBJECT_GRAPH, saved_object_graph::NODES) => self.end_of_object(),
            (SAVED_OBJECT_GRAPH, _) => self.end_of_function(),
            (
                SAVED_OBJECT,
                saved_object::CHILDREN | saved_object::DEPENDENCIES | saved_object::SLOT_VARIABLES,
            ) => self.end_of_reference(field),
            (SAVED_OBJECT, saved_object::SAVEABLE_OBJECTS) => self.end_of_saveable(),
            _ => self.structures.leave(message, field),
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        let small = value as u32 as i32;
        match (message, field.number) {
            (
                TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_OBJECT_REFERENCE,
                object_reference::NODE_ID,
            )
            | (
                TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_SLOT_VARIABLE_REFERENCE,
                slot_reference::SLOT_VARIABLE_NODE_ID,
            )
            | (SAVEABLE_OBJECT, saveable_object::SAVE_FUNCTION) => self.reference.to = small,
            (
                TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_SLOT_VARIABLE_REFERENCE,
                slot_reference::ORIGINAL_VARIABLE_NODE_ID,
            )
            | (SAVEABLE_OBJECT, saveable_object::RESTORE_FUNCTION) => self.reference.other = small,
            (VERSION_DEF, version_def::PRODUCER) => self.object.producer = small,
            (VERSION_DEF, version_def::MIN_CONSUMER) => self.object.min_consumer = small,
            (VERSION_DEF, _) => self.object.is_bad_consumer |= small == 1,
            (FUNCTION_SPEC, function_spec::IS_METHOD) => self.object.is_method = value != 0,
            (SAVED_VARIABLE, saved_variable::DTYPE) => self.object.data_type = small,
            (SAVED_VARIABLE, saved_variable::SYNCHRONIZATION | saved_variable::AGGREGATION) => {
                self.object.has_bad_mode |= value > LAST_MODE;
            }
            (SAVED_CONCRETE_FUNCTION, saved_concrete_function::BOUND_INPUTS) => {
                if self.facts.has_room::<i32>(1) {
                    self.facts.bound.push(small);
                }
            }
            _ => self.structures.integer(message, field, value),
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let mut whole = std::mem::take(&mut self.text);
        if let Some(text) = whole.take(piece, is) {
            self.whole_string(message, field, text);
        }
        self.text = whole;
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        message == SAVED_CONCRETE_FUNCTION || message == VERSION_DEF
    }

    fn release(&self) -> i32 {
        self.release
    }
}

impl ObjectReader<'_> {
    fn whole_string(&mut self, message: MessageId, field: &Field, text: &[u8]) {
        match (message, field.number) {
            (
                TRACKABLE_OBJECT_GRAPH_TRACKABLE_OBJECT_OBJECT_REFERENCE,
                object_reference::LOCAL_NAME,
            ) => {
                self.reference.is_named = true;
                self.child_name.clear();
                self.child_name.extend_from_slice(text);
            }
            (SAVED_CONSTANT, _) => self.object.is_nameless &= text.is_empty(),
            (SAVED_OBJECT, saved_object::REGISTERED_NAME) => {
                self.object.is_registered = !text.is_empty();
                self.object.is_hash_table = text == HASH_TABLE;
                self.object.is_constant_class = text == CONSTANT_CLASS;
            }
            (SAVED_USER_OBJECT, saved_user_object::IDENTIFIER) => {
                self.object.is_list = text == LIST
            }
            (SAVED_FUNCTION, saved_function::CONCRETE_FUNCTIONS) => self.call(text, false),
            (
                SAVED_BARE_CONCRETE_FUNCTION,
                saved_bare_concrete_function::CONCRETE_FUNCTION_NAME,
            )
            | (CAPTURED_TENSOR, captured_tensor::CONCRETE_FUNCTION) => self.call(text, true),
            (SAVED_OBJECT_SAVEABLE_OBJECTS_ENTRY, saved_object_saveable_objects_entry::KEY) => {
                if self.facts.has_room::<u64>(1) {
                    self.object.saved_as.push(self.functions.hash_of(&mut text.iter().copied()));
                }
                self.object.is_saved_whole |= text == WHOLE_OBJECT;
            }
            (
                SAVED_OBJECT_GRAPH_CONCRETE_FUNCTIONS_ENTRY,
                saved_object_graph_concrete_functions_entry::KEY,
            ) => {
                self.function.name.clear();
                self.function.name.extend_from_slice(text);
            }
            _ => self.structures.string(message, field, text),
        }
    }
}
