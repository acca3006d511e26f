//! Tests of the C interface as a host uses it.

mod host;

use std::{
    ffi::{CStr, c_void},
    ptr,
    sync::Arc,
};

use serdes_abi::{
    LAYOUTS, SE_CreateDeviceFnsParams, SE_CreateDeviceParams, SE_CreateStreamExecutorParams,
    SE_EventStatus, SP_AllocatorStats, SP_Device, SP_DeviceFns, SP_DeviceMemoryBase, SP_Platform,
    SP_StreamExecutor, SP_TimerFns, TF_Code, TF_Status, layout_named, rfc,
};

use self::host::{Bench, FUNCTIONS, Registration, Slabs, StructBuffer, call, newest};
use crate::{Allocator, Status, register};

#[test]
fn layouts_are_filled_where_their_hosts_look_without_leaks() {
    for layout in LAYOUTS {
        for allocator in [Allocator::Custom, Allocator::BestFit { growth: true }] {
            let slabs = Slabs { allocator, ..Slabs::default() };
            let counters = Arc::clone(&slabs.counters);
            let mut registration = Registration::new(layout);
            registration.register(slabs).unwrap();
            let size = |name: &str| layout.structure(name).unwrap().struct_size;
            assert_eq!(
                registration.platform.word(0) as usize,
                size("SP_Platform"),
                "{}",
                layout.name
            );
            assert_eq!(
                registration.functions.word(0) as usize,
                size("SP_PlatformFns"),
                "{}",
                layout.name
            );
            for field in layout
                .structure("SP_PlatformFns")
                .unwrap()
                .fields
                .iter()
                .filter(|field| field.is_function())
            {
                let absent = (field.name.contains("custom_allocator")
                    && allocator != Allocator::Custom)
                    || (field.name.ends_with("e_allocator") || field.name.ends_with("y_allocator"))
                        && allocator == Allocator::Custom;
                assert_eq!(
                    registration.functions.word(field.offset) == 0,
                    absent,
                    "{} {}",
                    layout.name,
                    field.name
                );
            }
            if let Some(count) = layout.field("SP_Platform", "visible_device_count") {
                assert_eq!(registration.platform.word(count.offset), 2, "{}", layout.name);
            }
            let executor = StructBuffer::<SP_StreamExecutor>::new(size("SP_StreamExecutor"));
            let create = layout.field("SP_PlatformFns", "create_stream_executor").unwrap();
            let mut params = SE_CreateStreamExecutorParams {
                struct_size: SE_CreateStreamExecutorParams::STRUCT_SIZE,
                ext: ptr::null_mut(),
                stream_executor: executor.get(),
            };
            type Create = unsafe extern "C" fn(
                *const SP_Platform,
                *mut SE_CreateStreamExecutorParams,
                *mut TF_Status,
            );
            // SAFETY: the layout says that the slot holds this function.
            let create: Create = unsafe {
                registration.functions.get().byte_add(create.offset).cast::<Create>().read()
            };
            let platform = registration.platform.get();
            // SAFETY: a live platform and room for the answer.
            call(|status| unsafe { create(platform, &raw mut params, status) }).unwrap();
            assert_eq!(executor.word(0) as usize, size("SP_StreamExecutor"), "{}", layout.name);
            for field in layout
                .structure("SP_StreamExecutor")
                .unwrap()
                .fields
                .iter()
                .filter(|field| field.is_function())
            {
                let absent = field.name.starts_with("unified");
                assert_eq!(
                    executor.word(field.offset) == 0,
                    absent,
                    "{} {}",
                    layout.name,
                    field.name
                );
            }
            assert!(
                executor.words()[size("SP_StreamExecutor") / 8..].iter().all(|word| *word == 0),
                "{}",
                layout.name
            );
            registration.destroy();
            assert_eq!(counters.live(), [("stream_executors", 1)]);
        }
    }
}

