//! Tests of the safe types over the embedded plug-in.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use serdes_stream_executor::{Error, EventStatus, LayoutChoice, Plugin};

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 7 + index / 251) as u8).collect()
}

#[test]
fn bytes_come_back_from_a_device() {
    let plugin = Plugin::host();
    assert!(plugin.report().accepted());
    assert_eq!(plugin.report().layout, Some("tensorflow-2.14"));
    assert_eq!(plugin.device_count(), 1);
    let device = plugin.device(0).unwrap();
    for size in [0usize, 1, 3, 4096, 1 << 20] {
        let bytes = pattern(size);
        let memory = device.upload(&bytes).unwrap();
        assert_eq!(memory.size(), size as u64);
        assert_eq!(device.download(&memory).unwrap(), bytes);
    }
}

#[test]
fn memory_outlives_the_plugin_and_device_handles() {
    let memory = Plugin::host().device(0).unwrap().upload(b"kept").unwrap();
    assert_eq!(memory.device().download(&memory).unwrap(), b"kept");
}

#[test]
fn chunks_in_flight_arrive_in_their_buffers() {
    let device = Plugin::host().device(0).unwrap();
    let bytes = pattern(1 << 20);
    let memory = device.allocate(bytes.len() as u64).unwrap();
    let stream = device.create_stream().unwrap();
    let chunk = 100_000;
    let mut up = Vec::new();
    for (index, part) in bytes.chunks(chunk).enumerate() {
        let mut host = device.allocate_host(chunk).unwrap();
        assert!(host.is_pinned());
        host[..part.len()].copy_from_slice(part);
        let offset = (index * chunk) as u64;
        up.push(stream.copy_to_device(host, part.len(), &memory, offset).unwrap());
    }
    let mut down = Vec::new();
    for (index, part) in bytes.chunks(chunk).enumerate() {
        let host = device.allocate_host(chunk).unwrap();
        let offset = (index * chunk) as u64;
        down.push(stream.copy_to_host(&memory, offset, part.len(), host).unwrap());
    }
    for (transfer, part) in down.into_iter().zip(bytes.chunks(chunk)) {
        let host = transfer.wait().unwrap();
        assert_eq!(&host[..part.len()], part);
    }
    for transfer in up {
        assert!(transfer.is_done().unwrap());
        transfer.wait().unwrap();
    }
    assert!(stream.is_ok());
}

#[test]
fn dropped_and_forgotten_transfers_leave_memory_whole() {
    let plugin = Plugin::host();
    let device = plugin.device(0).unwrap();
    let stream = device.create_stream().unwrap();
    for _ in 0..50 {
        let memory = device.allocate(1 << 16).unwrap();
        let host = device.allocate_host(1 << 16).unwrap();
        drop(stream.copy_to_host(&memory, 0, 1 << 16, host).unwrap());
        let host = device.allocate_host(1 << 16).unwrap();
        std::mem::forget(stream.copy_to_device(host, 1 << 16, &memory, 0).unwrap());
    }
    stream.synchronize().unwrap();
    std::mem::forget(stream);
}

#[test]
fn fills_and_copies_on_the_device_keep_their_order() {
    let device = Plugin::host().device(0).unwrap();
    let stream = device.create_stream().unwrap();
    let a = device.upload(&[9; 64]).unwrap();
    let b = device.allocate(64).unwrap();
    stream.mem_zero(&a, 0, 16).unwrap();
    stream.memset(&a, 16, 16, 0xab).unwrap();
    stream.memset32(&a, 32, 16, 0x0403_0201).unwrap();
    stream.copy_on_device(&a, 0, &b, 0, 64).unwrap();
    stream.mem_zero(&a, 0, 64).unwrap();
    stream.synchronize().unwrap();
    let mut expected = vec![0; 16];
    expected.extend([0xab; 16]);
    expected.extend([1, 2, 3, 4].repeat(4));
    expected.extend([9; 16]);
    assert_eq!(device.download(&b).unwrap(), expected);
    assert_eq!(device.download(&a).unwrap(), [0; 64]);
    device.copy_on_device(&b, 8, &a, 56, 8).unwrap();
    assert_eq!(device.download(&a).unwrap()[56..], [0; 8]);
    assert!(stream.memset32(&a, 0, 6, 1).is_err());
}

#[test]
fn two_devices_copy_between_each_other_only_where_it_is_allowed() {
    let plugin = Plugin::open("host:devices=2", LayoutChoice::Detect).unwrap();
    let (first, second) = (plugin.device(0).unwrap(), plugin.device(1).unwrap());
    let a = first.upload(b"over").unwrap();
    let b = second.allocate(4).unwrap();
    second.copy_on_device(&a, 0, &b, 0, 4).unwrap();
    assert_eq!(second.download(&b).unwrap(), b"over");
    assert!(matches!(first.download(&b), Err(Error::OtherDevice { .. })));
    let stream = second.create_stream().unwrap();
    assert!(matches!(stream.mem_zero(&a, 0, 4), Err(Error::OtherDevice { .. })));
    assert!(matches!(
        stream.record(&first.create_event().unwrap()),
        Err(Error::OtherDevice { .. })
    ));
    assert!(matches!(plugin.device(2), Err(Error::NoSuchDevice { ordinal: 2, count: 2 })));
}

#[test]
fn ranges_outside_of_memory_are_refused() {
    let device = Plugin::host().device(0).unwrap();
    let memory = device.allocate(10).unwrap();
    let stream = device.create_stream().unwrap();
    for (offset, bytes) in [(0, 11), (10, 1), (11, 0), (u64::MAX, 2), (2, u64::MAX)] {
        assert!(matches!(
            stream.mem_zero(&memory, offset, bytes),
            Err(Error::OutOfRange { size: 10, .. })
        ));
    }
    let host = device.allocate_host(4).unwrap();
    assert!(matches!(
        stream.copy_to_host(&memory, 0, 5, host),
        Err(Error::OutOfRange { what: "host memory", .. })
    ));
    assert!(device.copy_to_device(&[0; 5], &memory, 6).is_err());
}

