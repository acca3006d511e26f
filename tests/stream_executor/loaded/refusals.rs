//! Tests of plug-ins that must be refused, and of odd ones that are still accepted.

use serdes_stream_executor::Error;

use super::plugins::{LAYOUTS, NEWEST, Stub, assert_moves_bytes};

/// Functions without which TensorFlow refuses a plug-in, and get_device_count, which it calls
/// without a check.
const REQUIRED: [(&str, &[&str]); 3] = [
    ("SE_PlatformRegistrationParams", &["destroy_platform", "destroy_platform_fns"]),
    (
        "SP_PlatformFns",
        &[
            "get_device_count",
            "create_device",
            "destroy_device",
            "create_device_fns",
            "destroy_device_fns",
            "create_stream_executor",
            "destroy_stream_executor",
        ],
    ),
    (
        "SP_StreamExecutor",
        &[
            "allocate",
            "deallocate",
            "get_allocator_stats",
            "host_memory_allocate",
            "host_memory_deallocate",
            "device_memory_usage",
            "create_stream",
            "destroy_stream",
            "create_stream_dependency",
            "get_stream_status",
            "create_event",
            "destroy_event",
            "get_event_status",
            "record_event",
            "wait_for_event",
            "memcpy_dtoh",
            "memcpy_htod",
            "sync_memcpy_dtoh",
            "sync_memcpy_htod",
            "block_host_for_event",
            "synchronize_all_activity",
            "host_callback",
            "mem_zero",
            "memset",
            "memset32",
        ],
    ),
];

#[test]
fn each_required_function_that_is_null_is_named_with_its_struct() {
    for (structure, fields) in REQUIRED {
        for field in fields {
            let stub = Stub::newest(&format!("null={field}"));
            let report = stub.refused();
            let named = report
                .reasons
                .iter()
                .any(|reason| reason.structure == structure && reason.field == *field);
            assert!(named, "{structure}.{field}: {report:?}");
            assert_eq!(report.missing_required, [*field]);
            assert_eq!(report.reasons.len(), 1, "{report:?}");
            let told = Error::Refused(Box::new(report)).to_string();
            assert!(told.contains(&format!("{structure}.{field}")), "{told}");
            // Objects without a function that destroys them remain.
            if !field.starts_with("destroy_") {
                stub.assert_balanced();
            }
        }
    }
}

#[test]
fn unified_memory_is_only_required_of_who_claims_it() {
    for field in ["unified_memory_allocate", "unified_memory_deallocate"] {
        let stub = Stub::newest(&format!("unified=1\nnull={field}"));
        let report = stub.refused();
        assert!(report.missing_required.contains(&field), "{report:?}");
        stub.assert_balanced();
        Stub::newest(&format!("null={field}")).open().unwrap();
    }
    let stub = Stub::newest("unified=1");
    let plugin = stub.open().unwrap();
    assert!(plugin.platform().supports_unified_memory());
    let mut memory = plugin.device(0).unwrap().allocate_unified(100).unwrap();
    memory[99] = 7;
    assert_eq!(memory[99], 7);
    drop(memory);
    drop(plugin);
    assert_eq!(stub.created("unified memory"), 1);
    stub.assert_balanced();
}

