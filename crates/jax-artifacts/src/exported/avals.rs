//! Abstract values: element types, shapes, memory spaces.

use super::{
    flatbuffer::Table,
    habits::Habits,
    refusal::{Refusal, Result},
    shape,
};
use crate::{release::Deserializer, rule::Rule};

/// The names of element types, by their numbers.
const DTYPES: [&str; 30] = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "bfloat16",
    "int4",
    "uint4",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float0",
    "float8_e4m3",
    "float8_e3m4",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "key<fry>",
    "key<rbg>",
    "key<urbg>",
];

const MEMORY_SPACES: [Option<&str>; 4] = [None, Some("device"), Some("host"), Some("any")];

/// An argument or a result of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Value {
    /// Its element type, as NumPy and JAX name it.
    pub dtype: String,
    /// Its dimensions: numbers, or expressions of symbols.
    pub shape: Vec<String>,
    /// `device`, `host` or `any`, where the file says it.
    pub memory_space: Option<String>,
    /// How it is distributed, where the file says it.
    pub sharding: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Aval {
    dtype: i8,
    pub(super) shape: Vec<String>,
    memory_space: i8,
}

impl From<Aval> for Value {
    fn from(aval: Aval) -> Self {
        let row = |number: i8| usize::try_from(number).unwrap_or(usize::MAX);
        let dtype = DTYPES
            .get(row(aval.dtype))
            .map_or_else(|| format!("element type {}", aval.dtype), |name| (*name).to_owned());
        let memory_space = MEMORY_SPACES.get(row(aval.memory_space)).copied().flatten();
        Self {
            dtype,
            shape: aval.shape,
            memory_space: memory_space.map(str::to_owned),
            sharding: None,
        }
    }
}

pub(super) fn read_aval(aval: Table<'_, '_>, habits: &Habits<'_>) -> Result<Aval> {
    let place = "an abstract value";
    if habits.deserializer < Deserializer::Named {
        let kind = Refusal::at(aval.i8(0), place)?;
        if kind != 0 {
            let message = format!("an abstract value is of kind {kind}, and this release takes 0");
            return Err(Refusal::new(Rule::Corrupt, kind.to_string(), "0", message, place));
        }
    }
    let dtype = Refusal::at(aval.i8(2), place)?;
    if !(0..=habits.last_dtype).contains(&dtype) && !habits.is_lenient {
        let last = habits.last_dtype;
        let message = format!(
            "an abstract value is of the element type {dtype}, and this release knows 0 to {last}"
        );
        let rule = if dtype > last { Rule::TooNew } else { Rule::Corrupt };
        return Err(Refusal::new(rule, dtype.to_string(), format!("0..{last}"), message, place));
    }
    let shape = Refusal::at(aval.vector(1).and_then(|shape| shape.strings()), "a shape")?;
    let text = shape.join(",");
    if !shape::is_shape(&text) && !habits.is_lenient {
        let message = format!("a shape is {text:?}, which jax cannot parse");
        return Err(Refusal::new(Rule::Corrupt, text, "a symbolic shape", message, "a shape"));
    }
    let memory_space = if habits.deserializer >= Deserializer::Unnumbered {
        let space = Refusal::at(aval.i8(3), place)?;
        if !(0..=3).contains(&space) && !habits.is_lenient {
            let message = format!(
                "an abstract value is in the memory space {space}, and this release knows 0 to 3"
            );
            let rule = if space > 3 { Rule::TooNew } else { Rule::Corrupt };
            return Err(Refusal::new(rule, space.to_string(), "0..3", message, place));
        }
        space
    } else {
        0
    };
    Ok(Aval { dtype, shape: shape.into_iter().map(str::to_owned).collect(), memory_space })
}
