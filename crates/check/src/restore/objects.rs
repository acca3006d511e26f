//! Finds the values for the objects of a model that `tf.saved_model.load` does not find in a
//! checkpoint.
//!
//! Matches objects as Python does: breadth first from the root, by the names of children; an object
//! of the model is restored by the first object of the checkpoint that it is matched with.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use serdes_checkpoints::tensor_bundle::{BundleError, Listing};
use serdes_graph_format::data_type::DataType;
use serdes_graphs::graph::{
    Name, ObjectValue, RestoredObjects, RestoredTable, RestoredTensor, RestoredTensors, TableShape,
};

use super::{
    Checkpoint, RestoreError,
    checkpoint::Lookup,
    error::shown,
    object_graph::{DESCRIPTION, TrackedObjects},
    saver::{by_saver, table_error},
};

/// The part of a key before the name of a value.
const ATTRIBUTES: &[u8] = b".ATTRIBUTES/";

/// The name of the value of a variable.
const VALUE: &[u8] = b"VARIABLE_VALUE";

/// The suffixes of a table's key for its keys and values.
const TABLE: [&[u8]; 2] = [b"-keys", b"-values"];

/// The slot variables that optimizers keep for a variable, by its number: the position of the
/// optimizer, the name and the number.
type SlotsOfVariables<'b> = HashMap<i32, Vec<(usize, &'b [u8], i32)>>;

/// Returns the reasons why the objects of a model cannot be restored; `saver` has the tensors that
/// its saver reads, which make up the objects other than variables.
pub(crate) fn by_objects(
    model: &RestoredObjects,
    saver: Option<&RestoredTensors>,
    checkpoint: &Checkpoint,
) -> Vec<RestoreError> {
    if let Some(error) = unlistable(checkpoint) {
        return vec![error];
    }
    match described(checkpoint) {
        Ok(Some(description)) => match TrackedObjects::parse(&description) {
            Ok(tracked) => Matching::new(model, &tracked).errors(saver, checkpoint),
            Err(error) => vec![RestoreError::Objects { found: error.to_string() }],
        },
        Ok(None) => by_names(model, checkpoint),
        Err(error) => vec![error],
    }
}

/// Returns the reasons why a saver cannot restore by the names that variables have in a graph, if a
/// checkpoint that lacks a name describes objects, as `tf.compat.v1.train.Saver` reads it. `None`
/// if the checkpoint describes no objects, or not those of all variables.
pub(crate) fn by_graph_names(
    restored: &RestoredTensors,
    checkpoint: &Checkpoint,
) -> Option<Vec<RestoreError>> {
    let description = described(checkpoint).ok().flatten()?;
    let tracked = TrackedObjects::parse(&description).ok()?;
    let renamed = |tensor: &RestoredTensor| {
        let key = tracked.graph_names.get(tensor.name.as_slice())?;
        Some(RestoredTensor { name: key.to_vec(), ..tensor.clone() })
    };
    let tensors = restored.tensors.iter().map(renamed).collect::<Option<Vec<_>>>()?;
    Some(by_saver(&RestoredTensors { tensors, tables: restored.tables.clone() }, checkpoint))
}

/// Returns the description of the objects, if the checkpoint has one.
fn described(checkpoint: &Checkpoint) -> Result<Option<Vec<u8>>, RestoreError> {
    let Checkpoint::V2(bundle) = checkpoint else { return Ok(None) };
    let none = |found: &str| RestoreError::Objects { found: found.to_owned() };
    match checkpoint.lookup().restorable(DESCRIPTION, b"", DataType::String.number()) {
        Err(RestoreError::Missing { .. }) => return Ok(None),
        Err(RestoreError::Type { .. }) => return Err(none("a tensor that is no text")),
        Ok(shape) if !shape.is_empty() => return Err(none("a list of texts")),
        found => found?,
    };
    let entry = bundle.tensor(DESCRIPTION)?;
    Ok(bundle.strings(&entry)?.into_iter().next())
}

/// Returns the reason why Python cannot list the tensors of a checkpoint: a malformed description
/// of one of them, which ends the process.
fn unlistable(checkpoint: &Checkpoint) -> Option<RestoreError> {
    let Checkpoint::V2(bundle) = checkpoint else { return None };
    let Listing { tensors, defects, .. } = bundle.tensors();
    let entry = defects.into_iter().find(|defect| matches!(defect, BundleError::Entry { .. }));
    let shape = || tensors.iter().find_map(|tensor| tensor.checked_count().err());
    entry.or_else(shape).map(RestoreError::from)
}

