//! Plug-ins in C, of every layout and with every bad habit: each is accepted or refused as TensorFlow and the versioning strategy say, and
//! whatever it made is destroyed.

mod stub;

use std::time::Duration;

use serdes::stream_executor::conformance::{self, Conformance, ConformanceOptions};
use serdes::stream_executor::{
    Error, LayoutChoice, Plugin, PluginOptions, Report, with_time_limit,
};
use stub::{LAYOUTS, Stub};

fn refused(stub: &Stub) -> Report {
    match stub.load() {
        Err(Error::Refused(report)) => {
            stub.assert_balanced();
            *report
        }
        Err(other) => panic!("{}: {other}", stub.habits()),
        Ok(_) => panic!("{}: accepted", stub.habits()),
    }
}

fn round_trip(plugin: &Plugin, what: &str) {
    let device = plugin.device(0).unwrap_or_else(|error| panic!("{what}: {error}"));
    let bytes: Vec<u8> = (0..5000u32).map(|index| (index * 31) as u8).collect();
    let memory = device.upload(&bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(device.download(&memory).unwrap(), bytes, "{what}");
    let stream = device.create_stream().unwrap();
    let host = device.allocate_host(bytes.len()).unwrap();
    let host = stream.copy_to_host(&memory, 0, bytes.len(), host).unwrap().wait().unwrap();
    assert_eq!(host[..], bytes, "{what}");
}

#[test]
fn every_layout_is_told_and_works() {
    for layout in LAYOUTS {
        let Some(stub) = Stub::new(layout, "") else { return };
        let plugin = stub.load().unwrap_or_else(|error| panic!("{layout}: {error}"));
        assert_eq!(plugin.report().layout, Some(layout));
        assert_eq!(plugin.device_count(), 2);
        round_trip(&plugin, layout);
        drop(plugin);
        stub.assert_balanced();
        let plugin = stub.open(LayoutChoice::named(layout).unwrap()).unwrap();
        round_trip(&plugin, layout);
        drop(plugin);
        stub.assert_balanced();
    }
}

#[test]
fn released_plugins_that_write_no_sizes_are_told_by_their_functions() {
    let unwritten: String = [
        "SP_Platform",
        "SP_PlatformFns",
        "SP_DeviceFns",
        "SP_StreamExecutor",
        "SP_TimerFns",
        "SP_DeviceMemoryBase",
        "SP_AllocatorStats",
        "SP_Device",
    ]
    .iter()
    .map(|name| format!("size.{name}=unwritten\n"))
    .collect();
    for layout in ["tensorflow-2.14", "tensorflow-2.8"] {
        let Some(stub) = Stub::new(layout, &unwritten) else { return };
        let plugin = stub.load().unwrap_or_else(|error| panic!("{layout}: {error}"));
        // Nothing tells 2.8 from 2.14 then; the host's own sizes stand.
        assert_eq!(plugin.report().layout, Some("tensorflow-2.14"));
        round_trip(&plugin, layout);
    }
    for layout in ["tensorflow-2.4", "tensorflow-2.5", "rfc-257"] {
        for allocator in ["allocator=bfc", "allocator=custom"] {
            let Some(stub) = Stub::new(layout, &format!("{unwritten}{allocator}")) else { return };
            let report = refused(&stub);
            assert!(
                report.reasons.iter().any(|reason| reason.remedy.contains("--layout"))
                    || !report.missing_required.is_empty(),
                "{layout}: {:?}",
                report.reasons
            );
            let plugin = stub.open(LayoutChoice::named(layout).unwrap()).unwrap();
            round_trip(&plugin, layout);
        }
    }
}

#[test]
fn newer_headers_may_write_beyond_what_we_know() {
    for layout in LAYOUTS {
        for extra in [8, 64, 256] {
            let Some(stub) = Stub::new(layout, &format!("extra={extra}")) else { return };
            match layout {
                // Longer structs of an old header are those of no header.
                "tensorflow-2.14" => {
                    let plugin = stub.load().unwrap_or_else(|error| panic!("{extra}: {error}"));
                    assert_eq!(plugin.report().layout, Some(layout));
                    round_trip(&plugin, layout);
                }
                _ => {
                    if let Ok(plugin) = stub.open(LayoutChoice::named(layout).unwrap()) {
                        round_trip(&plugin, layout);
                    }
                }
            }
            stub.assert_balanced();
        }
    }
}

#[test]
fn sizes_that_lie_are_cut_or_refused() {
    for (habit, field) in [
        ("size.SP_Platform=0", "struct_size"),
        ("size.SP_PlatformFns=0", "struct_size"),
        ("size.SP_DeviceFns=0", "struct_size"),
        ("size.SP_StreamExecutor=0", "struct_size"),
        ("size.SE_PlatformRegistrationParams=0", "struct_size"),
        ("size.SP_PlatformFns=8", "struct_size"),
        ("size.SP_StreamExecutor=8", "struct_size"),
        ("size.SP_StreamExecutor=280", "struct_size"),
        ("size.SP_Platform=8", "name"),
        ("size.SE_PlatformRegistrationParams=56", "destroy_platform_fns"),
    ] {
        let Some(stub) = Stub::new("tensorflow-2.14", habit) else { return };
        let Err(Error::Refused(report)) = stub.load() else { panic!("{habit} is accepted") };
        assert!(report.reasons.iter().any(|reason| reason.field == field), "{habit}: {report:?}");
    }
    for habit in [
        "size.SP_Platform=9999",
        "size.SP_PlatformFns=9999",
        "size.SP_DeviceFns=9999",
        "size.SP_StreamExecutor=9999",
        "size.SP_TimerFns=9999",
        "size.SP_Device=9999",
        "size.SP_DeviceMemoryBase=9999",
        "size.SP_DeviceMemoryBase=0",
        "size.SP_AllocatorStats=9999",
        "size.SE_PlatformRegistrationParams=9999",
        "size.SP_DeviceFns=8",
        "size.SP_TimerFns=8",
        "size.SP_TimerFns=0",
        "size.SP_Device=8",
        "size.SP_Platform=40",
        "size.SP_AllocatorStats=8",
    ] {
        let Some(stub) = Stub::new("tensorflow-2.14", habit) else { return };
        let plugin = stub.load().unwrap_or_else(|error| panic!("{habit}: {error}"));
        round_trip(&plugin, habit);
        plugin.device(0).unwrap().allocator_stats().unwrap();
        assert_eq!(plugin.device(0).unwrap().description().ordinal, 0);
        drop(plugin);
        stub.assert_balanced();
    }
    let Some(stub) = Stub::new("tensorflow-2.14", "size.SP_Device=0") else { return };
    let plugin = stub.load().unwrap();
    assert!(matches!(plugin.device(0), Err(Error::BadStruct { structure: "SP_Device", .. })));
    drop(plugin);
    stub.assert_balanced();
}

#[test]
fn an_executor_that_ends_before_mem_zero_has_neither_fills_nor_callbacks() {
    let Some(stub) = Stub::new("tensorflow-2.14", "size.SP_StreamExecutor=256") else { return };
    let plugin = stub.load().unwrap();
    round_trip(&plugin, "256 bytes");
    let device = plugin.device(0).unwrap();
    let stream = device.create_stream().unwrap();
    let memory = device.allocate(4).unwrap();
    assert!(stream.mem_zero(&memory, 0, 4).unwrap_err().is_unsupported());
    assert!(stream.host_callback(|| Ok(())).unwrap_err().is_unsupported());
}

#[test]
fn missing_functions_are_refused_where_they_are_required() {
    for field in [
        "get_device_count",
        "create_device",
        "destroy_device",
        "create_device_fns",
        "destroy_device_fns",
        "create_stream_executor",
        "destroy_stream_executor",
        "destroy_platform",
        "destroy_platform_fns",
        "allocate",
        "deallocate",
        "host_memory_allocate",
        "host_memory_deallocate",
        "get_allocator_stats",
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
    ] {
        let Some(stub) = Stub::new("tensorflow-2.14", &format!("null={field}")) else { return };
        let Err(Error::Refused(report)) = stub.load() else { panic!("{field} is not missed") };
        assert_eq!(report.missing_required, [field]);
        assert_eq!(report.reasons.len(), 1);
        assert_eq!(report.reasons[0].field, field);
        // What cannot be destroyed is not missed here.
        if !field.starts_with("destroy_") {
            stub.assert_balanced();
        }
    }
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
        "unified_memory_allocate",
        "unified_memory_deallocate",
        "hardware_name",
        "device_vendor",
        "pci_bus_id",
    ] {
        let Some(stub) = Stub::new("tensorflow-2.14", &format!("null={field}")) else { return };
        let plugin = stub.load().unwrap_or_else(|error| panic!("{field}: {error}"));
        round_trip(&plugin, field);
        let device = plugin.device(0).unwrap();
        let description = device.description();
        match field {
            "get_numa_node" => assert_eq!(description.numa_node, -1),
            _ => assert_eq!(description.numa_node, 123),
        }
        if let Err(error) = device.create_timer() {
            assert!(
                error.is_unsupported() && ["create_timer", "destroy_timer"].contains(&field),
                "{error}"
            );
        }
    }
    let Some(stub) = Stub::new("tensorflow-2.14", "unified=1\nnull=unified_memory_allocate") else {
        return;
    };
    assert_eq!(refused(&stub).missing_required, ["unified_memory_allocate"]);
}

