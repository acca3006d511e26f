//! The data types of IFRT: element types, shapes, devices, shardings, layouts, array specs,
//! programs and plans.
//!
//! Each file has one type, with its invariants, its text form, and its conversion to and from the
//! messages of the wire format at every version (`ToProto`, `FromProto`); with the feature `serde`
//! also `Serialize` and `Deserialize`.
//!
//! Values that upstream reads without checking their meaning are read here too, unless the reader
//! asks for [`Validation::Strict`](crate::codec::Validation::Strict). Methods of an inconsistent
//! value then return an error.
//!
//! The module knows the codec. It does not depend on file formats, plug-ins or connections.

mod abstract_array_spec;
mod array_spec;
mod attribute_map;
mod device;
mod dtype;
mod dynamic_shape;
mod error;
mod execute_options;
mod index;
mod inspect;
mod kinds;
mod layout;
mod list_notation;
mod memory_kind;
mod message;
mod permutation;
mod program;
mod registry;
mod remap_plan;
#[cfg(feature = "serde")]
mod serde_impls;
mod shape;
pub mod sharding;
mod sharding_param;
pub mod sharding_spec;
pub mod xla;

pub use abstract_array_spec::AbstractArraySpec;
pub use array_spec::ArraySpec;
pub use attribute_map::{AttributeMap, AttributeValue};
pub use device::{
    AnyDevice, DeserializeShardingOptions, DeviceId, DeviceList, DeviceLookup, Reach, with_devices,
};
pub use dtype::DType;
pub use dynamic_shape::{BoundedDynamicShapeTag, DynamicShape};
pub use error::IfrtError;
pub use execute_options::ExecuteOptions;
pub use index::{Index, IndexDomain};
pub use inspect::{Inspection, NestedVersion};
pub use layout::{CompactLayout, Layout, PjRtLayout};
pub use memory_kind::MemoryKind;
pub use message::{MessageType, MessageValue};
pub use program::{
    AtomExecutableVersion, CustomCallCompileOptions, CustomCallProgram, DeserializeProgramOptions,
    HloProgram, HostCallbackArgument, IfrtIrAtomProgram, IfrtIrCompileOptions,
    IfrtIrExecutableVersion, IfrtIrExecutableVersionDeserializeOptions, IfrtIrProgram, OutputSpec,
    ParameterSpec, PluginCompileOptions, PluginProgram, RuntimeAbiVersion, SerializedXlaExecutable,
    XlaCompileOptions, XlaExecutableMetadata, XlaExecutableVersion, XlaHostCallback,
};
pub use registry::{BUILT_IN_NAMES, global_registry, register_built_in_types};
pub use remap_plan::{ArrayCopySemantics, InputDevices, Interval, Mapping, RemapPlan};
pub use shape::Shape;
pub use sharding::{
    ConcreteEvenSharding, ConcreteSharding, HloSharding, OpaqueSharding, Sharding,
    ShardingParamSharding, SingleDeviceSharding,
};
pub use sharding_param::ShardingParam;
pub use sharding_spec::ShardingSpec;

#[cfg(test)]
mod propagation_tests;

#[cfg(all(test, feature = "serde"))]
mod serde_tests;

#[cfg(test)]
mod testing;
