//! Tests of plug-ins of every layout, compiled by the system's C compiler: which layout the host
//! detects, and that it works with that layout.

use serdes_stream_executor::{Error, LayoutChoice, Plugin};

use super::plugins::{LAYOUTS, NEWEST, Stub, assert_moves_bytes, correct, pattern};

#[test]
fn a_correct_plugin_of_each_layout_is_told_and_moves_bytes() {
    for (layout, _) in LAYOUTS {
        let (_guard, plugin) = correct(layout);
        assert_eq!(plugin.report().layout, Some(layout));
        assert_eq!(plugin.layout().name, layout);
        assert_eq!(plugin.device_count(), 2, "{layout}");
        assert_moves_bytes(&plugin);
        let device = plugin.device(1).unwrap();
        let other = device.upload(&pattern(5000)).unwrap();
        let near = plugin.device(0).unwrap().allocate(5000).unwrap();
        plugin.device(0).unwrap().copy_on_device(&other, 0, &near, 0, 5000).unwrap();
        assert!(
            plugin.device(0).unwrap().download(&near).unwrap() == pattern(5000),
            "{layout}, between devices"
        );
    }
}

#[test]
fn fills_exist_where_the_layout_has_them() {
    for (layout, _) in LAYOUTS {
        let (_guard, plugin) = correct(layout);
        let device = plugin.device(0).unwrap();
        let stream = device.create_stream().unwrap();
        let memory = device.upload(&pattern(1000)).unwrap();
        let results = [
            stream.memset(&memory, 0, 1000, 9),
            stream.memset32(&memory, 100, 800, 0x0102_0304),
            stream.mem_zero(&memory, 0, 4),
        ];
        stream.synchronize().unwrap();
        if layout == NEWEST || layout == "tensorflow-2.8" {
            assert!(results.iter().all(Result::is_ok), "{layout}: {results:?}");
            let bytes = device.download(&memory).unwrap();
            assert_eq!(bytes[..5], [0, 0, 0, 0, 9]);
            assert_eq!(bytes[96..108], [9, 9, 9, 9, 4, 3, 2, 1, 4, 3, 2, 1]);
            assert_eq!(bytes[999], 9);
        } else {
            for result in results {
                assert!(result.unwrap_err().is_unsupported(), "{layout}");
            }
            assert!(
                device.download(&memory).unwrap() == pattern(1000),
                "{layout}: host_callback was not called for mem_zero"
            );
        }
    }
}

#[test]
fn callbacks_events_and_timers_work_in_each_layout() {
    for (layout, _) in LAYOUTS {
        let (_guard, plugin) = correct(layout);
        let device = plugin.device(0).unwrap();
        let (stream, second) = (device.create_stream().unwrap(), device.create_stream().unwrap());
        let (event, timer) = (device.create_event().unwrap(), device.create_timer().unwrap());
        stream.start_timer(&timer).unwrap();
        stream.host_callback(|| Ok(())).unwrap().outcome().unwrap();
        stream.stop_timer(&timer).unwrap();
        stream.record(&event).unwrap();
        event.wait().unwrap();
        second.wait_for(&event).unwrap();
        second.wait_for_stream(&stream).unwrap();
        timer.nanoseconds().unwrap();
        device.synchronize().unwrap();
        let callback = stream.host_callback(|| Err("as it must".to_owned())).unwrap();
        assert!(matches!(callback.outcome(), Err(Error::CallbackFailed { .. })), "{layout}");
        assert!(!stream.is_ok(), "{layout}");
    }
}

#[test]
fn a_stub_of_each_layout_registers_and_leaves_nothing_behind() {
    for (layout, _) in LAYOUTS {
        let stub = Stub::new(layout, "");
        let plugin = stub.open().unwrap();
        assert_eq!(plugin.layout().name, layout);
        assert_eq!(plugin.platform().name(), stub.name());
        assert_moves_bytes(&plugin);
        drop(plugin);
        assert!(stub.created("devices") > 0 && stub.created("streams") > 0, "{layout}");
        stub.assert_balanced();
        let plugin = stub.open_named(layout).unwrap();
        assert_moves_bytes(&plugin);
        drop(plugin);
        stub.assert_balanced();
    }
}

#[test]
fn newer_header_that_writes_beyond_stays_a_released_layout() {
    for extra in [8, 16, 24, 32, 64, 128, 256] {
        let stub = Stub::newest(&format!("extra={extra}"));
        let plugin = stub.open().unwrap_or_else(|error| panic!("{extra} bytes more: {error}"));
        assert_eq!(plugin.layout().name, NEWEST, "{extra} bytes more");
        assert_moves_bytes(&plugin);
        assert!(plugin.device(0).unwrap().allocator_stats().unwrap().is_some());
        drop(plugin);
        stub.assert_balanced();
    }
    // No existing header has longer structs of an older layout; a caller who names the layout takes
    // responsibility for it.
    for (layout, _) in &LAYOUTS[1..] {
        let stub = Stub::new(layout, "extra=64");
        if let Ok(plugin) = stub.open_named(layout) {
            assert_moves_bytes(&plugin);
        }
        stub.assert_balanced();
    }
}