#[test]
fn names_that_tensorflow_refuses_are_refused() {
    for (field, name) in [
        ("name", "NULL"),
        ("name", ""),
        ("name", "A:B"),
        ("name", "A/B"),
        ("name", "gpu"),
        ("name", "GPU2"),
        ("name", "_GPU"),
        ("name", "G PU"),
        ("type", "NULL"),
        ("type", "xpu"),
        ("type", "X-PU"),
    ] {
        let Some(stub) = Stub::new("tensorflow-2.14", &format!("{field}={name}")) else { return };
        let report = refused(&stub);
        assert_eq!(report.reasons[0].structure, "SP_Platform");
        assert_eq!(report.reasons[0].field, field);
    }
}

#[test]
fn errors_at_each_step_are_told_with_the_plugins_message() {
    for call in ["SE_InitPlugin", "create_device_fns", "create_stream_executor"] {
        let Some(stub) = Stub::new("tensorflow-2.14", &format!("error={call}")) else { return };
        let report = refused(&stub);
        assert_eq!(report.reasons[0].structure, call);
        assert!(report.reasons[0].found.contains(&format!("INTERNAL: as told: {call}")));
    }
    let Some(stub) = Stub::new("tensorflow-2.14", "error=get_device_count") else { return };
    let plugin = stub.load().unwrap();
    assert_eq!(plugin.device_count(), 0);
    assert!(plugin.report().warnings[0].contains("as told: get_device_count"));
    drop(plugin);
    for (habit, count) in [("devices=unwritten", 0), ("devices=-3", 0), ("devices=0", 0)] {
        let Some(stub) = Stub::new("tensorflow-2.14", habit) else { return };
        let plugin = stub.load().unwrap();
        assert_eq!(plugin.device_count(), count);
        assert!(!plugin.report().warnings.is_empty());
    }
    for call in [
        "create_device",
        "create_stream",
        "create_event",
        "memcpy_dtoh",
        "memcpy_htod",
        "sync_memcpy_dtoh",
        "sync_memcpy_htod",
        "record_event",
        "block_host_for_event",
        "synchronize_all_activity",
        "get_stream_status",
        "block_host_until_done",
        "create_timer",
        "create_stream_dependency",
        "wait_for_event",
        "mem_zero",
    ] {
        let Some(stub) = Stub::new("tensorflow-2.14", &format!("error={call}")) else { return };
        let plugin = stub.load().unwrap();
        let error = use_everything(&plugin).unwrap_err();
        assert!(error.to_string().contains(&format!("as told: {call}")), "{call}: {error}");
        assert_eq!(error.status_code(), Some(serdes_abi::TF_Code::INTERNAL));
        drop(plugin);
        stub.assert_balanced();
    }
    // Timers are optional: their functions may fail.
    let Some(stub) = Stub::new("tensorflow-2.14", "error=create_timer_fns") else { return };
    let plugin = stub.load().unwrap();
    let timer = plugin.device(0).unwrap().create_timer().unwrap();
    assert!(timer.nanoseconds().unwrap_err().to_string().contains("as told: create_timer_fns"));
}

