//! Programs in IFRT IR, their options, and the versions of their compiled form.

use std::{collections::BTreeMap, fmt};

use bytes::Bytes;

use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
        decode_message, serde_forms::serde_as_message,
    },
    ifrt::DeviceId,
    proto::{OpaqueMessage, xla::ifrt as wire},
    version::SerDesVersion,
};

const PROGRAM_FORMATS: Formats = Formats::of("IfrtIRProgram");
const OPTIONS_FORMATS: Formats = Formats::of("IfrtIRCompileOptions");
const VERSION_FORMATS: Formats = Formats::of("IfrtIrExecutableVersion");

/// The format that introduced the slice sizes of bundles.
const WITH_SLICE_SIZES: i32 = OPTIONS_FORMATS.number(4);

/// One part of an IFRT IR program that is stored outside its module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IfrtIrAtomProgram {
    /// The name under which the module calls it.
    pub name: String,
    /// The version of its dialect.
    pub version: Option<String>,
    /// The program.
    pub program: Bytes,
}

/// A program of IFRT IR, which says what runs on which devices (`xla::ifrt::IfrtIRProgram`). The IR
/// is kept as bytes.
///
/// Requests below version 3 are refused, for the same reason as for the StableHLO programs inside.
/// (Upstream refuses versions below its four-weeks-old one, which moves with the calendar; ours is
/// a constant.)
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IfrtIrProgram {
    program: Bytes,
    ifrt_version: Option<String>,
    atom_programs: Vec<IfrtIrAtomProgram>,
}

impl IfrtIrProgram {
    /// Creates a program with this module, without separate parts.
    pub fn new(program: impl Into<Bytes>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }

    /// Sets the version of IFRT IR in which the module is written.
    #[must_use]
    pub fn with_ifrt_version(mut self, version: impl Into<String>) -> Self {
        self.ifrt_version = Some(version.into());
        self
    }

    /// Sets the parts that are stored outside the module.
    #[must_use]
    pub fn with_atom_programs(mut self, programs: impl Into<Vec<IfrtIrAtomProgram>>) -> Self {
        self.atom_programs = programs.into();
        self
    }

    /// Returns the module.
    pub const fn program(&self) -> &Bytes {
        &self.program
    }

    /// Returns the version of IFRT IR in which the module is written, such as `0.1.0`.
    pub fn ifrt_version(&self) -> Option<&str> {
        self.ifrt_version.as_deref()
    }

    /// Returns the parts that are stored outside the module.
    pub fn atom_programs(&self) -> &[IfrtIrAtomProgram] {
        &self.atom_programs
    }
}

/// Formats as `IfrtIRProgram(version: 0.1.0, 120 bytes, 2 atom programs)`.
impl fmt::Display for IfrtIrProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.ifrt_version.as_deref().unwrap_or("unset");
        let (bytes, atoms) = (self.program.len(), self.atom_programs.len());
        write!(f, "IfrtIRProgram(version: {version}, {bytes} bytes, {atoms} atom programs)")
    }
}

impl Registered for IfrtIrProgram {
    const TYPE_NAME: &'static str = "xla::ifrt::IfrtIRProgram";
}

/// Writes format 0 at version 3 and above.
impl ToProto for IfrtIrProgram {
    type Proto = wire::IfrtIrProgramProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        self.can_serialize_at(version)?;
        let atoms = self.atom_programs.iter().map(|atom| wire::IfrtIrAtomProgramProto {
            name: atom.name.clone(),
            version: atom.version.clone(),
            program: atom.program.clone(),
        });
        Ok(wire::IfrtIrProgramProto {
            ifrt_program: self.program.clone(),
            ifrt_version: self.ifrt_version.clone(),
            atom_programs: atoms.collect(),
            version_number: PROGRAM_FORMATS.for_request(version)?,
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        PROGRAM_FORMATS.for_request_of("a program of IFRT IR", version).map(drop)
    }
}

/// Ignores the recorded number, as upstream does: the IR contains its own version. In strict mode
/// only format 0 is accepted.
impl FromProto for IfrtIrProgram {
    type Proto = wire::IfrtIrProgramProto;
    const NAME: &'static str = "IfrtIRProgram";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        if options.is_strict() {
            PROGRAM_FORMATS.check_recorded(proto.version_number)?;
        }
        let atoms = proto.atom_programs.iter().map(|atom| IfrtIrAtomProgram {
            name: atom.name.clone(),
            version: atom.version.clone(),
            program: atom.program.clone(),
        });
        Ok(Self {
            program: proto.ifrt_program.clone(),
            ifrt_version: proto.ifrt_version.clone(),
            atom_programs: atoms.collect(),
        })
    }
}