#[test]
fn events_streams_and_timers_work_together() {
    let device = Plugin::host().device(0).unwrap();
    let (first, second) = (device.create_stream().unwrap(), device.create_stream().unwrap());
    let event = device.create_event().unwrap();
    let timer = device.create_timer().unwrap();
    let memory = device.allocate(1 << 20).unwrap();
    first.start_timer(&timer).unwrap();
    first.memset(&memory, 0, 1 << 20, 1).unwrap();
    first.stop_timer(&timer).unwrap();
    first.record(&event).unwrap();
    second.wait_for(&event).unwrap();
    second.memset(&memory, 0, 1 << 19, 2).unwrap();
    first.wait_for_stream(&second).unwrap();
    first.memset(&memory, 0, 1 << 18, 3).unwrap();
    first.synchronize().unwrap();
    event.wait().unwrap();
    assert_eq!(event.status().unwrap(), EventStatus::Complete);
    assert!(timer.nanoseconds().unwrap() > 0);
    assert_eq!(timer.microseconds().unwrap(), timer.nanoseconds().unwrap() / 1000);
    let bytes = device.download(&memory).unwrap();
    assert_eq!((bytes[0], bytes[1 << 18], bytes[1 << 19]), (3, 2, 1));
    device.synchronize().unwrap();
}

#[test]
fn host_callbacks_run_once_and_tell_their_errors() {
    let device = Plugin::host().device(0).unwrap();
    let stream = device.create_stream().unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let callback = stream
        .host_callback(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
        .unwrap();
    callback.outcome().unwrap();
    assert!(callback.has_run());
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert!(stream.is_ok());

    let failing = stream.host_callback(|| Err("not today".to_owned())).unwrap();
    let error = failing.outcome().unwrap_err();
    assert!(matches!(&error, Error::CallbackFailed { message } if message == "not today"));
    assert!(!stream.is_ok());

    let stream = device.create_stream().unwrap();
    let panicking = stream.host_callback(|| panic!("at once")).unwrap();
    assert!(panicking.outcome().unwrap_err().to_string().contains("at once"));
}

#[test]
fn the_device_describes_itself_and_its_memory() {
    let plugin = Plugin::open("host:memory=1000000", LayoutChoice::Detect).unwrap();
    let device = plugin.device(0).unwrap();
    let description = device.description();
    assert_eq!(description.ordinal, 0);
    assert_eq!(description.hardware_name.as_deref(), Some("cpu"));
    let usage = device.memory_usage().unwrap().unwrap();
    assert_eq!(usage.total, 1_000_000);
    let memory = device.allocate(600_000).unwrap();
    assert_eq!(device.memory_usage().unwrap().unwrap().free, usage.free - 600_000);
    assert!(device.allocator_stats().unwrap().unwrap().bytes_in_use >= 600_000);
    assert!(matches!(device.allocate(600_000), Err(Error::OutOfMemory { .. })));
    drop(memory);
    device.allocate(600_000).unwrap();
    let mut unified = device.allocate_unified(100).unwrap();
    unified[7] = 7;
    assert_eq!(unified[..9], [0, 0, 0, 0, 0, 0, 0, 7, 0]);
}

#[test]
fn options_and_layouts_that_there_are_not_are_the_callers_error() {
    for plugin in ["host:devices=x", "host:colour=red", "host:devices"] {
        let error = Plugin::open(plugin, LayoutChoice::Detect).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    }
    assert!(LayoutChoice::named("tensorflow-2.3").is_err());
    let none = Plugin::open("host:devices=0", LayoutChoice::Detect).unwrap();
    assert_eq!(none.device_count(), 0);
    assert_eq!(none.report().warnings.len(), 1);
}

#[test]
fn the_embedded_plugin_speaks_every_layout() {
    for layout in serdes_abi::LAYOUTS {
        let choice = LayoutChoice::named(layout.name).unwrap();
        let plugin = Plugin::open("host:devices=2", choice).unwrap();
        assert_eq!(plugin.report().layout, Some(layout.name));
        assert_eq!(plugin.device_count(), 2, "{}", layout.name);
        let device = plugin.device(1).unwrap();
        let bytes = pattern(10_000);
        let memory = device.upload(&bytes).unwrap();
        assert_eq!(device.download(&memory).unwrap(), bytes, "{}", layout.name);
        let stream = device.create_stream().unwrap();
        let ran = stream.host_callback(|| Ok(())).unwrap();
        ran.outcome().unwrap();
        let fill = stream.mem_zero(&memory, 0, 1);
        match layout.name {
            "tensorflow-2.14" | "tensorflow-2.8" => fill.unwrap(),
            _ => assert!(fill.unwrap_err().is_unsupported(), "{}", layout.name),
        }
    }
}

/// The functions that plug-ins need are provided without exporting them from every program that
/// contains this library.
#[cfg(target_os = "linux")]
#[test]
fn a_program_with_this_library_exports_nothing_of_the_c_api() {
    let program = std::env::current_exe().unwrap();
    let inspection = serdes_stream_executor::elf::inspect(program).unwrap();
    let exported: Vec<_> = inspection
        .exports
        .iter()
        .filter(|name| {
            name.starts_with("TF_") || name.starts_with("TSL_") || name.starts_with("SE_")
        })
        .collect();
    assert!(exported.is_empty(), "{exported:?}");
}