#[test]
fn a_forced_layout_wins_over_the_hosts_sizes() {
    let mut registration = Registration::new(newest());
    registration.register(Slabs { layout: layout_named("rfc-257"), ..Slabs::default() }).unwrap();
    assert_eq!((registration.platform.word(0), registration.functions.word(0)), (40, 64));
    assert_ne!(registration.functions.word(80), 0, "create_custom_allocator");
    registration.destroy();
}

#[test]
fn wrong_parameters_of_a_host_are_refused_and_left_alone() {
    type Spoil = fn(&mut Registration);
    let cases: [(&str, Spoil, TF_Code); 6] = [
        ("struct_size 0", |host| host.params.struct_size = 0, TF_Code::INVALID_ARGUMENT),
        ("struct_size 56", |host| host.params.struct_size = 56, TF_Code::INVALID_ARGUMENT),
        ("MAJOR", |host| host.params.major_version = 1, TF_Code::FAILED_PRECONDITION),
        (
            "platform is NULL",
            |host| host.params.platform = ptr::null_mut(),
            TF_Code::INVALID_ARGUMENT,
        ),
        (
            "platform_fns is NULL",
            |host| host.params.platform_fns = ptr::null_mut(),
            TF_Code::INVALID_ARGUMENT,
        ),
        ("too small", |host| host.functions.set_struct_size(40), TF_Code::FAILED_PRECONDITION),
    ];
    for (part, spoil, code) in cases {
        let mut registration = Registration::new(newest());
        registration.params.platform = registration.platform.get();
        registration.params.platform_fns = registration.functions.get();
        spoil(&mut registration);
        let failure = registration.register_as_is(Slabs::default()).unwrap_err();
        assert!(failure.message().contains(part), "{part}: {failure}");
        assert_eq!(failure.code(), code, "{failure}");
        assert!(registration.platform.words()[1..].iter().all(|word| *word == 0), "{part}");
        assert!(registration.functions.words()[1..].iter().all(|word| *word == 0), "{part}");
        assert!(registration.params.destroy_platform.is_none());
    }
    // SAFETY: NULL is allowed.
    let failure = call(|status| unsafe {
        register(ptr::null_mut(), status, FUNCTIONS, || Ok(Slabs::default()))
    });
    assert_eq!(failure.unwrap_err().code(), TF_Code::INVALID_ARGUMENT);
}

#[test]
fn a_newer_host_is_served_in_the_newest_layout_we_know() {
    let mut registration = Registration::new(newest());
    registration.params.struct_size = 96;
    registration.params.minor_version = 9;
    registration.platform.set_struct_size(48);
    registration.functions.set_struct_size(128);
    registration.register(Slabs::default()).unwrap();
    assert_eq!((registration.platform.word(0), registration.functions.word(0)), (35, 88));
    assert_eq!(registration.params.struct_size, 64);
    registration.destroy();
}

#[test]
fn names_that_hosts_refuse_are_refused_with_the_rule() {
    for name in ["", "_X", "lower", "GPU1", "A:B", "A/B", "A B", "\u{c4}"] {
        let mut registration = Registration::new(newest());
        let failure =
            registration.register(Slabs { name: Some(name), ..Slabs::default() }).unwrap_err();
        assert!(failure.message().contains("capital letters"), "{name}: {failure}");
    }
}

#[test]
fn a_platform_that_cannot_be_made_says_why() {
    let mut registration = Registration::new(newest());
    registration.params.platform = registration.platform.get();
    registration.params.platform_fns = registration.functions.get();
    let params = &raw mut registration.params;
    // SAFETY: the parameters are this host's.
    let failure = call(|status| unsafe {
        register::<Slabs>(params, status, FUNCTIONS, || Err(Status::not_found("no driver")))
    });
    assert_eq!(failure, Err(Status::not_found("no driver")));
    // SAFETY: the parameters are this host's.
    let failure = call(|status| unsafe {
        register::<Slabs>(params, status, FUNCTIONS, || panic!("half a driver"))
    });
    assert!(failure.unwrap_err().message().contains("half a driver"));
}

