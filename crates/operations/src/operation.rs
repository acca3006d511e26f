//! An operation read in place from the table: nothing is allocated until an owned value is
//! requested.

use super::{
    ArgumentDefinition, ArgumentType, AttributeDefinition, AttributeKind, OperationDefinition,
    Value, Values,
    definition::Element,
    table::{
        AGGREGATE, COMMUTATIVE, Cursor, DEPRECATED, NAME_ALONE, STATEFUL, Table, UNINITIALIZED,
    },
};

/// An operation as one release defines it.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'r> {
    table: &'r Table,
    /// The number of the operation in the table, and the offset of this definition of it.
    position: usize,
    definition_at: u64,
    name: &'r str,
    /// Masks of the releases that have it in any form, lack its shape function, lack a kernel for
    /// the CPU, and register it from Python only.
    releases: u64,
    without_shape_function: u64,
    without_cpu_kernel: u64,
    python_only: u64,
    /// The release whose view of the operation this is.
    release: usize,
    flags: u64,
    deprecated_since: Option<i32>,
    inputs: Cursor<'r>,
    outputs: Cursor<'r>,
    attributes: Cursor<'r>,
}

impl<'r> Operation<'r> {
    /// Returns the operation at `position` of the table as `release` has it.
    pub(crate) fn read(table: &'r Table, position: usize, release: usize) -> Option<Self> {
        let (name, at) = table.operation(position);
        let mut entry = table.data(at.into());
        let [without_shape_function, without_cpu_kernel, python_only]: [u64; MASKS] =
            std::array::from_fn(|_| entry.number());
        let (mut releases, mut definition_at) = (0, None);
        for Definition { mask, at } in definitions(entry) {
            releases |= mask;
            if mask >> release & 1 == 1 {
                definition_at = Some(at);
            }
        }
        let definition_at = definition_at?;
        let mut definition = table.data(definition_at);
        let flags = definition.number();
        let deprecated_since = (flags & DEPRECATED != 0).then(|| definition.signed() as i32);
        Some(Self {
            table,
            position,
            definition_at,
            name,
            releases,
            without_shape_function,
            without_cpu_kernel,
            python_only,
            release,
            flags,
            deprecated_since,
            inputs: definition.list(),
            outputs: definition.list(),
            attributes: definition.list(),
        })
    }

