//! Functions that a host puts into a stream.

use std::{
    ffi::{CStr, c_void},
    sync::Arc,
};

use serdes_abi::{SE_StatusCallbackFn, StatusFunctions, TF_Code};

use crate::{Result, Status, counters::Counters};

/// A function of the host's with its argument.
#[derive(Debug)]
pub struct HostCallback {
    function: SE_StatusCallbackFn,
    argument: *mut c_void,
    functions: StatusFunctions,
    counters: Arc<Counters>,
}

// SAFETY: the C API has streams run these functions on threads of their own; the caller of `new`
// promises it.
unsafe impl Send for HostCallback {}

impl HostCallback {
    /// # Safety
    /// The function may be called once, with that argument, on any thread; `functions` are the
    /// host's.
    pub(crate) unsafe fn new(
        function: SE_StatusCallbackFn,
        argument: *mut c_void,
        functions: StatusFunctions,
        counters: Arc<Counters>,
    ) -> Self {
        Self { function, argument, functions, counters }
    }

    /// Runs it, once.
    ///
    /// # Errors
    /// The status that the function set; `RESOURCE_EXHAUSTED` if the host gives no status to set,
    /// in which case the function did not run: it would write through NULL.
    pub fn run(self) -> Result<()> {
        let functions = &self.functions;
        // SAFETY: a function of the host's without arguments.
        let status = unsafe { (functions.new_status)() };
        if status.is_null() {
            return Err(Status::resource_exhausted("the host made no TF_Status for its callback"));
        }
        // SAFETY: `new` promises that the function may be called once, with this argument, on any
        // thread; `self` is consumed, so this is the one time.
        unsafe { (self.function)(self.argument, status) };
        self.counters.host_callbacks.destroyed_one();
        // SAFETY: `status` is a live status of the host's, made above.
        let code = unsafe { (functions.get_code)(status) };
        let result = if code == TF_Code::OK {
            Ok(())
        } else {
            // SAFETY: as above; the text is valid until the status is set or deleted, which happens
            // below.
            let message = unsafe { (functions.message)(status) };
            let message = if message.is_null() {
                String::new()
            } else {
                // SAFETY: the host gives a NUL-terminated text that stays until the status is
                // deleted; it is copied before that.
                unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
            };
            Err(Status::new(code, message))
        };
        // SAFETY: `status` was made by the same host and is not used after this.
        unsafe { (functions.delete_status)(status) };
        result
    }
}
