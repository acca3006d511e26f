//! Calls of the table that the conformance suite makes and examines.

use serdes_abi::pjrt::args::Arguments;

use super::{CallRecord, Slots};
use crate::PjrtError;

impl CallRecord {
    /// Returns true if the plug-in wrote nothing after the size that the caller declared.
    pub(crate) fn is_untouched(&self) -> bool {
        self.words.iter().skip(1).all(|&word| word == 0)
    }
}

impl Slots {
    pub(crate) fn address(&self) -> *const u8 {
        self.address
    }

    /// Calls the function that the arguments belong to, and declares the size that a plug-in of its
    /// version was built with. Its results may be read only if it succeeds.
    ///
    /// # Errors
    /// As [`Self::call`].
    ///
    /// # Safety
    /// The arguments are as the C API requires for the call, except for values that the plug-in
    /// refuses.
    pub(crate) unsafe fn call_with<A: Arguments>(
        &self,
        arguments: &mut A,
    ) -> Result<(), PjrtError> {
        let mut record = CallRecord::new(size_of::<A>());
        let place: *mut A = record.words.as_mut_ptr().cast();
        // SAFETY: the record is longer than the struct, which is aligned like its words.
        unsafe { place.write(*arguments) };
        let size = A::STRUCT.handover(self.minor()).map_or(0, |given| given.struct_size);
        // SAFETY: as the caller promises.
        unsafe { self.call(A::FUNCTION, &mut record, size) }?;
        // SAFETY: the record still holds the struct; any bytes are a value of it.
        *arguments = unsafe { record.words.as_ptr().cast::<A>().read() };
        Ok(())
    }
}