    /// Returns the name, as in `NodeDef.op`.
    #[must_use]
    pub const fn name(&self) -> &'r str {
        self.name
    }

    /// Returns the inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = Argument<'r>> + use<'r> {
        arguments(self.table, self.inputs)
    }

    /// Returns the outputs, in order.
    pub fn outputs(&self) -> impl Iterator<Item = Argument<'r>> + use<'r> {
        arguments(self.table, self.outputs)
    }

    /// Returns the attributes, in TensorFlow's order.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'r>> + use<'r> {
        attributes(self.table, self.attributes)
    }

    /// Returns the attribute of this name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<Attribute<'r>> {
        self.attributes().find(|attribute| attribute.name == name)
    }

    /// Returns true if the operation has state, or an effect besides its outputs.
    #[must_use]
    pub const fn is_stateful(&self) -> bool {
        self.flags & STATEFUL != 0
    }

    /// Returns true if the two inputs may be swapped.
    #[must_use]
    pub const fn is_commutative(&self) -> bool {
        self.flags & COMMUTATIVE != 0
    }

    /// Returns true if the operation adds up its inputs, in any order.
    #[must_use]
    pub const fn is_aggregate(&self) -> bool {
        self.flags & AGGREGATE != 0
    }

    /// Returns true if a reference input need not be initialized.
    #[must_use]
    pub const fn allows_uninitialized_input(&self) -> bool {
        self.flags & UNINITIALIZED != 0
    }

    /// Returns true if only the name is known: the operation then takes any inputs and attributes,
    /// and its outputs are of any number and type.
    #[must_use]
    pub const fn is_name_alone(&self) -> bool {
        self.flags & NAME_ALONE != 0
    }

    /// Returns the first GraphDef version whose graphs may not use the operation.
    #[must_use]
    pub const fn deprecated_since(&self) -> Option<i32> {
        self.deprecated_since
    }

    /// Returns true if the release has a shape function for the operation; without one the C import
    /// refuses every node that uses it.
    #[must_use]
    pub const fn has_shape_function(&self) -> bool {
        self.without_shape_function >> self.release & 1 == 0
    }

    /// Returns true if the release has a kernel for the CPU, for any type at all.
    #[must_use]
    pub const fn has_cpu_kernel(&self) -> bool {
        self.without_cpu_kernel >> self.release & 1 == 0
    }

    /// Returns true if the operation is registered only once TensorFlow's Python package is
    /// imported.
    #[must_use]
    pub const fn is_python_only(&self) -> bool {
        self.python_only >> self.release & 1 == 1
    }

    /// Returns the identity of this definition: operations with the same identity have the same
    /// arguments, attributes and deprecation. Shape functions and kernels are not part of the
    /// identity.
    ///
    /// ```
    /// use serdes_operations::Registry;
    ///
    /// let releases = ["2.15", "2.16", "2.21"];
    /// let registries = releases.map(|release| Registry::tensorflow(release).unwrap());
    /// let [old, new, newer] =
    ///     [0, 1, 2].map(|index: usize| registries[index].operation("MatMul").unwrap());
    /// assert_ne!(old.definition_id(), new.definition_id());
    /// assert_eq!(new.definition_id(), newer.definition_id());
    /// ```
    #[must_use]
    pub fn definition_id(&self) -> DefinitionId {
        DefinitionId { table: std::ptr::from_ref(self.table).addr(), at: self.definition_at }
    }

    /// Returns the oldest and the newest release of the table that have an attribute of this name,
    /// `MAJOR.MINOR`, independent of the release of this operation; `None` if no release has, and
    /// for custom operations.
    ///
    /// ```
    /// use serdes_operations::Registry;
    ///
    /// let mat_mul = Registry::operation_of_any_release("MatMul").unwrap();
    /// assert_eq!(mat_mul.attribute_releases("grad_a"), Some(("2.16", "2.21")));
    /// assert_eq!(mat_mul.attribute_releases("grad_c"), None);
    /// ```
    #[must_use]
    pub fn attribute_releases(&self, name: &str) -> Option<(&'r str, &'r str)> {
        let releases = self
            .definitions()
            .filter(|definition| definition.attribute(name).is_some())
            .fold(0, |releases, definition| releases | definition.releases);
        let name = |index| self.release_name(index);
        let last = 63_usize.checked_sub(releases.leading_zeros() as usize)?;
        Some((name(releases.trailing_zeros() as usize)?, name(last)?))
    }

    /// Returns the attributes of all releases' definitions of the operation, each as the newest
    /// release that has the attribute defines it.
    ///
    /// ```
    /// use serdes_operations::Registry;
    ///
    /// let registry = Registry::tensorflow("2.15")?;
    /// let all = registry.operation("MatMul").unwrap().attributes_of_any_release();
    /// let names: Vec<&str> = all.iter().map(|attribute| attribute.name()).collect();
    /// assert_eq!(names, ["transpose_a", "transpose_b", "T", "grad_a", "grad_b"]);
    /// # Ok::<(), serdes_operations::UnknownRelease>(())
    /// ```
    #[must_use]
    pub fn attributes_of_any_release(&self) -> Vec<Attribute<'r>> {
        let mut definitions: Vec<OtherDefinition<'r>> = self.definitions().collect();
        definitions.sort_by_key(|definition| definition.releases.leading_zeros());
        let mut found: Vec<Attribute<'r>> = Vec::new();
        for attribute in definitions.iter().flat_map(OtherDefinition::attributes) {
            if !found.iter().any(|known| known.name == attribute.name) {
                found.push(attribute);
            }
        }
        found
    }

    /// Returns all definitions of the operation in the table.
    fn definitions(&self) -> impl Iterator<Item = OtherDefinition<'r>> + use<'r> {
        let table = self.table;
        let (_, at) = table.operation(self.position);
        let mut entry = table.data(at.into());
        for _ in 0..MASKS {
            entry.number();
        }
        definitions(entry).map(move |definition| OtherDefinition::read(table, definition))
    }

    /// Returns the oldest release of the table that has the operation, `MAJOR.MINOR`; `None` for
    /// custom operations.
    #[must_use]
    pub fn first_release(&self) -> Option<&'r str> {
        self.release_name(self.releases.trailing_zeros() as usize)
    }

    /// Returns the newest release of the table that has the operation, `MAJOR.MINOR`; `None` for
    /// custom operations.
    #[must_use]
    pub fn last_release(&self) -> Option<&'r str> {
        self.release_name(63_usize.checked_sub(self.releases.leading_zeros() as usize)?)
    }

    fn release_name(&self, index: usize) -> Option<&'r str> {
        Some(self.table.release(index)).filter(|name| !name.is_empty())
    }

    /// Returns an owned copy of the definition.
    #[must_use]
    pub fn to_definition(&self) -> OperationDefinition {
        let mut definition = OperationDefinition::new(self.name);
        definition.inputs = self.inputs().map(Argument::to_definition).collect();
        definition.outputs = self.outputs().map(Argument::to_definition).collect();
        definition.attributes = self.attributes().map(Attribute::to_definition).collect();
        definition.is_stateful = self.is_stateful();
        definition.is_commutative = self.is_commutative();
        definition.is_aggregate = self.is_aggregate();
        definition.allows_uninitialized_input = self.allows_uninitialized_input();
        definition.deprecated_since = self.deprecated_since;
        definition.is_name_alone = self.is_name_alone();
        definition
    }
}

