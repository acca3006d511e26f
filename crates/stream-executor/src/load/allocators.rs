//! Selects the functions that allocate memory: the executor's, or those of one of the two kinds of
//! allocators of RFC #257. They are bound here, so that the code after the registration is the same
//! for all.

use std::{ffi::c_void, ptr};

use serdes_abi::{
    SP_Platform, SP_StreamExecutor, StructLayout,
    rfc::{
        SE_CreateAllocatorParams, SE_CreateCustomAllocatorParams, SP_Allocator, SP_AllocatorFns,
        SP_CustomAllocator, SP_CustomAllocatorFns, SP_PlatformFns,
    },
};

use super::{
    requirements,
    struct_checks::{check_struct, succeeded},
};
use crate::{
    border::{
        Bound, DeviceAllocate, DeviceFree, HostAllocate, HostFree, MemoryFunctions, Pair,
        Statistics, Status, StructMemory, StructView, Usage, allocator_functions,
        custom_allocator_functions, enter,
    },
    report::Report,
};

/// The alignment that is requested from custom allocators, in bytes, which is the one that
/// TensorFlow requests from its own allocators.
const ALIGNMENT: usize = 64;

/// Frees the resources of an allocator and its functions.
type Destroy = dyn Fn(*const SP_Platform);

/// Binds a function of a table, if it exists: converts between the form that all plug-ins share and
/// the arguments of the function.
macro_rules! bind {
    ($form:ty, $table:ident.$field:ident, |$($argument:ident),*| ($($given:expr),*)) => {
        $table.$field.map(|function| {
            let bound: Box<$form> = Box::new(move |$($argument),*| {
                let _call = enter(&stringify!($field));
                // SAFETY: `Bound::get` has its caller vouch for the arguments of the form, which
                // are the function's but for constants and the allocator. That one is a struct that
                // the plug-in filled in for this function, and which `RfcAllocator` keeps as long
                // as the plug-in is registered.
                unsafe { function($($given),*) }
            });
            Bound::new(bound)
        })
    };
}

/// Returns the executor's functions; those for unified memory only if the platform declares that
/// they work.
pub(super) fn executor_memory(executor: &SP_StreamExecutor, unified: bool) -> MemoryFunctions {
    let unified = unified.then(|| {
        Pair::new(
            bind!(HostAllocate, executor.unified_memory_allocate, |device, bytes| (device, bytes)),
            bind!(HostFree, executor.unified_memory_deallocate, |device, memory| (device, memory)),
        )
    });
    MemoryFunctions {
        device: Pair::new(
            bind!(DeviceAllocate, executor.allocate, |device, bytes, memory| (
                device, bytes, 0, memory
            )),
            bind!(DeviceFree, executor.deallocate, |device, memory| (device, memory)),
        ),
        host: Pair::new(
            bind!(HostAllocate, executor.host_memory_allocate, |device, bytes| (device, bytes)),
            bind!(HostFree, executor.host_memory_deallocate, |device, memory| (device, memory)),
        ),
        unified: unified.flatten(),
        statistics: bind!(Statistics, executor.get_allocator_stats, |device, stats| (
            device, stats
        )),
        usage: bind!(Usage, executor.device_memory_usage, |device, free, total| (
            device, free, total
        )),
    }
}

/// An allocator of RFC #257 that the plug-in filled in.
#[derive(Debug)]
pub(super) struct RfcAllocator {
    /// The allocator, whose address the bound functions contain, and its functions.
    _structs: [StructMemory; 2],
    destroy: Option<Bound<Destroy>>,
    /// True if the platform declares memory that host and device address alike.
    pub(super) supports_unified_memory: bool,
}

impl RfcAllocator {
    /// Lets the plug-in free the allocator's resources.
    ///
    /// # Safety
    /// `platform` is the living platform that made the allocator; neither this nor a function of
    /// the allocator is called afterwards.
    pub(super) unsafe fn destroy(&self, platform: *const SP_Platform) {
        if let Some(destroy) = &self.destroy {
            // SAFETY: the platform is alive, and this is the only call, by the conditions above.
            unsafe { destroy.get()(platform) };
        }
    }
}

/// Lets the plug-in create its allocator, if it has one, and checks the allocator's functions.
pub(super) fn rfc_allocator(
    platform: *const SP_Platform,
    table: &SP_PlatformFns,
    report: &mut Report,
) -> Option<(MemoryFunctions, RfcAllocator)> {
    if table.create_allocator.is_some() {
        default_strategy(platform, table, report)
    } else {
        own_strategy(platform, table, report)
    }
}

/// Returns the view of a struct, with the size that the struct declares.
fn view<'a>(memory: &'a StructMemory, layout: &'static StructLayout) -> StructView<'a> {
    StructView::new(memory, layout, memory.struct_size())
}

