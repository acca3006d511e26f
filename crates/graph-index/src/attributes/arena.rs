//! The storage of a node's attributes: flat lists that values point into, reused for each node.

use std::{
    collections::HashSet,
    hash::{Hash, Hasher},
};

use super::value::{AttributeValue, List, ShapeValue, TensorValue, Text};
use crate::ops::Element;

/// Limit on the memory that is kept for one node, in bytes: an element of a list counts 8, a string
/// its length.
const BUDGET: usize = 8 << 20;

/// Limit on the elements that are kept of one list of numbers or shapes; real defaults have at most
/// a few.
const LONGEST_LIST: u64 = 1 << 16;

/// Limit on the dimensions that are kept of a shape: one more than a tensor can have.
const HIGHEST_RANK: u64 = 255;

/// Limit on the bytes and numbers that are kept of a tensor: enough for a shape or an axis.
const TENSOR_BYTES: usize = 2048;
const TENSOR_NUMBERS: u64 = 256;

/// Number of attributes that are compared with each other to find equal keys; more go through a
/// set.
const FEW: usize = 32;

/// A range in one of the lists of [`Attributes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stretch {
    start: usize,
    count: usize,
}

impl Stretch {
    fn of<T>(self, list: &[T]) -> &[T] {
        list.get(self.start..self.start.saturating_add(self.count)).unwrap_or_default()
    }
}

/// A string whose bytes are kept, or only its length if it is long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredText {
    length: u64,
    bytes: Option<Stretch>,
}

/// A shape; dimensions in `numbers`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredShape {
    dimensions: Stretch,
    rank: u64,
    is_unknown_rank: bool,
}

/// A tensor without most of its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredTensor {
    pub(super) data_type: i32,
    shape: StoredShape,
    content: StoredText,
    /// The first of its integers, in `numbers`.
    numbers: Stretch,
    /// Number of values in typed fields.
    values: u64,
    /// Number of these values that are 32-bit integers.
    small_integers: u64,
}

/// A list; `kept` is a range in the list for elements of its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredList {
    element: Option<Element>,
    is_mixed: bool,
    length: u64,
    kept: Stretch,
    /// The runs of its types, independent of other elements.
    types: Stretch,
    /// Its shapes, up to the limit, independent of other elements.
    shapes: Stretch,
    /// Its strings and functions after it became mixed.
    later: Stretch,
}

/// A value inside a function value: unset, or a placeholder.
#[derive(Clone, Copy, Debug)]
pub(super) enum Nested {
    Unset,
    Placeholder(StoredText),
}

/// A value as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stored {
    #[default]
    None,
    String(StoredText),
    Int(i64),
    Float(u32),
    Bool(bool),
    Type(i32),
    Shape(StoredShape),
    Tensor(StoredTensor),
    Function(StoredText),
    Placeholder(StoredText),
    List(StoredList),
}

/// Consecutive types that are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeCount {
    /// The number of the type.
    pub data_type: i32,
    /// Number of repetitions.
    pub count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Stretch,
    value: Stored,
}

/// The attributes of one node.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    numbers: Vec<i64>,
    types: Vec<TypeCount>,
    texts: Vec<StoredText>,
    /// The strings and functions of lists with values of two kinds.
    mixed: Vec<(Element, StoredText)>,
    shapes: Vec<StoredShape>,
    /// The attributes that the functions in a value leave open, by the number of the entry.
    nested: Vec<(usize, Nested)>,
    is_oversized: bool,
}

