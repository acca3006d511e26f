//! Abstract values: element types, shapes, memory spaces.

use std::sync::Arc;

use super::{
    flatbuffer::Table,
    profile::ReaderProfile,
    refusal::{Refusal, Result},
    shape,
};
use crate::{excerpt::excerpt, release::Deserializer, rule::Rule};

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
    pub shape: Arc<[String]>,
    /// `device`, `host` or `any`, where the file says it.
    pub memory_space: Option<String>,
    /// Its sharding, where the file records it.
    pub sharding: Option<Arc<str>>,
}

#[derive(Debug)]
pub(super) struct Aval {
    dtype: i8,
    pub(super) rank: u32,
    /// The dimensions, if they are kept.
    shape: Option<Arc<[String]>>,
    memory_space: i8,
}

/// Limit on the dimensions that are kept; NumPy has at most 64.
const MOST_DIMENSIONS: usize = 64;

impl From<&Aval> for Value {
    fn from(aval: &Aval) -> Self {
        let row = |number: i8| usize::try_from(number).unwrap_or(usize::MAX);
        let dtype = DTYPES
            .get(row(aval.dtype))
            .map_or_else(|| format!("element type {}", aval.dtype), |name| (*name).to_owned());
        let memory_space = MEMORY_SPACES.get(row(aval.memory_space)).copied().flatten();
        Self {
            dtype,
            shape: aval.shape.clone().unwrap_or_default(),
            memory_space: memory_space.map(str::to_owned),
            sharding: None,
        }
    }
}

pub(super) fn read_aval(aval: Table<'_, '_>, profile: &ReaderProfile<'_>) -> Result<Aval> {
    let place = "an abstract value";
    Refusal::at(aval.keep(16), place)?;
    if profile.deserializer < Deserializer::Named {
        let kind = Refusal::at(aval.i8(0), place)?;
        if kind != 0 {
            let message = format!("an abstract value is of kind {kind}, and this release takes 0");
            return Err(Refusal::new(Rule::Corrupt, kind.to_string(), "0", message, place));
        }
    }
    let dtype = Refusal::at(aval.i8(2), place)?;
    if !(0..=profile.last_dtype).contains(&dtype) && !profile.is_lenient {
        let last = profile.last_dtype;
        let message = format!(
            "an abstract value is of the element type {dtype}, and this release knows 0 to {last}"
        );
        let rule = if dtype > last { Rule::TooNew } else { Rule::Corrupt };
        return Err(Refusal::new(rule, dtype.to_string(), format!("0..{last}"), message, place));
    }
    let (rank, shape) = read_shape(aval, profile)?;
    let memory_space = if profile.deserializer >= Deserializer::Unnumbered {
        let space = Refusal::at(aval.i8(3), place)?;
        if !(0..=3).contains(&space) && !profile.is_lenient {
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
    let shape = (!shape.is_empty()).then(|| shape.into());
    Ok(Aval { dtype, rank, shape, memory_space })
}

/// Reads the number of dimensions, and the dimensions if they are kept.
fn read_shape(aval: Table<'_, '_>, profile: &ReaderProfile<'_>) -> Result<(u32, Vec<String>)> {
    let place = "a shape";
    let list = Refusal::at(aval.vector(1), place)?;
    let (mut text, mut kept) = (String::new(), Vec::new());
    for index in 0..list.len() {
        let dimension = Refusal::at(list.string(index), place)?;
        if index > 0 {
            text.push(',');
        }
        text += dimension;
        if profile.is_lenient && kept.len() < MOST_DIMENSIONS {
            kept.push(dimension.to_owned());
        }
    }
    if !profile.is_lenient && !shape::is_shape(&text) {
        let text = excerpt(&text, 200);
        let message = format!("a shape is {text:?}, which jax cannot parse");
        return Err(Refusal::new(Rule::Corrupt, text, "a symbolic shape", message, place));
    }
    Ok((list.len(), kept))
}
