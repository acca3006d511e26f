//! Formats and parses shapes in the notation of HLO.

use std::{fmt, str::FromStr};

use super::{
    PrimitiveType, Shape,
    layout_text::{DEEPEST_PHYSICAL_SHAPE, Parser, TextError},
};
use crate::codec::ErrorKind;

/// Limit on the length of a shape's text; bounds the memory for a hostile text. Tuples of large
/// programs have some thousand elements.
const LONGEST_TEXT: usize = 256 * 1024;

/// Limit on the nesting of tuples and buffers, which bounds the recursion; real ones nest a few
/// levels.
const DEEPEST_TUPLE: u32 = 64;

/// The printer of HLO numbers every fifth element of a tuple in a comment.
const NUMBERED: usize = 5;

/// The error of a text that is not a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the text is no shape: at byte {position}: {problem}; a shape looks like f32[2,3]{{1,0}} or (f32[], s32[4])"
)]
#[non_exhaustive]
pub struct ShapeTextError {
    /// Position of the first invalid byte, in bytes from the start of the text.
    pub position: usize,
    /// A message with the text found and the text expected.
    pub problem: String,
}

impl ShapeTextError {
    /// Returns the kind of the error, which says what action it calls for.
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidInput
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.element_type(), self.tuple_shapes()) {
            (PrimitiveType::TUPLE, shapes) => {
                f.write_str("(")?;
                for (index, shape) in shapes.iter().enumerate() {
                    match index {
                        0 => {}
                        _ if index % NUMBERED == 0 => write!(f, ", /*index={index}*/")?,
                        _ => f.write_str(", ")?,
                    }
                    write!(f, "{shape}")?;
                }
                return f.write_str(")");
            }
            (PrimitiveType::BUFFER, [content]) => return write!(f, "b({content})"),
            _ => {}
        }
        write!(f, "{}[", self.element_type())?;
        for (index, size) in self.dimensions().iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            f.write_str(comma)?;
            match self.is_dynamic_dimension().get(index) {
                Some(true) if *size == Self::UNBOUNDED => f.write_str("?")?,
                Some(true) => write!(f, "<={size}")?,
                _ => write!(f, "{size}")?,
            }
        }
        f.write_str("]")?;
        match self.layout() {
            Some(layout) => write!(f, "{layout}"),
            None => Ok(()),
        }
    }
}

/// A shape whose text has no layout has none; parsers of XLA give it the default one.
impl FromStr for Shape {
    type Err = ShapeTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shape = |parser: &mut Parser<'_>| parser.shape(DEEPEST_TUPLE);
        let read = Parser::read_whole(text, LONGEST_TEXT, "shape", shape);
        read.map_err(|TextError { position, problem }| ShapeTextError { position, problem })
    }
}

