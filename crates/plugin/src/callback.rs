//! Functions of a host that run in a stream.

use std::{
    ffi::{CStr, c_void},
    sync::Arc,
};

use serdes_abi::{SE_StatusCallbackFn, StatusFunctions, TF_Code};

use crate::{Result, Status, counters::Counters};

/// A function of the host, with its argument.
#[derive(Debug)]
pub struct HostCallback {
    function: SE_StatusCallbackFn,
    argument: *mut c_void,
    functions: StatusFunctions,
    counters: Arc<Counters>,
}

// SAFETY: the C API lets streams run these functions on their own threads, which the caller of
// `new` guarantees.
unsafe impl Send for HostCallback {}

impl HostCallback {
    /// # Safety
    /// The function may be called once, with this argument, on any thread; `functions` are the
    /// host's.
    pub(crate) unsafe fn new(
        function: SE_StatusCallbackFn,
        argument: *mut c_void,
        functions: StatusFunctions,
        counters: Arc<Counters>,
    ) -> Self {
        Self { function, argument, functions, counters }
    }

    /// Runs the function, once.
    ///
    /// # Errors
    /// The status that the function set; `RESOURCE_EXHAUSTED` if the host cannot create a status,
    /// in which case the function did not run, because it would write through NULL.
    pub fn run(self) -> Result<()> {
        let functions = &self.functions;
        // SAFETY: this function of the host has no arguments.
        let status = unsafe { (functions.new_status)() };
        if status.is_null() {
            return Err(Status::resource_exhausted("the host made no TF_Status for its callback"));
        }
        // SAFETY: `new` guarantees that the function may be called once, with this argument, on any
        // thread; `self` is consumed, so there is only one call.
        unsafe { (self.function)(self.argument, status) };
        self.counters.host_callbacks.destroyed_one();
        // SAFETY: `status` is a live status of the host, created above.
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
                // SAFETY: the host returns a NUL-terminated text that is valid until the status is
                // deleted; it is copied before that.
                unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
            };
            Err(Status::new(code, message))
        };
        // SAFETY: the same host created `status`, and it is not used after this.
        unsafe { (functions.delete_status)(status) };
        result
    }
}