#[test]
fn sizes_that_were_never_written_are_taken_for_the_newest() {
    let unwritten = "
        size.SE_PlatformRegistrationParams=unwritten
        size.SP_Platform=unwritten
        size.SP_PlatformFns=unwritten
        size.SP_DeviceFns=unwritten
        size.SP_StreamExecutor=unwritten
        size.SP_TimerFns=unwritten
        size.SP_DeviceMemoryBase=unwritten
        size.SP_AllocatorStats=unwritten
        size.SP_Device=unwritten
        device=unwritten";
    let stub = Stub::newest(unwritten);
    let plugin = stub.open().unwrap();
    assert_eq!(plugin.layout().name, NEWEST);
    assert_moves_bytes(&plugin);
    assert_eq!(plugin.device(1).unwrap().description().ordinal, 1);
    drop(plugin);
    stub.assert_balanced();
    // Then 2.8 cannot be distinguished from it.
    let stub = Stub::new("tensorflow-2.8", unwritten);
    let plugin = stub.open().unwrap();
    assert_eq!(plugin.layout().name, NEWEST);
    assert_moves_bytes(&plugin);
    drop(plugin);
    // A newer header, whose plug-in writes beyond any older layout.
    for extra in [24, 64, 256] {
        let stub = Stub::newest(&format!("extra={extra}\n{unwritten}"));
        let plugin = stub.open().unwrap_or_else(|error| panic!("{extra} bytes more: {error}"));
        assert_eq!(plugin.layout().name, NEWEST, "{extra} bytes more");
        assert_moves_bytes(&plugin);
        drop(plugin);
        stub.assert_balanced();
    }
    // In older layouts the functions have other offsets, which cannot be detected: the caller must
    // name the layout.
    for (layout, allocator) in [
        ("tensorflow-2.5", "none"),
        ("tensorflow-2.4", "none"),
        ("rfc-257", "custom"),
        ("rfc-257", "bfc"),
        ("rfc-257", "none"),
    ] {
        let stub = Stub::new(layout, &format!("allocator={allocator}\n{unwritten}"));
        let report = stub.refused();
        assert!(
            report.layout_may_be_named || !report.missing_required.is_empty(),
            "{layout}, {allocator}: {report:?}"
        );
        stub.assert_balanced();
        let plugin = stub.open_named(layout).unwrap_or_else(|error| panic!("{layout}: {error}"));
        assert_moves_bytes(&plugin);
        drop(plugin);
        stub.assert_balanced();
    }
}

/// A size of 40 is that of RFC #257 and also `sizeof` in a released header; functions up to slot 72
/// are those of RFC #257, and also those of a released plug-in that does not destroy its timer
/// functions.
#[test]
fn an_ambiguous_platform_is_what_its_plugin_wrote() {
    let released = Stub::newest("size.SP_Platform=40\nnull=destroy_timer_fns");
    let plugin = released.open().unwrap();
    assert_eq!(plugin.layout().name, NEWEST);
    assert_moves_bytes(&plugin);
    drop(plugin);
    for (allocator, size) in [("bfc", "unwritten"), ("bfc", "88"), ("none", "unwritten")] {
        let switches = format!("allocator={allocator}\nsize.SP_PlatformFns={size}");
        let stub = Stub::new("rfc-257", &switches);
        let report = stub.refused();
        assert!(!report.reasons.is_empty(), "{switches}");
        stub.assert_balanced();
        let plugin = stub.open_named("rfc-257").unwrap();
        assert_moves_bytes(&plugin);
        drop(plugin);
        stub.assert_balanced();
    }
}

#[test]
fn wrong_sizes_never_make_the_host_read_beyond_its_memory() {
    for structure in [
        "SE_PlatformRegistrationParams",
        "SP_Platform",
        "SP_PlatformFns",
        "SP_DeviceFns",
        "SP_StreamExecutor",
        "SP_TimerFns",
        "SP_DeviceMemoryBase",
        "SP_AllocatorStats",
        "SP_Device",
    ] {
        for size in ["9999", "18446744073709551615"] {
            let stub = Stub::newest(&format!("size.{structure}={size}"));
            let plugin = stub.open().unwrap_or_else(|error| panic!("{structure} {size}: {error}"));
            assert_eq!(plugin.layout().name, NEWEST);
            assert_moves_bytes(&plugin);
            assert!(plugin.device(0).unwrap().allocator_stats().unwrap().is_some());
            drop(plugin);
            stub.assert_balanced();
        }
    }
}

