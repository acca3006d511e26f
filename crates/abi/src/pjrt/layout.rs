//! Types of the tables of the PJRT C API's history. Each entry has the first and the last minor for
//! which it is true.

use super::minor::Minor;

/// Number of zero bytes behind a struct for a plug-in that is newer than these tables: space for
/// fields that were added since.
pub const PADDING: usize = 64;

/// A minor version, and the sizes of its table of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinorRecord {
    /// The minor number.
    pub minor: u16,
    /// The day on which it was first seen, as YYYY-MM-DD.
    pub first_seen: &'static str,
    /// `sizeof` the table, in bytes.
    pub size_of: u16,
    /// The size that a plug-in of this minor declares for its table, in bytes.
    pub declared: u16,
}

/// A function of the table, and the places of its pointer through the minors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name in C.
    pub name: &'static str,
    /// Its places, oldest first.
    pub spans: &'static [SlotSpan],
}

/// The place of a function's pointer in a range of minors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotSpan {
    /// The first minor.
    pub first: u16,
    /// The last one.
    pub last: u16,
    /// Bytes from the table's start.
    pub offset: u16,
}

/// The offset of the first function's pointer in the table, in bytes.
const FIRST_SLOT: usize = 40;
const SLOT: usize = 8;

impl Function {
    /// Returns the offset of the pointer in the table of that minor, in bytes. A minor beyond the
    /// tables has the offsets of the newest one in them.
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

    /// Returns the number of its slot, from 0 on.
    #[must_use]
    pub const fn slot(&self, minor: Minor) -> Option<usize> {
        match self.offset(minor) {
            Some(offset) => Some((offset - FIRST_SLOT) / SLOT),
            None => None,
        }
    }

    /// Returns the first minor that has the function; the largest number for a function that no
    /// table has.
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
    /// `sizeof`, in bytes, padding at the end included.
    pub size_of: usize,
    /// The value of `struct_size` in builds of that minor, in bytes: the end of the last field that
    /// the macro names, which in some minors is not the last field of the struct.
    pub declared: usize,
}

/// The sizes of a struct in a range of minors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructSpan {
    /// The first minor.
    pub first: u16,
    /// The last one.
    pub last: u16,
    /// `sizeof`, in bytes.
    pub size_of: u16,
    /// The value of the struct's macro, in bytes.
    pub declared: u16,
}

/// A field of a struct, and its place in a range of minors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in C; `value` for a union without one.
    pub name: &'static str,
    /// Its type in C; `fn` for a function pointer, `union` for a union without a name.
    pub kind: &'static str,
    /// Bytes from the struct's start.
    pub offset: u16,
    /// Its length in bytes.
    pub size: u16,
    /// The first minor.
    pub first: u16,
    /// The last one.
    pub last: u16,
}

impl Field {
    /// Returns the offset behind its last byte, from the struct's start.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.offset as usize + self.size as usize
    }

    /// Returns `true` if the struct of that minor has the field at this place.
    #[must_use]
    pub const fn is_in(&self, minor: Minor) -> bool {
        holds(self.first, self.last, minor)
    }
}

/// A struct through its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Struct {
    /// Its name in C.
    pub name: &'static str,
    /// The sizes, oldest first.
    pub spans: &'static [StructSpan],
    /// Every field of any minor, in the order of their first minors.
    pub fields: &'static [Field],
}

/// The declared size and the allocated size of a struct that a host passes to a plug-in of a
/// certain minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The value of `struct_size`, in bytes.
    pub struct_size: usize,
    /// Size of the memory behind the pointer, in bytes: at least `struct_size`, and at least as
    /// much as a plug-in of that minor reads or writes. The host sets unused bytes to zero.
    pub memory: usize,
}

impl Struct {
    /// Returns the sizes in that minor, or `None` if it has no such struct. A minor beyond the
    /// tables has the sizes of the newest one in them.
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

    /// Returns the field of that name in that minor. A minor beyond the tables has the fields of
    /// the newest one in them.
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

    /// Returns the fields in that minor, in no order.
    pub fn fields(&self, minor: Minor) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().filter(move |field| field.is_in(minor))
    }

    /// Returns the end of the last field in that minor, in bytes: the value that the macro should
    /// give.
    #[must_use]
    pub fn end(&self, minor: Minor) -> usize {
        self.fields(minor).map(Field::end).max().unwrap_or(0)
    }

    /// Returns `true` if builds of that minor declare less than the end of the last field, because
    /// upstream did not update the macro.
    #[must_use]
    pub fn is_stale(&self, minor: Minor) -> bool {
        self.size(minor).is_some_and(|size| size.declared < self.end(minor))
    }

    /// Returns the sizes with which a host passes the struct to a plug-in of that minor: those of a
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

    /// Returns `true` if the struct is only passed by itself, and never as an element of an array.
    const fn is_alone(&self) -> bool {
        same(self.name, "PJRT_ExecuteOptions")
            || matches!(self.name.as_bytes(), [.., b'_', b'A', b'r', b'g', b's'])
    }
}

/// A value of an enumeration, and the range of minors in which its name has that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnumerationValue {
    /// Its name in C.
    pub name: &'static str,
    /// The number.
    pub value: i32,
    /// The first minor.
    pub first: u16,
    /// The last one.
    pub last: u16,
}

/// An enumeration through its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enumeration {
    /// Its name in C.
    pub name: &'static str,
    /// Its values.
    pub values: &'static [EnumerationValue],
}

impl Enumeration {
    /// Returns the name of the number in that minor, or `None` if it has none. A minor beyond the
    /// tables has the names of the newest one in them.
    #[must_use]
    pub fn name_of(&self, value: i32, minor: Minor) -> Option<&'static str> {
        let mut known = self.values(minor);
        known.find(|known| known.value == value).map(|known| known.name)
    }

    /// Returns the number of that name in that minor.
    #[must_use]
    pub fn value(&self, name: &str, minor: Minor) -> Option<i32> {
        self.values(minor).find(|known| known.name == name).map(|known| known.value)
    }

    /// Returns the values in that minor.
    pub fn values(&self, minor: Minor) -> impl Iterator<Item = &'static EnumerationValue> {
        self.values.iter().filter(move |value| holds(value.first, value.last, minor))
    }
}

/// Returns `true` if `minor`, or the newest known minor if that one is older, lies from `first` to
/// `last`.
const fn holds(first: u16, last: u16, minor: Minor) -> bool {
    let number = minor.or_newest().number();
    first as u32 <= number && number <= last as u32
}

/// Compares two texts, as a function that constants can call.
pub(super) const fn same(left: &str, right: &str) -> bool {
    crate::layout::same(left, right)
}

/// Returns an entry of the generated tables.
pub(super) const fn at(offset: u16, first: u16, last: u16) -> SlotSpan {
    SlotSpan { first, last, offset }
}

/// Returns an entry of the generated tables.
pub(super) const fn long(size_of: u16, declared: u16, first: u16, last: u16) -> StructSpan {
    StructSpan { first, last, size_of, declared }
}

/// Returns an entry of the generated tables: a name and a type, then offset, size, first and last
/// minor.
pub(super) const fn field(
    name: &'static str,
    kind: &'static str,
    [offset, size, first, last]: [u16; 4],
) -> Field {
    Field { name, kind, offset, size, first, last }
}

/// Returns an entry of the generated tables.
pub(super) const fn value(
    name: &'static str,
    value: i32,
    first: u16,
    last: u16,
) -> EnumerationValue {
    EnumerationValue { name, value, first, last }
}
