//! Registration, the implementation of `SE_InitPlugin`.

use std::{ffi::CString, ptr, sync::Arc};

use serdes_abi::{
    Family, Layout, SE_MAJOR, SE_PlatformRegistrationParams, SP_Platform, SP_PlatformFns,
    StatusFunctions, TF_Status, rfc,
};

use super::{
    allocators,
    host_struct::{HostStruct, layout_of_host, struct_layout},
    platform,
    state::{ANY_FUNCTIONS, RegisteredPlatform, answer},
};
use crate::{
    Result, Status,
    device::{Allocator, Platform, Settings},
    panic::contain,
};

/// Registers a platform with a host, as the body of `SE_InitPlugin`.
///
/// A shared library calls this through [`export!`](crate::export). A plug-in that is linked into
/// its host calls it from a function with the signature of `SE_InitPlugin` and passes the host's
/// status functions, so that no symbol is needed.
///
/// `make` is called only after the host's parameters are found valid and its MAJOR number equals
/// ours. On failure, the status has the reason, and nothing is written into the host's structs.
///
/// # Safety
/// * `params` is NULL or points to parameters as the C API describes them: with their own size,
///   with a platform and functions that have theirs, writable, and not accessed by others during
///   the call.
/// * `status` is NULL or a live status of the host, on which `functions` operate; these are
///   callable from any thread until the plug-in's last function has returned.
/// * The host uses the functions that it gets here as the C API describes, and does not use a
///   handle after destroying it.
pub unsafe fn register<P: Platform>(
    params: *mut SE_PlatformRegistrationParams,
    status: *mut TF_Status,
    functions: StatusFunctions,
    make: impl FnOnce() -> Result<P>,
) {
    ANY_FUNCTIONS.get_or_init(|| functions);
    // SAFETY: by the conditions above, the parameters are as `fill_params` requires.
    let result = contain(|| unsafe { fill_params(params, functions, make) });
    // SAFETY: the status is the host's and alive, by the conditions above.
    unsafe { answer(&functions, status, result) };
}

/// Refuses invalid parameters, or those of another MAJOR than ours.
///
/// # Safety
/// `params` as for [`register`].
unsafe fn check_params(params: *mut SE_PlatformRegistrationParams) -> Result<()> {
    if params.is_null() {
        return Err(Status::invalid_argument("the SE_PlatformRegistrationParams is NULL"));
    }
    // SAFETY: not NULL; every struct begins with its size.
    let announced = unsafe { (*params).struct_size };
    if announced < SE_PlatformRegistrationParams::STRUCT_SIZE {
        return Err(Status::invalid_argument(format!(
            "the host's SE_PlatformRegistrationParams has struct_size {announced}; at least {} is needed \
             (SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE): the host must set it before it calls SE_InitPlugin",
            SE_PlatformRegistrationParams::STRUCT_SIZE
        )));
    }
    // SAFETY: the host's size includes at least the fields that we know.
    let (major, minor, patch) =
        unsafe { ((*params).major_version, (*params).minor_version, (*params).patch_version) };
    if major != SE_MAJOR {
        return Err(Status::failed_precondition(format!(
            "the host speaks version {major}.{minor}.{patch} of the StreamExecutor C API, and this plug-in MAJOR {SE_MAJOR}: \
             different MAJOR numbers do not work together; use a build of the plug-in for that version"
        )));
    }
    // SAFETY: as above.
    let (platform, functions) = unsafe { ((*params).platform, (*params).platform_fns) };
    for (name, is_null) in [("platform", platform.is_null()), ("platform_fns", functions.is_null())]
    {
        if is_null {
            return Err(Status::invalid_argument(format!(
                "SE_PlatformRegistrationParams.{name} is NULL: the host owns that struct and must point to it"
            )));
        }
    }
    Ok(())
}

/// The host's platform and its functions, and the layout in which they are filled.
struct HostStructs {
    layout: &'static Layout,
    platform: HostStruct,
    functions: HostStruct,
}

impl HostStructs {
    /// Chooses the layout that the settings force, or the one with the sizes that the host presets.
    ///
    /// # Safety
    /// `params` as for [`register`], and valid ([`check_params`]).
    unsafe fn of(params: *mut SE_PlatformRegistrationParams, settings: &Settings) -> Result<Self> {
        // SAFETY: the parameters are valid: not NULL, with pointers that are not NULL.
        let (platform, functions) = unsafe { ((*params).platform, (*params).platform_fns) };
        // SAFETY: the pointers are not NULL, so they are structs of the host, which begin with
        // their sizes.
        let sizes = unsafe { ((*platform).struct_size, (*functions).struct_size) };
        let forced = settings.layout.is_some();
        let layout = settings.layout.unwrap_or_else(|| layout_of_host(sizes.0, sizes.1));
        let platform_layout = struct_layout(layout, "SP_Platform", &SP_Platform::LAYOUT);
        let functions_layout = struct_layout(layout, "SP_PlatformFns", &SP_PlatformFns::LAYOUT);
        // SAFETY: the structs belong to the host and declare their sizes; if the layout is forced,
        // the author who forces it is responsible for it.
        let (platform, functions) = unsafe {
            (
                HostStruct::new(platform.cast(), platform_layout, forced),
                HostStruct::new(functions.cast(), functions_layout, forced),
            )
        };
        if !platform.has("type") || !functions.is_whole() {
            return Err(Status::failed_precondition(format!(
                "the host's structs are too small for layout {}: SP_Platform has {} bytes, SP_PlatformFns has {}",
                layout.name,
                platform.capacity(),
                functions.capacity(),
            )));
        }
        Ok(Self { layout, platform, functions })
    }
}