/// Binds the functions of `create_allocator`: they are like the executor's, with the allocator as
/// second argument.
fn default_strategy(
    platform: *const SP_Platform,
    table: &SP_PlatformFns,
    report: &mut Report,
) -> Option<(MemoryFunctions, RfcAllocator)> {
    let create = table.create_allocator?;
    let layouts = const { (&SP_Allocator::LAYOUT, &SP_AllocatorFns::LAYOUT) };
    let structs =
        [StructMemory::new(layouts.0.struct_size), StructMemory::new(layouts.1.struct_size)];
    let (allocator, functions) = (structs[0].as_ptr(), structs[1].as_ptr());
    let mut parameters = SE_CreateAllocatorParams {
        struct_size: SE_CreateAllocatorParams::STRUCT_SIZE,
        ext: ptr::null_mut(),
        allocator,
        allocator_fns: functions,
    };
    let mut status = Status::new();
    {
        let _call = enter(&"create_allocator");
        // SAFETY: the platform is the one that the plug-in filled in; parameters, structs and
        // status live through the call.
        unsafe { create(platform, &raw mut parameters, status.as_mut_ptr()) };
    }
    if !succeeded(status, "create_allocator", report) {
        return None;
    }
    check_struct(&structs[0], layouts.0, report);
    check_struct(&structs[1], layouts.1, report);
    let unified = view(&structs[0], layouts.0).scalar::<u8>("supports_unified_memory");
    let unified = unified.is_some_and(|value| value != 0);
    let given = allocator_functions(view(&structs[1], layouts.1));
    requirements::default_strategy(&given, unified, report);
    let destroy =
        bind!(Destroy, table.destroy_allocator, |platform| (platform, allocator, functions));
    let made = RfcAllocator { _structs: structs, destroy, supports_unified_memory: unified };
    Some((default_strategy_memory(&given, allocator, unified), made))
}

fn default_strategy_memory(
    given: &SP_AllocatorFns,
    allocator: *const SP_Allocator,
    unified: bool,
) -> MemoryFunctions {
    let unified = unified.then(|| {
        Pair::new(
            bind!(HostAllocate, given.unified_memory_allocate, |device, bytes| (
                device, allocator, bytes
            )),
            bind!(HostFree, given.unified_memory_deallocate, |device, memory| (
                device, allocator, memory
            )),
        )
    });
    MemoryFunctions {
        device: Pair::new(
            bind!(DeviceAllocate, given.allocate, |device, bytes, memory| (
                device, allocator, bytes, 0, memory
            )),
            bind!(DeviceFree, given.deallocate, |device, memory| (device, allocator, memory)),
        ),
        host: Pair::new(
            bind!(HostAllocate, given.host_memory_allocate, |device, bytes| (
                device, allocator, bytes
            )),
            bind!(HostFree, given.host_memory_deallocate, |device, memory| (
                device, allocator, memory
            )),
        ),
        unified: unified.flatten(),
        statistics: bind!(Statistics, given.get_allocator_stats, |device, stats| (
            device, allocator, stats
        )),
        usage: bind!(Usage, given.device_memory_usage, |device, free, total| (
            device, allocator, free, total
        )),
    }
}

/// Binds the functions of `create_custom_allocator`: device memory is allocated and freed by
/// address; there is no unified memory.
fn own_strategy(
    platform: *const SP_Platform,
    table: &SP_PlatformFns,
    report: &mut Report,
) -> Option<(MemoryFunctions, RfcAllocator)> {
    let create = table.create_custom_allocator?;
    let layouts = const { (&SP_CustomAllocator::LAYOUT, &SP_CustomAllocatorFns::LAYOUT) };
    let structs =
        [StructMemory::new(layouts.0.struct_size), StructMemory::new(layouts.1.struct_size)];
    let (allocator, functions) = (structs[0].as_ptr(), structs[1].as_ptr());
    let mut parameters = SE_CreateCustomAllocatorParams {
        struct_size: SE_CreateCustomAllocatorParams::STRUCT_SIZE,
        ext: ptr::null_mut(),
        custom_allocator: allocator,
        custom_allocator_fns: functions,
    };
    let mut status = Status::new();
    {
        let _call = enter(&"create_custom_allocator");
        // SAFETY: the platform is the one that the plug-in filled in; parameters, structs and
        // status live through the call.
        unsafe { create(platform, &raw mut parameters, status.as_mut_ptr()) };
    }
    if !succeeded(status, "create_custom_allocator", report) {
        return None;
    }
    check_struct(&structs[0], layouts.0, report);
    check_struct(&structs[1], layouts.1, report);
    let given = custom_allocator_functions(view(&structs[1], layouts.1));
    requirements::own_strategy(&given, report);
    let destroy =
        bind!(Destroy, table.destroy_custom_allocator, |platform| (platform, allocator, functions));
    let made = RfcAllocator { _structs: structs, destroy, supports_unified_memory: false };
    Some((own_strategy_memory(&given, allocator), made))
}

fn own_strategy_memory(
    given: &SP_CustomAllocatorFns,
    allocator: *const SP_CustomAllocator,
) -> MemoryFunctions {
    let allocate = given.allocate_raw.map(|function| {
        let bound: Box<DeviceAllocate> = Box::new(move |device, bytes, memory| {
            // The size exceeds the address space. The pointer stays NULL, which means that there is
            // no memory.
            let Ok(size) = usize::try_from(bytes) else { return };
            let _call = enter(&"allocate_raw");
            // SAFETY: as in `bind!`; the struct is whole and borrowed exclusively, by the
            // conditions of `Bound::get`.
            unsafe {
                let opaque: *mut c_void = function(device, allocator, size, ALIGNMENT);
                (*memory).opaque = opaque;
                (*memory).size = bytes;
            }
        });
        Bound::new(bound)
    });
    MemoryFunctions {
        device: Pair::new(
            allocate,
            bind!(DeviceFree, given.deallocate_raw, |device, memory| (
                device,
                allocator,
                (*memory).opaque
            )),
        ),
        host: Pair::new(
            bind!(HostAllocate, given.host_allocate_raw, |device, bytes| (
                device, allocator, bytes
            )),
            bind!(HostFree, given.host_deallocate_raw, |device, memory| (
                device, allocator, memory
            )),
        ),
        unified: None,
        statistics: bind!(Statistics, given.get_allocator_stats, |device, stats| (
            device, allocator, stats
        )),
        usage: bind!(Usage, given.device_memory_usage, |device, free, total| (
            device, allocator, free, total
        )),
    }
}
