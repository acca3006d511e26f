//! The layouts as data.

use crate::{history, released, rfc};

/// The family of headers that a layout comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Shipped in TensorFlow.
    Released,
    /// Printed in RFC #257.
    Rfc,
}

impl Family {
    /// Returns the family's name: `released` or `rfc`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Rfc => "rfc",
        }
    }
}

/// The meaning of 0 or NULL in a field. It decides how a host may use the field and how the field
/// can be deprecated (seed 000, "By Value Inspection").
///
/// No published header marks a field "0 is no-op" or "NULL is no-op"; the required fields are those
/// without which TensorFlow refuses a plug-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Zero {
    /// The field must be set: without it the struct, or the plug-in, is refused.
    Required,
    /// Zero means that the field is not provided, which is allowed; the reader works without it.
    Optional,
    /// Zero is a value like any other.
    Value,
    /// Zero has no effect: the field can be deprecated by leaving it zero.
    NoOp,
}

impl Zero {
    /// Returns the mark in the C header: `required`, `optional`, `value` or `no-op`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
            Self::Value => "value",
            Self::NoOp => "no-op",
        }
    }
}

/// A field of a struct of the C API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// The name in C.
    pub name: &'static str,
    /// The type in C; `fn` for a function pointer.
    pub kind: &'static str,
    /// The offset of its first byte from the struct's start.
    pub offset: usize,
    /// The size in bytes.
    pub size: usize,
    /// The meaning of 0 or NULL in the field.
    pub zero: Zero,
    /// True if the field is deprecated: the side that fills the struct leaves it zero, and hosts
    /// warn of a side that does not. No published layout has such a field.
    pub deprecated: bool,
}

impl FieldLayout {
    /// Returns the offset of the end of the field, from the struct's start. A struct contains the
    /// field if its `struct_size` is at least this.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.offset + self.size
    }

    /// Returns `true` if a struct without the field is refused.
    #[must_use]
    pub const fn is_required(&self) -> bool {
        matches!(self.zero, Zero::Required)
    }

    /// Returns `true` if the field is a function pointer.
    #[must_use]
    pub const fn is_function(&self) -> bool {
        same(self.kind, "fn")
    }
}

/// A struct of the C API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructLayout {
    /// The name in C.
    pub name: &'static str,
    /// The value of `sizeof` in bytes, including padding at the end.
    pub size_of: usize,
    /// Alignment in bytes.
    pub align_of: usize,
    /// The name of the macro for `struct_size`.
    pub struct_size_macro: &'static str,
    /// The last field that the macro includes.
    pub macro_last_field: &'static str,
    /// The value of the struct's macro, in bytes.
    pub struct_size: usize,
    /// The fields in the order of their offsets.
    pub fields: &'static [FieldLayout],
}

impl StructLayout {
    /// Returns the field with this name.
    #[must_use]
    pub const fn field(&self, name: &str) -> Option<&'static FieldLayout> {
        let mut fields = self.fields;
        while let [field, behind @ ..] = fields {
            if same(field.name, name) {
                return Some(field);
            }
            fields = behind;
        }
        None
    }
}

/// A layout, with every struct of one header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The name: the first TensorFlow release that had the layout, or the RFC.
    pub name: &'static str,
    /// The family of headers that the layout comes from.
    pub family: Family,
    /// The structs of the layout.
    pub structs: &'static [StructLayout],
}

impl Layout {
    /// Returns the struct with this name in C.
    #[must_use]
    pub const fn structure(&self, name: &str) -> Option<&'static StructLayout> {
        let mut structs = self.structs;
        while let [structure, behind @ ..] = structs {
            if same(structure.name, name) {
                return Some(structure);
            }
            structs = behind;
        }
        None
    }

    /// Returns the named field of the named struct, if the layout has both.
    #[must_use]
    pub const fn field(&self, structure: &str, field: &str) -> Option<&'static FieldLayout> {
        match self.structure(structure) {
            Some(found) => found.field(field),
            None => None,
        }
    }
}

/// The layout of TensorFlow 2.14 to 2.21.
pub const TENSORFLOW_2_14: Layout = Layout {
    name: "tensorflow-2.14",
    family: Family::Released,
    structs: &[
        released::SP_TimerFns::LAYOUT,
        released::SP_AllocatorStats::LAYOUT,
        released::SP_DeviceMemoryBase::LAYOUT,
        released::SP_Device::LAYOUT,
        released::SE_CreateDeviceParams::LAYOUT,
        released::SP_DeviceFns::LAYOUT,
        released::SE_CreateDeviceFnsParams::LAYOUT,
        released::SP_StreamExecutor::LAYOUT,
        released::SE_CreateStreamExecutorParams::LAYOUT,
        released::SP_Platform::LAYOUT,
        released::SP_PlatformFns::LAYOUT,
        released::SE_PlatformRegistrationParams::LAYOUT,
    ],
};