/// Number of release masks in front of the definitions of an operation.
const MASKS: usize = 3;

/// Identifies a definition of an operation: see [`Operation::definition_id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DefinitionId {
    table: usize,
    at: u64,
}

/// A definition of an operation: the releases that have it, and its place in the table.
struct Definition {
    mask: u64,
    at: u64,
}

/// Returns the definitions of an operation from an entry that is read up to them.
fn definitions(entry: Cursor<'_>) -> impl Iterator<Item = Definition> + use<'_> {
    let mut entry = entry;
    (0..entry.number()).map(move |_| Definition { mask: entry.number(), at: entry.number() })
}

/// The parts of another release's definition that are compared.
struct OtherDefinition<'r> {
    table: &'r Table,
    releases: u64,
    attributes: Cursor<'r>,
}

impl<'r> OtherDefinition<'r> {
    fn read(table: &'r Table, definition: Definition) -> Self {
        let mut data = table.data(definition.at);
        if data.number() & DEPRECATED != 0 {
            data.signed();
        }
        let [_inputs, _outputs, attributes] = std::array::from_fn(|_| data.list());
        Self { table, releases: definition.mask, attributes }
    }

    fn attributes(&self) -> impl Iterator<Item = Attribute<'r>> + use<'r> {
        attributes(self.table, self.attributes)
    }

    fn attribute(&self, name: &str) -> Option<Attribute<'r>> {
        self.attributes().find(|attribute| attribute.name == name)
    }
}

fn attributes<'r>(
    table: &'r Table,
    list: Cursor<'r>,
) -> impl Iterator<Item = Attribute<'r>> + use<'r> {
    let mut rest = list;
    std::iter::from_fn(move || (!rest.is_empty()).then(|| Attribute::read(table, &mut rest)))
}

fn arguments<'r>(
    table: &'r Table,
    list: Cursor<'r>,
) -> impl Iterator<Item = Argument<'r>> + use<'r> {
    let mut rest = list;
    std::iter::from_fn(move || (!rest.is_empty()).then(|| Argument::read(table, &mut rest)))
}

/// An input or output of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument<'r> {
    name: &'r str,
    source: ArgumentSource<'r>,
    number_attribute: Option<&'r str>,
    is_reference: bool,
}