/// # Safety
/// As for [`register`].
unsafe fn fill_params<P: Platform>(
    params: *mut SE_PlatformRegistrationParams,
    functions: StatusFunctions,
    make: impl FnOnce() -> Result<P>,
) -> Result<()> {
    // SAFETY: the parameters are as `register` requires.
    unsafe { check_params(params) }?;
    let made = make()?;
    let settings = made.settings();
    // SAFETY: as above, and the parameters are valid.
    let host = unsafe { HostStructs::of(params, &settings) }?;
    let state = Arc::new(RegisteredPlatform {
        name: checked_name("name", made.name())?,
        device_type: checked_name("type", made.device_type())?,
        platform: made,
        settings,
        functions,
        layout: host.layout,
    });
    // Layouts without get_device_count have the number in the struct.
    let devices =
        if host.platform.has("visible_device_count") { state.platform.device_count()? } else { 0 };

    let best_fit = matches!(state.settings.allocator, Allocator::BestFit { .. });
    let growth = matches!(state.settings.allocator, Allocator::BestFit { growth: true });
    let filled = SP_Platform {
        struct_size: 0,
        ext: Arc::as_ptr(&state).cast_mut().cast(),
        name: state.name.as_ptr(),
        r#type: state.device_type.as_ptr(),
        supports_unified_memory: u8::from(state.settings.unified_memory),
        use_bfc_allocator: u8::from(best_fit),
        force_memory_growth: u8::from(growth),
    };
    // SAFETY: the layout describes `filled`; fields with the same name have the same type in all
    // layouts (the layouts' own assertions); the count is a size_t where it exists. The structs are
    // the host's, and not accessed by others.
    unsafe {
        host.platform.set("visible_device_count", devices as usize);
        host.platform.fill((&raw const filled).cast(), &SP_Platform::LAYOUT);
        fill_functions::<P>(host.functions, host.layout, state.settings.allocator);
        (*params).struct_size = SE_PlatformRegistrationParams::STRUCT_SIZE;
        (*params).destroy_platform = Some(platform::destroy_platform::<P>);
        (*params).destroy_platform_fns = Some(platform::destroy_platform_fns);
    }
    state.settings.counters.platforms.created_one();
    // The host's struct owns the state from now on; `destroy_platform` reclaims it.
    let _ = Arc::into_raw(state);
    Ok(())
}

/// # Safety
/// `target` is an SP_PlatformFns of this layout, which belongs to the host and is not accessed by
/// others.
unsafe fn fill_functions<P: Platform>(target: HostStruct, layout: &Layout, allocator: Allocator) {
    if layout.family == Family::Rfc {
        let best_fit = matches!(allocator, Allocator::BestFit { .. });
        let filled = rfc::SP_PlatformFns {
            struct_size: 0,
            ext: ptr::null_mut(),
            create_device: Some(platform::create_device::<P>),
            destroy_device: Some(platform::destroy_device::<P>),
            create_stream_executor: Some(platform::create_stream_executor::<P>),
            destroy_stream_executor: Some(platform::destroy_stream_executor::<P>),
            create_timer_fns: Some(platform::create_timer_fns::<P>),
            destroy_timer_fns: Some(platform::destroy_timer_fns::<P>),
            create_allocator: if best_fit { Some(allocators::create_allocator::<P>) } else { None },
            destroy_allocator: if best_fit {
                Some(allocators::destroy_allocator::<P>)
            } else {
                None
            },
            create_custom_allocator: if best_fit {
                None
            } else {
                Some(allocators::create_custom_allocator::<P>)
            },
            destroy_custom_allocator: if best_fit {
                None
            } else {
                Some(allocators::destroy_custom_allocator::<P>)
            },
        };
        // SAFETY: the layout describes `filled`, and by the condition above the struct is the
        // host's.
        unsafe { target.fill((&raw const filled).cast(), &rfc::SP_PlatformFns::LAYOUT) };
    } else {
        let filled = SP_PlatformFns {
            struct_size: 0,
            ext: ptr::null_mut(),
            get_device_count: Some(platform::get_device_count::<P>),
            create_device: Some(platform::create_device::<P>),
            destroy_device: Some(platform::destroy_device::<P>),
            create_device_fns: Some(platform::create_device_fns::<P>),
            destroy_device_fns: Some(platform::destroy_device_fns::<P>),
            create_stream_executor: Some(platform::create_stream_executor::<P>),
            destroy_stream_executor: Some(platform::destroy_stream_executor::<P>),
            create_timer_fns: Some(platform::create_timer_fns::<P>),
            destroy_timer_fns: Some(platform::destroy_timer_fns::<P>),
        };
        // SAFETY: the layout describes `filled`, and by the condition above the struct is the
        // host's.
        unsafe { target.fill((&raw const filled).cast(), &SP_PlatformFns::LAYOUT) };
    }
}

/// Returns a name in the form that hosts accept, or an error.
fn checked_name(field: &str, name: &str) -> Result<CString> {
    let mut bytes = name.bytes();
    let legal = bytes.next().is_some_and(|first| first.is_ascii_uppercase())
        && bytes.all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if !legal {
        return Err(Status::failed_precondition(format!(
            "SP_Platform.{field} is {name:?}; hosts take capital letters and underscores, beginning with a letter"
        )));
    }
    CString::new(name).map_err(|_| Status::internal("a checked name has a NUL byte"))
}