/// The layout of TensorFlow 2.8: the platform has no `force_memory_growth`.
pub const TENSORFLOW_2_8: Layout = Layout {
    name: "tensorflow-2.8",
    family: Family::Released,
    structs: &[
        released::SP_TimerFns::LAYOUT,
        released::SP_AllocatorStats::LAYOUT,
        released::SP_DeviceMemoryBase::LAYOUT,
        released::SP_Device::LAYOUT,
        released::SE_CreateDeviceParams::LAYOUT,
        released::SP_DeviceFns::LAYOUT,
        released::SE_CreateDeviceFnsParams::LAYOUT,
        released::SP_StreamExecutor::LAYOUT,
        released::SE_CreateStreamExecutorParams::LAYOUT,
        history::tensorflow_2_8::SP_Platform::LAYOUT,
        released::SP_PlatformFns::LAYOUT,
        released::SE_PlatformRegistrationParams::LAYOUT,
    ],
};

/// The layout of TensorFlow 2.5 and 2.6: the executor has `host_callback` where later layouts have
/// `mem_zero`.
pub const TENSORFLOW_2_5: Layout = Layout {
    name: "tensorflow-2.5",
    family: Family::Released,
    structs: &[
        released::SP_TimerFns::LAYOUT,
        released::SP_AllocatorStats::LAYOUT,
        released::SP_DeviceMemoryBase::LAYOUT,
        released::SP_Device::LAYOUT,
        released::SE_CreateDeviceParams::LAYOUT,
        released::SP_DeviceFns::LAYOUT,
        released::SE_CreateDeviceFnsParams::LAYOUT,
        history::tensorflow_2_5::SP_StreamExecutor::LAYOUT,
        released::SE_CreateStreamExecutorParams::LAYOUT,
        history::tensorflow_2_8::SP_Platform::LAYOUT,
        released::SP_PlatformFns::LAYOUT,
        released::SE_PlatformRegistrationParams::LAYOUT,
    ],
};

/// The layout of TensorFlow 2.4: the number of devices is a field of the platform.
pub const TENSORFLOW_2_4: Layout = Layout {
    name: "tensorflow-2.4",
    family: Family::Released,
    structs: &[
        released::SP_TimerFns::LAYOUT,
        released::SP_AllocatorStats::LAYOUT,
        released::SP_DeviceMemoryBase::LAYOUT,
        released::SP_Device::LAYOUT,
        released::SE_CreateDeviceParams::LAYOUT,
        released::SP_DeviceFns::LAYOUT,
        released::SE_CreateDeviceFnsParams::LAYOUT,
        history::tensorflow_2_5::SP_StreamExecutor::LAYOUT,
        released::SE_CreateStreamExecutorParams::LAYOUT,
        history::tensorflow_2_4::SP_Platform::LAYOUT,
        history::tensorflow_2_4::SP_PlatformFns::LAYOUT,
        released::SE_PlatformRegistrationParams::LAYOUT,
    ],
};

/// The layout of RFC #257 as printed.
pub const RFC_257: Layout = Layout {
    name: "rfc-257",
    family: Family::Rfc,
    structs: &[
        released::SP_TimerFns::LAYOUT,
        released::SP_AllocatorStats::LAYOUT,
        released::SP_DeviceMemoryBase::LAYOUT,
        rfc::SP_Device::LAYOUT,
        released::SE_CreateDeviceParams::LAYOUT,
        rfc::SP_StreamExecutor::LAYOUT,
        released::SE_CreateStreamExecutorParams::LAYOUT,
        rfc::SP_Allocator::LAYOUT,
        rfc::SP_AllocatorFns::LAYOUT,
        rfc::SP_CustomAllocator::LAYOUT,
        rfc::SP_CustomAllocatorFns::LAYOUT,
        rfc::SE_CreateAllocatorParams::LAYOUT,
        rfc::SE_CreateCustomAllocatorParams::LAYOUT,
        rfc::SP_Platform::LAYOUT,
        rfc::SP_PlatformFns::LAYOUT,
        rfc::SE_PlatformRegistrationParams::LAYOUT,
    ],
};

/// Every layout, newest first.
pub const LAYOUTS: &[Layout] =
    &[TENSORFLOW_2_14, TENSORFLOW_2_8, TENSORFLOW_2_5, TENSORFLOW_2_4, RFC_257];

/// Returns the layout with this name.
#[must_use]
pub const fn layout_named(name: &str) -> Option<&'static Layout> {
    let mut layouts = LAYOUTS;
    while let [layout, behind @ ..] = layouts {
        if same(layout.name, name) {
            return Some(layout);
        }
        layouts = behind;
    }
    None
}

/// Returns the name in C of a Rust identifier, without the prefix of a raw identifier.
pub(crate) const fn c_name(identifier: &'static str) -> &'static str {
    match identifier.as_bytes() {
        [b'r', b'#', _, ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}

/// Returns the size of a C type on LP64, in bytes. In this API every type that is not a narrow
/// scalar has eight bytes.
pub(crate) const fn size_of_kind(kind: &str) -> usize {
    if same(kind, "TF_Bool") || same(kind, "int8_t") {
        1
    } else if same(kind, "int32_t") {
        4
    } else {
        8
    }
}

pub(crate) const fn same(left: &str, right: &str) -> bool {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    // Compares from the end, because names of one API begin alike.
    while let ([left_rest @ .., a], [right_rest @ .., b]) = (left, right) {
        if *a != *b {
            return false;
        }
        (left, right) = (left_rest, right_rest);
    }
    true
}
