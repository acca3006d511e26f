//! `Serialize` and `Deserialize` for the types whose serialized form differs from their fields.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{AttributeMap, DType, DeviceList};

/// Serialized as a map from names to values.
impl Serialize for AttributeMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for AttributeMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::<String, _>::deserialize(deserializer).map(Self::from_iter)
    }
}

/// Serialized as the name of the type.
impl Serialize for DType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for DType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        name.parse().map_err(Error::custom)
    }
}

impl Serialize for DeviceList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.ids())
    }
}

/// Treats every device as addressable, because a list's addressable devices are not serialized.
impl<'de> Deserialize<'de> for DeviceList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|ids| Self::from_parts(ids, None))
    }
}
