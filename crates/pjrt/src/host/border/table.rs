//! The table of a plug-in's functions, and calls through it.

use std::{
    ffi::c_void,
    ops::{Deref, DerefMut},
    ptr,
};

use serdes_abi::{
    TF_Code,
    pjrt::{self, Minor, PADDING, args::*},
};
use serdes_library_file::{LONGEST_MESSAGE, enter, printable};

use super::{
    calls::{CALLS, Call, RawFunction},
    extensions::{Chain, Extension},
    payloads::{self, ErrorPayload},
};
use crate::PjrtError;

/// A function without a result.
type RawProcedure = unsafe extern "C" fn(*mut c_void);

/// Arguments in the form that is passed: followed by space for fields that a newer plug-in may
/// read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(in crate::host) struct Handed<A> {
    arguments: A,
    room: [u64; PADDING / size_of::<u64>()],
}

impl<A: Arguments> Handed<A> {
    #[inline]
    pub(in crate::host) fn new() -> Self {
        Self::of(A::new())
    }
}

impl<A> Handed<A> {
    /// Wraps any struct, with this space after it. The caller sets its size.
    #[inline]
    pub(in crate::host) fn of(arguments: A) -> Self {
        Self { arguments, room: [0; PADDING / size_of::<u64>()] }
    }
}

impl<A> Deref for Handed<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.arguments
    }
}

impl<A> DerefMut for Handed<A> {
    fn deref_mut(&mut self) -> &mut A {
        &mut self.arguments
    }
}

/// One function of a plug-in.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// `None` if the table is too short, or contains NULL.
    function: Option<RawFunction>,
    /// The declared size of its arguments, in bytes.
    struct_size: usize,
}

/// The functions of a plug-in, and the sizes of their arguments in its version.
#[derive(Debug)]
pub(in crate::host) struct Table {
    entries: [Entry; CALLS.len()],
    minor: Minor,
    struct_size: usize,
    extensions: Chain,
    warnings: Vec<String>,
}

/// The offsets of the table's own fields, in bytes.
const EXTENSION_START: usize = 8;
const VERSION_SIZE: usize = 16;
const MAJOR: usize = 32;
const MINOR: usize = 36;
const FIRST_FUNCTION: usize = 40;

impl Table {
    /// Reads the table at `address`.
    ///
    /// # Errors
    /// [`PjrtError::BadTable`], [`PjrtError::OtherMajor`] or [`PjrtError::TooOld`].
    ///
    /// # Safety
    /// `address` is NULL, or the result of `GetPjrtApi` of a library that is never closed, and has
    /// as many bytes as its first field declares.
    pub(in crate::host) unsafe fn read(address: *const u8) -> Result<Self, PjrtError> {
        let bad = |what, found: String, expected| PjrtError::BadTable { what, found, expected };
        if address.is_null() {
            return Err(bad("its address", "NULL".to_owned(), "a table of functions"));
        }
        if !address.addr().is_multiple_of(align_of::<usize>()) {
            return Err(bad("its address", format!("{address:?}"), "a multiple of 8"));
        }
        // SAFETY: the caller guarantees a table; each begins with this field. The address is
        // aligned.
        let struct_size = unsafe { address.cast::<usize>().read() };
        if struct_size < FIRST_FUNCTION {
            return Err(bad("its size", struct_size.to_string(), "40 bytes and more"));
        }
        // SAFETY: both are in the first 40 bytes, and the table has at least those.
        let number = |at: usize| unsafe { address.add(at).cast::<i32>().read() };
        let (major, minor) = (number(MAJOR), number(MINOR));
        let Some(minor) = u32::try_from(minor).ok().map(Minor::new).filter(|_| major == 0) else {
            return Err(PjrtError::OtherMajor { major, minor });
        };
        if !minor.is_supported() {
            return Err(PjrtError::TooOld { minor });
        }
        let mut warnings = Vec::new();
        let readable = readable(minor, struct_size, &mut warnings);
        let mut entries = [Entry { function: None, struct_size: 0 }; CALLS.len()];
        for (entry, &(name, arguments)) in entries.iter_mut().zip(CALLS) {
            let offset = pjrt::function(name).and_then(|function| function.offset(minor));
            let within = offset.filter(|offset| offset + size_of::<usize>() <= readable);
            entry.function = within.and_then(|offset| {
                // SAFETY: the pointer ends inside the table, whose slots are aligned like the
                // table; a slot is NULL or a function of this type, and NULL is `None`.
                unsafe { address.add(offset).cast::<Option<RawFunction>>().read() }
            });
            if within.is_some() && entry.function.is_none() {
                warnings.push(format!("{name} is NULL, although the table has its slot"));
            }
            entry.struct_size = arguments.handover(minor).map_or(0, |given| given.struct_size);
        }
        // SAFETY: the field is in the first 40 bytes.
        let version_size = unsafe { address.add(VERSION_SIZE).cast::<usize>().read() };
        if version_size != FIRST_FUNCTION - VERSION_SIZE {
            warnings
                .push(format!("its version says that it has {version_size} bytes, expected 24"));
        }
        // SAFETY: as above; it points to the first extension, or is NULL.
        let first = unsafe { address.add(EXTENSION_START).cast::<*const u8>().read() };
        // SAFETY: `first` is the start of a chain as the C API defines it.
        let extensions = unsafe { Chain::walk(first, minor, &mut warnings) };
        Ok(Self { entries, minor, struct_size, extensions, warnings })
    }