impl Attributes {
    /// Returns the value of the attribute of this name; the last one counts.
    pub fn get(&self, name: &str) -> Option<AttributeValue<'_>> {
        self.get_bytes(name.as_bytes())
    }

    /// Returns the value of an attribute by the bytes of its name, as a placeholder has it.
    pub fn get_bytes(&self, name: &[u8]) -> Option<AttributeValue<'_>> {
        let entry = self.entries.iter().rfind(|entry| entry.key.of(&self.bytes) == name)?;
        Some(self.view(entry.value))
    }

    /// Returns every attribute, the last one of each name.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], AttributeValue<'_>)> {
        let key = |entry: &Entry| entry.key.of(&self.bytes);
        let mut later: HashSet<&[u8], foldhash::quality::RandomState> = HashSet::default();
        let is_long = self.entries.len() > FEW;
        self.entries.iter().enumerate().rev().filter_map(move |(position, entry)| {
            let name = key(entry);
            let counts = if is_long {
                later.insert(name)
            } else {
                !self.entries.iter().skip(position + 1).any(|other| key(other) == name)
            };
            counts.then(|| (name, self.view(entry.value)))
        })
    }

    /// Returns the attributes that function-valued attributes leave open, by the name of the
    /// attribute: the placeholder, or `None` for one without any value.
    pub fn nested(&self) -> impl Iterator<Item = (&[u8], Option<Text<'_>>)> {
        self.nested.iter().filter_map(|(position, nested)| {
            let name = self.entries.get(*position)?.key.of(&self.bytes);
            let later = self.entries.iter().skip(position + 1);
            let is_last = !later.into_iter().any(|other| other.key.of(&self.bytes) == name);
            is_last.then_some((
                name,
                match nested {
                    Nested::Unset => None,
                    Nested::Placeholder(text) => Some(self.text(*text)),
                },
            ))
        })
    }

    /// Returns true if the attributes exceed the limit: over 8 MiB of attribute names, strings, and
    /// types that change from one element of a list to the next. Nothing is then known of the node.
    ///
    /// Such a node must be refused, because a part of it was never checked.
    pub fn is_oversized(&self) -> bool {
        self.is_oversized
    }

    /// Hashes everything that decides the node type for an operation: all except the attributes
    /// whose names begin with an underscore, and the contents of tensors other than invalid shapes.
    ///
    /// Nodes of one operation with equal hashes have the same [`NodeType`] or diagnostic, and lose
    /// the same attributes, in every release. Their other contents may differ.
    ///
    /// [`NodeType`]: super::super::node_rules::NodeType
    pub fn hash_judged(&self, state: &mut impl Hasher) {
        for entry in &self.entries {
            let key = entry.key.of(&self.bytes);
            if !key.starts_with(b"_") {
                key.hash(state);
                self.view(entry.value).hash_judged(state);
            }
        }
        self.is_oversized.hash(state);
    }

    fn view(&self, value: Stored) -> AttributeValue<'_> {
        match value {
            Stored::None => AttributeValue::None,
            Stored::String(text) => AttributeValue::String(self.text(text)),
            Stored::Int(number) => AttributeValue::Int(number),
            Stored::Float(bits) => AttributeValue::Float(f32::from_bits(bits)),
            Stored::Bool(flag) => AttributeValue::Bool(flag),
            Stored::Type(number) => AttributeValue::Type(number),
            Stored::Shape(shape) => AttributeValue::Shape(self.shape(shape)),
            Stored::Tensor(tensor) => AttributeValue::Tensor(self.tensor(tensor)),
            Stored::Function(name) => AttributeValue::Function(self.text(name)),
            Stored::Placeholder(name) => AttributeValue::Placeholder(self.text(name)),
            Stored::List(list) => AttributeValue::List(List { attributes: self, list }),
        }
    }

    fn text(&self, text: StoredText) -> Text<'_> {
        Text { length: text.length, bytes: text.bytes.map(|bytes| bytes.of(&self.bytes)) }
    }

    fn shape(&self, shape: StoredShape) -> ShapeValue<'_> {
        ShapeValue {
            is_unknown_rank: shape.is_unknown_rank,
            rank: shape.rank,
            dimensions: shape.dimensions.of(&self.numbers),
        }
    }

    fn tensor(&self, tensor: StoredTensor) -> TensorValue<'_> {
        TensorValue {
            data_type: tensor.data_type,
            shape: self.shape(tensor.shape),
            content: self.text(tensor.content),
            numbers: tensor.numbers.of(&self.numbers),
            values: tensor.values,
            small_integers: tensor.small_integers,
        }
    }
}

/// The properties that a [`List`] gives access to.
impl StoredList {
    pub(super) fn element(self) -> Option<Element> {
        self.element
    }

    pub(super) fn is_mixed(self) -> bool {
        self.is_mixed
    }

    pub(super) fn length(self) -> u64 {
        self.length
    }

    /// The runs of types, for all types.
    pub(super) fn types(self, attributes: &Attributes) -> &[TypeCount] {
        self.types.of(&attributes.types)
    }

