//! Compiled programs: name, outputs, estimated cost, and serialized form.

use std::{
    ffi::{c_char, c_int},
    ptr,
    ptr::NonNull,
};

use serdes_abi::pjrt::{ElementType, args::*};

use super::{code::struct_size, memory::ProgramMemory};
use crate::{
    PjrtError, Value,
    host::{
        border::{Handed, LONGEST_BYTES, Table, list, owned_bytes, pointer, text},
        element_type::of_answer,
        host_array::MOST_DIMENSIONS,
        host_memory::HostMemory,
        layout::layout_text,
        options::attributes,
        origin::Origin,
    },
};

/// A compiled program.
#[derive(Debug)]
pub struct Executable {
    origin: Origin,
    raw: NonNull<PJRT_Executable>,
    outputs: usize,
}

// SAFETY: the C API lets any thread use any object, several at once except for destroying it, which
// only the owner does.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

/// Makes a call whose only input is the executable.
macro_rules! of_executable {
    ($executable:expr, $arguments:ident) => {{
        let raw = $executable.raw.as_ptr();
        // SAFETY: the executable is alive until it is dropped.
        unsafe { $executable.table().ask(|call: &mut $arguments| call.executable = raw) }
    }};
}

/// The program after the compiler's optimizations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptimizedProgram {
    /// The format, such as `hlo_with_config`.
    pub format: String,
    /// The bytes of the program.
    pub code: Vec<u8>,
}

/// The maximum number of outputs of a program.
const MOST_OUTPUTS: usize = 1 << 20;

impl Executable {
    /// Takes ownership of an executable that a plug-in returned.
    ///
    /// # Safety
    /// It is NULL or alive, belongs to this client or plug-in, and is owned by no other handle.
    pub(super) unsafe fn taken(
        call: &'static str,
        origin: Origin,
        raw: *mut PJRT_Executable,
    ) -> Result<Self, PjrtError> {
        let raw = pointer(call, "an executable", raw)?;
        let mut executable = Self { origin, raw, outputs: 0 };
        let found = of_executable!(executable, PJRT_Executable_NumOutputs_Args)?.num_outputs;
        if found > MOST_OUTPUTS {
            let call = "PJRT_Executable_NumOutputs";
            return Err(bad(call, "the number of outputs", found, "1,048,576 at most"));
        }
        executable.outputs = found;
        Ok(executable)
    }

    pub(super) fn raw(&self) -> *mut PJRT_Executable {
        self.raw.as_ptr()
    }

    pub(super) fn table(&self) -> &Table {
        self.origin.table()
    }