#[test]
fn optional_functions_that_are_null_cost_only_what_they_do() {
    for field in [
        "memcpy_dtod",
        "sync_memcpy_dtod",
        "block_host_until_done",
        "create_timer",
        "destroy_timer",
        "start_timer",
        "stop_timer",
        "create_timer_fns",
        "destroy_timer_fns",
        "nanoseconds",
        "get_numa_node",
        "get_memory_bandwidth",
        "get_gflops",
        "hardware_name",
        "device_vendor",
        "pci_bus_id",
    ] {
        let stub = Stub::newest(&format!("null={field}"));
        let plugin = stub.open().unwrap_or_else(|error| panic!("{field}: {error}"));
        assert_moves_bytes(&plugin);
        let device = plugin.device(0).unwrap();
        let timed = || {
            let timer = device.create_timer()?;
            let stream = device.create_stream()?;
            stream.start_timer(&timer)?;
            stream.stop_timer(&timer)?;
            stream.synchronize()?;
            timer.nanoseconds()
        };
        match timed() {
            Ok(nanoseconds) => assert_eq!(nanoseconds, 25_000, "{field}"),
            Err(error) => {
                assert!(error.is_unsupported(), "{field}: {error}");
                assert!(field.contains("timer") || field == "nanoseconds", "{field}");
            }
        }
        let description = device.description();
        assert_eq!(description.numa_node, if field == "get_numa_node" { -1 } else { 123 });
        assert_eq!(description.hardware_name.is_none(), field == "hardware_name");
        drop((device, plugin));
        if !field.starts_with("destroy_") {
            stub.assert_balanced();
        }
    }
}

#[test]
fn illegal_names_are_shown_with_the_pattern() {
    for (field, switch) in [("name", "name"), ("type", "type")] {
        for value in
            ["NULL", "", "lower", "GPU1", "A:B", "A/B", "A-B", "A B", "_A", " ", "\u{c4}", "A\tB"]
        {
            let stub = Stub::newest(&format!(
                "{switch}={value}\n{}",
                if switch == "type" { "" } else { "type=STUB" }
            ));
            let report = stub.refused();
            let reason = report
                .reasons
                .iter()
                .find(|reason| reason.field == field)
                .unwrap_or_else(|| panic!("{value}: {report:?}"));
            assert_eq!(reason.structure, "SP_Platform");
            assert!(reason.expected.contains("[A-Z][A-Z_]*"), "{reason}");
            stub.assert_balanced();
        }
    }
}

#[test]
fn error_of_each_registration_step_has_the_plugins_message() {
    for call in ["SE_InitPlugin", "create_device_fns", "create_stream_executor"] {
        let stub = Stub::newest(&format!("error={call}"));
        let report = stub.refused();
        assert_eq!(report.reasons[0].structure, call);
        assert_eq!(report.reasons[0].found, format!("INTERNAL: as told: {call}"));
        stub.assert_balanced();
    }
    let stub = Stub::newest("error=after");
    assert!(stub.refused().reasons[0].found.contains("no hardware"));
}

/// A message comes from a plug-in and is shown to people: it must not control their terminal, nor
/// fill it.
#[test]
fn messages_of_plugins_are_made_printable() {
    let told = |switch: &str| {
        let stub = Stub::newest(&format!("error=SE_InitPlugin\nmessage={switch}"));
        stub.refused().reasons[0].found.clone()
    };
    assert_eq!(told("control"), "INTERNAL: as\n\ttold \\u{1b}[31m\\r\\u{7f}");
    let huge = told("huge");
    assert!(huge.ends_with("x... (1048575 bytes in all)"), "{} bytes", huge.len());
    assert!(huge.len() < 17 << 10);
}

#[test]
fn errors_of_what_is_made_later_surface_when_it_is_made() {
    let stub = Stub::newest("error=create_device");
    let plugin = stub.open().unwrap();
    assert!(plugin.device(0).unwrap_err().to_string().contains("as told: create_device"));
    drop(plugin);
    stub.assert_balanced();
    for call in ["create_timer_fns", "get_device_count"] {
        let stub = Stub::newest(&format!("error={call}"));
        let plugin = stub.open().unwrap();
        if call == "get_device_count" {
            assert_eq!(plugin.device_count(), 0);
        } else {
            let timer = plugin.device(0).unwrap().create_timer().unwrap();
            assert!(timer.nanoseconds().unwrap_err().to_string().contains("as told"));
        }
        let told = plugin
            .report()
            .warnings
            .iter()
            .any(|warning| warning.contains(&format!("as told: {call}")));
        assert!(told, "{call}");
        drop(plugin);
        stub.assert_balanced();
    }
}