/// Options for compiling a program of IFRT IR (`xla::ifrt::IfrtIRCompileOptions`).
///
/// The options of its parts belong to the compiler: each is kept as the bytes of an
/// `xla.CompileOptionsProto`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IfrtIrCompileOptions {
    overrides: BTreeMap<String, OpaqueMessage>,
    // The message; its overrides, version number and deprecated field are empty.
    proto: wire::IfrtIrCompileOptionsProto,
}

macro_rules! optional_fields {
    ($($(#[$doc:meta])* $field:ident, $with:ident: $type:ty, $returned:ty, $get:ident;)*) => {$(
        $(#[$doc])*
        pub fn $field(&self) -> Option<$returned> {
            self.proto.$field.$get()
        }

        /// Sets this option.
        #[must_use]
        pub fn $with(mut self, value: impl Into<$type>) -> Self {
            self.proto.$field = Some(value.into());
            self
        }
    )*};
}

impl IfrtIrCompileOptions {
    /// Creates options for a program on these devices.
    pub fn new(devices: impl IntoIterator<Item = DeviceId>) -> Self {
        let device_ids = devices.into_iter().map(|device| device.0).collect();
        let proto = wire::IfrtIrCompileOptionsProto { device_ids, ..Default::default() };
        Self { overrides: BTreeMap::new(), proto }
    }

    /// Overrides the compile options of one part, as an `xla.CompileOptionsProto`.
    #[must_use]
    pub fn with_override(mut self, part: impl Into<String>, options: OpaqueMessage) -> Self {
        self.overrides.insert(part.into(), options);
        self
    }

    /// Sets `true` to reserve the memory of all parts before the program runs.
    #[must_use]
    pub fn with_strict_memory_reservation(mut self, strict: bool) -> Self {
        self.proto.strict_memory_reservation = strict;
        self
    }

    /// Groups the outputs into bundles: sets the number of outputs in each. Needs version 4.
    #[must_use]
    pub fn with_outputs_bundle_slice_sizes(mut self, sizes: impl Into<Vec<i32>>) -> Self {
        self.proto.outputs_bundle_slice_sizes = sizes.into();
        self
    }

    /// Returns the number of outputs in each bundle.
    pub fn outputs_bundle_slice_sizes(&self) -> &[i32] {
        &self.proto.outputs_bundle_slice_sizes
    }

    /// Returns the devices; logical ids in the program are positions in this list.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = DeviceId> + '_ {
        self.proto.device_ids.iter().copied().map(DeviceId)
    }

    /// Returns the overridden options of parts, by name.
    pub const fn overrides(&self) -> &BTreeMap<String, OpaqueMessage> {
        &self.overrides
    }

    /// Returns true if the memory of all parts is reserved before the program runs.
    pub const fn strict_memory_reservation(&self) -> bool {
        self.proto.strict_memory_reservation
    }

    optional_fields! {
        /// The directory to write intermediate modules to.
        mlir_dump_to, with_mlir_dump_to: String, &str, as_deref;
        /// A regular expression for the passes after which a module is written.
        mlir_dump_pass_re, with_mlir_dump_pass_re: String, &str, as_deref;
        /// A regular expression for the functions that are written.
        mlir_dump_func_re, with_mlir_dump_func_re: String, &str, as_deref;
        /// True to report the time of each pass.
        mlir_enable_timing, with_mlir_enable_timing: bool, bool, clone;
        /// The directory to write graphs to.
        dot_graph_dump_to, with_dot_graph_dump_to: String, &str, as_deref;
        /// Parts with a smaller peak of memory, in bytes, are omitted from graphs.
        dot_graph_min_executable_peak_memory_bytes,
            with_dot_graph_min_executable_peak_memory_bytes: i64, i64, clone;
        /// Parts with fewer floating-point operations are omitted from graphs.
        dot_graph_min_executable_flops, with_dot_graph_min_executable_flops: f32, f32, clone;
        /// Smaller transfers, in bytes per device, are omitted from graphs.
        dot_graph_min_per_device_transfer_size_bytes,
            with_dot_graph_min_per_device_transfer_size_bytes: i64, i64, clone;
    }
}

serde_as_message!(
    IfrtIrCompileOptions,
    |value| value.to_bytes(crate::codec::at::requested()),
    |bytes| Self::from_bytes(bytes, &DeserializeOptions::new())
);

/// Formats as `IfrtIRCompileOptions(4 devices, 1 overrides)`.
impl fmt::Display for IfrtIrCompileOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (devices, overrides) = (self.devices().len(), self.overrides().len());
        write!(f, "IfrtIRCompileOptions({devices} devices, {overrides} overrides)")
    }
}