    /// Returns its shapes, whatever else is in it.
    pub(super) fn shapes(self, attributes: &Attributes) -> impl Iterator<Item = ShapeValue<'_>> {
        self.shapes.of(&attributes.shapes).iter().map(|shape| attributes.shape(*shape))
    }

    /// Returns its texts or functions, whatever else is in it.
    pub(super) fn texts(
        self,
        attributes: &Attributes,
        element: Element,
    ) -> impl Iterator<Item = Text<'_>> {
        let is_own = self.element == Some(element);
        let own = if is_own { self.kept.of(&attributes.texts) } else { &[] };
        let later = self.later.of(&attributes.mixed).iter();
        let later = later.filter(move |(other, _)| *other == element).map(|(_, text)| text);
        own.iter().chain(later).map(|text| attributes.text(*text))
    }

    /// Returns the value at `position`, if it is kept. Types are not: they have
    /// [`types`](Self::types).
    pub(super) fn get(
        self,
        attributes: &Attributes,
        position: usize,
    ) -> Option<AttributeValue<'_>> {
        let number = || self.kept.of(&attributes.numbers).get(position).copied();
        let text = || self.kept.of(&attributes.texts).get(position).copied();
        Some(match self.element? {
            Element::Int => AttributeValue::Int(number()?),
            Element::Float => AttributeValue::Float(f32::from_bits(number()? as u32)),
            Element::Bool => AttributeValue::Bool(number()? != 0),
            Element::String => AttributeValue::String(attributes.text(text()?)),
            Element::Function => AttributeValue::Function(attributes.text(text()?)),
            Element::Shape => {
                let shape = self.kept.of(&attributes.shapes).get(position).copied()?;
                AttributeValue::Shape(attributes.shape(shape))
            }
            Element::Type | Element::Tensor => return None,
        })
    }
}

