//! The guidance on each behaviour of the suite: class, position in the header, remedy.

use serdes_library_file::conformance::{Guidance, Row, guidance_among};

/// Returns the guidance on a behaviour; `None` if the suite has none with this name.
#[must_use]
pub fn guidance(behaviour: &str) -> Option<Guidance> {
    guidance_among(ROWS, behaviour)
}

/// All positions are in TensorFlow's header
/// `tensorflow/c/experimental/stream_executor/stream_executor.h`.
const ROWS: &[Row] = &[
    Row::required(
        &["registration"],
        "stream_executor.h: SE_InitPlugin, SE_PlatformRegistrationParams",
        "let SE_InitPlugin set `platform`, `platform_fns` and the two destroy functions, and leave the status OK",
    ),
    Row::required(
        &["platform_name"],
        "stream_executor.h: SP_Platform.name, SP_Platform.type",
        "set both names to text that ends in NUL and lives as long as the library; the type is upper case (GPU)",
    ),
    Row::required(
        &["struct_sizes"],
        "stream_executor.h: the *_STRUCT_SIZE constants, \"struct_size\" of each struct",
        "set `struct_size` of each struct that the plug-in fills to its constant in the header that it was built with",
    ),
    Row::required(
        &["required_functions"],
        "stream_executor.h: SP_PlatformFns, SP_DeviceFns, SP_StreamExecutor",
        "set every function pointer that the header does not call optional",
    ),
    Row::required(
        &["device_count", "create_device", "device_description"],
        "stream_executor.h: SP_PlatformFns.get_device_count, create_device, create_device_fns",
        "answer the number of devices and make each of them; keep `ordinal` as the host gave it",
    ),
    Row::required(
        &["allocate", "deallocate", "allocations_are_apart", "allocate_alignment", "out_of_memory"],
        "stream_executor.h: SP_StreamExecutor.allocate, deallocate",
        "write `opaque` and `size` of SP_DeviceMemoryBase, align to 64 bytes, leave `opaque` NULL where there is no memory, and give back what is freed",
    ),
    Row::robust(
        &["deallocate_null", "allocate_zero_bytes"],
        "stream_executor.h: SP_StreamExecutor.allocate, deallocate",
        "return at once where the address is NULL or the size is 0",
    ),
    Row::required(
        &["host_memory", "unified_memory"],
        "stream_executor.h: SP_StreamExecutor.host_memory_allocate, unified_memory_allocate",
        "give memory that the host can read and write to its last byte; leave `supports_unified_memory` 0 without any",
    ),
    Row::required(
        &["allocator_stats", "memory_usage"],
        "stream_executor.h: SP_StreamExecutor.get_allocator_stats, device_memory_usage",
        "return false where the numbers are not known, and consistent ones where it returns true",
    ),
    Row::required(
        &["create_stream", "many_streams", "destroy_stream_with_work", "stream_status"],
        "stream_executor.h: SP_StreamExecutor.create_stream, destroy_stream, get_stream_status",
        "make streams that are independent of one another, finish a stream's work before it is destroyed, report OK while nothing failed",
    ),
    Row::required(
        &["stream_dependency", "ordering_in_a_stream", "ordering_across_streams"],
        "stream_executor.h: SP_StreamExecutor.create_stream_dependency",
        "run the work of a stream in its order, and begin what follows a dependency after all that the other stream had then",
    ),
    Row::robust(
        &["stream_dependency_on_itself"],
        "stream_executor.h: SP_StreamExecutor.create_stream_dependency",
        "return at once where both streams are the same",
    ),
    Row::required(
        &[
            "create_event",
            "record_event",
            "event_recorded_twice",
            "wait_for_event",
            "event_status",
            "block_host_for_event",
            "block_until_done_by_event",
        ],
        "stream_executor.h: SP_StreamExecutor.create_event, record_event, wait_for_event, get_event_status, block_host_for_event",
        "complete an event when the work before its last record is done, and only then",
    ),
    Row::required(
        &["block_host_until_done", "synchronize_all_activity"],
        "stream_executor.h: SP_StreamExecutor.block_host_until_done, synchronize_all_activity",
        "return after all work of the stream, or of all streams of the device, is done",
    ),
    Row::required(
        &["create_timer", "timer_start_stop", "timer_nanoseconds", "timer_used_twice"],
        "stream_executor.h: SP_StreamExecutor.create_timer, start_timer, stop_timer; SP_TimerFns.nanoseconds",
        "measure between start and stop in the order of the stream, in nanoseconds, as often as asked",
    ),
    Row::required(
        &[
            "sync_memcpy_htod",
            "sync_memcpy_dtoh",
            "sync_memcpy_dtod",
            "memcpy_htod",
            "memcpy_dtoh",
            "memcpy_dtod",
            "memcpy_zero_bytes",
            "memcpy_parts",
            "memcpy_large",
            "memcpy_between_devices",
        ],
        "stream_executor.h: SP_StreamExecutor.memcpy_* and sync_memcpy_*",
        "copy exactly `size` bytes, also 0 and at odd addresses; the sync_ forms return after the last byte",
    ),
    Row::required(
        &["mem_zero", "memset", "memset32", "fill_zero_bytes"],
        "stream_executor.h: SP_StreamExecutor.mem_zero, memset, memset32",
        "write exactly `size` bytes with the pattern, also 0",
    ),
    Row::required(
        &["host_callback", "host_callback_order", "host_callback_error"],
        "stream_executor.h: SP_StreamExecutor.host_callback",
        "run each callback once, in the order of the stream, and keep the status that it sets",
    ),
    Row::required(
        &["concurrent_allocations", "concurrent_copies", "copies_in_flight"],
        "stream_executor.h: thread safety, \"the functions may be called from several threads\"",
        "guard what the functions share by a lock, or share nothing",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::behaviours;

    #[test]
    fn every_behaviour_has_its_guidance_and_no_row_is_of_none() {
        for behaviour in behaviours() {
            assert!(guidance(behaviour).is_some(), "{behaviour}");
        }
        for name in ROWS.iter().flat_map(|row| row.names) {
            assert!(behaviours().any(|behaviour| behaviour == *name), "{name}");
        }
    }
}