impl Registered for IfrtIrCompileOptions {
    const TYPE_NAME: &'static str = "xla::ifrt::IfrtIRCompileOptions";
}

/// Writes format 0 below version 4, and format 4 from version 4. Real readers look for slice sizes
/// in format 4 only.
impl ToProto for IfrtIrCompileOptions {
    type Proto = wire::IfrtIrCompileOptionsProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        self.can_serialize_at(version)?;
        let overrides = self.overrides.iter().map(|(part, options)| {
            let (key, value) = (part.clone(), Some(options.clone()));
            wire::ifrt_ir_compile_options_proto::CompileOptionOverridesEntry { key, value }
        });
        Ok(wire::IfrtIrCompileOptionsProto {
            version_number: OPTIONS_FORMATS.for_request(version)?,
            compile_option_overrides: overrides.collect(),
            ..self.proto.clone()
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        if OPTIONS_FORMATS.for_request(version)? < WITH_SLICE_SIZES
            && !self.outputs_bundle_slice_sizes().is_empty()
        {
            let feature = "the field outputs_bundle_slice_sizes";
            let first = WITH_SLICE_SIZES;
            return Err(EncodeError::unsupported_at_version(Self::NAME, feature, version, first));
        }
        Ok(())
    }
}

/// Accepts formats 0 and 4. The deprecated `propagate_shardings` must not be set. At format 0 slice
/// sizes are ignored, as in upstream; strict mode refuses them.
impl FromProto for IfrtIrCompileOptions {
    type Proto = wire::IfrtIrCompileOptionsProto;
    const NAME: &'static str = "IfrtIRCompileOptions";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        Self::from_owned_proto(proto.clone(), options)
    }

    fn from_owned_proto(
        mut proto: Self::Proto,
        options: &DeserializeOptions,
    ) -> Result<Self, DecodeError> {
        let format = OPTIONS_FORMATS.check_recorded(proto.version_number)?;
        if proto.propagate_shardings {
            return Err(DecodeError::invalid_value(
                Self::NAME,
                "propagate_shardings is set; it is deprecated and must be unset",
            ));
        }
        if format < WITH_SLICE_SIZES && !proto.outputs_bundle_slice_sizes.is_empty() {
            if options.is_strict() {
                let sizes = &proto.outputs_bundle_slice_sizes;
                return Err(DecodeError::invalid_value(
                    Self::NAME,
                    format!(
                        "format {format} has no outputs_bundle_slice_sizes, but found {sizes:?}"
                    ),
                ));
            }
            proto.outputs_bundle_slice_sizes.clear();
        }
        let overrides = std::mem::take(&mut proto.compile_option_overrides).into_iter();
        proto.version_number = 0;
        // If a name occurs several times, the last entry counts, as in every map of protobuf.
        let overrides = overrides.map(|entry| (entry.key, entry.value.unwrap_or_default()));
        Ok(Self { overrides: overrides.collect(), proto })
    }
}

/// The version of one compiled part of an IFRT IR program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AtomExecutableVersion {
    /// The bytes of a serialized version, such as an `XlaExecutableVersion`, with its type name.
    pub executable_version: Bytes,
    /// The devices that the part runs on, as positions in the devices of the program.
    pub logical_device_indexes: Vec<i32>,
}

