//! Requirements on a plug-in's functions. Its layout marks the required ones
//! ([`serdes_abi::Zero`]), which are those that TensorFlow checks, plus `get_device_count`, which
//! TensorFlow calls unchecked. This module has the conditions under which others are required.

use serdes_abi::{
    FieldLayout, Layout, RFC_257, SP_PlatformFns,
    rfc::{self, SP_AllocatorFns, SP_CustomAllocatorFns},
};

use crate::{
    border::{FunctionTable, StructView},
    report::Report,
};

/// Records the functions of a struct that the layout has and the plug-in does not; the function
/// decides which are required.
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

/// Checks the RFC's allocators: at most one kind, with its destroy function.
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
/// unified memory if it declares support.
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

/// Checks the functions of an allocator of RFC #257 with a strategy of its own, which must be able
/// to free the host memory that it allocates.
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

/// Conditions that decide which functions of the executor are required.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExecutorUse {
    /// True if the executor allocates; false if the RFC's allocators replace it.
    pub(super) allocates: bool,
    /// True if the platform has memory that host and device address alike.
    pub(super) unified: bool,
    /// The size that the executor's struct declares, in bytes.
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
    // A plug-in with the 256 bytes before mem_zero has none of these; older layouts do not have
    // mem_zero and similar functions.
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

#[cfg(test)]
mod tests {
    use serdes_abi::{LAYOUTS, SE_PlatformRegistrationParams, StructLayout};

    use super::*;
    use crate::border::{
        StructMemory, allocator_functions, custom_allocator_functions, platform_functions,
        rfc_platform_functions,
    };

    /// Returns true for functions with a rule; of the RFC's allocators a platform may have any or
    /// none.
    fn has_a_rule(field: &FieldLayout) -> bool {
        field.is_function() && !field.name.ends_with("_allocator")
    }

    /// A missing function without a rule would go unreported.
    #[test]
    fn every_function_of_every_layout_is_told_when_it_is_missing() {
        let memory = StructMemory::new(0);
        let nothing = |layout: &'static StructLayout| StructView::new(&memory, layout, 0);
        let fns = platform_functions(nothing(const { &SP_PlatformFns::LAYOUT }));
        let rfc_fns = rfc_platform_functions(nothing(const { &rfc::SP_PlatformFns::LAYOUT }));
        let parameters = nothing(const { &SE_PlatformRegistrationParams::LAYOUT });
        let table = FunctionTable::of_platform(fns);
        let use_of_it = ExecutorUse { allocates: true, unified: true, size: 0 };
        for layout in LAYOUTS {
            let mut reports: [Report; 4] = Default::default();
            let [of_platform, of_executor, of_default, of_own] = &mut reports;
            platform(&fns, &rfc_fns, parameters, layout, of_platform);
            executor(&table, layout, use_of_it, of_executor);
            let functions = allocator_functions(nothing(const { &SP_AllocatorFns::LAYOUT }));
            default_strategy(&functions, true, of_default);
            let layout_of_own = const { &SP_CustomAllocatorFns::LAYOUT };
            own_strategy(&custom_allocator_functions(nothing(layout_of_own)), of_own);
            for (structure, report) in [
                ("SE_PlatformRegistrationParams", &reports[0]),
                ("SP_PlatformFns", &reports[0]),
                ("SP_StreamExecutor", &reports[1]),
                ("SP_DeviceFns", &reports[1]),
                ("SP_AllocatorFns", &reports[2]),
                ("SP_CustomAllocatorFns", &reports[3]),
            ] {
                let Some(structure) = layout.structure(structure) else { continue };
                for field in structure.fields.iter().filter(|field| has_a_rule(field)) {
                    let mut told = report.missing_required.iter().chain(&report.missing_optional);
                    let place = format!("{}: {}.{}", layout.name, structure.name, field.name);
                    assert!(told.any(|name| *name == field.name), "{place} has no rule");
                }
            }
        }
    }
}
