//! Reads attributes and types, each once, when something refers to it.
//!
//! Readers parse an entry only when it is referred to, and must then consume all of its bytes. An
//! entry that refers to itself would never end in a real reader.

use serdes_mlir_bytecode::{Cursor, Entry, References, Result, Stop, Tables, UnknownCode, Wanted};

use super::layouts::{self, BUILTIN, Layouts, NEVER, Number, SDY, VHLO};

/// A reference to an attribute or a type by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reference(u32);

const IS_TYPE: u32 = 1 << 31;

impl Reference {
    fn new(index: usize, is_type: bool) -> Self {
        // The cast is lossless: tables have fewer entries.
        Self(index as u32 | if is_type { IS_TYPE } else { 0 })
    }

    fn index(self) -> usize {
        (self.0 & !IS_TYPE) as usize
    }

    fn is_type(self) -> bool {
        self.0 & IS_TYPE != 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unread,
    /// Being read: what the entry refers to is not read yet.
    Open,
    Done,
    /// Read, and a location: every operation has one, and most share a few.
    Location,
}

/// The attributes and types that were read, and the features that they use.
#[derive(Debug)]
pub(super) struct Entries<'t, 'a> {
    tables: &'t Tables<'a>,
    attributes: Vec<State>,
    types: Vec<State>,
    /// The encoding of each dialect, by its number.
    dialects: Vec<Dialect>,
    /// The dialects that are used, by their numbers.
    pub(super) used_dialects: Vec<bool>,
    /// The attributes and types of VHLO that are used, by their codes.
    pub(super) vhlo_attributes: [bool; VHLO.attributes.len()],
    pub(super) vhlo_types: [bool; VHLO.types.len()],
    pub(super) sdy_attributes: [bool; SDY.attributes.len()],
    /// Number of bytes of constants.
    pub(super) constant_bytes: u64,
    open: Vec<Frame<'a>>,
}

/// An entry that is read up to its next reference to another entry.
#[derive(Debug)]
struct Frame<'a> {
    reference: Reference,
    cursor: Cursor<'a>,
    /// The rest of its row of layouts.
    layout: &'static [u8],
    /// The enclosing list: the number of elements left, and the row of an element.
    list: Option<(u64, &'static [u8])>,
    last_type: Option<usize>,
}

/// Limit on the nesting of attributes: real readers recurse, and crash beyond it.
const DEEPEST: usize = 4096;

/// The dialects whose attributes and types are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Vhlo,
    Builtin,
    Sdy,
    Other,
}

impl Dialect {
    fn of(name: &[u8]) -> Self {
        match name {
            b"vhlo" => Self::Vhlo,
            b"builtin" => Self::Builtin,
            b"sdy" => Self::Sdy,
            _ => Self::Other,
        }
    }
}

/// Reads referenced entries, with everything that they refer to.
impl<'a> References<'a> for Entries<'_, 'a> {
    #[inline]
    fn attribute(&mut self, cursor: &mut Cursor<'a>, wanted: Wanted) -> Result<usize, Stop> {
        let at = *cursor;
        let number = cursor.varint()?;
        // Fast path: most entries were read before and are of the required kind.
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        match (self.attributes.get(index), wanted) {
            (Some(State::Location), Wanted::Location | Wanted::Anything)
            | (Some(State::Done), Wanted::Anything) => Ok(index),
            _ => self.read_attribute(number, &at, wanted),
        }
    }

    #[inline]
    fn type_of(&mut self, index: u64, cursor: &Cursor<'a>) -> Result<usize, Stop> {
        let index = self.tables.index(index, self.types.len(), cursor)?;
        if self.types.get(index) != Some(&State::Done) {
            self.resolve(Reference::new(index, true))?;
        }
        Ok(index)
    }
}