/// Structs without which a plug-in still works may be short or, as TensorFlow does not check them,
/// of size 0.
#[test]
fn short_sizes_cost_only_what_lies_beyond_them() {
    for switch in [
        "size.SP_DeviceMemoryBase=0",
        "size.SP_DeviceMemoryBase=8",
        "size.SP_DeviceFns=8",
        "size.SP_TimerFns=0",
        "size.SP_TimerFns=8",
        "size.SP_Device=8",
        "size.SP_AllocatorStats=0",
        "size.SP_AllocatorStats=8",
        "size.SP_Platform=40",
    ] {
        let stub = Stub::newest(switch);
        let plugin = stub.open().unwrap_or_else(|error| panic!("{switch}: {error}"));
        assert_moves_bytes(&plugin);
        let device = plugin.device(0).unwrap();
        assert_eq!(device.description().ordinal, 0);
        let stats = device.allocator_stats().unwrap();
        assert_eq!(stats.is_none(), switch == "size.SP_AllocatorStats=0", "{switch}");
        drop((device, plugin));
        stub.assert_balanced();
    }
}

#[test]
fn sizes_that_are_zero_are_refused_with_the_macro_to_use() {
    for structure in [
        "SE_PlatformRegistrationParams",
        "SP_Platform",
        "SP_PlatformFns",
        "SP_DeviceFns",
        "SP_StreamExecutor",
    ] {
        let stub = Stub::newest(&format!("size.{structure}=0"));
        let report = stub.refused();
        let reason = report.reasons.iter().find(|reason| reason.structure == structure).unwrap();
        assert_eq!((reason.field.as_str(), reason.found.as_str()), ("struct_size", "0"));
        assert!(reason.expected.contains("STRUCT_SIZE"), "{reason}");
        // With a size of 0 the parameters have no functions for destroying anything.
        if structure != "SE_PlatformRegistrationParams" {
            stub.assert_balanced();
        }
    }
}

#[test]
fn sizes_too_short_for_what_is_required_are_refused() {
    for (structure, sizes) in [
        ("SP_Platform", &[8, 16, 24, 31][..]),
        ("SP_PlatformFns", &[8, 16, 24, 71, 80, 87]),
        ("SP_StreamExecutor", &[8, 16, 24, 200, 255, 263, 272, 280, 287]),
        ("SE_PlatformRegistrationParams", &[8, 48, 56, 63]),
    ] {
        for size in sizes {
            let stub = Stub::newest(&format!("size.{structure}={size}"));
            let report = stub.refused();
            let named = report.reasons.iter().any(|reason| reason.structure == structure);
            assert!(named, "{structure} {size}: {report:?}");
            // With a short size the parameters have no functions for destroying anything.
            if structure != "SE_PlatformRegistrationParams" {
                stub.assert_balanced();
            }
        }
    }
}

#[test]
fn device_without_a_valid_size_is_an_error_and_no_crash() {
    for size in [0, 8, 24] {
        let stub = Stub::newest(&format!("size.SP_Device={size}"));
        let plugin = stub.open().unwrap();
        let device = plugin.device(0);
        if size == 0 {
            assert!(
                matches!(device, Err(Error::BadStruct { structure: "SP_Device", .. })),
                "found {device:?}"
            );
        } else if let Ok(device) = device {
            assert_eq!(device.description().hardware_name, None, "beyond the size {size}");
        }
        drop(plugin);
        stub.assert_balanced();
    }
}

#[test]
fn executor_without_mem_zero_works_without_fills_and_callbacks() {
    let stub = Stub::newest("size.SP_StreamExecutor=256");
    let plugin = stub.open().unwrap();
    let device = plugin.device(0).unwrap();
    let stream = device.create_stream().unwrap();
    let memory = device.upload(&pattern(64)).unwrap();
    assert!(stream.mem_zero(&memory, 0, 64).unwrap_err().is_unsupported());
    assert!(stream.host_callback(|| Ok(())).unwrap_err().is_unsupported());
    assert_moves_bytes(&plugin);
}

#[test]
fn the_allocators_of_the_rfc_are_used_and_never_both() {
    for allocator in ["custom", "bfc", "none"] {
        let stub = Stub::new("rfc-257", &format!("allocator={allocator}"));
        let plugin = stub.open().unwrap_or_else(|error| panic!("{allocator}: {error}"));
        assert_moves_bytes(&plugin);
        assert_eq!(stub.created("allocators") > 0, allocator != "none", "{allocator}");
        assert_eq!(plugin.platform().uses_bfc_allocator(), allocator == "bfc");
        drop(plugin);
        stub.assert_balanced();
    }
    let stub = Stub::new("rfc-257", "allocator=both");
    let report = stub.refused();
    assert!(
        report.reasons.iter().any(|reason| reason.field.contains("create_custom_allocator")),
        "{report:?}"
    );
    stub.assert_balanced();
}

#[test]
fn the_reference_plugin_fills_every_layout_in_its_own_process() {
    for (layout, _) in LAYOUTS {
        for allocator in ["custom", "bfc"] {
            let plugin = Plugin::open(
                &format!("host:devices=2,layout={layout},allocator={allocator}"),
                LayoutChoice::Detect,
            )
            .unwrap_or_else(|error| panic!("{layout}, {allocator}: {error}"));
            assert_eq!(plugin.layout().name, layout);
            assert_eq!(plugin.device_count(), 2);
            assert_moves_bytes(&plugin);
        }
    }
}