impl Parser<'_> {
    fn shape(&mut self, depth: u32) -> Result<Shape, TextError> {
        let nested = |parser: &Self| {
            depth.checked_sub(1).ok_or_else(|| {
                parser.error(format!("tuples and buffers nest deeper than {DEEPEST_TUPLE}"))
            })
        };
        if self.take("(") {
            let depth = nested(self)?;
            let mut shapes = Vec::new();
            while !self.take(")") {
                if !shapes.is_empty() {
                    self.expect(",")?;
                }
                shapes.push(self.shape(depth)?);
            }
            return Ok(Shape::tuple(shapes));
        }
        // No element type is named `b`.
        if self.take("b(") {
            let content = self.shape(nested(self)?)?;
            self.expect(")")?;
            return Ok(Shape::buffer(content));
        }
        self.array_shape(DEEPEST_PHYSICAL_SHAPE)
    }

    /// Parses an array, with a layout whose physical shapes nest at most `depth` times.
    pub(super) fn array_shape(&mut self, depth: u32) -> Result<Shape, TextError> {
        self.skip_blanks();
        if self.rest().starts_with("tuple") {
            return Err(self.error("a tuple is written as its elements in parentheses"));
        }
        let element_type = self.primitive_type()?;
        self.expect("[")?;
        let (mut dimensions, mut is_dynamic) = (Vec::new(), Vec::new());
        while !self.take("]") {
            if !dimensions.is_empty() {
                self.expect(",")?;
            }
            if self.take("?") {
                is_dynamic.push(true);
                dimensions.push(Shape::UNBOUNDED);
            } else {
                is_dynamic.push(self.take("<="));
                dimensions.push(self.number()?);
            }
        }
        let shape = Shape::array(element_type, dimensions).with_dynamic_dimensions(is_dynamic);
        self.skip_blanks();
        Ok(if self.rest().starts_with('{') {
            shape.with_layout(self.layout(depth)?)
        } else {
            shape
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{codec::DeserializeOptions, ifrt::xla::Layout};

    #[test]
    fn the_notation_of_hlo_is_read_and_printed() {
        for text in [
            "f32[]",
            "bf16[2,3]{1,0}",
            "f8e4m3b11fnuz[2,<=3,?]",
            "s4[8,128]{1,0:T(8,128)E(4)S(5)}",
            "token[]",
            "opaque[]",
            "()",
            "(f32[])",
            "((), (s32[4]{0}, pred[]), token[])",
            "(u8[], u8[], u8[], u8[], u8[], /*index=5*/u8[], u8[])",
            "b(f32[2]{0})",
            "(b((f32[])), u1[7])",
            "f32[4]{0:D(C)P(s32[4,<=8]{1,0:T(2)})M(8)}",
        ] {
            let shape: Shape = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(shape.to_string(), text);
            let proto = shape.to_proto();
            assert_eq!(Shape::from_proto(&proto, &DeserializeOptions::new()), Ok(shape), "{text}");
        }
        let spaced: Shape = " ( f32 [ 2 , <= 3 ] { 1 , 0 } ,/*index=1*/ s8[] ) ".parse().unwrap();
        assert_eq!(spaced.to_string(), "(f32[2,<=3]{1,0}, s8[])");
    }

    #[test]
    fn an_error_says_where_the_text_stops_being_a_shape() {
        for (text, position, problem) in [
            ("", 0, "is no element type"),
            ("f33[2]", 0, "\"f33\" is no element type such as \"s32\""),
            ("tuple[]", 0, "in parentheses"),
            ("f32", 3, "the text ends, expected \"[\""),
            ("f32[2", 5, "expected \",\""),
            ("f32[2 3]", 6, "found '3', expected \",\""),
            ("f32[<=]", 6, "expected a number"),
            ("f32[2]{1}", 7, "the dimensions are [1]"),
            ("(f32[2]", 7, "expected \",\""),
            ("(f32[2],)", 8, "is no element type"),
            ("(f32[]) s8[]", 8, "found 's' after the shape"),
            ("b(f32[], f32[])", 7, "found ',', expected \")\""),
            ("f32[99999999999999999999]", 4, "does not fit 64 bits"),
            ("f32[] /* no end", 6, "found '/' after the shape"),
        ] {
            let error = text.parse::<Shape>().unwrap_err();
            assert_eq!(error.position, position, "{text}: {error}");
            assert!(error.problem.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn nesting_and_length_are_bounded() {
        let nested = |depth: usize| format!("{}f32[]{}", "(".repeat(depth), ")".repeat(depth));
        assert!(nested(64).parse::<Shape>().is_ok());
        for deep in [nested(65), "(".repeat(200_000), "b(".repeat(100_000)] {
            let error = deep.parse::<Shape>().unwrap_err();
            assert!(error.problem.contains("nest deeper than 64"), "{error}");
        }
        let long = format!("({})", "u8[],".repeat(LONGEST_TEXT));
        assert!(long.parse::<Shape>().unwrap_err().problem.contains("the limit is 262144"));
    }

    fn shapes() -> impl Strategy<Value = Shape> {
        let kinds = PrimitiveType::ALL.iter().copied();
        let arrays: Vec<_> = kinds
            .filter(|kind| ![PrimitiveType::TUPLE, PrimitiveType::BUFFER].contains(kind))
            .collect();
        let dimension = prop_oneof![(0..i64::MAX, any::<bool>()), Just((Shape::UNBOUNDED, true)),];
        let layout = prop::sample::select(&[None, Some(":T(8,128)"), Some(":E(4)S(1)"), Some("")]);
        let dimensions = prop::collection::vec(dimension, 0..4);
        let array = (prop::sample::select(arrays), dimensions, layout).prop_map(
            |(kind, dimensions, layout)| {
                let (sizes, dynamic): (Vec<i64>, Vec<bool>) = dimensions.into_iter().unzip();
                let order: Vec<String> = (0..sizes.len()).rev().map(|at| at.to_string()).collect();
                let shape = Shape::array(kind, sizes).with_dynamic_dimensions(dynamic);
                match layout {
                    Some(rest) => {
                        let text = format!("{{{}{rest}}}", order.join(","));
                        shape.with_layout(text.parse::<Layout>().unwrap())
                    }
                    None => shape,
                }
            },
        );
        array.prop_recursive(4, 40, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Shape::tuple),
                inner.prop_map(Shape::buffer),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_shape_makes_the_round_trip(shape in shapes()) {
            prop_assert_eq!(shape.to_string().parse::<Shape>(), Ok(shape));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[(){}0-9,:TLESPb/*?<=a-z\\[\\] é-]{0,40}") {
            let _ = text.parse::<Shape>();
        }
    }
}