/// A little of everything, until the first error.
fn use_everything(plugin: &Plugin) -> Result<(), Error> {
    let device = plugin.device(0)?;
    let memory = device.upload(b"bytes")?;
    device.download(&memory)?;
    let (stream, other) = (device.create_stream()?, device.create_stream()?);
    let event = device.create_event()?;
    let mut host = device.allocate_host(5)?;
    host.copy_from_slice(b"other");
    let host = stream.copy_to_device(host, 5, &memory, 0)?.wait()?;
    stream.copy_to_host(&memory, 0, 5, host)?.wait()?;
    stream.record(&event)?;
    other.wait_for(&event)?;
    other.wait_for_stream(&stream)?;
    let timer = device.create_timer()?;
    stream.start_timer(&timer)?;
    stream.stop_timer(&timer)?;
    stream.mem_zero(&memory, 0, 5)?;
    stream.synchronize()?;
    device.synchronize()?;
    timer.nanoseconds()?;
    stream.status()
}

#[test]
fn odd_habits_that_do_no_harm_are_accepted() {
    for habit in [
        "handles=null",
        "status=ok",
        "device=unwritten",
        "device=gone",
        "params=emptied",
        "deprecated=1",
        "usage=0",
        "stats=0",
    ] {
        let Some(stub) = Stub::new("tensorflow-2.14", habit) else { return };
        let plugin = stub.load().unwrap_or_else(|error| panic!("{habit}: {error}"));
        use_everything(&plugin).unwrap_or_else(|error| panic!("{habit}: {error}"));
        assert_eq!(plugin.report().warnings.is_empty(), habit != "deprecated=1");
        let device = plugin.device(1).unwrap();
        assert_eq!(device.memory_usage().unwrap().is_none(), habit == "usage=0");
        assert_eq!(device.allocator_stats().unwrap().is_none(), habit == "stats=0");
        drop((plugin, device));
        stub.assert_balanced();
    }
}

