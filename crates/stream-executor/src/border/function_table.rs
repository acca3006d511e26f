//! The functions of a plug-in of any layout, in the fields of the newest layout.
//!
//! A function is copied only if the plug-in's layout has it, the struct is long enough for it, and
//! it is not NULL. All later code uses only these tables, so no call can go through a slot that has
//! another meaning in an older header.

use serdes_abi::{
    Family, Layout, SP_DeviceFns, SP_PlatformFns, SP_StreamExecutor, SP_TimerFns,
    rfc::{self, SP_AllocatorFns, SP_CustomAllocatorFns},
};

use super::{
    memory_functions::MemoryFunctions,
    struct_memory::{StructMemory, StructView},
};
use crate::error::StatusError;

/// Builds a struct of functions from a view, by copying the fields with the same names.
macro_rules! functions {
    ($view:expr, $table:ident { $($field:ident),* $(,)? }) => {{
        let view: StructView<'_> = $view;
        $table {
            struct_size: $table::STRUCT_SIZE,
            ext: std::ptr::null_mut(),
            $(
                // SAFETY: the field's own type says which function pointer belongs to its name, in
                // every layout that has the name (callbacks that take the host's structs by pointer
                // name the released struct for all layouts).
                $field: unsafe { view.function(stringify!($field)) },
            )*
        }
    }};
}

/// Returns the view of a layout's struct in a block; an empty one if the layout does not have the
/// struct.
pub(crate) fn view<'a>(
    block: &'a StructMemory,
    layout: &'static Layout,
    structure: &'static str,
) -> Option<StructView<'a>> {
    let structure = layout.structure(structure)?;
    let mut size = block.struct_size();
    // The RFC's macro stops before its last four callbacks. The block is ours, zeroed and long
    // enough, so they can be read.
    if layout.family == Family::Rfc
        && structure.name == "SP_PlatformFns"
        && size == structure.struct_size
    {
        size = structure.size_of;
    }
    Some(StructView::new(block, structure, size))
}

/// Every function of a registered plug-in, in the field of the newest layout.
#[derive(Debug)]
pub(crate) struct FunctionTable {
    pub(crate) platform: SP_PlatformFns,
    pub(crate) devices: SP_DeviceFns,
    pub(crate) executor: SP_StreamExecutor,
    pub(crate) timers: SP_TimerFns,
    /// The error that the plug-in reported instead of timer functions, if any.
    pub(crate) timers_error: Option<StatusError>,
    pub(crate) memory: MemoryFunctions,
}

impl FunctionTable {
    /// Returns a table with the functions of a platform only; the functions that the platform
    /// creates are added later.
    pub(crate) fn of_platform(platform: SP_PlatformFns) -> Self {
        let nothing = StructMemory::new(0);
        let empty = |layout| StructView::new(&nothing, layout, 0);
        Self {
            platform,
            devices: device_functions(empty(const { &SP_DeviceFns::LAYOUT })),
            executor: executor_functions(empty(const { &SP_StreamExecutor::LAYOUT })),
            timers: timer_functions(empty(const { &SP_TimerFns::LAYOUT })),
            timers_error: None,
            memory: MemoryFunctions::default(),
        }
    }
}

/// Returns the functions of a platform in released layouts.
pub(crate) fn platform_functions(view: StructView<'_>) -> SP_PlatformFns {
    functions!(
        view,
        SP_PlatformFns {
            get_device_count,
            create_device,
            destroy_device,
            create_device_fns,
            destroy_device_fns,
            create_stream_executor,
            destroy_stream_executor,
            create_timer_fns,
            destroy_timer_fns,
        }
    )
}

/// Returns the functions of a platform in RFC #257; those for allocators are in no other layout.
pub(crate) fn rfc_platform_functions(view: StructView<'_>) -> rfc::SP_PlatformFns {
    use serdes_abi::rfc::SP_PlatformFns;
    functions!(
        view,
        SP_PlatformFns {
            create_device,
            destroy_device,
            create_stream_executor,
            destroy_stream_executor,
            create_timer_fns,
            destroy_timer_fns,
            create_allocator,
            destroy_allocator,
            create_custom_allocator,
            destroy_custom_allocator,
        }
    )
}

/// Returns the functions of a device.
pub(crate) fn device_functions(view: StructView<'_>) -> SP_DeviceFns {
    functions!(view, SP_DeviceFns { get_numa_node, get_memory_bandwidth, get_gflops })
}

/// Returns the functions of timers.
pub(crate) fn timer_functions(view: StructView<'_>) -> SP_TimerFns {
    functions!(view, SP_TimerFns { nanoseconds })
}

/// Returns the functions of an allocator of RFC #257 for the default strategy.
pub(crate) fn allocator_functions(view: StructView<'_>) -> SP_AllocatorFns {
    functions!(
        view,
        SP_AllocatorFns {
            allocate,
            deallocate,
            host_memory_allocate,
            host_memory_deallocate,
            unified_memory_allocate,
            unified_memory_deallocate,
            get_allocator_stats,
            device_memory_usage,
        }
    )
}

/// Returns the functions of an allocator of RFC #257 with a strategy of its own.
pub(crate) fn custom_allocator_functions(view: StructView<'_>) -> SP_CustomAllocatorFns {
    functions!(
        view,
        SP_CustomAllocatorFns {
            allocate_raw,
            deallocate_raw,
            host_allocate_raw,
            host_deallocate_raw,
            get_allocator_stats,
            device_memory_usage,
        }
    )
}

/// Returns the functions of an executor.
pub(crate) fn executor_functions(view: StructView<'_>) -> SP_StreamExecutor {
    functions!(
        view,
        SP_StreamExecutor {
            allocate,
            deallocate,
            host_memory_allocate,
            host_memory_deallocate,
            unified_memory_allocate,
            unified_memory_deallocate,
            get_allocator_stats,
            device_memory_usage,
            create_stream,
            destroy_stream,
            create_stream_dependency,
            get_stream_status,
            create_event,
            destroy_event,
            get_event_status,
            record_event,
            wait_for_event,
            create_timer,
            destroy_timer,
            start_timer,
            stop_timer,
            memcpy_dtoh,
            memcpy_htod,
            memcpy_dtod,
            sync_memcpy_dtoh,
            sync_memcpy_htod,
            sync_memcpy_dtod,
            block_host_for_event,
            block_host_until_done,
            synchronize_all_activity,
            mem_zero,
            memset,
            memset32,
            host_callback,
        }
    )
}