impl<'t, 'a> Entries<'t, 'a> {
    pub(super) fn new(tables: &'t Tables<'a>) -> Self {
        Self {
            tables,
            attributes: vec![State::Unread; tables.attributes.count()],
            types: vec![State::Unread; tables.types.count()],
            dialects: (0..tables.dialects.len())
                .map(|of| Dialect::of(tables.dialect(of)))
                .collect(),
            used_dialects: vec![false; tables.dialects.len()],
            vhlo_attributes: [false; VHLO.attributes.len()],
            vhlo_types: [false; VHLO.types.len()],
            sdy_attributes: [false; SDY.attributes.len()],
            constant_bytes: 0,
            open: Vec::new(),
        }
    }

    /// Reads a referenced attribute that was not read before, or must be of a certain kind.
    #[inline(never)]
    fn read_attribute(
        &mut self,
        number: u64,
        at: &Cursor<'a>,
        wanted: Wanted,
    ) -> Result<usize, Stop> {
        let index = self.attribute_of(number, at, wanted)?;
        if wanted == Wanted::Location
            && let Some(state) = self.attributes.get_mut(index)
        {
            *state = State::Location;
        }
        Ok(index)
    }

    /// Reads the attribute of that number, and everything that it refers to.
    pub(super) fn attribute_of(
        &mut self,
        index: u64,
        cursor: &Cursor<'a>,
        wanted: Wanted,
    ) -> Result<usize, Stop> {
        let reference = self.reference_to(index, cursor, wanted)?;
        self.resolve(reference)?;
        Ok(reference.index())
    }

    fn attribute_reference(
        &self,
        cursor: &mut Cursor<'a>,
        wanted: Wanted,
    ) -> Result<Reference, Stop> {
        let at = *cursor;
        let index = cursor.varint()?;
        self.reference_to(index, &at, wanted)
    }

    fn reference_to(
        &self,
        index: u64,
        cursor: &Cursor<'a>,
        wanted: Wanted,
    ) -> Result<Reference, Stop> {
        let index = self.tables.index(index, self.attributes.len(), cursor)?;
        if wanted == Wanted::Location && self.attributes.get(index) == Some(&State::Location) {
            return Ok(Reference::new(index, false));
        }
        if wanted != Wanted::Anything && !self.is(index, wanted) {
            return Ok(cursor.damage(match wanted {
                Wanted::Location => "the number of a location",
                Wanted::Dictionary => "the number of a dictionary",
                Wanted::Text | Wanted::Anything => "the number of an attribute that is a string",
            })?);
        }
        Ok(Reference::new(index, false))
    }

    /// Returns true if an attribute is of the required kind.
    fn is(&self, index: usize, wanted: Wanted) -> bool {
        let Some(entry) = self.tables.entry(&self.tables.attributes, index) else { return false };
        if self.dialect(entry.dialect) != Dialect::Builtin {
            return false;
        }
        let mut contents = entry.contents;
        if !entry.is_encoded {
            let text = contents.rest();
            return match wanted {
                Wanted::Anything => true,
                Wanted::Location => text.starts_with(b"loc("),
                Wanted::Text => text.starts_with(b"\""),
                Wanted::Dictionary => text.starts_with(b"{"),
            };
        }
        let Ok(code) = contents.varint() else { return false };
        match wanted {
            Wanted::Anything => true,
            Wanted::Location => layouts::is_location(code),
            Wanted::Text => matches!(code, 2 | 3),
            Wanted::Dictionary => code == 1,
        }
    }

    fn dialect(&self, dialect: usize) -> Dialect {
        self.dialects.get(dialect).copied().unwrap_or(Dialect::Other)
    }

    fn state(&mut self, reference: Reference) -> Option<&mut State> {
        let states = if reference.is_type() { &mut self.types } else { &mut self.attributes };
        states.get_mut(reference.index())
    }