#[test]
fn a_device_describes_itself_in_every_host() {
    let bench = Bench::new(Slabs::default());
    // SAFETY: filled by the plug-in; texts live as long as the device.
    unsafe {
        let device = *bench.device.get();
        assert_eq!((device.struct_size, device.ordinal), (56, 1));
        assert_eq!(CStr::from_ptr(device.hardware_name), c"slab");
        assert_eq!(CStr::from_ptr(device.device_vendor), c"tests");
        assert!(device.pci_bus_id.is_null());
        let functions = *bench.registration.functions.get();
        let platform = bench.registration.platform.get();
        let table = StructBuffer::<SP_DeviceFns>::new(SP_DeviceFns::STRUCT_SIZE);
        let mut params = SE_CreateDeviceFnsParams {
            struct_size: 24,
            ext: ptr::null_mut(),
            device_fns: table.get(),
        };
        call(|status| functions.create_device_fns.unwrap()(platform, &raw mut params, status))
            .unwrap();
        let functions = *table.get();
        assert_eq!(functions.get_numa_node.unwrap()(bench.device.get()), 3);
        assert_eq!(functions.get_memory_bandwidth.unwrap()(bench.device.get()), 54);
        assert!(functions.get_gflops.unwrap()(bench.device.get()) < 0.0);
        assert_eq!(functions.get_numa_node.unwrap()(ptr::null()), -1);
    }
    bench.destroy();
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    let bench = Bench::new(Slabs::default());
    // SAFETY: the structs are this host's.
    unsafe {
        let functions = *bench.registration.functions.get();
        let platform = bench.registration.platform.get();
        for ordinal in [-1, 2, i32::MAX] {
            let device = StructBuffer::<SP_Device>::new(SP_Device::STRUCT_SIZE);
            let mut params = SE_CreateDeviceParams {
                struct_size: 32,
                ext: ptr::null_mut(),
                ordinal,
                device: device.get(),
            };
            let failure =
                call(|status| functions.create_device.unwrap()(platform, &raw mut params, status));
            assert!(failure.unwrap_err().message().contains("2 devices"));
            assert!(device.words()[1..].iter().all(|word| *word == 0));
        }
        let mut count = -7;
        call(|status| functions.get_device_count.unwrap()(platform, &raw mut count, status))
            .unwrap();
        assert_eq!(count, 2);
        let failure =
            call(|status| functions.get_device_count.unwrap()(platform, ptr::null_mut(), status));
        assert_eq!(failure.unwrap_err().code(), TF_Code::INVALID_ARGUMENT);
    }
    bench.destroy();
}

