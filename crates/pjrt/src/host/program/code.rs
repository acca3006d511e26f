//! A program as bytes, and in the form that is passed to a plug-in.

use std::{ffi::c_char, ptr};

use serdes_abi::pjrt::{Minor, args::*};

use crate::{PjrtError, host::border::Handed};

/// The format of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProgramFormat {
    /// StableHLO: a portable artifact, MLIR bytecode, or MLIR as text.
    Mlir,
    /// XLA's `HloModuleProto`.
    Hlo,
    /// XLA's `HloModuleProtoWithConfig`.
    HloWithConfig,
}

impl ProgramFormat {
    /// Returns the name in the interface.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mlir => "mlir",
            Self::Hlo => "hlo",
            Self::HloWithConfig => "hlo_with_config",
        }
    }
}

/// A program as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    code: &'a [u8],
    format: ProgramFormat,
}

impl<'a> Program<'a> {
    /// Creates a program in this format.
    #[must_use]
    pub fn new(code: &'a [u8], format: ProgramFormat) -> Self {
        Self { code, format }
    }

    pub(super) fn code(&self) -> &'a [u8] {
        self.code
    }
}

/// Returns a program in the form that a plug-in of `minor` takes; it points to the code.
pub(super) fn handed_program(program: &Program<'_>, minor: Minor) -> Handed<PJRT_Program> {
    let name = program.format.name();
    Handed::of(PJRT_Program {
        struct_size: struct_size(PJRT_Program::HISTORY, minor),
        extension_start: ptr::null_mut(),
        // The plug-in only reads it; the struct has a mutable pointer because it also serves for
        // output.
        code: program.code.as_ptr().cast_mut().cast::<c_char>(),
        code_size: program.code.len(),
        format: name.as_ptr().cast(),
        format_size: name.len(),
    })
}

pub(super) fn check_code(what: &'static str, code: &[u8]) -> Result<(), PjrtError> {
    if code.is_empty() {
        let (found, expected) = ("no bytes".to_owned(), "some".to_owned());
        return Err(PjrtError::InvalidArgument { what, found, expected });
    }
    Ok(())
}

/// Returns the size to declare for a struct within arguments, in bytes.
pub(super) fn struct_size(history: &serdes_abi::pjrt::Struct, minor: Minor) -> usize {
    history.handover(minor).map_or(0, |given| given.struct_size)
}
