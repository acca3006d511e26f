//! Safetensors: eight bytes of length, a JSON header, and the data without gaps.

mod header;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(super) use read::SafetensorsSource;
pub(super) use write::{SafetensorsPlan, SafetensorsTarget, accept, put_tensor};

use serdes::ifrt::DType;

const KIND: &str = "safetensors";
/// Maximum header length in bytes of the reference implementation, which also applies to written
/// files.
pub const LONGEST_HEADER: u64 = 100_000_000;

/// Names of the types in files, in the order in which the reference implementation sorts data: last
/// first.
const TYPES: &[(&str, DType)] = &[
    ("BOOL", DType::Pred),
    ("F4", DType::F4E2M1FN),
    ("F6_E2M3", DType::F6E2M3FN),
    ("F6_E3M2", DType::F6E3M2FN),
    ("U8", DType::U8),
    ("I8", DType::S8),
    ("F8_E5M2", DType::F8E5M2),
    ("F8_E4M3", DType::F8E4M3FN),
    ("F8_E8M0", DType::F8E8M0FNU),
    ("F8_E4M3FNUZ", DType::F8E4M3FNUZ),
    ("F8_E5M2FNUZ", DType::F8E5M2FNUZ),
    ("I16", DType::S16),
    ("U16", DType::U16),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("I32", DType::S32),
    ("U32", DType::U32),
    ("F32", DType::F32),
    ("C64", DType::C64),
    ("F64", DType::F64),
    ("I64", DType::S64),
    ("U64", DType::U64),
];

fn from_name(name: &str) -> Option<DType> {
    TYPES.iter().find(|(known, _)| *known == name).map(|(_, dtype)| *dtype)
}

/// Returns the name of a type and its position in the order of data.
fn to_name(dtype: DType) -> Option<(&'static str, usize)> {
    let place = TYPES.iter().position(|(_, known)| *known == dtype)?;
    TYPES.get(place).map(|(name, _)| (*name, place))
}
