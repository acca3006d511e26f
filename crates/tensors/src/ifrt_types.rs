//! The element types that TensorFlow and IFRT share.

use serdes::ifrt::DType;
use serdes_graph_format::data_type::DataType;

/// The types that TensorFlow and IFRT share.
const IFRT: [(DataType, DType); 26] = [
    (DataType::Float32, DType::F32),
    (DataType::Float64, DType::F64),
    (DataType::Int32, DType::S32),
    (DataType::Uint8, DType::U8),
    (DataType::Int16, DType::S16),
    (DataType::Int8, DType::S8),
    (DataType::String, DType::String),
    (DataType::Complex64, DType::C64),
    (DataType::Int64, DType::S64),
    (DataType::Bool, DType::Pred),
    (DataType::Bfloat16, DType::BF16),
    (DataType::Uint16, DType::U16),
    (DataType::Complex128, DType::C128),
    (DataType::Float16, DType::F16),
    (DataType::Uint32, DType::U32),
    (DataType::Uint64, DType::U64),
    (DataType::Float8E5m2, DType::F8E5M2),
    (DataType::Float8E4m3fn, DType::F8E4M3FN),
    (DataType::Float8E4m3fnuz, DType::F8E4M3FNUZ),
    (DataType::Float8E4m3b11fnuz, DType::F8E4M3B11FNUZ),
    (DataType::Float8E5m2fnuz, DType::F8E5M2FNUZ),
    (DataType::Int4, DType::S4),
    (DataType::Uint4, DType::U4),
    (DataType::Int2, DType::S2),
    (DataType::Uint2, DType::U2),
    (DataType::Float4E2m1fn, DType::F4E2M1FN),
];

/// Converts a type to IFRT's; `None` for quantized types, resources and variants, which IFRT does
/// not have.
pub fn to_ifrt(data_type: DataType) -> Option<DType> {
    IFRT.iter().find(|(tensorflow, _)| *tensorflow == data_type).map(|(_, ifrt)| *ifrt)
}

/// Converts a type from IFRT's; `None` if TensorFlow has no counterpart.
pub fn from_ifrt(dtype: DType) -> Option<DataType> {
    IFRT.iter().find(|(_, ifrt)| *ifrt == dtype).map(|(tensorflow, _)| *tensorflow)
}

/// Returns IFRT's name of a type (`F32`), or TensorFlow's if IFRT has none (`qint8`).
pub fn ifrt_name(data_type: DataType) -> &'static str {
    to_ifrt(data_type).map_or(data_type.name(), DType::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_ifrt_shares_have_its_size() {
        for data_type in DataType::all() {
            let Some(dtype) = to_ifrt(data_type) else {
                assert_eq!(ifrt_name(data_type), data_type.name());
                continue;
            };
            assert_eq!(from_ifrt(dtype), Some(data_type));
            let bytes = dtype.bits().map(|bits| u64::from(bits).div_ceil(8));
            assert_eq!(bytes, data_type.element_size(), "{data_type}");
        }
        assert_eq!(ifrt_name(DataType::Bfloat16), "BF16");
        assert_eq!(ifrt_name(DataType::Qint8), "qint8");
    }
}