#[test]
fn bytes_make_the_trip_through_every_copy() {
    let slabs = Slabs::default();
    let counters = Arc::clone(&slabs.counters);
    let mut bench = Bench::new(slabs);
    let executor = bench.executor;
    let stream = bench.stream();
    for size in [1_usize, 1000, if cfg!(miri) { 2000 } else { 100_000 }] {
        let bytes: Vec<u8> = (0..size).map(|index| (index % 253) as u8).collect();
        let mut back = vec![0_u8; size];
        let mut first = bench.allocate(size as u64);
        let mut second = bench.allocate(size as u64);
        let device = bench.device.get();
        let length = size as u64;
        // SAFETY: live handles, memory of that size on both sides, waited for before it is used
        // again.
        unsafe {
            let (htod, dtod) = (executor.memcpy_htod.unwrap(), executor.memcpy_dtod.unwrap());
            call(|status| {
                htod(device, stream, &raw mut first, bytes.as_ptr().cast(), length, status)
            })
            .unwrap();
            call(|status| dtod(device, stream, &raw mut second, &raw const first, length, status))
                .unwrap();
            let dtoh = executor.memcpy_dtoh.unwrap();
            call(|status| {
                dtoh(device, stream, back.as_mut_ptr().cast(), &raw const second, length, status)
            })
            .unwrap();
            call(|status| executor.block_host_until_done.unwrap()(device, stream, status)).unwrap();
            assert_eq!(back, bytes);

            let flipped: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
            let (htod, dtod) =
                (executor.sync_memcpy_htod.unwrap(), executor.sync_memcpy_dtod.unwrap());
            call(|status| htod(device, &raw mut first, flipped.as_ptr().cast(), length, status))
                .unwrap();
            call(|status| dtod(device, &raw mut second, &raw const first, length, status)).unwrap();
            let dtoh = executor.sync_memcpy_dtoh.unwrap();
            call(|status| {
                dtoh(device, back.as_mut_ptr().cast(), &raw const second, length, status)
            })
            .unwrap();
            assert_eq!(back, flipped);

            let whole = length / 4 * 4;
            let memset32 = executor.memset32.unwrap();
            call(|status| memset32(device, stream, &raw mut first, 0x0403_0201, whole, status))
                .unwrap();
            call(|status| executor.synchronize_all_activity.unwrap()(device, status)).unwrap();
            call(|status| dtoh(device, back.as_mut_ptr().cast(), &raw const first, length, status))
                .unwrap();
            assert!(
                back[..whole as usize].chunks(4).all(|word| word == 0x0403_0201_u32.to_ne_bytes())
            );
            assert_eq!(back[whole as usize..], flipped[whole as usize..]);
            let uneven = call(|status| memset32(device, stream, &raw mut first, 1, 3, status));
            assert_eq!(uneven.unwrap_err().code(), TF_Code::INVALID_ARGUMENT);

            call(|status| {
                executor.memset.unwrap()(device, stream, &raw mut first, 9, length, status)
            })
            .unwrap();
            call(|status| executor.mem_zero.unwrap()(device, stream, &raw mut first, 1, status))
                .unwrap();
            call(|status| executor.block_host_until_done.unwrap()(device, stream, status)).unwrap();
            call(|status| dtoh(device, back.as_mut_ptr().cast(), &raw const first, length, status))
                .unwrap();
            assert!(back[0] == 0 && back[1..].iter().all(|byte| *byte == 9));

            let failure = call(|status| {
                dtoh(device, back.as_mut_ptr().cast(), &raw const first, length + 1, status)
            });
            assert!(failure.unwrap_err().message().contains("source"), "more than there is");
            executor.deallocate.unwrap()(device, &raw mut first);
            executor.deallocate.unwrap()(device, &raw mut second);
        }
    }
    // SAFETY: live handles, used no more.
    unsafe { executor.destroy_stream.unwrap()(bench.device.get(), stream) };
    bench.destroy();
    assert_eq!(counters.live(), []);
}

