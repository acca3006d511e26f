//! Types of the tables with the history of the PJRT C API. Each entry has the first and the last
//! minor to which it applies.

use super::minor::Minor;

/// The number of zero bytes after a struct for a plug-in that is newer than these tables, as space
/// for fields that were added since.
pub const PADDING: usize = 64;

/// A minor version, and the sizes of its table of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinorRecord {
    /// The minor number.
    pub minor: u16,
    /// The date on which the minor was first seen, as YYYY-MM-DD.
    pub first_seen: &'static str,
    /// The value of `sizeof` for the table, in bytes.
    pub size_of: u16,
    /// The size that a plug-in of this minor declares for its table, in bytes.
    pub declared: u16,
}

/// A function of the table, and the positions of its pointer in all minors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name in C.
    pub name: &'static str,
    /// The positions, oldest first.
    pub spans: &'static [SlotSpan],
}

/// The position of a function's pointer in a range of minors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotSpan {
    /// The first minor.
    pub first: u16,
    /// The last minor.
    pub last: u16,
    /// The offset in the table, in bytes.
    pub offset: u16,
}

/// The offset of the first function's pointer in the table, in bytes.
const FIRST_SLOT: usize = 40;
const SLOT: usize = 8;

impl Function {
    /// Returns the offset of the pointer in the table of `minor`, in bytes. A minor newer than the
    /// tables has the offsets of the newest known one.
    #[must_use]
    pub const fn offset(&self, minor: Minor) -> Option<usize> {
        let mut spans = self.spans;
        while let [span, behind @ ..] = spans {
            if holds(span.first, span.last, minor) {
                return Some(span.offset as usize);
            }
            spans = behind;
        }
        None
    }

    /// Returns the index of the slot, counted from 0.
    #[must_use]
    pub const fn slot(&self, minor: Minor) -> Option<usize> {
        match self.offset(minor) {
            Some(offset) => Some((offset - FIRST_SLOT) / SLOT),
            None => None,
        }
    }

    /// Returns the first minor that has the function; the largest number for a function that is in
    /// no table.
    #[must_use]
    pub const fn since(&self) -> Minor {
        match self.spans {
            [span, ..] => Minor::new(span.first as u32),
            [] => Minor::new(u32::MAX),
        }
    }
}

/// The sizes of a struct in one minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructSize {
    /// The value of `sizeof` in bytes, including padding at the end.
    pub size_of: usize,
    /// The value of `struct_size` in builds of this minor, in bytes: the end of the last field that
    /// the macro names, which in some minors is not the last field of the struct.
    pub declared: usize,
}

/// The sizes of a struct in a range of minors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructSpan {
    /// The first minor.
    pub first: u16,
    /// The last minor.
    pub last: u16,
    /// The value of `sizeof`, in bytes.
    pub size_of: u16,
    /// The value of the struct's macro, in bytes.
    pub declared: u16,
}

/// A field of a struct, and its position in a range of minors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in C; `value` for a union without a name.
    pub name: &'static str,
    /// The type in C; `fn` for a function pointer, `union` for a union without a name.
    pub kind: &'static str,
    /// The offset in the struct, in bytes.
    pub offset: u16,
    /// The size in bytes.
    pub size: u16,
    /// The first minor.
    pub first: u16,
    /// The last minor.
    pub last: u16,
}

impl Field {
    /// Returns the offset of the end of the field, from the struct's start.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.offset as usize + self.size as usize
    }

    /// Returns `true` if the struct has the field at this position in `minor`.
    #[must_use]
    pub const fn is_in(&self, minor: Minor) -> bool {
        holds(self.first, self.last, minor)
    }
}

/// The history of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Struct {
    /// The name in C.
    pub name: &'static str,
    /// The sizes, oldest first.
    pub spans: &'static [StructSpan],
    /// Every field of any minor, in the order of their first minors.
    pub fields: &'static [Field],
}

/// The declared and the allocated size of a struct that a host passes to a plug-in of a certain
/// minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The value of `struct_size`, in bytes.
    pub struct_size: usize,
    /// The size of the memory behind the pointer, in bytes: at least `struct_size`, and at least as
    /// much as a plug-in of the minor reads or writes. The host sets unused bytes to zero.
    pub memory: usize,
}

impl Struct {
    /// Returns the sizes in `minor`, or `None` if it has no such struct. A minor newer than the
    /// tables has the sizes of the newest known one.
    #[must_use]
    pub const fn size(&self, minor: Minor) -> Option<StructSize> {
        let mut spans = self.spans;
        while let [span, behind @ ..] = spans {
            if holds(span.first, span.last, minor) {
                return Some(StructSize {
                    size_of: span.size_of as usize,
                    declared: span.declared as usize,
                });
            }
            spans = behind;
        }
        None
    }

