//! Which functions a plug-in must have: those that TensorFlow asks for, plus `get_device_count`, which it calls without asking.

use serdes_abi::Layout;

use super::block::View;
use super::registration::Registration;
use super::report::Report;
use super::table::PlatformTable;

/// Functions of SP_PlatformFns without which a plug-in is refused, where its layout has them.
const PLATFORM: [&str; 7] = [
    "get_device_count",
    "create_device",
    "destroy_device",
    "create_device_fns",
    "destroy_device_fns",
    "create_stream_executor",
    "destroy_stream_executor",
];

/// Records a missing function of a struct, required or not.
macro_rules! look {
    ($report:expr, $structure:literal, $table:expr, required: $required:expr, [$($field:ident),* $(,)?]) => {
        $(
            if $table.$field.is_none() {
                missing($report, $structure, stringify!($field), $required);
            }
        )*
    };
}

pub(crate) fn missing(
    report: &mut Report,
    structure: &'static str,
    field: &'static str,
    required: bool,
) {
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
pub(crate) fn platform(
    table: &PlatformTable,
    parameters: View<'_>,
    layout: &'static Layout,
    report: &mut Report,
) {
    for field in ["destroy_platform", "destroy_platform_fns"] {
        if parameters.scalar::<usize>(field).unwrap_or_default() == 0 {
            missing(report, "SE_PlatformRegistrationParams", field, true);
        }
    }
    let functions = &table.functions;
    let present = [
        functions.get_device_count.is_some(),
        functions.create_device.is_some(),
        functions.destroy_device.is_some(),
        functions.create_device_fns.is_some(),
        functions.destroy_device_fns.is_some(),
        functions.create_stream_executor.is_some(),
        functions.destroy_stream_executor.is_some(),
    ];
    for (field, present) in PLATFORM.into_iter().zip(present) {
        if !present && layout.field("SP_PlatformFns", field).is_some() {
            missing(report, "SP_PlatformFns", field, true);
        }
    }
    look!(report, "SP_PlatformFns", functions, required: false, [create_timer_fns, destroy_timer_fns]);
    if layout.field("SP_PlatformFns", "create_allocator").is_some() {
        allocators(table, report);
    }
}

/// The RFC's allocators: at most one kind, and each with its destroy function.
fn allocators(table: &PlatformTable, report: &mut Report) {
    let table = &table.allocators;
    if table.create_allocator.is_some() && table.create_custom_allocator.is_some() {
        report.refuse(
            "SP_PlatformFns",
            "create_custom_allocator",
            "set, and create_allocator as well",
            "one of the two",
            "leave one of them NULL in the plug-in",
        );
    }
    if table.create_allocator.is_some() {
        look!(report, "SP_PlatformFns", table, required: true, [destroy_allocator]);
    }
    if table.create_custom_allocator.is_some() {
        look!(report, "SP_PlatformFns", table, required: true, [destroy_custom_allocator]);
    }
}

/// Checks the functions of SP_StreamExecutor, and lists the optional ones that are missing.
pub(crate) fn executor(registration: &Registration, report: &mut Report) {
    let executor = &registration.executor;
    let allocates = registration.allocation.is_executor();
    look!(report, "SP_StreamExecutor", executor, required: allocates, [
        allocate, deallocate, host_memory_allocate, host_memory_deallocate, get_allocator_stats,
        device_memory_usage,
    ]);
    let unified = allocates && registration.facts.supports_unified_memory;
    look!(report, "SP_StreamExecutor", executor, required: unified, [
        unified_memory_allocate, unified_memory_deallocate,
    ]);
    look!(report, "SP_StreamExecutor", executor, required: true, [
        create_stream, destroy_stream, create_stream_dependency, get_stream_status, create_event,
        destroy_event, get_event_status, record_event, wait_for_event, memcpy_dtoh, memcpy_htod,
        sync_memcpy_dtoh, sync_memcpy_htod, block_host_for_event, synchronize_all_activity,
    ]);
    look!(report, "SP_StreamExecutor", executor, required: false, [
        create_timer, destroy_timer, start_timer, stop_timer, memcpy_dtod, sync_memcpy_dtod,
        block_host_until_done,
    ]);
    // A plug-in of the 256 bytes before mem_zero has none of these; in older layouts mem_zero and its kind do not exist.
    let ends_before = registration.executor_size() == 256;
    look!(report, "SP_StreamExecutor", executor, required: !ends_before, [host_callback]);
    let has_fills = registration.layout.field("SP_StreamExecutor", "mem_zero").is_some();
    look!(report, "SP_StreamExecutor", executor, required: has_fills && !ends_before, [
        mem_zero, memset, memset32,
    ]);
    if registration.layout.structure("SP_DeviceFns").is_some() {
        look!(report, "SP_DeviceFns", registration.devices, required: false, [
            get_numa_node, get_memory_bandwidth, get_gflops,
        ]);
    }
}
