//! Which functions a plug-in must have: those that its layout marks as required
//! ([`serdes_abi::Zero`]), which are those that TensorFlow asks for, plus `get_device_count`, which
//! it calls without asking. Here is what that depends on besides.

use serdes_abi::{
    FieldLayout, Layout, RFC_257, SP_PlatformFns,
    rfc::{self, SP_AllocatorFns, SP_CustomAllocatorFns},
};

use crate::stream_executor::{
    border::{FunctionTable, StructView},
    report::Report,
};

/// Records the functions of a struct that are missing and that the layout has; the function says of
/// which a plug-in cannot do without.
macro_rules! look {
    ($report:expr, $layout:expr, $structure:literal, $table:expr, $required:expr, [$($field:ident),* $(,)?]) => {
        $(
            if $table.$field.is_none()
                && let Some(field) = $layout.field($structure, stringify!($field))
            {
                missing($report, $structure, field.name, $required(field));
            }
        )*
    };
}

/// Records that a function is missing.
fn missing(report: &mut Report, structure: &'static str, field: &'static str, required: bool) {
    if !required {
        report.missing_optional.push(field);
        return;
    }
    report.missing_required.push(field);
    report.refuse(
        structure,
        field,
        "NULL, or beyond the struct's size",
        "a function (FAILED_PRECONDITION)",
        "set it in the plug-in",
    );
}

/// Checks the functions of the registration parameters and of SP_PlatformFns.
pub(super) fn platform(
    functions: &SP_PlatformFns,
    allocators: &rfc::SP_PlatformFns,
    parameters: StructView<'_>,
    layout: &'static Layout,
    report: &mut Report,
) {
    let structure = "SE_PlatformRegistrationParams";
    for name in ["destroy_platform", "destroy_platform_fns"] {
        if parameters.scalar::<usize>(name).unwrap_or_default() == 0
            && let Some(field) = layout.field(structure, name)
        {
            missing(report, structure, field.name, field.is_required());
        }
    }
    look!(
        report,
        layout,
        "SP_PlatformFns",
        functions,
        FieldLayout::is_required,
        [
            get_device_count,
            create_device,
            destroy_device,
            create_device_fns,
            destroy_device_fns,
            create_stream_executor,
            destroy_stream_executor,
            create_timer_fns,
            destroy_timer_fns,
        ]
    );
    if layout.field("SP_PlatformFns", "create_allocator").is_some() {
        check_allocators(allocators, report);
    }
}

/// The RFC's allocators: at most one kind, and each with its destroy function.
fn check_allocators(table: &rfc::SP_PlatformFns, report: &mut Report) {
    if table.create_allocator.is_some() && table.create_custom_allocator.is_some() {
        report.refuse(
            "SP_PlatformFns",
            "create_custom_allocator",
            "set, and create_allocator as well",
            "one of the two",
            "leave one of them NULL in the plug-in",
        );
    }
    for (field, is_missing) in [
        (
            "destroy_allocator",
            table.create_allocator.is_some() && table.destroy_allocator.is_none(),
        ),
        (
            "destroy_custom_allocator",
            table.create_custom_allocator.is_some() && table.destroy_custom_allocator.is_none(),
        ),
    ] {
        if is_missing {
            missing(report, "SP_PlatformFns", field, true);
        }
    }
}

/// Checks the functions of an allocator of RFC #257 for the default strategy, which needs those for
/// unified memory if it says that it has some.
pub(super) fn default_strategy(functions: &SP_AllocatorFns, unified: bool, report: &mut Report) {
    let layout = const { &RFC_257 };
    look!(
        report,
        layout,
        "SP_AllocatorFns",
        functions,
        FieldLayout::is_required,
        [allocate, deallocate, host_memory_allocate, host_memory_deallocate]
    );
    look!(
        report,
        layout,
        "SP_AllocatorFns",
        functions,
        |_| unified,
        [unified_memory_allocate, unified_memory_deallocate]
    );
    look!(
        report,
        layout,
        "SP_AllocatorFns",
        functions,
        FieldLayout::is_required,
        [get_allocator_stats, device_memory_usage]
    );
}