#[test]
fn handles_that_are_null_get_a_status_and_not_a_crash() {
    let mut bench = Bench::new(Slabs::default());
    let executor = bench.executor;
    let stream = bench.stream();
    let device = bench.device.get();
    let mut memory = bench.allocate(16);
    let null = ptr::null_mut();
    let bytes = [0_u8; 16];
    // SAFETY: NULL is what is tested; the rest is live.
    let failures = unsafe {
        [
            call(|status| executor.get_stream_status.unwrap()(device, ptr::null_mut(), status)),
            call(|status| executor.get_stream_status.unwrap()(ptr::null(), stream, status)),
            call(|status| executor.create_stream.unwrap()(device, ptr::null_mut(), status)),
            call(|status| executor.record_event.unwrap()(device, stream, ptr::null_mut(), status)),
            call(|status| executor.start_timer.unwrap()(device, stream, ptr::null_mut(), status)),
            call(|status| {
                executor.create_stream_dependency.unwrap()(device, stream, ptr::null_mut(), status)
            }),
            call(|status| {
                executor.memcpy_htod.unwrap()(
                    device,
                    stream,
                    ptr::null_mut(),
                    bytes.as_ptr().cast(),
                    1,
                    status,
                )
            }),
            call(|status| {
                executor.memcpy_htod.unwrap()(
                    device,
                    stream,
                    &raw mut memory,
                    ptr::null(),
                    1,
                    status,
                )
            }),
            call(|status| {
                executor.memcpy_dtoh.unwrap()(device, stream, null, &raw const memory, 1, status)
            }),
            call(|status| {
                executor.sync_memcpy_dtod.unwrap()(
                    device,
                    &raw mut memory,
                    &raw const EMPTY.0,
                    1,
                    status,
                )
            }),
        ]
    };
    for failure in failures {
        let failure = failure.unwrap_err();
        assert_eq!(failure.code(), TF_Code::INVALID_ARGUMENT, "{failure}");
        assert!(
            failure.message().contains("NULL") || failure.message().contains("has 0"),
            "{failure}"
        );
    }
    // SAFETY: as above; destroying NULL is nothing.
    unsafe {
        assert_eq!(
            executor.get_event_status.unwrap()(device, ptr::null_mut()),
            SE_EventStatus::ERROR
        );
        executor.destroy_stream.unwrap()(device, ptr::null_mut());
        executor.destroy_event.unwrap()(device, ptr::null_mut());
        executor.destroy_timer.unwrap()(device, ptr::null_mut());
        executor.deallocate.unwrap()(device, ptr::null_mut());
        executor.host_memory_deallocate.unwrap()(device, ptr::null_mut());
        executor.allocate.unwrap()(device, 1, 0, ptr::null_mut());
        assert_eq!(executor.get_allocator_stats.unwrap()(device, ptr::null_mut()), 0);
        executor.deallocate.unwrap()(device, &raw mut memory);
        executor.destroy_stream.unwrap()(device, stream);
    }
    bench.destroy();
}

struct Shared<T>(T);
// SAFETY: never written.
unsafe impl<T> Sync for Shared<T> {}
static EMPTY: Shared<SP_DeviceMemoryBase> = Shared(SP_DeviceMemoryBase {
    struct_size: 40,
    ext: ptr::null_mut(),
    opaque: ptr::null_mut(),
    size: 0,
    payload: 0,
});

#[test]
fn out_of_memory_is_a_null_opaque() {
    let mut bench = Bench::new(Slabs::default());
    let memory = bench.allocate(1 << 30);
    assert!(memory.opaque.is_null());
    assert_eq!((memory.size, memory.struct_size), (0, 40));
    bench.destroy();
}

#[test]
fn a_panic_of_the_author_never_crosses() {
    let mut bench = Bench::new(Slabs { panics: true, ..Slabs::default() });
    let executor = bench.executor;
    let stream = bench.stream();
    let device = bench.device.get();
    assert!(bench.allocate(16).opaque.is_null());
    let memory =
        SP_DeviceMemoryBase { opaque: ptr::without_provenance_mut(256), size: 1 << 20, ..EMPTY.0 };
    let mut bytes = vec![0_u8; 100_000];
    // SAFETY: the device panics before it follows anything.
    unsafe {
        let target: *mut c_void = bytes.as_mut_ptr().cast();
        let dtoh = executor.sync_memcpy_dtoh.unwrap();
        let failure =
            call(|status| dtoh(device, target, &raw const memory, 8, status)).unwrap_err();
        assert_eq!(failure, Status::internal("the plug-in panicked: no reading today"));
        let dtoh = executor.memcpy_dtoh.unwrap();
        call(|status| dtoh(device, stream, target, &raw const memory, 100_000, status)).unwrap();
        let failure =
            call(|status| executor.block_host_until_done.unwrap()(device, stream, status));
        assert!(failure.unwrap_err().message().contains("no reading today"));
        let failure = call(|status| executor.get_stream_status.unwrap()(device, stream, status));
        assert!(failure.is_err());
        executor.destroy_stream.unwrap()(device, stream);
    }
    bench.destroy();
}