#[test]
fn errors_of_the_rfcs_allocators_are_told() {
    for (allocator, call) in [("custom", "create_custom_allocator"), ("bfc", "create_allocator")] {
        let stub = Stub::new("rfc-257", &format!("allocator={allocator}\nerror={call}"));
        let result = stub.open().and_then(|plugin| plugin.device(0)?.allocate(8).map(drop));
        assert!(result.unwrap_err().to_string().contains(&format!("as told: {call}")));
        stub.assert_balanced();
    }
}

#[test]
fn the_rfcs_allocators_need_their_functions() {
    for (allocator, null) in [
        ("custom", "allocate_raw"),
        ("custom", "deallocate_raw"),
        ("custom", "destroy_custom_allocator"),
        ("bfc", "destroy_allocator"),
    ] {
        let stub = Stub::new("rfc-257", &format!("allocator={allocator}\nnull={null}"));
        assert_eq!(stub.refused().missing_required, [null]);
    }
}

#[test]
fn changed_major_number_is_refused() {
    for (layout, _) in LAYOUTS {
        let stub = Stub::new(layout, "major=7");
        let report = stub.refused();
        let reason = report.reasons.iter().find(|reason| reason.field == "major_version").unwrap();
        assert_eq!((reason.found.as_str(), reason.expected.as_str()), ("7", "0"));
        assert_eq!(report.version.unwrap()[0], 7);
        stub.assert_balanced();
    }
    Stub::newest("major=0").open().unwrap();
}

#[test]
fn no_devices_are_accepted_with_a_warning() {
    for devices in ["0", "-3", "unwritten"] {
        let stub = Stub::newest(&format!("devices={devices}"));
        let plugin = stub.open().unwrap_or_else(|error| panic!("{devices}: {error}"));
        assert_eq!(plugin.device_count(), 0, "{devices}");
        assert!(
            plugin.report().warnings.iter().any(|warning| warning.contains("device")),
            "{devices}"
        );
        assert!(matches!(plugin.device(0), Err(Error::NoSuchDevice { .. })));
        drop(plugin);
        stub.assert_balanced();
    }
}

#[test]
fn cleared_parameters_do_not_mislead_the_host() {
    for switch in ["cleared", "emptied"] {
        let stub = Stub::newest(&format!("params={switch}"));
        let plugin = stub.open().unwrap_or_else(|error| panic!("{switch}: {error}"));
        assert_moves_bytes(&plugin);
        drop(plugin);
        stub.assert_balanced();
    }
}

#[test]
fn library_or_name_is_refused_while_the_first_is_registered() {
    let stub = Stub::newest("");
    let plugin = stub.open().unwrap();
    assert!(matches!(stub.open(), Err(Error::AlreadyRegistered { what: "the library", .. })));
    let namesake = Stub::newest(&format!("name={}", stub.name()));
    assert!(matches!(namesake.open(), Err(Error::AlreadyRegistered { what: "the platform", .. })));
    namesake.assert_balanced();
    drop(plugin);
    stub.open().unwrap();
    namesake.open().unwrap();
    stub.assert_balanced();
    namesake.assert_balanced();
}

#[test]
fn a_refused_plugin_is_unloaded_and_can_be_tried_again() {
    let stub = Stub::newest("null=create_stream");
    for _ in 0..3 {
        stub.refused();
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains(stub.path().to_str().unwrap()), "the library is still mapped");
    stub.assert_balanced();
}

/// With the size of TensorFlow 2.5, mem_zero would be called as host_callback.
#[test]
fn functions_beyond_the_declared_size_are_a_contradiction() {
    let stub = Stub::newest("size.SP_StreamExecutor=264");
    let report = stub.refused();
    assert!(report.layout_may_be_named, "{report:?}");
    stub.assert_balanced();
    let plugin = stub.open_named(NEWEST);
    assert!(plugin.is_err(), "mem_zero and its kind are beyond the size, and required");
    stub.assert_balanced();
}