/// Checks the functions of an allocator of RFC #257 with a strategy of its own, which must free
/// what host memory it gives.
pub(super) fn own_strategy(functions: &SP_CustomAllocatorFns, report: &mut Report) {
    let layout = const { &RFC_257 };
    let gives_host_memory = functions.host_allocate_raw.is_some();
    look!(
        report,
        layout,
        "SP_CustomAllocatorFns",
        functions,
        FieldLayout::is_required,
        [allocate_raw, deallocate_raw, host_allocate_raw]
    );
    look!(
        report,
        layout,
        "SP_CustomAllocatorFns",
        functions,
        |_| gives_host_memory,
        [host_deallocate_raw]
    );
    look!(
        report,
        layout,
        "SP_CustomAllocatorFns",
        functions,
        FieldLayout::is_required,
        [get_allocator_stats, device_memory_usage]
    );
}

/// What it depends on which functions of the executor a plug-in needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExecutorUse {
    /// Whether the executor allocates; the RFC's allocators take its place.
    pub(super) allocates: bool,
    /// Whether it has memory that host and device address alike.
    pub(super) unified: bool,
    /// The size that the executor's struct announces, in bytes.
    pub(super) size: usize,
}

/// Checks the functions of SP_StreamExecutor and SP_DeviceFns, and lists the optional ones that are
/// missing.
pub(super) fn executor(
    functions: &FunctionTable,
    layout: &'static Layout,
    use_of_it: ExecutorUse,
    report: &mut Report,
) {
    check_memory(functions, layout, use_of_it, report);
    check_work(functions, layout, use_of_it.size, report);
    let devices = &functions.devices;
    look!(
        report,
        layout,
        "SP_DeviceFns",
        devices,
        FieldLayout::is_required,
        [get_numa_node, get_memory_bandwidth, get_gflops]
    );
}

fn check_memory(
    functions: &FunctionTable,
    layout: &'static Layout,
    ExecutorUse { allocates, unified, .. }: ExecutorUse,
    report: &mut Report,
) {
    let executor = &functions.executor;
    look!(
        report,
        layout,
        "SP_StreamExecutor",
        executor,
        |field: &FieldLayout| field.is_required() && allocates,
        [
            allocate,
            deallocate,
            host_memory_allocate,
            host_memory_deallocate,
            get_allocator_stats,
            device_memory_usage,
        ]
    );
    for (field, is_missing) in [
        ("unified_memory_allocate", executor.unified_memory_allocate.is_none()),
        ("unified_memory_deallocate", executor.unified_memory_deallocate.is_none()),
    ] {
        if is_missing {
            missing(report, "SP_StreamExecutor", field, allocates && unified);
        }
    }
}

fn check_work(
    functions: &FunctionTable,
    layout: &'static Layout,
    size: usize,
    report: &mut Report,
) {
    let executor = &functions.executor;
    look!(
        report,
        layout,
        "SP_StreamExecutor",
        executor,
        FieldLayout::is_required,
        [
            create_stream,
            destroy_stream,
            create_stream_dependency,
            get_stream_status,
            create_event,
            destroy_event,
            get_event_status,
            record_event,
            wait_for_event,
            memcpy_dtoh,
            memcpy_htod,
            sync_memcpy_dtoh,
            sync_memcpy_htod,
            block_host_for_event,
            synchronize_all_activity,
            create_timer,
            destroy_timer,
            start_timer,
            stop_timer,
            memcpy_dtod,
            sync_memcpy_dtod,
            block_host_until_done,
        ]
    );
    // A plug-in of the 256 bytes before mem_zero has none of these; in older layouts mem_zero and
    // its kind do not exist.
    let goes_on = size != 256;
    look!(
        report,
        layout,
        "SP_StreamExecutor",
        executor,
        |field: &FieldLayout| field.is_required() && goes_on,
        [host_callback, mem_zero, memset, memset32]
    );
    if layout.field("SP_StreamExecutor", "mem_zero").is_none() {
        report.missing_optional.extend(["mem_zero", "memset", "memset32"]);
    }
}