/// Returns the reasons why objects cannot be restored by the names of their variables, if a
/// checkpoint does not describe objects.
fn by_names(model: &RestoredObjects, checkpoint: &Checkpoint) -> Vec<RestoreError> {
    let (texts, reached, lookup) = (model.texts(), Reached::of(model), checkpoint.lookup());
    let error = |object: usize| {
        let unbound = || RestoreError::Unbound { path: reached.path(object, &texts) };
        match &model.objects.get(object)?.value {
            ObjectValue::None => None,
            ObjectValue::Saveable => Some(unbound()),
            ObjectValue::Variable { data_type, shape, name } => {
                let text = texts.get(name).copied().unwrap_or_default();
                match lookup.restorable(text, b"", *data_type) {
                    Ok(found) => misfit(text, &found, shape.as_deref()),
                    Err(RestoreError::Missing { .. }) => Some(unbound()),
                    Err(error) => Some(error),
                }
            }
        }
    };
    reached.order.iter().filter_map(|object| error(*object)).collect()
}

/// Returns the reason why a tensor does not fit a variable, by their shapes.
fn misfit(name: &[u8], found: &[i64], wanted: Option<&[Option<i64>]>) -> Option<RestoreError> {
    let wanted = wanted?;
    let fits = wanted.len() == found.len()
        && wanted.iter().zip(found).all(|(wanted, found)| wanted.is_none_or(|size| size == *found));
    if fits {
        return None;
    }
    let sizes: Vec<String> =
        wanted.iter().map(|size| size.map_or("?".to_owned(), |size| size.to_string())).collect();
    Some(RestoreError::Shape {
        name: String::from_utf8_lossy(name).into_owned(),
        found: shown(found),
        expected: format!("[{}]", sizes.join(", ")),
    })
}

/// The objects that are reachable from the root.
struct Reached {
    /// The objects in the order in which they are reached.
    order: Vec<usize>,
    /// The parent of each object, and the name of the child.
    from: HashMap<usize, (usize, Name)>,
}

impl Reached {
    fn of(model: &RestoredObjects) -> Self {
        let mut reached = Self { order: Vec::new(), from: HashMap::new() };
        let mut open = VecDeque::from([0]);
        let mut seen: HashSet<usize> = HashSet::from([0]);
        let mut slots: HashMap<usize, Vec<(usize, Name)>> = HashMap::new();
        for slot in &model.slots {
            if let Some(position) = model.position(slot.slot) {
                slots.entry(slot.optimizer).or_default().push((position, slot.name));
            }
        }
        while let Some(object) = open.pop_front() {
            reached.order.push(object);
            let children = model.children(object).iter();
            let children = children.filter_map(|(name, to)| Some((model.position(*to)?, *name)));
            let slots = slots.remove(&object).unwrap_or_default();
            for (to, name) in children.chain(slots) {
                if seen.insert(to) {
                    reached.from.insert(to, (object, name));
                    open.push_back(to);
                }
            }
        }
        reached
    }

    /// Returns the names that lead to an object.
    fn path(&self, object: usize, texts: &HashMap<Name, &[u8]>) -> String {
        const LONGEST: usize = 32;
        let (mut names, mut object) = (Vec::new(), object);
        while let Some((from, name)) = self.from.get(&object) {
            if names.len() == LONGEST {
                names.push("\u{2026}".into());
                break;
            }
            names.push(String::from_utf8_lossy(texts.get(name).copied().unwrap_or_default()));
            object = *from;
        }
        names.reverse();
        names.join(".")
    }
}

/// The matching between the objects of a model and those of a checkpoint.
struct Matching<'m, 'b> {
    model: &'m RestoredObjects,
    tracked: &'m TrackedObjects<'b>,
    /// The object of the model, for each object of the checkpoint.
    bound: Vec<Option<usize>>,
    /// Objects of the model, each with the object of the checkpoint that restores it.
    restored: HashMap<usize, usize>,
}

impl<'m, 'b> Matching<'m, 'b> {
    fn new(model: &'m RestoredObjects, tracked: &'m TrackedObjects<'b>) -> Self {
        let bound = vec![None; tracked.objects.len()];
        Self { model, tracked, bound, restored: HashMap::new() }
    }

