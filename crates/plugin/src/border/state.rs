//! The state behind the handles of a host: looks it up, and runs an author's code so that every
//! failure becomes a status or is dropped.

use std::{
    ffi::CString,
    sync::{Arc, OnceLock},
};

use serdes_abi::{SP_Device, SP_Platform, StatusFunctions, TF_Code, TF_Status};

use crate::{
    Result, Status,
    device::{Platform, Settings},
    panic::contain,
};

/// The state of a registered platform; `SP_Platform.ext` points to it.
pub(super) struct RegisteredPlatform<P> {
    pub(super) platform: P,
    pub(super) settings: Settings,
    pub(super) functions: StatusFunctions,
    pub(super) name: CString,
    pub(super) device_type: CString,
    pub(super) layout: &'static serdes_abi::Layout,
}

impl<P> RegisteredPlatform<P> {
    /// Returns true if the author chose the layout, independently of the host's sizes.
    pub(super) fn is_layout_forced(&self) -> bool {
        self.settings.layout.is_some()
    }
}

/// The state of an open device; `SP_Device.device_handle` points to it.
pub(super) struct OpenDevice<P: Platform> {
    pub(super) device: P::Device,
    pub(super) platform: Arc<RegisteredPlatform<P>>,
    pub(super) texts: [Option<CString>; 3],
    pub(super) numa_node: i32,
    pub(super) memory_bandwidth: i64,
    pub(super) gflops: f64,
}

/// The first table of status functions that was registered. A shared library has only one host, so
/// this is that host's table; it serves calls whose handle has no state and that could not report
/// an error otherwise.
pub(super) static ANY_FUNCTIONS: OnceLock<StatusFunctions> = OnceLock::new();

/// Sets the host's status.
///
/// # Safety
/// `status` is NULL or a live status of the host that gave `functions`.
pub(super) unsafe fn answer(
    functions: &StatusFunctions,
    status: *mut TF_Status,
    result: Result<()>,
) {
    if status.is_null() {
        return;
    }
    match result {
        // Hosts reuse statuses, so success replaces an older failure; reading the code is cheaper
        // than setting it. SAFETY: the caller's promise; the text is a constant with a NUL.
        Ok(()) => unsafe {
            if (functions.get_code)(status) != TF_Code::OK {
                (functions.set_status)(status, TF_Code::OK, c"".as_ptr());
            }
        },
        Err(failure) => {
            let message = failure.c_message();
            // SAFETY: the caller's promise; the host copies the text before it returns.
            unsafe { (functions.set_status)(status, failure.code(), message.as_ptr()) };
        }
    }
}

/// Reports the failure of a call whose handle has no state.
///
/// # Safety
/// `status` is NULL or a live status of the host that registered the plug-in.
unsafe fn answer_without_state(status: *mut TF_Status, failure: Status) {
    if let Some(functions) = ANY_FUNCTIONS.get() {
        // SAFETY: the caller's promise.
        unsafe { answer(functions, status, Err(failure)) };
    }
}

/// Returns the state behind a platform.
///
/// # Safety
/// `platform` is NULL, or a platform that `register::<P>` filled and `destroy_platform::<P>` has
/// not yet destroyed; the state is not used after that.
pub(super) unsafe fn platform_state<'a, P: Platform>(
    platform: *const SP_Platform,
) -> Result<&'a RegisteredPlatform<P>> {
    if platform.is_null() {
        return Err(Status::invalid_argument("the SP_Platform is NULL"));
    }
    // SAFETY: not NULL, so the caller says that it is a platform; every layout has `ext` there.
    let state = unsafe { (*platform).ext }.cast::<RegisteredPlatform<P>>();
    // SAFETY: `register::<P>` put a `RegisteredPlatform<P>` there, which lives until
    // `destroy_platform::<P>` makes `ext` NULL.
    unsafe { state.as_ref() }.ok_or_else(|| {
        Status::invalid_argument("SP_Platform.ext is NULL: the platform was destroyed, or the host does not keep what the plug-in put there")
    })
}

/// Returns the state behind a device.
///
/// # Safety
/// `device` is NULL, or a device that `create_device::<P>` filled and `destroy_device::<P>` has not
/// yet destroyed; the state is not used after that.
pub(super) unsafe fn device_state<'a, P: Platform>(
    device: *const SP_Device,
) -> Result<&'a OpenDevice<P>> {
    if device.is_null() {
        return Err(Status::invalid_argument("the SP_Device is NULL"));
    }
    // SAFETY: not NULL, so the caller says that it is a device; every layout has `device_handle`
    // there.
    let state = unsafe { (*device).device_handle }.cast::<OpenDevice<P>>();
    // SAFETY: `create_device::<P>` put an `OpenDevice<P>` there, which lives until
    // `destroy_device::<P>` makes the handle NULL.
    unsafe { state.as_ref() }.ok_or_else(|| {
        Status::invalid_argument(
            "SP_Device.device_handle is NULL: the device was never created, or is destroyed",
        )
    })
}

/// Runs an operation on a platform and reports its result to the host.
///
/// # Safety
/// As for [`platform_state`]; `status` is NULL or a live status of the host that registered the
/// platform.
pub(super) unsafe fn with_platform<P: Platform>(
    platform: *const SP_Platform,
    status: *mut TF_Status,
    operation: impl FnOnce(&RegisteredPlatform<P>) -> Result<()>,
) {
    // SAFETY: the caller's promise.
    match unsafe { platform_state::<P>(platform) } {
        // SAFETY: the caller's promise about the status.
        Ok(state) => unsafe { answer(&state.functions, status, contain(|| operation(state))) },
        // SAFETY: as above.
        Err(failure) => unsafe { answer_without_state(status, failure) },
    }
}

/// Runs an operation on a device and reports its result to the host.
///
/// # Safety
/// As for [`device_state`]; `status` is NULL or a live status of the host that created the device.
pub(super) unsafe fn with_device<P: Platform>(
    device: *const SP_Device,
    status: *mut TF_Status,
    operation: impl FnOnce(&OpenDevice<P>) -> Result<()>,
) {
    // SAFETY: the caller's promise.
    match unsafe { device_state::<P>(device) } {
        // SAFETY: the caller's promise about the status.
        Ok(state) => unsafe {
            answer(&state.platform.functions, status, contain(|| operation(state)))
        },
        // SAFETY: as above.
        Err(failure) => unsafe { answer_without_state(status, failure) },
    }
}

/// Runs an operation on a device for a function of the C API without a status; `None` if it fails.
///
/// # Safety
/// As for [`device_state`].
pub(super) unsafe fn try_device<P: Platform, T>(
    device: *const SP_Device,
    operation: impl FnOnce(&OpenDevice<P>) -> Option<T>,
) -> Option<T> {
    // SAFETY: the caller's promise.
    let state = unsafe { device_state::<P>(device) }.ok()?;
    contain(|| Ok(operation(state))).ok().flatten()
}