/// Methods for writing, used by the reader only.
impl Attributes {
    /// Clears everything but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
        self.numbers.clear();
        self.types.clear();
        self.texts.clear();
        self.mixed.clear();
        self.shapes.clear();
        self.nested.clear();
        self.is_oversized = false;
    }

    /// Adds an attribute whose key was [`keep`](Self::keep)t.
    pub(super) fn add(&mut self, key: Stretch, value: Stored) {
        if self.has_room(size_of::<Entry>()) {
            self.entries.push(Entry { key, value });
        }
    }

    /// Adds the attributes that the functions in the value of the next attribute leave open.
    pub(super) fn add_nested(&mut self, nested: &[Nested]) {
        for one in nested {
            if self.has_room(size_of::<(usize, Nested)>()) {
                self.nested.push((self.entries.len(), *one));
            }
        }
    }

    /// Records that something was too long to be examined.
    pub(super) fn set_oversized(&mut self) {
        self.is_oversized = true;
    }

    /// Returns true if `more` bytes fit into the limit; otherwise marks the node as oversized.
    fn has_room(&mut self, more: usize) -> bool {
        let is_there = self.is_there(more);
        self.is_oversized |= !is_there;
        is_there
    }

    fn is_there(&self, more: usize) -> bool {
        let size = |count: usize, of: usize| count.saturating_mul(of);
        let kept = self.bytes.len()
            + size(self.entries.len(), size_of::<Entry>())
            + size(self.numbers.len(), 8)
            + size(self.types.len(), size_of::<TypeCount>())
            + size(self.texts.len(), size_of::<StoredText>())
            + size(self.shapes.len(), size_of::<StoredShape>())
            + size(self.nested.len(), size_of::<(usize, Nested)>());
        kept.saturating_add(more) <= BUDGET
    }

    /// Keeps bytes that are required.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Stretch {
        let start = self.bytes.len();
        if !self.has_room(bytes.len()) {
            return Stretch { start, count: 0 };
        }
        self.bytes.extend_from_slice(bytes);
        Stretch { start, count: bytes.len() }
    }

    /// Keeps a text.
    pub(super) fn keep_text(&mut self, bytes: &[u8]) -> StoredText {
        StoredText { length: bytes.len() as u64, bytes: Some(self.keep(bytes)) }
    }

    /// Adds an element to a list, which becomes mixed if it has elements of another kind; returns
    /// true if the element is to be kept.
    fn lengthen(&self, list: &mut StoredList, element: Element, by: u64) -> bool {
        list.is_mixed |= list.element.is_some_and(|other| other != element);
        let is_first = list.element.is_none();
        list.element = list.element.or(Some(element));
        list.length = list.length.saturating_add(by);
        if is_first {
            let start = match element {
                Element::Int | Element::Float | Element::Bool => self.numbers.len(),
                Element::String | Element::Function => self.texts.len(),
                Element::Type => self.types.len(),
                Element::Shape | Element::Tensor => self.shapes.len(),
            };
            list.kept = Stretch { start, count: 0 };
        }
        !list.is_mixed
    }

    /// Adds a number to a list of integers, floats (bits) or truth values.
    pub(super) fn push_number(&mut self, list: &mut StoredList, element: Element, number: i64) {
        if self.lengthen(list, element, 1) && list.length <= LONGEST_LIST && self.is_there(8) {
            self.numbers.push(number);
            list.kept.count += 1;
        }
    }

    /// Adds numbers or other elements of which only the count is kept.
    pub(super) fn push_unknown(&mut self, list: &mut StoredList, element: Element, count: u64) {
        self.lengthen(list, element, count);
    }

    /// Adds a type to a list.
    pub(super) fn push_type(&mut self, list: &mut StoredList, data_type: i32) {
        self.lengthen(list, Element::Type, 1);
        if list.types.count == 0 {
            list.types.start = self.types.len();
        }
        if list.types.count > 0
            && let Some(last) = self.types.last_mut()
            && last.data_type == data_type
        {
            last.count += 1;
        } else if self.has_room(size_of::<TypeCount>()) {
            self.types.push(TypeCount { data_type, count: 1 });
            list.types.count += 1;
        }
    }

    /// Adds a text to a list of texts or functions.
    pub(super) fn push_text(&mut self, list: &mut StoredList, element: Element, text: StoredText) {
        let is_of_one_kind = self.lengthen(list, element, 1);
        if !self.has_room(size_of::<(Element, StoredText)>()) {
            return;
        }
        if is_of_one_kind {
            self.texts.push(text);
            list.kept.count += 1;
            return;
        }
        if list.later.count == 0 {
            list.later.start = self.mixed.len();
        }
        self.mixed.push((element, text));
        list.later.count += 1;
    }

    /// Adds a shape to a list.
    pub(super) fn push_shape(&mut self, list: &mut StoredList, shape: StoredShape) {
        let is_of_one_kind = self.lengthen(list, Element::Shape, 1);
        if list.length > LONGEST_LIST || !self.is_there(size_of::<StoredShape>()) {
            return;
        }
        if list.shapes.count == 0 {
            list.shapes.start = self.shapes.len();
        }
        self.shapes.push(shape);
        list.shapes.count += 1;
        list.kept.count += usize::from(is_of_one_kind);
    }

    /// Adds a dimension to a shape.
    pub(super) fn push_dimension(&mut self, shape: &mut StoredShape, size: i64) {
        shape.rank = shape.rank.saturating_add(1);
        if shape.rank > HIGHEST_RANK || !self.is_there(8 * HIGHEST_RANK as usize) {
            return;
        }
        let end = shape.dimensions.start.saturating_add(shape.dimensions.count);
        if shape.dimensions.count == 0 || end != self.numbers.len() {
            // The dimensions of one shape must be adjacent, even if something else was added
            // between the two parts of the shape.
            let start = self.numbers.len();
            let from = shape.dimensions.start..end;
            if shape.dimensions.count > 0 {
                self.numbers.extend_from_within(from);
            }
            shape.dimensions = Stretch { start, count: self.numbers.len() - start };
        }
        self.numbers.push(size);
        shape.dimensions.count += 1;
    }

    /// Adds an integer to a tensor.
    pub(super) fn push_integer(&mut self, tensor: &mut StoredTensor, number: i64) {
        tensor.values = tensor.values.saturating_add(1);
        if tensor.values > TENSOR_NUMBERS || !self.is_there(8) {
            return;
        }
        let end = tensor.numbers.start.saturating_add(tensor.numbers.count);
        if tensor.numbers.count == 0 {
            tensor.numbers.start = self.numbers.len();
        } else if end != self.numbers.len() {
            return;
        }
        self.numbers.push(number);
        tensor.numbers.count += 1;
    }
}

impl StoredText {
    /// Returns a string of which only the length is known.
    pub(super) const fn long(length: u64) -> Self {
        Self { length, bytes: None }
    }
}

impl StoredShape {
    pub(super) fn set_unknown_rank(&mut self, is_unknown: bool) {
        self.is_unknown_rank = is_unknown;
    }
}

impl StoredTensor {
    pub(super) fn shape_mut(&mut self) -> &mut StoredShape {
        &mut self.shape
    }

    /// Marks an added integer as a 32-bit one.
    pub(super) fn count_small_integer(&mut self) {
        self.small_integers = self.small_integers.saturating_add(1);
    }

    /// Adds values that are not kept.
    pub(super) fn add_values(&mut self, count: u64) {
        self.values = self.values.saturating_add(count);
    }

    /// Sets the content, which is kept if it is short.
    pub(super) fn set_content(&mut self, bytes: &[u8], attributes: &mut Attributes) {
        self.content = if bytes.len() <= TENSOR_BYTES && attributes.is_there(bytes.len()) {
            attributes.keep_text(bytes)
        } else {
            StoredText::long(bytes.len() as u64)
        };
    }

    pub(super) fn set_long_content(&mut self, length: u64) {
        self.content = StoredText::long(length);
    }
}
