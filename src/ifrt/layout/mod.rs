//! Layouts: the order of array dimensions in memory, and the envelope that holds any registered layout.

mod compact;
mod pjrt;

use std::fmt;

pub use compact::CompactLayout;
pub use pjrt::PjRtLayout;

use super::IfrtError;
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, FromProto, Registered, Serialized, ToProto,
    },
    proto::xla::ifrt,
    version::SerDesVersion,
};

/// Any layout (`xla::ifrt::Layout`). The envelope has no version; the layout inside has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Layout {
    /// A dense layout.
    Compact(CompactLayout),
    /// A layout in the form of XLA.
    PjRt(PjRtLayout),
}

impl ToProto for Layout {
    type Proto = ifrt::LayoutProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        let serialized = match self {
            Self::Compact(layout) => Serialized::of(layout, version)?,
            Self::PjRt(layout) => Serialized::of(layout, version)?,
        };
        Ok(ifrt::LayoutProto { serialized_layout: Some(serialized.into()) })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        match self {
            Self::Compact(layout) => layout.can_serialize_at(version),
            Self::PjRt(layout) => layout.can_serialize_at(version),
        }
    }
}

impl FromProto for Layout {
    type Proto = ifrt::LayoutProto;

    const NAME: &'static str = "Layout";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let absent = ifrt::Serialized::default();
        let inner = proto.serialized_layout.as_ref().unwrap_or(&absent);
        let data = || inner.data.clone();
        match inner.type_name.as_str() {
            CompactLayout::TYPE_NAME => {
                CompactLayout::from_bytes(data(), options).map(Self::Compact)
            }
            PjRtLayout::TYPE_NAME => PjRtLayout::from_bytes(data(), options).map(Self::PjRt),
            other => Err(super::not_a("Layout", other.to_owned())),
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compact(layout) => write!(f, "{layout}"),
            Self::PjRt(layout) => write!(f, "{layout}"),
        }
    }
}

impl From<CompactLayout> for Layout {
    fn from(layout: CompactLayout) -> Self {
        Self::Compact(layout)
    }
}

impl From<PjRtLayout> for Layout {
    fn from(layout: PjRtLayout) -> Self {
        Self::PjRt(layout)
    }
}

/// Fails unless `values` holds each of 0 to n - 1 once.
pub(in crate::ifrt) fn check_permutation<T>(field: &str, values: &[T]) -> Result<(), IfrtError>
where
    T: Copy + fmt::Debug + TryInto<usize>,
{
    let mut seen = vec![false; values.len()];
    for value in values {
        let place = (*value).try_into().ok().and_then(|index| seen.get_mut(index));
        match place {
            Some(seen) if !*seen => *seen = true,
            _ => {
                return Err(IfrtError::Invalid(format!(
                    "{field} is {values:?}; with {} dimensions it must hold each of 0 to {} once",
                    values.len(),
                    values.len().saturating_sub(1),
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