    fn errors(
        mut self,
        saver: Option<&RestoredTensors>,
        checkpoint: &Checkpoint,
    ) -> Vec<RestoreError> {
        if let Err(error) = self.bring_together() {
            return vec![error];
        }
        let (texts, reached) = (self.model.texts(), Reached::of(self.model));
        let bound: HashSet<usize> = self.bound.iter().flatten().copied().collect();
        let mut values = Vec::new();
        let mut errors: Vec<(usize, RestoreError)> = Vec::new();
        for (place, object) in reached.order.iter().enumerate() {
            let Some(value) = self.model.objects.get(*object).map(|object| &object.value) else {
                continue;
            };
            if *value != ObjectValue::None && !bound.contains(object) {
                errors.push((place, RestoreError::Unbound { path: reached.path(*object, &texts) }));
            } else if let Some(tracked) = self.restored.get(object) {
                let wanted = self.wanted(*tracked, value);
                values.extend(wanted.into_iter().map(|wanted| (place, wanted)));
            }
        }
        // Sorted, so that the index is read from start to end.
        values.sort_by(|(_, one), (_, other)| one.key().cmp(other.key()));
        let (lookup, saver) = (checkpoint.lookup(), SaverTensors::of(saver));
        for (place, wanted) in values {
            errors.extend(wanted.errors(&lookup, &saver).into_iter().map(|error| (place, error)));
        }
        errors.sort_by_key(|(place, _)| *place);
        errors.into_iter().map(|(_, error)| error).collect()
    }

    /// Matches the objects of the checkpoint with those of the model.
    fn bring_together(&mut self) -> Result<(), RestoreError> {
        let mut open = VecDeque::new();
        if !self.bind(0, 0) {
            return Err(RestoreError::Objects { found: "no object at all".to_owned() });
        }
        open.push_back((0, 0));
        let mut by_variable = SlotsOfVariables::new();
        for (optimizer, object) in self.tracked.objects.iter().enumerate() {
            for slot in self.tracked.slots(object) {
                let slots = by_variable.entry(slot.original).or_default();
                slots.push((optimizer, slot.name, slot.slot));
            }
        }
        while let Some((tracked, object)) = open.pop_front() {
            let Some(described) = self.tracked.objects.get(tracked) else { continue };
            let own: HashMap<Name, i32> = self.model.children(object).iter().copied().collect();
            for (name, number) in self.tracked.children(described) {
                let Some(child) = self.tracked.position(*number) else {
                    let found = format!("a child with the number {number}, which is none");
                    return Err(RestoreError::Objects { found });
                };
                let to = self.model.name(name).and_then(|name| own.get(&name));
                if let Some(to) = to.and_then(|to| self.model.position(*to))
                    && self.bind(child, to)
                {
                    open.push_back((child, to));
                }
            }
        }
        self.bind_slots(&by_variable);
        Ok(())
    }

    /// Binds an object of the checkpoint; returns false if it is already bound.
    fn bind(&mut self, tracked: usize, object: usize) -> bool {
        let Some(bound) = self.bound.get_mut(tracked).filter(|bound| bound.is_none()) else {
            return false;
        };
        *bound = Some(object);
        self.restored.entry(object).or_insert(tracked);
        true
    }

    /// Binds the slot variables of optimizers, for each variable that is bound.
    fn bind_slots(&mut self, by_variable: &SlotsOfVariables<'_>) {
        let slots = self.model.slots.iter().filter_map(|slot| {
            let original = self.model.position(slot.original)?;
            Some(((slot.optimizer, original, slot.name), self.model.position(slot.slot)?))
        });
        let slots: HashMap<(usize, usize, Name), usize> = slots.collect();
        for (variable, described) in by_variable {
            let Some(original) = self.tracked.position(*variable) else { continue };
            let Some(original) = self.bound.get(original).copied().flatten() else { continue };
            for (optimizer, name, slot) in described {
                let optimizer = self.bound.get(*optimizer).copied().flatten();
                let key = optimizer.zip(self.model.name(name));
                let own = key.and_then(|(optimizer, name)| slots.get(&(optimizer, original, name)));
                if let Some((tracked, own)) = self.tracked.position(*slot).zip(own) {
                    self.bind(tracked, *own);
                }
            }
        }
    }