#[test]
fn the_version_that_a_plugin_writes_back_is_checked() {
    let Some(stub) = Stub::new("tensorflow-2.14", "major=7") else { return };
    let report = refused(&stub);
    assert_eq!(report.version.unwrap()[0], 7);
    assert_eq!(report.reasons[0].field, "major_version");
    assert_eq!((report.reasons[0].found.as_str(), report.reasons[0].expected.as_str()), ("7", "0"));
}

#[test]
fn allocators_of_the_rfc_are_used_and_only_one_is_allowed() {
    for allocator in ["custom", "bfc", "none"] {
        let Some(stub) = Stub::new("rfc-257", &format!("allocator={allocator}")) else { return };
        let plugin = stub.load().unwrap_or_else(|error| panic!("{allocator}: {error}"));
        round_trip(&plugin, allocator);
        assert_eq!(plugin.platform().uses_bfc_allocator(), allocator == "bfc");
        drop(plugin);
        stub.assert_balanced();
    }
    let Some(stub) = Stub::new("rfc-257", "allocator=both") else { return };
    assert!(refused(&stub).reasons[0].found.contains("create_allocator as well"));
    for (allocator, null) in [
        ("custom", "allocate_raw"),
        ("custom", "deallocate_raw"),
        ("custom", "destroy_custom_allocator"),
        ("bfc", "destroy_allocator"),
    ] {
        let habits = format!("allocator={allocator}\nnull={null}");
        let Some(stub) = Stub::new("rfc-257", &habits) else { return };
        let Err(Error::Refused(report)) = stub.load() else { panic!("{habits} is accepted") };
        assert_eq!(report.missing_required, [null]);
    }
}