    pub(in crate::host) fn minor(&self) -> Minor {
        self.minor
    }

    pub(in crate::host) fn struct_size(&self) -> usize {
        self.struct_size
    }

    pub(in crate::host) fn extensions(&self) -> &[Extension] {
        self.extensions.extensions()
    }

    pub(in crate::host) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the functions that this host calls and the plug-in does not have.
    pub(in crate::host) fn missing(&self) -> impl Iterator<Item = &'static str> {
        let entries = self.entries.iter().zip(CALLS);
        entries.filter(|(entry, _)| entry.function.is_none()).map(|(_, call)| call.0)
    }

    /// Returns true if the plug-in has the function `name`; false for functions that this host
    /// never calls.
    pub(in crate::host) fn has(&self, name: &str) -> bool {
        let mut entries = self.entries.iter().zip(CALLS);
        entries.any(|(entry, call)| call.0 == name && entry.function.is_some())
    }

    /// Fails unless the plug-in has the function.
    pub(in crate::host) fn require<A: Call>(&self) -> Result<(), PjrtError> {
        self.entry::<A>().map(drop)
    }

    fn entry<A: Call>(&self) -> Result<(RawFunction, usize), PjrtError> {
        let entry = self.entries.get(A::INDEX);
        let called = entry.and_then(|entry| Some((entry.function?, entry.struct_size)));
        called.ok_or_else(|| self.without::<A>())
    }

    #[cold]
    pub(in crate::host) fn without<A: Call>(&self) -> PjrtError {
        let function = *A::FUNCTION;
        let since = pjrt::function(function).map_or(Minor::NEWEST, |found| found.since());
        PjrtError::Missing { function, since, minor: self.minor }
    }

    /// Calls the function that the arguments belong to. Its results may be read only if it
    /// succeeds.
    ///
    /// # Errors
    /// [`PjrtError::Missing`] if the plug-in does not have the function, [`PjrtError::Status`] if
    /// it reports an error.
    ///
    /// # Safety
    /// The arguments are as the C API requires for this call: live handles of this plug-in, and
    /// pointers to as many items as their counts declare.
    pub(in crate::host) unsafe fn call<A: Call>(
        &self,
        arguments: &mut Handed<A>,
    ) -> Result<(), PjrtError> {
        let (function, struct_size) = self.entry::<A>()?;
        let address = ptr::from_mut(arguments);
        let error = {
            let _call = enter(A::FUNCTION);
            // SAFETY: every struct of arguments begins with its size. The function is the plug-in's
            // for these arguments, since the slot was found by the history of its minor. It gets as
            // many bytes as are declared, and padding after them.
            unsafe {
                address.cast::<usize>().write(struct_size);
                function(address.cast())
            }
        };
        if error.is_null() { Ok(()) } else { Err(self.error(A::FUNCTION, error)) }
    }

    /// Calls a function with arguments that `fill` has set, and returns them with the results.
    ///
    /// # Errors
    /// As [`Self::call`].
    ///
    /// # Safety
    /// As [`Self::call`].
    #[inline]
    pub(in crate::host) unsafe fn ask<A: Call>(
        &self,
        fill: impl FnOnce(&mut A),
    ) -> Result<A, PjrtError> {
        let mut arguments = Handed::<A>::new();
        fill(&mut arguments);
        // SAFETY: guaranteed by the caller.
        unsafe { self.call(&mut arguments) }?;
        Ok(*arguments)
    }

    /// Fails unless one of the plug-in's extensions has the function.
    pub(in crate::host) fn require_extension<A: ExtensionArguments>(
        &self,
    ) -> Result<(), PjrtError> {
        self.extension_function::<A>().map(drop)
    }

    fn extension_function<A: ExtensionArguments>(&self) -> Result<RawFunction, PjrtError> {
        let missing = || PjrtError::NotInExtensions { function: A::FUNCTION, minor: self.minor };
        self.extensions.function(A::EXTENSION, A::OFFSET).ok_or_else(missing)
    }

    /// Calls a function of an extension, like [`Self::ask`] for the table.
    ///
    /// # Errors
    /// [`PjrtError::NotInExtensions`] if the plug-in does not have the function,
    /// [`PjrtError::Status`] if it reports an error.
    ///
    /// # Safety
    /// As [`Self::call`].
    pub(in crate::host) unsafe fn ask_extension<A: ExtensionArguments>(
        &self,
        fill: impl FnOnce(&mut A),
    ) -> Result<A, PjrtError> {
        let called = self.extension_function::<A>()?;
        let mut arguments = Handed::of(A::new());
        fill(&mut arguments);
        let error = {
            let _call = enter(A::FUNCTION);
            // SAFETY: the function is the one for these arguments: it was found in its extension,
            // at its offset. The struct declares its own size, and padding follows it.
            unsafe { called(ptr::from_mut(&mut arguments).cast()) }
        };
        self.taken(A::FUNCTION, error)?;
        Ok(*arguments)
    }

    /// Takes ownership of an error that a plug-in returned, and destroys it. NULL is no error.
    pub(in crate::host) fn taken(
        &self,
        call: &'static str,
        error: *mut PJRT_Error,
    ) -> Result<(), PjrtError> {
        if error.is_null() { Ok(()) } else { Err(self.error(call, error)) }
    }

    #[cold]
    fn error(&self, call: &'static str, error: *mut PJRT_Error) -> PjrtError {
        let mut code = Handed::<PJRT_Error_GetCode_Args>::new();
        code.error = error;
        let code = match self.entry::<PJRT_Error_GetCode_Args>() {
            Ok((function, struct_size)) => {
                code.struct_size = struct_size;
                // SAFETY: the error is alive, and the function is the one for these arguments. It
                // does not return an error whose code could be queried in turn.
                let failed = unsafe { function(ptr::from_mut(&mut code).cast()) };
                self.destroy(failed);
                code.code
            }
            Err(_) => TF_Code::UNKNOWN.0,
        };
        let mut message = Handed::<PJRT_Error_Message_Args>::new();
        message.error = error;
        self.procedure(&mut message);
        let bytes = match (message.message.is_null(), message.message_size) {
            (true, _) | (_, 0) => &[][..],
            // SAFETY: the plug-in declares this length in bytes; a message belongs to its error,
            // which is destroyed after it has been copied. At most 16 KiB are read.
            (false, size) => unsafe {
                std::slice::from_raw_parts(message.message.cast(), size.min(LONGEST_MESSAGE))
            },
        };
        let message = printable(bytes);
        let payloads = self.payloads(error);
        self.destroy(error);
        PjrtError::Status { call, code: TF_Code(code), message, payloads }
    }

    /// Returns the payloads of an error; empty if the plug-in lacks the function for them.
    fn payloads(&self, error: *mut PJRT_Error) -> Vec<ErrorPayload> {
        let Ok((function, struct_size)) = self.entry::<PJRT_Error_ForEachPayload_Args>() else {
            return Vec::new();
        };
        let mut arguments = Handed::<PJRT_Error_ForEachPayload_Args>::new();
        arguments.struct_size = struct_size;
        arguments.error = error;
        arguments.visitor = Some(payloads::visit);
        let (failed, found) = payloads::collected(|| {
            let _call = enter(PJRT_Error_ForEachPayload_Args::FUNCTION);
            // SAFETY: the error is alive, the function is the one for these arguments, and the
            // visitor accepts any bytes.
            unsafe { function(ptr::from_mut(&mut arguments).cast()) }
        });
        self.destroy(failed);
        found
    }

    fn destroy(&self, error: *mut PJRT_Error) {
        if !error.is_null() {
            let mut arguments = Handed::<PJRT_Error_Destroy_Args>::new();
            arguments.error = error;
            self.procedure(&mut arguments);
        }
    }

    /// Calls one of the two functions without a result; does nothing if it is missing.
    fn procedure<A: Call>(&self, arguments: &mut Handed<A>) {
        let Ok((function, struct_size)) = self.entry::<A>() else { return };
        let address = ptr::from_mut(arguments);
        let _call = enter(A::FUNCTION);
        // SAFETY: as in `call`. The function is declared without a result, so it is called with its
        // real type; the table has one type for all.
        unsafe {
            let procedure = std::mem::transmute::<RawFunction, RawProcedure>(function);
            address.cast::<usize>().write(struct_size);
            procedure(address.cast());
        }
    }
}

/// Returns the number of readable bytes in a table of `minor`: the declared size, or that of the
/// known table if upstream did not update the size macro with the table.
fn readable(minor: Minor, struct_size: usize, warnings: &mut Vec<String>) -> usize {
    let Some(known) = pjrt::table_size(minor) else { return struct_size };
    let is_known = minor.is_known();
    if is_known && struct_size == known.declared {
        return known.size_of;
    }
    if struct_size < known.declared || (is_known && struct_size > known.size_of) {
        warnings.push(format!(
            "its table has {struct_size} bytes, and tables of PJRT {minor} have {}",
            known.size_of
        ));
    }
    struct_size
}