    /// Returns the values that are restored into an object.
    fn wanted(&self, tracked: usize, value: &'m ObjectValue) -> Vec<WantedValue<'m>> {
        let Some(described) = self.tracked.objects.get(tracked) else { return Vec::new() };
        let keys = self.tracked.keys(described);
        // Only the program knows what one of its own classes restores.
        let Some(first) = keys.first().filter(|_| !described.is_registered) else {
            return Vec::new();
        };
        match value {
            ObjectValue::None => Vec::new(),
            ObjectValue::Variable { data_type, shape, .. } => {
                let end = first.windows(ATTRIBUTES.len()).position(|part| part == ATTRIBUTES);
                let prefix = end.and_then(|end| first.get(..end + ATTRIBUTES.len()));
                vec![match prefix {
                    Some(prefix) => {
                        let (name, shape) = ([prefix, VALUE].concat(), shape.as_deref());
                        WantedValue::Variable { name, data_type: *data_type, shape }
                    }
                    None => WantedValue::NoKey(first.to_vec()),
                }]
            }
            ObjectValue::Saveable => {
                keys.iter().map(|key| WantedValue::Saveable(key.to_vec())).collect()
            }
        }
    }
}

/// A value that is restored into an object.
enum WantedValue<'m> {
    Variable {
        name: Vec<u8>,
        data_type: i32,
        shape: Option<&'m [Option<i64>]>,
    },
    /// Tensors whose names begin with this key.
    Saveable(Vec<u8>),
    /// The value of a variable with a malformed key.
    NoKey(Vec<u8>),
}

impl WantedValue<'_> {
    fn key(&self) -> &[u8] {
        match self {
            Self::Variable { name, .. } => name,
            Self::Saveable(key) | Self::NoKey(key) => key,
        }
    }

    /// Returns the reasons why the value cannot be restored.
    fn errors(&self, lookup: &Lookup<'_>, saver: &SaverTensors<'_>) -> Vec<RestoreError> {
        match self {
            Self::Variable { name, data_type, shape } => {
                match lookup.restorable(name, b"", *data_type) {
                    Ok(found) => misfit(name, &found, *shape).into_iter().collect(),
                    Err(error) => vec![error],
                }
            }
            Self::Saveable(key) => saveable_errors(key, saver, lookup),
            Self::NoKey(key) => {
                let found = format!("a value with the key {:?}", String::from_utf8_lossy(key));
                vec![RestoreError::Objects { found }]
            }
        }
    }
}

/// The tensors that a saver reads, ordered by name.
#[derive(Default)]
struct SaverTensors<'s> {
    tensors: BTreeMap<&'s [u8], &'s RestoredTensor>,
    /// The tables, by the names of their values.
    tables: HashMap<&'s [u8], &'s TableShape>,
}

impl<'s> SaverTensors<'s> {
    fn of(saver: Option<&'s RestoredTensors>) -> Self {
        let Some(saver) = saver else { return Self::default() };
        let tensors = saver.tensors.iter().map(|tensor| (tensor.name.as_slice(), tensor));
        let table = |table: &'s RestoredTable| {
            Some((saver.tensors.get(table.values)?.name.as_slice(), &table.shape))
        };
        Self { tensors: tensors.collect(), tables: saver.tables.iter().filter_map(table).collect() }
    }
}

/// Returns the reasons why an object cannot be restored whose tensors have names that begin with
/// its key.
fn saveable_errors(key: &[u8], saver: &SaverTensors<'_>, lookup: &Lookup<'_>) -> Vec<RestoreError> {
    let own = saver.tensors.range(key..).take_while(|(name, _)| name.starts_with(key));
    let (mut errors, mut shapes) = (Vec::new(), HashMap::new());
    let mut is_known = false;
    for (name, tensor) in own {
        is_known = true;
        match lookup.restorable(name, &tensor.slice, tensor.data_type) {
            Ok(shape) => {
                shapes.insert(*name, shape);
            }
            Err(error) => errors.push(error),
        }
    }
    let [keys, values] = TABLE.map(|end| [key, end].concat());
    if let (Some(of_keys), Some(of_values)) = (shapes.get(&*keys), shapes.get(&*values)) {
        let shape = saver.tables.get(&*values).copied().unwrap_or(&TableShape::Unknown);
        let name = String::from_utf8_lossy(&values).into_owned();
        errors.extend(table_error(name, of_keys, of_values, shape));
    }
    if !is_known && !lookup.has_prefix(key) {
        errors.push(RestoreError::Missing { name: String::from_utf8_lossy(key).into_owned() });
    }
    errors
}