#[test]
fn the_same_library_and_the_same_platform_are_registered_once() {
    let Some(stub) = Stub::new("tensorflow-2.14", "name=ONLY_ONE") else { return };
    let plugin = stub.load().unwrap();
    assert!(matches!(stub.load(), Err(Error::AlreadyRegistered { what: "the library", .. })));
    let same_name = Stub::new("tensorflow-2.14", "name=ONLY_ONE").unwrap();
    assert!(matches!(same_name.load(), Err(Error::AlreadyRegistered { what: "the platform", .. })));
    same_name.assert_balanced();
    drop(plugin);
    stub.assert_balanced();
    drop(stub.load().unwrap());
    drop(same_name.load().unwrap());
}

#[test]
fn callbacks_that_are_refused_dropped_or_repeated_are_noticed() {
    for (habit, part) in [
        ("callback=refuse", "refused a host callback"),
        ("callback=drop", "dropped it"),
        ("callback=twice", "2 times"),
    ] {
        let Some(stub) = Stub::new("tensorflow-2.14", habit) else { return };
        let plugin = stub.load().unwrap();
        let stream = plugin.device(0).unwrap().create_stream().unwrap();
        let outcome = stream.host_callback(|| Ok(())).and_then(|callback| callback.outcome());
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(part), "{habit}: {error}");
        assert_eq!(stream.is_ok(), habit != "callback=refuse");
    }
}

#[test]
fn late_failures_short_allocations_and_odd_events_are_errors() {
    for (habit, part) in [
        ("late=1", "a copy failed late"),
        ("memory=null", "could not allocate"),
        ("memory=small", "SP_DeviceMemoryBase.size"),
        ("event=0", "state 0"),
        ("event=1", "state 1"),
        ("event=9", "state 9"),
    ] {
        let Some(stub) = Stub::new("tensorflow-2.14", habit) else { return };
        let plugin = stub.load().unwrap();
        let error = use_everything(&plugin).unwrap_err().to_string();
        assert!(error.contains(part), "{habit}: {error}");
        drop(plugin);
        stub.assert_balanced();
    }
}

#[test]
fn a_call_that_hangs_is_named() {
    let Some(stub) = Stub::new("tensorflow-2.14", "hang=memcpy_htod") else { return };
    let plugin = stub.load().unwrap();
    let limit = Duration::from_millis(200);
    let result = with_time_limit(limit, move || use_everything(&plugin));
    assert!(matches!(result, Err(Error::TimedOut { call: "memcpy_htod", .. })), "{result:?}");
    for call in ["SE_InitPlugin", "create_stream_executor", "get_device_count"] {
        let stub = Stub::new("tensorflow-2.14", &format!("hang={call}")).unwrap();
        let options = PluginOptions::new().time_limit(limit);
        let error = options.open(stub.path().to_str().unwrap()).unwrap_err();
        assert!(matches!(error, Error::TimedOut { call: named, .. } if named == call), "{error}");
    }
}