    /// Reads an entry and everything that it refers to, innermost first.
    fn resolve(&mut self, first: Reference) -> Result<(), Stop> {
        let is_read = |state: &mut State| matches!(state, State::Done | State::Location);
        if self.state(first).is_none_or(is_read) {
            return Ok(());
        }
        self.open.clear();
        self.enter(first)?;
        while let Some(mut frame) = self.open.pop() {
            let Some(child) = self.next_reference(&mut frame)? else {
                if let Some(state) = self.state(frame.reference) {
                    *state = State::Done;
                }
                continue;
            };
            let at = frame.cursor;
            self.open.push(frame);
            match self.state(child).copied() {
                Some(State::Unread) if self.open.len() >= DEEPEST => {
                    return Ok(at.damage("at most 4096 attributes and types in one another")?);
                }
                Some(State::Unread) => self.enter(child)?,
                Some(State::Open) => {
                    return Ok(at.damage("an attribute or a type that does not hold itself")?);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Starts reading an entry.
    fn enter(&mut self, reference: Reference) -> Result<(), Stop> {
        if let Some(state) = self.state(reference) {
            *state = State::Open;
        }
        let is_type = reference.is_type();
        let entries = if is_type { &self.tables.types } else { &self.tables.attributes };
        let Some(entry) = self.tables.entry(entries, reference.index()) else { return Ok(()) };
        if let Some(used) = self.used_dialects.get_mut(entry.dialect) {
            *used = true;
        }
        let mut cursor = entry.contents;
        let layout = if entry.is_encoded {
            self.read_code(&entry, is_type, &mut cursor)?
        } else {
            read_text(cursor)?;
            cursor = Cursor::new(&[], 0);
            ""
        };
        let layout = layout.as_bytes();
        self.open.push(Frame { reference, cursor, layout, list: None, last_type: None });
        Ok(())
    }

    /// Reads the code of an entry that its dialect wrote in its own encoding; returns the layout of
    /// the rest.
    fn read_code(
        &mut self,
        entry: &Entry<'a>,
        is_type: bool,
        cursor: &mut Cursor<'a>,
    ) -> Result<&'static str, Stop> {
        let dialect = self.dialect(entry.dialect);
        let layouts: &Layouts = match dialect {
            Dialect::Vhlo => &VHLO,
            Dialect::Builtin => &BUILTIN,
            Dialect::Sdy => &SDY,
            Dialect::Other => {
                // The encoding of other dialects is unknown; they usually write text.
                *cursor = Cursor::new(&[], 0);
                return Ok("");
            }
        };
        let code = cursor.varint()?;
        let rows = if is_type { layouts.types } else { layouts.attributes };
        let at = usize::try_from(code).unwrap_or(usize::MAX);
        let Some(layout) = rows.get(at).filter(|layout| **layout != NEVER) else {
            let dialect = String::from_utf8_lossy(self.tables.dialect(entry.dialect)).into_owned();
            let unknown = UnknownCode { dialect, is_type, code, at: entry.contents.at() };
            return Err(Stop::UnknownCode(unknown));
        };
        let used = match (dialect, is_type) {
            (Dialect::Vhlo, false) => self.vhlo_attributes.get_mut(at),
            (Dialect::Vhlo, true) => self.vhlo_types.get_mut(at),
            (Dialect::Sdy, false) => self.sdy_attributes.get_mut(at),
            _ => None,
        };
        if let Some(used) = used {
            *used = true;
        }
        Ok(layout)
    }

    /// Reads up to the next reference to another entry; returns `None` at the end of the entry.
    fn next_reference(&mut self, frame: &mut Frame<'a>) -> Result<Option<Reference>, Stop> {
        while let Some((part, rest)) = frame.layout.split_first() {
            frame.layout = rest;
            match part {
                b'[' => {
                    let left = frame.cursor.varint()?;
                    frame.list = Some((left, rest));
                    if left == 0 {
                        let end = rest.iter().position(|part| *part == b']').unwrap_or_default();
                        frame.layout = rest.get(end.saturating_add(1)..).unwrap_or_default();
                    }
                }
                b']' => {
                    if let Some((left, begin)) = &mut frame.list {
                        *left = left.saturating_sub(1);
                        if *left > 0 {
                            frame.layout = *begin;
                        }
                    }
                }
                part => {
                    let reference = self.read_part(*part, frame)?;
                    if reference.is_some() {
                        return Ok(reference);
                    }
                }
            }
        }
        if frame.cursor.is_empty() {
            Ok(None)
        } else {
            Ok(frame.cursor.damage("the end of the attribute or type")?)
        }
    }

    /// Reads a part of an entry; returns the entry that the part refers to, if it is a reference.
    fn read_part(&mut self, part: u8, frame: &mut Frame<'a>) -> Result<Option<Reference>, Stop> {
        let cursor = &mut frame.cursor;
        let at = *cursor;
        match part {
            b'a' => return self.attribute_reference(cursor, Wanted::Anything).map(Some),
            b'l' => return self.attribute_reference(cursor, Wanted::Location).map(Some),
            b'n' => return self.attribute_reference(cursor, Wanted::Text).map(Some),
            b'o' => {
                let (index, is_there) = cursor.flagged()?;
                if is_there {
                    return self.reference_to(index, &at, Wanted::Anything).map(Some);
                }
            }
            b't' => {
                let index = cursor.varint()?;
                let index = self.tables.index(index, self.types.len(), &at)?;
                frame.last_type = Some(index);
                return Ok(Some(Reference::new(index, true)));
            }
            b's' => {
                self.tables.string_index(cursor.varint()?, &at)?;
            }
            b'v' | b'z' => {
                cursor.varint()?;
            }
            b'y' => {
                cursor.byte()?;
            }
            b'b' => {
                let length = cursor.count()?;
                cursor.bytes(length)?;
                self.constant_bytes = self.constant_bytes.saturating_add(length as u64);
            }
            b'I' => self.read_number(cursor, frame.last_type, Number::Integer)?,
            b'F' => self.read_number(cursor, frame.last_type, Number::Float)?,
            b'B' => below(cursor, 2)?,
            digit => below(cursor, u64::from(digit.saturating_sub(b'0')))?,
        }
        Ok(None)
    }

    /// Reads a number of a certain encoding.
    fn read_number(
        &self,
        cursor: &mut Cursor<'a>,
        of: Option<usize>,
        wanted: Number,
    ) -> Result<()> {
        match of.and_then(|of| self.width(of)) {
            Some((width, number)) if number == wanted => match width {
                0..=8 => cursor.byte().map(drop),
                9..=64 => cursor.varint().map(drop),
                _ => {
                    let words = cursor.varint()?;
                    cursor.skip_varints(words)
                }
            },
            _ => cursor.damage("a number of a type that has such numbers"),
        }
    }

    /// Returns the width of the numbers of a type.
    fn width(&self, index: usize) -> Option<(u32, Number)> {
        let entry = self.tables.entry(&self.tables.types, index)?;
        let mut contents = entry.contents;
        if !entry.is_encoded {
            // Types written as text, without a code, are special floats.
            let width = match contents.rest() {
                [b'f', b'4' | b'6' | b'8', ..] => 8,
                [b't', b'f', ..] => 19,
                _ => return None,
            };
            return Some((width, Number::Float));
        }
        let code = contents.varint().ok()?;
        match self.dialect(entry.dialect) {
            Dialect::Vhlo => layouts::vhlo_width(code),
            Dialect::Builtin => layouts::builtin_width(code, contents.varint().unwrap_or_default()),
            _ => None,
        }
    }
}

/// Reads a number that must be below a limit.
fn below(cursor: &mut Cursor<'_>, limit: u64) -> Result<()> {
    let at = *cursor;
    if cursor.varint()? < limit { Ok(()) } else { at.damage("a value that the enumeration has") }
}

/// Reads an entry that its dialect wrote as text, with a zero at its end.
fn read_text(contents: Cursor<'_>) -> Result<()> {
    let text = contents.rest();
    match text.iter().position(|byte| *byte == 0) {
        Some(0) => contents.damage("the text of an attribute or a type"),
        Some(end) if end.saturating_add(1) == text.len() => Ok(()),
        _ => contents.damage("a text with a zero at its end, and nothing behind it"),
    }
}
