//! Which functions a plug-in must have: those that its layout marks as required ([`serdes_abi::Zero`]), which are those that TensorFlow asks
//! for, plus `get_device_count`, which it calls without asking. Here is what that depends on besides.

use serdes_abi::Layout;

use super::block::View;
use super::registration::Registration;
use super::report::Report;
use super::table::PlatformTable;

/// Records the functions of a struct that are missing, each as required if the layout says so and `where` the plug-in uses it at all.
macro_rules! look {
    ($report:expr, $layout:expr, $structure:literal, $table:expr, $used:expr, [$($field:ident),* $(,)?]) => {
        $(
            if $table.$field.is_none()
                && let Some(field) = $layout.field($structure, stringify!($field))
            {
                missing($report, $structure, field.name, field.is_required() && $used);
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
    let structure = "SE_PlatformRegistrationParams";
    for name in ["destroy_platform", "destroy_platform_fns"] {
        if parameters.scalar::<usize>(name).unwrap_or_default() == 0
            && let Some(field) = layout.field(structure, name)
        {
            missing(report, structure, field.name, field.is_required());
        }
    }
    let functions = &table.functions;
    look!(
        report,
        layout,
        "SP_PlatformFns",
        functions,
        true,
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

/// Checks the functions of SP_StreamExecutor, and lists the optional ones that are missing.
pub(crate) fn executor(registration: &Registration, report: &mut Report) {
    let (executor, layout) = (&registration.executor, registration.layout);
    // The RFC's allocators take the place of these.
    let allocates = registration.allocation.is_executor();
    look!(
        report,
        layout,
        "SP_StreamExecutor",
        executor,
        allocates,
        [
            allocate,
            deallocate,
            host_memory_allocate,
            host_memory_deallocate,
            get_allocator_stats,
            device_memory_usage,
        ]
    );
    let unified = allocates && registration.facts.supports_unified_memory;
    for (field, is_missing) in [
        ("unified_memory_allocate", executor.unified_memory_allocate.is_none()),
        ("unified_memory_deallocate", executor.unified_memory_deallocate.is_none()),
    ] {
        if is_missing {
            missing(report, "SP_StreamExecutor", field, unified);
        }
    }
    look!(
        report,
        layout,
        "SP_StreamExecutor",
        executor,
        true,
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
    // A plug-in of the 256 bytes before mem_zero has none of these; in older layouts mem_zero and its kind do not exist.
    let goes_on = registration.executor_size() != 256;
    look!(report, layout, "SP_StreamExecutor", executor, goes_on, [host_callback]);
    look!(report, layout, "SP_StreamExecutor", executor, goes_on, [mem_zero, memset, memset32]);
    if layout.field("SP_StreamExecutor", "mem_zero").is_none() {
        report.missing_optional.extend(["mem_zero", "memset", "memset32"]);
    }
    look!(
        report,
        layout,
        "SP_DeviceFns",
        registration.devices,
        true,
        [get_numa_node, get_memory_bandwidth, get_gflops,]
    );
}