#[test]
fn conformance_fails_where_the_plugin_does() {
    let options = ConformanceOptions { time_limit: Duration::from_secs(10) };
    let verify = |layout: &str, habits: &str| {
        let stub = Stub::new(layout, habits)?;
        let plugin = stub.load().unwrap_or_else(|error| panic!("{habits}: {error}"));
        Some(conformance::verify(&plugin, options, |_| {}))
    };
    for layout in LAYOUTS {
        let Some(outcomes) = verify(layout, "unified=1") else { return };
        for outcome in &outcomes {
            // The stub reports a callback's error by the stream, and knows how to say that.
            assert_ne!(outcome.result, Conformance::Fail, "{layout}: {outcome:?}");
        }
        assert_eq!(outcomes.len(), conformance::behaviours().count());
        let unsupported = outcomes.iter().filter(|one| one.result == Conformance::Unsupported);
        let unsupported: Vec<_> = unsupported.map(|one| one.behaviour).collect();
        let fills = ["mem_zero", "memset", "memset32", "fill_zero_bytes"];
        match layout {
            "tensorflow-2.14" | "tensorflow-2.8" => {
                assert!(unsupported.is_empty(), "{unsupported:?}")
            }
            "rfc-257" => assert_eq!(unsupported, [&["unified_memory"][..], &fills].concat()),
            _ => assert_eq!(unsupported, fills),
        }
    }
    for (habits, behaviour) in [
        ("corrupt=1", "sync_memcpy_dtoh"),
        ("short=1", "memcpy_htod"),
        ("late=1", "memcpy_dtoh"),
        ("callback=drop", "host_callback"),
        ("callback=twice", "host_callback"),
        ("callback=refuse", "host_callback"),
        ("memory=unaligned", "allocate_alignment"),
        ("memory=small", "allocate"),
        ("memory=null", "allocate"),
        ("event=0", "record_event"),
        ("error=create_timer", "create_timer"),
        ("error=memcpy_dtod", "memcpy_dtod"),
        ("error=create_stream", "create_stream"),
        ("error=synchronize_all_activity", "synchronize_all_activity"),
        ("error=block_host_until_done", "block_host_until_done"),
        ("size.SP_StreamExecutor=9999", "struct_sizes"),
        ("device=gone\nerror=create_device", "create_device"),
    ] {
        let Some(outcomes) = verify("tensorflow-2.14", habits) else { return };
        let outcome = outcomes.iter().find(|one| one.behaviour == behaviour).unwrap();
        assert_eq!(outcome.result, Conformance::Fail, "{habits}: {outcome:?}");
    }
    for (habits, behaviour) in [
        ("null=memcpy_dtod", "memcpy_dtod"),
        ("null=sync_memcpy_dtod", "sync_memcpy_dtod"),
        ("null=create_timer", "timer_nanoseconds"),
        ("null=nanoseconds", "timer_nanoseconds"),
        ("null=block_host_until_done", "block_host_until_done"),
        ("usage=0", "memory_usage"),
        ("stats=0", "allocator_stats"),
        ("unified=0", "unified_memory"),
    ] {
        let Some(outcomes) = verify("tensorflow-2.14", habits) else { return };
        let outcome = outcomes.iter().find(|one| one.behaviour == behaviour).unwrap();
        assert_eq!(outcome.result, Conformance::Unsupported, "{habits}: {outcome:?}");
        let failed = outcomes.iter().find(|one| one.result == Conformance::Fail);
        assert!(failed.is_none(), "{habits}: {failed:?}");
    }
    let Some(outcomes) = verify("tensorflow-2.14", "devices=0") else { return };
    assert!(
        outcomes
            .iter()
            .any(|one| one.behaviour == "create_device" && one.result == Conformance::Fail)
    );
}

#[test]
fn the_embedded_plugin_conforms() {
    for layout in LAYOUTS {
        let choice = LayoutChoice::named(layout).unwrap();
        let plugin = Plugin::open("host:devices=2", choice).unwrap();
        for outcome in conformance::verify(&plugin, ConformanceOptions::default(), |_| {}) {
            assert_ne!(outcome.result, Conformance::Fail, "{layout}: {outcome:?}");
        }
    }
}