/// The source of an argument's element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentSource<'r> {
    /// Always this type, by TensorFlow's number.
    Fixed(i32),
    /// The attribute of this name holds the type.
    Attribute(&'r str),
    /// The attribute of this name holds a list of types, one per tensor.
    List(&'r str),
}

impl<'r> Argument<'r> {
    fn read(table: &'r Table, from: &mut Cursor<'r>) -> Self {
        let name = table.string(from.string_index());
        let flags = from.byte();
        let value = from.number();
        let source = match flags & 3 {
            0 => ArgumentSource::Fixed(value as i32),
            1 => ArgumentSource::Attribute(table.string(value as u32)),
            _ => ArgumentSource::List(table.string(value as u32)),
        };
        let number_attribute = (flags & 8 != 0).then(|| table.string(from.string_index()));
        Self { name, source, number_attribute, is_reference: flags & 4 != 0 }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'r str {
        self.name
    }

    /// Returns the source of its element type.
    #[must_use]
    pub const fn source(&self) -> ArgumentSource<'r> {
        self.source
    }

    /// Returns the attribute with the number of tensors, if the argument is a list of tensors of
    /// one type.
    #[must_use]
    pub const fn number_attribute(&self) -> Option<&'r str> {
        self.number_attribute
    }

    /// Returns true if it is a reference to a variable's memory.
    #[must_use]
    pub const fn is_reference(&self) -> bool {
        self.is_reference
    }

    fn to_definition(self) -> ArgumentDefinition {
        ArgumentDefinition {
            name: self.name.to_owned(),
            element: match self.source {
                ArgumentSource::Fixed(number) => ArgumentType::Fixed(number),
                ArgumentSource::Attribute(name) => ArgumentType::Attribute(name.to_owned()),
                ArgumentSource::List(name) => ArgumentType::List(name.to_owned()),
            },
            number_attribute: self.number_attribute.map(str::to_owned),
            is_reference: self.is_reference,
        }
    }
}

/// An attribute of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'r> {
    table: &'r Table,
    name: &'r str,
    kind: AttributeKind,
    minimum: Option<i64>,
    default_at: Option<u64>,
    allowed_at: Option<u64>,
}

impl<'r> Attribute<'r> {
    fn read(table: &'r Table, from: &mut Cursor<'r>) -> Self {
        let name = table.string(from.string_index());
        let flags = from.byte();
        let kind =
            AttributeKind { element: Element::of_number(flags & 7), is_list: flags & 8 != 0 };
        let minimum = (flags & 16 != 0).then(|| from.signed());
        let default_at = (flags & 32 != 0).then(|| from.number());
        let allowed_at = (flags & 64 != 0).then(|| from.number());
        Self { table, name, kind, minimum, default_at, allowed_at }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'r str {
        self.name
    }

    /// Returns the kind of its values.
    #[must_use]
    pub const fn kind(&self) -> AttributeKind {
        self.kind
    }

    /// Returns the smallest value of an integer, or the smallest length of a list.
    #[must_use]
    pub const fn minimum(&self) -> Option<i64> {
        self.minimum
    }

    /// Returns the value used where the attribute is left out; `None` if the attribute is required.
    #[must_use]
    pub fn default(&self) -> Option<Value<'r>> {
        self.default_at.map(|at| Value::read(self.table, &mut self.table.data(at)))
    }

    /// Returns true if the attribute has a default.
    #[must_use]
    pub const fn has_default(&self) -> bool {
        self.default_at.is_some()
    }

    /// Returns the allowed values (for lists, those of each element); `None` if all are allowed.
    #[must_use]
    pub fn allowed(&self) -> Option<Values<'r>> {
        match Value::read(self.table, &mut self.table.data(self.allowed_at?)) {
            Value::List(values) => Some(values),
            _ => None,
        }
    }

    fn to_definition(self) -> AttributeDefinition {
        AttributeDefinition {
            name: self.name.to_owned(),
            kind: self.kind,
            default: self.default().map(Value::to_definition),
            minimum: self.minimum,
            allowed: self.allowed().map(|values| values.map(Value::to_definition).collect()),
        }
    }
}
