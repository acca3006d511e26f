//! The text form of layouts, and the parser for the grammar of HLO.

use std::{
    fmt::{self, Write as _},
    str::FromStr,
};

use super::{DimLevelType, Layout, PrimitiveType, SplitConfig, Tile};
use crate::{codec::ErrorKind, ifrt::permutation::check_permutation};

/// Limit on the length of a layout's text, which is normally short; bounds the memory for a hostile
/// text.
const LONGEST_TEXT: usize = 64 * 1024;

/// Limit on the nesting of physical shapes. A sparse layout has one, whose own layout is dense.
pub(super) const DEEPEST_PHYSICAL_SHAPE: u32 = 8;

/// The error of a text that is not a layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the text is no layout: at byte {position}: {problem}; a layout looks like {{1,0}} or {{1,0:T(8,128)}}"
)]
#[non_exhaustive]
pub struct LayoutTextError {
    /// Position of the first invalid byte, in bytes from the start of the text.
    pub position: usize,
    /// A message with the text found and the text expected.
    pub problem: String,
}

impl LayoutTextError {
    /// Returns the kind of the error, which says what action it calls for.
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidInput
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, f)
    }
}

fn write(layout: &Layout, f: &mut impl fmt::Write) -> fmt::Result {
    f.write_char('{')?;
    write_list(f, &layout.minor_to_major)?;
    let mut attributes = String::new();
    write_attributes(layout, &mut attributes)?;
    if !attributes.is_empty() {
        write!(f, ":{attributes}")?;
    }
    f.write_char('}')
}

fn write_list(f: &mut impl fmt::Write, values: &[i64]) -> fmt::Result {
    for (index, value) in values.iter().enumerate() {
        if index != 0 {
            f.write_char(',')?;
        }
        if *value == Tile::COMBINE_DIMENSION {
            f.write_char('*')?;
        } else {
            write!(f, "{value}")?;
        }
    }
    Ok(())
}

fn write_attributes(layout: &Layout, f: &mut String) -> fmt::Result {
    if !layout.dim_level_types.is_empty() {
        f.write_str("D(")?;
        for (index, kind) in layout.dim_level_types.iter().enumerate() {
            if index != 0 {
                f.write_char(',')?;
            }
            f.write_char(kind.letter())?;
            if layout.dim_unique.get(index) == Some(&false) {
                f.write_char('+')?;
            }
            if layout.dim_ordered.get(index) == Some(&false) {
                f.write_char('~')?;
            }
        }
        f.write_char(')')?;
    }
    if !layout.tiles.is_empty() {
        f.write_char('T')?;
        for tile in &layout.tiles {
            f.write_char('(')?;
            write_list(f, tile.dimensions())?;
            f.write_char(')')?;
        }
    }
    if layout.tail_padding_alignment_in_elements != 1 {
        write!(f, "L({})", layout.tail_padding_alignment_in_elements)?;
    }
    if layout.index_primitive_type != PrimitiveType::INVALID {
        write!(f, "#({})", layout.index_primitive_type)?;
    }
    if layout.pointer_primitive_type != PrimitiveType::INVALID {
        write!(f, "*({})", layout.pointer_primitive_type)?;
    }
    if layout.element_size_in_bits != 0 {
        write!(f, "E({})", layout.element_size_in_bits)?;
    }
    if layout.memory_space != 0 {
        write!(f, "S({})", layout.memory_space)?;
    }
    if !layout.split_configs.is_empty() {
        f.write_str("SC")?;
        for split in &layout.split_configs {
            write!(f, "({}:", split.dimension())?;
            write_list(f, split.split_indices())?;
            f.write_char(')')?;
        }
    }
    if let Some(shape) = &layout.physical_shape {
        write!(f, "P({shape})")?;
    }
    if layout.dynamic_shape_metadata_prefix_bytes != 0 {
        write!(f, "M({})", layout.dynamic_shape_metadata_prefix_bytes)?;
    }
    Ok(())
}

