//! Options of a program's execution.

use std::collections::BTreeSet;

use super::AttributeMap;
use crate::{
    codec::{DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, ToProto, nested},
    proto::xla::ifrt::ExecuteOptionsProto,
    version::SerDesVersion,
};

const FORMATS: Formats = Formats::of("ExecuteOptions");

/// Options for the execution of a loaded executable.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct ExecuteOptions {
    launch_id: i32,
    non_donatable_input_indices: BTreeSet<i32>,
    fill_status: bool,
    execution_stream_id: i64,
    custom_options: Option<AttributeMap>,
}

impl ExecuteOptions {
    /// Creates options for launch 0 on stream 0, with all inputs donatable and without status.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number that distinguishes launches of the same multi-host job.
    #[must_use]
    pub fn with_launch_id(mut self, launch_id: i32) -> Self {
        self.launch_id = launch_id;
        self
    }

    /// Sets the positions of the inputs that must stay usable afterwards.
    #[must_use]
    pub fn with_non_donatable_input_indices(
        mut self,
        indices: impl IntoIterator<Item = i32>,
    ) -> Self {
        self.non_donatable_input_indices = indices.into_iter().collect();
        self
    }

    /// With `true`, requests the status of the execution.
    #[must_use]
    pub fn with_fill_status(mut self, fill_status: bool) -> Self {
        self.fill_status = fill_status;
        self
    }

    /// Sets the stream of executions.
    #[must_use]
    pub fn with_execution_stream_id(mut self, execution_stream_id: i64) -> Self {
        self.execution_stream_id = execution_stream_id;
        self
    }

    /// Sets the options that only the runtime understands.
    #[must_use]
    pub fn with_custom_options(mut self, custom_options: AttributeMap) -> Self {
        self.custom_options = Some(custom_options);
        self
    }

    /// Returns the number that distinguishes launches of the same multi-host job.
    pub const fn launch_id(&self) -> i32 {
        self.launch_id
    }

    /// Returns the positions of the inputs that must stay usable afterwards.
    pub const fn non_donatable_input_indices(&self) -> &BTreeSet<i32> {
        &self.non_donatable_input_indices
    }

    /// Returns true if the status of the execution is requested.
    pub const fn fill_status(&self) -> bool {
        self.fill_status
    }

    /// Returns the stream of executions.
    pub const fn execution_stream_id(&self) -> i64 {
        self.execution_stream_id
    }

    /// Returns the options that only the runtime understands.
    pub const fn custom_options(&self) -> Option<&AttributeMap> {
        self.custom_options.as_ref()
    }
}

/// Writes format 0 at every version.
impl ToProto for ExecuteOptions {
    type Proto = ExecuteOptionsProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        let custom_options = self.custom_options.as_ref();
        Ok(ExecuteOptionsProto {
            // The message has this field, but no build writes or reads it.
            untuple_result: false,
            launch_id: self.launch_id,
            non_donatable_input_indices: self.non_donatable_input_indices.iter().copied().collect(),
            fill_status: self.fill_status,
            custom_options: custom_options.map(|map| map.to_proto(version)).transpose()?,
            execution_stream_id: self.execution_stream_id,
            version_number: FORMATS.for_request(version)?,
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        if let Some(custom_options) = &self.custom_options {
            custom_options.can_serialize_at(version)?;
        }
        FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0. The order of the indices does not matter.
impl FromProto for ExecuteOptions {
    type Proto = ExecuteOptionsProto;
    const NAME: &'static str = "ExecuteOptions";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        FORMATS.check_recorded(proto.version_number)?;
        let custom_options = match &proto.custom_options {
            Some(custom_options) => Some(nested(Some(custom_options), options)?),
            None => None,
        };
        Ok(Self {
            launch_id: proto.launch_id,
            non_donatable_input_indices: proto
                .non_donatable_input_indices
                .iter()
                .copied()
                .collect(),
            fill_status: proto.fill_status,
            execution_stream_id: proto.execution_stream_id,
            custom_options,
        })
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::version::{SerDesAnyVersionAccessor, VersionRange};

    #[test]
    fn execute_options_round_trip_at_every_version() {
        let options = ExecuteOptions::new()
            .with_launch_id(1234)
            .with_non_donatable_input_indices([3, 0, 3])
            .with_fill_status(true)
            .with_execution_stream_id(-7)
            .with_custom_options(AttributeMap::from_iter([("foo", "bar".into())]));
        for number in 0..=VersionRange::<crate::version::Ifrt>::supported().maximum() {
            let version = SerDesAnyVersionAccessor::get(number).unwrap();
            let bytes = options.to_bytes(version).unwrap();
            let read = ExecuteOptions::from_bytes(bytes, &DeserializeOptions::new()).unwrap();
            assert_eq!(read, options);
        }
        assert_eq!(options.non_donatable_input_indices().len(), 2);
    }

    #[test]
    fn the_message_has_no_field_14_as_in_no_real_build() {
        let fields = |name: &str| {
            let bytes = include_bytes!("../../proto/descriptors.binpb");
            let set = prost_types::FileDescriptorSet::decode(&bytes[..]).unwrap();
            let mut messages = set.file.iter().flat_map(|file| &file.message_type);
            let message = messages.find(|message| message.name() == name).unwrap();
            message.field.iter().map(|field| field.number()).collect::<Vec<_>>()
        };
        assert!(!fields("ExecuteOptionsProto").contains(&14));
        assert!(fields("IfrtIrCompileOptionsProto").contains(&14));
    }

    #[test]
    fn absent_custom_options_differ_from_empty_ones() {
        let version = SerDesAnyVersionAccessor::minimum();
        let empty = ExecuteOptions::new().with_custom_options(AttributeMap::new());
        let bytes = empty.to_bytes(version).unwrap();
        assert_ne!(bytes, ExecuteOptions::new().to_bytes(version).unwrap());
        assert_eq!(ExecuteOptions::from_bytes(bytes, &DeserializeOptions::new()), Ok(empty));
    }
}