    /// Returns its name.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn name(&self) -> Result<String, PjrtError> {
        const CALL: &str = "PJRT_Executable_Name";
        let found = of_executable!(self, PJRT_Executable_Name_Args)?;
        // SAFETY: the plug-in declares this length in bytes; the bytes belong to the executable.
        unsafe { text(CALL, "its text", found.executable_name, found.executable_name_size) }
    }

    /// Returns the number of copies that run together.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn replicas(&self) -> Result<usize, PjrtError> {
        Ok(of_executable!(self, PJRT_Executable_NumReplicas_Args)?.num_replicas)
    }

    /// Returns the number of parts into which each copy is divided.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn partitions(&self) -> Result<usize, PjrtError> {
        Ok(of_executable!(self, PJRT_Executable_NumPartitions_Args)?.num_partitions)
    }

    /// Returns the number of outputs on each device.
    #[must_use]
    pub fn output_count(&self) -> usize {
        self.outputs
    }

    /// Returns the size of the code in bytes; negative from plug-ins that do not know it.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn code_bytes(&self) -> Result<i64, PjrtError> {
        Ok(of_executable!(self, PJRT_Executable_SizeOfGeneratedCodeInBytes_Args)?.size_in_bytes)
    }

    /// Returns a text that is equal for equal programs.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::Missing`] before 0.35.
    pub fn fingerprint(&self) -> Result<String, PjrtError> {
        const CALL: &str = "PJRT_Executable_Fingerprint";
        let found = of_executable!(self, PJRT_Executable_Fingerprint_Args)?;
        let (start, length) = (found.executable_fingerprint, found.executable_fingerprint_size);
        // SAFETY: the plug-in declares this length in bytes; the bytes belong to the executable.
        unsafe { text(CALL, "its text", start, length) }
    }

    /// Returns the estimated costs by name, such as `flops`.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn cost_analysis(&self) -> Result<Vec<(String, Value)>, PjrtError> {
        let found = of_executable!(self, PJRT_Executable_GetCostAnalysis_Args)?;
        let call = "PJRT_Executable_GetCostAnalysis";
        // SAFETY: the plug-in declares this number of entries; they belong to the executable.
        unsafe { attributes(call, found.properties, found.num_properties) }
    }

    /// Returns the memory that the program needs.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::Missing`] before 0.40.
    pub fn memory(&self) -> Result<ProgramMemory, PjrtError> {
        let found = of_executable!(self, PJRT_Executable_GetCompiledMemoryStats_Args)?;
        Ok(ProgramMemory::of(&found, self.table().minor()))
    }

    /// Returns the element types of its outputs.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::BadAnswer`] if the numbers of types and outputs differ,
    /// or a number is not a type with data.
    pub fn output_types(&self) -> Result<Vec<ElementType>, PjrtError> {
        const CALL: &str = "PJRT_Executable_OutputElementTypes";
        let found = of_executable!(self, PJRT_Executable_OutputElementTypes_Args)?;
        self.check_count(CALL, found.num_output_types)?;
        let start: *const c_int = found.output_types;
        // SAFETY: the plug-in declares this number of entries; they belong to the executable.
        let numbers = unsafe { list(CALL, "its list", start, found.num_output_types) }?;
        let minor = self.table().minor();
        numbers.iter().map(|&number| of_answer(CALL, number, minor)).collect()
    }

    /// Returns the dimensions of its outputs on each device.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::BadAnswer`] if their number differs from that of the
    /// outputs, or for invalid dimensions.
    pub fn output_dims(&self) -> Result<Vec<Vec<i64>>, PjrtError> {
        const CALL: &str = "PJRT_Executable_OutputDimensions";
        let found = of_executable!(self, PJRT_Executable_OutputDimensions_Args)?;
        self.check_count(CALL, found.num_outputs)?;
        // SAFETY: the plug-in declares this number of entries; they belong to the executable.
        let ranks = unsafe { list(CALL, "its ranks", found.dim_sizes, found.num_outputs) }?;
        if let Some(&rank) = ranks.iter().find(|&&rank| rank > MOST_DIMENSIONS) {
            return Err(bad(CALL, "the rank of an output", rank, "254 at most"));
        }
        // The sum cannot overflow: each rank is small, and so is their number.
        let total = ranks.iter().sum();
        // SAFETY: the dimensions of all outputs are in one list, which belongs to the executable.
        let mut rest = unsafe { list(CALL, "its dimensions", found.dims, total) }?;
        let mut dims = Vec::with_capacity(ranks.len());
        for &rank in ranks {
            let (of_output, after) = rest.split_at(rank.min(rest.len()));
            if of_output.iter().any(|&dim| dim < 0) {
                let found = format!("{of_output:?}");
                return Err(bad(CALL, "dimensions", found, "none that is negative"));
            }
            dims.push(of_output.to_vec());
            rest = after;
        }
        Ok(dims)
    }

    /// Returns the kinds of memory of the outputs.
    ///
    /// # Errors
    /// The plug-in's errors, since many do not report it; [`PjrtError::BadAnswer`] if their number
    /// differs from that of the outputs.
    pub fn output_memory_kinds(&self) -> Result<Vec<String>, PjrtError> {
        const CALL: &str = "PJRT_Executable_OutputMemoryKinds";
        let found = of_executable!(self, PJRT_Executable_OutputMemoryKinds_Args)?;
        self.check_count(CALL, found.num_outputs)?;
        let (kinds, sizes) = (found.memory_kinds, found.memory_kind_sizes);
        // SAFETY: the plug-in declares this number of entries; they belong to the executable.
        unsafe { texts(CALL, kinds, sizes, found.num_outputs) }
    }

    /// Returns the kinds of memory in which the program expects its parameters.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::Missing`] before 0.102.
    pub fn parameter_memory_kinds(&self) -> Result<Vec<String>, PjrtError> {
        const CALL: &str = "PJRT_Executable_ParameterMemoryKinds";
        let found = of_executable!(self, PJRT_Executable_ParameterMemoryKinds_Args)?;
        let (kinds, sizes) = (found.memory_kinds, found.memory_kind_sizes);
        // SAFETY: the plug-in declares this number of entries; they belong to the executable.
        unsafe { texts(CALL, kinds, sizes, found.num_parameters) }
    }

    /// Returns the layouts of the outputs on devices, in XLA's notation.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::NotInExtensions`] if it does not have the extension of
    /// layouts, or an older one; [`PjrtError::BadAnswer`] if their number differs from that of the
    /// outputs.
    pub fn output_layouts(&self) -> Result<Vec<String>, PjrtError> {
        const CALL: &str = "PJRT_Layouts_PJRT_Executable_GetOutputLayouts";
        let raw = self.raw.as_ptr();
        let ask = |call: &mut PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args| {
            call.executable = raw;
        };
        // SAFETY: the executable is alive.
        let found = unsafe { self.table().ask_extension(ask) }?;
        self.check_count(CALL, found.num_outputs)?;
        self.layouts(CALL, found.layouts, found.num_outputs)
    }

    /// Returns the layouts in which the program expects its parameters, in XLA's notation.
    ///
    /// # Errors
    /// As [`Self::output_layouts`].
    pub fn parameter_layouts(&self) -> Result<Vec<String>, PjrtError> {
        const CALL: &str = "PJRT_Layouts_PJRT_Executable_GetParameterLayouts";
        let raw = self.raw.as_ptr();
        let ask = |call: &mut PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args| {
            call.executable = raw;
        };
        // SAFETY: the executable is alive.
        let found = unsafe { self.table().ask_extension(ask) }?;
        self.layouts(CALL, found.layouts, found.num_parameters)
    }

    fn layouts(
        &self,
        call: &'static str,
        start: *const *mut PJRT_Layouts_MemoryLayout,
        count: usize,
    ) -> Result<Vec<String>, PjrtError> {
        // SAFETY: the plug-in declared this number of entries just now; they belong to the
        // executable.
        let layouts = unsafe { list(call, "its layouts", start, count) }?;
        let table = self.table();
        // SAFETY: each is alive as long as the executable, which keeps the ownership.
        layouts.iter().map(|&layout| unsafe { layout_text(table, call, layout, false) }).collect()
    }

    /// Returns the program after the compiler's optimizations.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::BadAnswer`] for a program that is too long, or longer
    /// than it reported before.
    pub fn optimized_program(&self) -> Result<OptimizedProgram, PjrtError> {
        const CALL: &str = "PJRT_Executable_OptimizedProgram";
        // Queries the length first, then the bytes.
        let length = self.ask_program(ptr::null_mut(), 0)?.code_size;
        if length > LONGEST_BYTES {
            return Err(bad(CALL, "the length of the program", length, "4 GiB at most"));
        }
        let memory = HostMemory::plain(length)?;
        let found = self.ask_program(memory.as_start().cast(), length)?;
        let Some(code) = memory.get(..found.code_size) else {
            let expected = "no more than it said before";
            return Err(bad(CALL, "the length of the program", found.code_size, expected));
        };
        // SAFETY: the plug-in declares this length in bytes; the bytes belong to the executable.
        let format = unsafe { text(CALL, "its format", found.format, found.format_size) }?;
        Ok(OptimizedProgram { format, code: code.to_vec() })
    }

    /// Queries the program, with `code_size` bytes of memory for it, or none.
    fn ask_program(&self, code: *mut c_char, code_size: usize) -> Result<PJRT_Program, PjrtError> {
        let (table, raw) = (self.table(), self.raw.as_ptr());
        let mut program = Handed::of(PJRT_Program {
            struct_size: struct_size(PJRT_Program::HISTORY, table.minor()),
            extension_start: ptr::null_mut(),
            code,
            code_size,
            format: ptr::null(),
            format_size: 0,
        });
        // SAFETY: the executable is alive, and the program is valid for the call, with as much
        // memory as it declares.
        unsafe {
            table.ask(|call: &mut PJRT_Executable_OptimizedProgram_Args| {
                call.executable = raw;
                call.program = &raw mut *program;
            })
        }?;
        Ok(*program)
    }

    /// Returns the executable as bytes, for
    /// [`Client::load_serialized`](crate::Client::load_serialized) with a plug-in of the same
    /// build.
    ///
    /// # Errors
    /// The plug-in's errors, or [`PjrtError::BadAnswer`].
    pub fn serialize(&self) -> Result<Vec<u8>, PjrtError> {
        const CALL: &str = "PJRT_Executable_Serialize";
        let found = of_executable!(self, PJRT_Executable_Serialize_Args)?;
        let bytes = (found.serialized_bytes, found.serialized_bytes_size);
        let (owner, deleter) = (found.serialized_executable, found.serialized_executable_deleter);
        // SAFETY: a successful call returns this number of bytes and their owner.
        unsafe { owned_bytes(CALL, "an executable", bytes, owner, deleter) }
    }

    /// Fails unless a call reports the number of outputs that the executable has.
    pub(super) fn check_count(&self, call: &'static str, found: usize) -> Result<(), PjrtError> {
        if found == self.outputs {
            return Ok(());
        }
        let found = format!("{found}, and {} were said before", self.outputs);
        Err(bad(call, "the number of outputs", found, "the same"))
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // An error has no consequence.
        let _ = of_executable!(self, PJRT_Executable_Destroy_Args);
    }
}

fn bad(
    call: &'static str,
    what: &'static str,
    found: impl ToString,
    expected: &'static str,
) -> PjrtError {
    PjrtError::BadAnswer { call, what, found: found.to_string(), expected }
}

/// # Safety
/// `start` and `sizes` point to `count` entries, the texts and their lengths in bytes, or either is
/// NULL.
unsafe fn texts(
    call: &'static str,
    start: *const *const c_char,
    sizes: *const usize,
    count: usize,
) -> Result<Vec<String>, PjrtError> {
    // SAFETY: guaranteed by the caller.
    let (starts, sizes) =
        unsafe { (list(call, "its list", start, count)?, list(call, "its list", sizes, count)?) };
    let pairs = starts.iter().zip(sizes);
    // SAFETY: guaranteed by the caller.
    pairs.map(|(&start, &size)| unsafe { text(call, "a text", start, size) }).collect()
}