    /// Returns the field `name` in `minor`. A minor newer than the tables has the fields of the
    /// newest known one.
    #[must_use]
    pub const fn field(&self, name: &str, minor: Minor) -> Option<&'static Field> {
        let mut fields = self.fields;
        while let [field, behind @ ..] = fields {
            if field.is_in(minor) && same(field.name, name) {
                return Some(field);
            }
            fields = behind;
        }
        None
    }

    /// Returns the fields in `minor`, unordered.
    pub fn fields(&self, minor: Minor) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().filter(move |field| field.is_in(minor))
    }

    /// Returns the end of the last field in `minor`, in bytes, which the macro should give.
    #[must_use]
    pub fn end(&self, minor: Minor) -> usize {
        self.fields(minor).map(Field::end).max().unwrap_or(0)
    }

    /// Returns `true` if builds of `minor` declare less than the end of the last field, because
    /// upstream did not update the macro.
    #[must_use]
    pub fn is_stale(&self, minor: Minor) -> bool {
        self.size(minor).is_some_and(|size| size.declared < self.end(minor))
    }

    /// Returns the sizes with which a host passes the struct to a plug-in of `minor`: those of a
    /// host of the same minor, with [`PADDING`] if the minor is newer than the tables. Elements of
    /// arrays are never padded, because plug-ins step through an array by the size that they were
    /// compiled with.
    #[must_use]
    pub const fn handover(&self, minor: Minor) -> Option<Handover> {
        let Some(StructSize { size_of, declared }) = self.size(minor) else { return None };
        Some(if minor.number() > Minor::NEWEST.number() && self.is_alone() {
            Handover { struct_size: size_of + PADDING, memory: size_of + PADDING }
        } else {
            Handover { struct_size: declared, memory: size_of }
        })
    }

    /// Returns `true` if the struct is only passed on its own, never as an element of an array.
    const fn is_alone(&self) -> bool {
        same(self.name, "PJRT_ExecuteOptions")
            || matches!(self.name.as_bytes(), [.., b'_', b'A', b'r', b'g', b's'])
    }
}

/// A value of an enumeration, and the range of minors in which its name has this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnumerationValue {
    /// The name in C.
    pub name: &'static str,
    /// The number.
    pub value: i32,
    /// The first minor.
    pub first: u16,
    /// The last minor.
    pub last: u16,
}

/// The history of an enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enumeration {
    /// The name in C.
    pub name: &'static str,
    /// The values of the enumeration.
    pub values: &'static [EnumerationValue],
}

impl Enumeration {
    /// Returns the name of the number in `minor`, or `None` if it has none. A minor newer than the
    /// tables has the names of the newest known one.
    #[must_use]
    pub fn name_of(&self, value: i32, minor: Minor) -> Option<&'static str> {
        let mut known = self.values(minor);
        known.find(|known| known.value == value).map(|known| known.name)
    }

    /// Returns the number of the name in `minor`.
    #[must_use]
    pub fn value(&self, name: &str, minor: Minor) -> Option<i32> {
        self.values(minor).find(|known| known.name == name).map(|known| known.value)
    }

    /// Returns the values in `minor`.
    pub fn values(&self, minor: Minor) -> impl Iterator<Item = &'static EnumerationValue> {
        self.values.iter().filter(move |value| holds(value.first, value.last, minor))
    }
}

/// Returns `true` if `minor`, capped at the newest known minor, is between `first` and `last`.
const fn holds(first: u16, last: u16, minor: Minor) -> bool {
    let number = minor.or_newest().number();
    first as u32 <= number && number <= last as u32
}

/// Compares two strings in a constant expression.
pub(super) const fn same(left: &str, right: &str) -> bool {
    crate::layout::same(left, right)
}

/// Creates an entry of the generated tables.
pub(super) const fn at(offset: u16, first: u16, last: u16) -> SlotSpan {
    SlotSpan { first, last, offset }
}

/// Creates an entry of the generated tables.
pub(super) const fn long(size_of: u16, declared: u16, first: u16, last: u16) -> StructSpan {
    StructSpan { first, last, size_of, declared }
}

/// Creates an entry of the generated tables: a name and a type, then offset, size, first and last
/// minor.
pub(super) const fn field(
    name: &'static str,
    kind: &'static str,
    [offset, size, first, last]: [u16; 4],
) -> Field {
    Field { name, kind, offset, size, first, last }
}

/// Creates an entry of the generated tables.
pub(super) const fn value(
    name: &'static str,
    value: i32,
    first: u16,
    last: u16,
) -> EnumerationValue {
    EnumerationValue { name, value, first, last }
}