/// The number of devices of the program, an option for reading an [`IfrtIrExecutableVersion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IfrtIrExecutableVersionDeserializeOptions {
    device_count: usize,
}

impl IfrtIrExecutableVersionDeserializeOptions {
    /// Creates options for a program on `device_count` devices.
    pub const fn new(device_count: usize) -> Self {
        Self { device_count }
    }
}

/// Requirements of a compiled program of IFRT IR on the runtime that loads it
/// (`xla::ifrt::IfrtIrExecutableVersion`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IfrtIrExecutableVersion {
    ifrt_ir_version: String,
    executable_versions: Vec<AtomExecutableVersion>,
}

impl IfrtIrExecutableVersion {
    /// Creates the requirements of a program at this version of IFRT IR, with the versions of its
    /// compiled parts.
    pub fn new(
        ifrt_ir_version: impl Into<String>,
        executable_versions: impl Into<Vec<AtomExecutableVersion>>,
    ) -> Self {
        Self {
            ifrt_ir_version: ifrt_ir_version.into(),
            executable_versions: executable_versions.into(),
        }
    }

    /// Returns the version of IFRT IR.
    pub fn ifrt_ir_version(&self) -> &str {
        &self.ifrt_ir_version
    }

    /// Returns the versions of the compiled parts.
    pub fn executable_versions(&self) -> &[AtomExecutableVersion] {
        &self.executable_versions
    }
}

/// Formats as `IfrtIrExecutableVersion(0.1.0, 2 parts)`.
impl fmt::Display for IfrtIrExecutableVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.executable_versions.len();
        write!(f, "IfrtIrExecutableVersion({}, {parts} parts)", self.ifrt_ir_version)
    }
}

impl Registered for IfrtIrExecutableVersion {
    const TYPE_NAME: &'static str = "xla::ifrt::IfrtIrExecutableVersion";
}

/// Writes format 0 at every version.
impl ToProto for IfrtIrExecutableVersion {
    type Proto = wire::IfrtIrExecutableVersionProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        let parts = self.executable_versions.iter().map(|part| wire::AtomExecutableVersionProto {
            executable_version: part.executable_version.clone(),
            logical_device_indexes: part.logical_device_indexes.clone(),
        });
        Ok(wire::IfrtIrExecutableVersionProto {
            version_number: VERSION_FORMATS.for_request(version)?,
            ifrt_ir_version: self.ifrt_ir_version.clone(),
            executable_versions: parts.collect(),
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        VERSION_FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0. Needs [`IfrtIrExecutableVersionDeserializeOptions`]; devices must belong to
/// the program, and the nested versions must parse.
impl FromProto for IfrtIrExecutableVersion {
    type Proto = wire::IfrtIrExecutableVersionProto;
    const NAME: &'static str = "IfrtIrExecutableVersion";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let &IfrtIrExecutableVersionDeserializeOptions { device_count } =
            options.require(Self::NAME)?;
        VERSION_FORMATS.check_recorded(proto.version_number)?;
        let parts = proto.executable_versions.iter().map(|part| {
            let is_device =
                |index: &i32| usize::try_from(*index).is_ok_and(|index| index < device_count);
            if let Some(index) = part.logical_device_indexes.iter().find(|index| !is_device(index))
            {
                return Err(DecodeError::invalid_value(
                    Self::NAME,
                    format!(
                        "a logical device id is {index}; the program has {device_count} devices"
                    ),
                ));
            }
            let nested = part.executable_version.clone();
            decode_message::<wire::Serialized>(Self::NAME, nested, options)?;
            Ok(AtomExecutableVersion {
                executable_version: part.executable_version.clone(),
                logical_device_indexes: part.logical_device_indexes.clone(),
            })
        });
        Ok(Self {
            ifrt_ir_version: proto.ifrt_ir_version.clone(),
            executable_versions: parts.collect::<Result<_, _>>()?,
        })
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<IfrtIrExecutableVersionDeserializeOptions>(Self::NAME).map(drop)
    }
}