#[test]
fn files_that_are_no_plugins_say_why() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("plugin.so");
    std::fs::write(&text, "just text").unwrap();
    for (path, part) in [
        (directory.path().join("none.so"), "No such file"),
        (text, "not an ELF file"),
        (directory.path().to_owned(), "not a file"),
    ] {
        let error = Plugin::load(&path).unwrap_err();
        assert!(matches!(&error, Error::NotLoadable { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let Some(stub) = Stub::new("tensorflow-2.14", "") else { return };
    let bytes = std::fs::read(stub.path()).unwrap();
    let other = directory.path().join("other.so");
    let mut foreign = bytes.clone();
    foreign[18..20].copy_from_slice(&243u16.to_le_bytes());
    for (changed, part) in [
        (foreign, "riscv64"),
        (bytes[..bytes.len() / 2].to_vec(), "damaged"),
        (bytes[..20].to_vec(), "damaged"),
    ] {
        std::fs::write(&other, changed).unwrap();
        let error = Plugin::load(&other).unwrap_err();
        assert!(matches!(&error, Error::NotLoadable { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let library = stub::compile_text("int TF_InitKernel(void) { return 0; }", &[]);
    let error = Plugin::load(&library.path).unwrap_err();
    assert!(matches!(&error, Error::NotAPlugin { .. }), "{error}");
    assert!(error.to_string().contains("TF_InitKernel"));
}

#[test]
fn plugins_of_every_way_of_linking_find_our_status_functions() {
    for flags in [&[][..], &["-Wl,-z,now"], &["-Wl,-z,lazy"], &["-fno-plt"], &["-Wl,-Bsymbolic"]] {
        let Some(stub) = Stub::linked("tensorflow-2.14", "error=SE_InitPlugin", flags) else {
            return;
        };
        let report = refused(&stub);
        assert!(report.reasons[0].found.contains("as told: SE_InitPlugin"), "{flags:?}");
    }
}

#[test]
fn status_functions_of_a_needed_library_do_not_win() {
    // A library that defines the status functions, as TensorFlow's does, and does nothing in them.
    let foreign = stub::compile_text(
        "void TF_SetStatus(void* s, int c, const char* m) { (void)s; (void)c; (void)m; }\n\
         int TF_GetCode(const void* s) { (void)s; return 0; }\n\
         const char* TF_Message(const void* s) { (void)s; return \"\"; }\n\
         void* TF_NewStatus(void) { return 0; }\n\
         void TF_DeleteStatus(void* s) { (void)s; }\n",
        &["-Wl,-soname,libforeign_status.so"],
    );
    let folder = foreign.path.parent().unwrap().to_str().unwrap().to_owned();
    std::fs::rename(&foreign.path, foreign.path.with_file_name("libforeign_status.so")).unwrap();
    let flags =
        [format!("-L{folder}"), "-lforeign_status".to_owned(), format!("-Wl,-rpath,{folder}")];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    for more in ["-Wl,-z,now", "-Wl,-z,lazy"] {
        let flags: Vec<&str> = flags.iter().copied().chain([more, "-Wl,--no-as-needed"]).collect();
        let Some(stub) = Stub::linked("tensorflow-2.14", "error=SE_InitPlugin", &flags) else {
            return;
        };
        let inspection = serdes::stream_executor::elf::inspect(stub.path()).unwrap();
        assert!(inspection.needed.iter().any(|name| name == "libforeign_status.so"));
        assert!(refused(&stub).reasons[0].found.contains("as told: SE_InitPlugin"), "{more}");
    }
}

#[test]
fn inspection_reads_symbols_without_loading() {
    let Some(stub) = Stub::new("tensorflow-2.14", "") else { return };
    let inspection = serdes::stream_executor::elf::inspect(stub.path()).unwrap();
    assert_eq!(inspection.architecture, std::env::consts::ARCH);
    assert!(inspection.is_plugin() && inspection.shared);
    assert_eq!(
        inspection.served,
        ["TF_DeleteStatus", "TF_GetCode", "TF_Message", "TF_NewStatus", "TF_SetStatus"]
    );
    assert!(inspection.unserved.is_empty());
    assert!(inspection.needed.iter().any(|name| name.starts_with("libc.so")));
    stub.assert_never_loaded();
    let library = stub::compile_text(
        "void TF_RegisterKernelBuilder(void); void SE_InitPlugin(void) { TF_RegisterKernelBuilder(); }",
        &[],
    );
    let inspection = serdes::stream_executor::elf::inspect(&library.path).unwrap();
    assert_eq!(inspection.unserved, ["TF_RegisterKernelBuilder"]);
}