#[test]
fn statistics_that_a_device_lacks_are_reported_missing() {
    let bench = Bench::new(Slabs::default());
    let stats = StructBuffer::<SP_AllocatorStats>::new(SP_AllocatorStats::STRUCT_SIZE);
    let (mut free, mut total) = (0, 0);
    // SAFETY: a live device and room for the answers.
    unsafe {
        assert_eq!(bench.executor.get_allocator_stats.unwrap()(bench.device.get(), stats.get()), 0);
        let usage = bench.executor.device_memory_usage.unwrap();
        assert_eq!(usage(bench.device.get(), &raw mut free, &raw mut total), 1);
    }
    assert_eq!((free, total), (1 << 20, 1 << 20));
    bench.destroy();
}

#[test]
fn the_allocators_of_the_rfc_reach_the_device() {
    let layout = layout_named("rfc-257").unwrap();
    let slabs = Slabs::default();
    let counters = Arc::clone(&slabs.counters);
    let mut registration = Registration::new(layout);
    registration.register(slabs).unwrap();
    let device = StructBuffer::<SP_Device>::new(32);
    let allocator =
        StructBuffer::<rfc::SP_CustomAllocator>::new(rfc::SP_CustomAllocator::STRUCT_SIZE);
    let table =
        StructBuffer::<rfc::SP_CustomAllocatorFns>::new(rfc::SP_CustomAllocatorFns::STRUCT_SIZE);
    // SAFETY: the structs are filled by the plug-in and alive.
    unsafe {
        let functions = *registration.functions.get().cast::<rfc::SP_PlatformFns>();
        let platform = registration.platform.get();
        let mut params = SE_CreateDeviceParams {
            struct_size: 32,
            ext: ptr::null_mut(),
            ordinal: 0,
            device: device.get(),
        };
        call(|status| functions.create_device.unwrap()(platform, &raw mut params, status)).unwrap();
        assert!(
            device.words()[4..].iter().all(|word| *word == 0),
            "an SP_Device of the RFC has 32 bytes"
        );
        let mut params = rfc::SE_CreateCustomAllocatorParams {
            struct_size: 32,
            ext: ptr::null_mut(),
            custom_allocator: allocator.get(),
            custom_allocator_fns: table.get(),
        };
        call(|status| {
            functions.create_custom_allocator.unwrap()(platform, &raw mut params, status)
        })
        .unwrap();
        let raw = *table.get();
        let start = raw.allocate_raw.unwrap()(device.get(), allocator.get(), 100, 4096);
        assert!(!start.is_null() && start.addr().is_multiple_of(4096));
        assert!(
            raw.allocate_raw.unwrap()(device.get(), allocator.get(), 100, 3).is_null(),
            "no power of two"
        );
        assert_eq!(counters.device_memory.live(), 1);
        raw.deallocate_raw.unwrap()(device.get(), allocator.get(), start);
        let host = raw.host_allocate_raw.unwrap()(device.get(), allocator.get(), 64);
        assert!(!host.is_null());
        raw.host_deallocate_raw.unwrap()(device.get(), allocator.get(), host);
        functions.destroy_custom_allocator.unwrap()(platform, allocator.get(), table.get());
        functions.destroy_device.unwrap()(platform, device.get());
    }
    registration.destroy();
    assert_eq!(counters.live(), []);
}

#[test]
fn timer_functions_come_in_their_table() {
    let bench = Bench::new(Slabs::default());
    let table = StructBuffer::<SP_TimerFns>::new(SP_TimerFns::STRUCT_SIZE);
    // SAFETY: the structs are filled by the plug-in and alive.
    unsafe {
        let functions = *bench.registration.functions.get();
        let platform = bench.registration.platform.get();
        call(|status| functions.create_timer_fns.unwrap()(platform, table.get(), status)).unwrap();
        assert_eq!((*table.get()).nanoseconds.unwrap()(ptr::null_mut()), 0);
        functions.destroy_timer_fns.unwrap()(platform, table.get());
    }
    bench.destroy();
}