impl FromStr for Layout {
    type Err = LayoutTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let layout = |parser: &mut Parser<'_>| parser.layout(DEEPEST_PHYSICAL_SHAPE);
        let read = Parser::read_whole(text, LONGEST_TEXT, "layout", layout);
        read.map_err(|TextError { position, problem }| LayoutTextError { position, problem })
    }
}

/// The position at which a text leaves the grammar, in bytes from its start, and the problem there.
pub(super) struct TextError {
    pub(super) position: usize,
    pub(super) problem: String,
}

/// Parses the grammar of HLO from left to right.
pub(super) struct Parser<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Parser<'a> {
    /// Returns the result of `read`, if it reads the whole text.
    pub(super) fn read_whole<T>(
        text: &'a str,
        longest: usize,
        what: &str,
        read: impl FnOnce(&mut Self) -> Result<T, TextError>,
    ) -> Result<T, TextError> {
        if text.len() > longest {
            let problem = format!("the text has {} bytes, the limit is {longest}", text.len());
            return Err(TextError { position: longest, problem });
        }
        let mut parser = Self { text, position: 0 };
        let value = read(&mut parser)?;
        parser.skip_blanks();
        match parser.rest().chars().next() {
            None => Ok(value),
            Some(found) => Err(parser.error(format!("found {found:?} after the {what}"))),
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    pub(super) fn error(&self, problem: impl Into<String>) -> TextError {
        TextError { position: self.position, problem: problem.into() }
    }

    /// Skips blanks and comments.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            self.position += rest.len() - rest.trim_ascii_start().len();
            let comment = self.rest().strip_prefix("/*").and_then(|rest| rest.find("*/"));
            let Some(length) = comment else { return };
            self.position += length + 4;
        }
    }

    /// Takes `token` if it comes next.
    pub(super) fn take(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.position += token.len();
        }
        found
    }

    pub(super) fn expect(&mut self, token: &str) -> Result<(), TextError> {
        if self.take(token) {
            return Ok(());
        }
        Err(match self.rest().chars().next() {
            Some(found) => self.error(format!("found {found:?}, expected {token:?}")),
            None => self.error(format!("the text ends, expected {token:?}")),
        })
    }

    pub(super) fn number(&mut self) -> Result<i64, TextError> {
        self.skip_blanks();
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
        match rest.get(..sign + digits).map(str::parse::<i64>) {
            Some(Ok(number)) => {
                self.position += sign + digits;
                Ok(number)
            }
            _ if digits == 0 => Err(self.error("expected a number")),
            _ => Err(self.error("the number does not fit 64 bits")),
        }
    }

    /// Parses numbers up to and including `end`.
    fn numbers(&mut self, end: &str, allow_star: bool) -> Result<Vec<i64>, TextError> {
        let mut numbers = Vec::new();
        if self.take(end) {
            return Ok(numbers);
        }
        loop {
            numbers.push(if allow_star && self.take("*") {
                Tile::COMBINE_DIMENSION
            } else {
                self.number()?
            });
            if self.take(end) {
                return Ok(numbers);
            }
            self.expect(",")?;
        }
    }

    /// Parses a number in parentheses.
    fn attribute(&mut self) -> Result<i64, TextError> {
        self.expect("(")?;
        let number = self.number()?;
        self.expect(")")?;
        Ok(number)
    }

    pub(super) fn word(&mut self) -> &'a str {
        self.skip_blanks();
        let rest = self.rest();
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        self.position += length;
        rest.get(..length).unwrap_or_default()
    }

    pub(super) fn primitive_type(&mut self) -> Result<PrimitiveType, TextError> {
        let start = self.position;
        let word = self.word();
        PrimitiveType::from_name(word).ok_or_else(|| {
            let found = format!("{word:?} is no element type such as \"s32\"");
            TextError { position: start, problem: found }
        })
    }

    pub(super) fn layout(&mut self, depth: u32) -> Result<Layout, TextError> {
        self.expect("{")?;
        let start = self.position;
        let mut minor_to_major = Vec::new();
        while !self.take("}") {
            if self.take(":") {
                let mut layout = Layout { minor_to_major, ..Layout::default() };
                self.attributes(&mut layout, depth)?;
                self.expect("}")?;
                return self.checked(layout, start);
            }
            if !minor_to_major.is_empty() {
                self.expect(",")?;
            }
            minor_to_major.push(self.number()?);
        }
        self.checked(Layout { minor_to_major, ..Layout::default() }, start)
    }

    fn checked(&self, layout: Layout, start: usize) -> Result<Layout, TextError> {
        match check_permutation("minor_to_major", &layout.minor_to_major) {
            Ok(()) => Ok(layout),
            Err(_) => Err(TextError {
                position: start,
                problem: format!(
                    "the dimensions are {:?}, expected each of 0 to {} once",
                    layout.minor_to_major,
                    layout.minor_to_major.len().saturating_sub(1)
                ),
            }),
        }
    }

    /// Parses the attributes, in the order in which they are printed.
    fn attributes(&mut self, layout: &mut Layout, depth: u32) -> Result<(), TextError> {
        if self.take("D") {
            self.dim_level_types(layout)?;
        }
        if self.take("T") {
            self.expect("(")?;
            layout.tiles.push(Tile::new(self.numbers(")", true)?));
            while self.take("(") {
                layout.tiles.push(Tile::new(self.numbers(")", true)?));
            }
        }
        if self.take("L") {
            layout.tail_padding_alignment_in_elements = self.attribute()?;
        }
        if self.take("#") {
            self.expect("(")?;
            layout.index_primitive_type = self.primitive_type()?;
            self.expect(")")?;
        }
        if self.take("*") {
            self.expect("(")?;
            layout.pointer_primitive_type = self.primitive_type()?;
            self.expect(")")?;
        }
        if self.take("E") {
            layout.element_size_in_bits = self.attribute()?;
        }
        if !self.rest().starts_with("SC") && self.take("S") {
            layout.memory_space = self.attribute()?;
        }
        if self.take("SC") {
            self.expect("(")?;
            layout.split_configs.push(self.split_config()?);
            while self.take("(") {
                layout.split_configs.push(self.split_config()?);
            }
        }
        if self.take("P") {
            let Some(depth) = depth.checked_sub(1) else {
                return Err(self
                    .error(format!("physical shapes nest deeper than {DEEPEST_PHYSICAL_SHAPE}")));
            };
            self.expect("(")?;
            layout.physical_shape = Some(Box::new(self.array_shape(depth)?));
            self.expect(")")?;
        }
        if self.take("M") {
            layout.dynamic_shape_metadata_prefix_bytes = self.attribute()?;
        }
        Ok(())
    }

    fn dim_level_types(&mut self, layout: &mut Layout) -> Result<(), TextError> {
        self.expect("(")?;
        loop {
            self.skip_blanks();
            let letter = self.rest().chars().next().unwrap_or(')');
            let Some(kind) = DimLevelType::from_letter(letter) else {
                return Err(self.error(format!("found {letter:?}, expected one of D, C, S and H")));
            };
            self.position += letter.len_utf8();
            layout.dim_level_types.push(kind);
            layout.dim_unique.push(!self.take("+"));
            layout.dim_ordered.push(!self.take("~"));
            if self.take(")") {
                break;
            }
            self.expect(",")?;
        }
        for flags in [&mut layout.dim_unique, &mut layout.dim_ordered] {
            if flags.iter().all(|flag| *flag) {
                flags.clear();
            }
        }
        Ok(())
    }

    fn split_config(&mut self) -> Result<SplitConfig, TextError> {
        let dimension = self.number()?;
        self.expect(":")?;
        Ok(SplitConfig::new(dimension, self.numbers(")", false)?))
    }
}

#[cfg(test)]
mod tests;
