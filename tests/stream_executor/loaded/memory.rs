//! Tests of memory from plug-ins: through the host's allocator if they ask for it, and never the
//! same memory twice.

use serdes_stream_executor::{BfcAllocator, BfcOptions, Error, LayoutChoice, PluginOptions};

use super::plugins::{Stub, assert_moves_bytes, compile, pattern};

#[test]
fn host_memory_that_a_plugin_gives_twice_is_found() {
    for switch in ["twice", "inside"] {
        let stub = Stub::newest(&format!("host={switch}\nunified=1"));
        let plugin = stub.open().unwrap();
        let device = plugin.device(0).unwrap();
        let mut first = device.allocate_host(100).unwrap();
        first.fill(7);
        let error = device.allocate_host(100).unwrap_err();
        assert!(
            matches!(error, Error::MemoryInUse { call: "host_memory_allocate", bytes: 100 }),
            "{switch}: {error}"
        );
        // Memory of the other kind belongs to the same process.
        let error = device.allocate_unified(20).unwrap_err();
        assert!(
            matches!(error, Error::MemoryInUse { call: "unified_memory_allocate", .. }),
            "{switch}: {error}"
        );
        // The first owner's memory is unchanged, and is not freed while it is in use.
        assert_eq!(first[..], [7; 100]);
        drop(first);
        let second = device.allocate_host(100).unwrap();
        assert_eq!(second[..], [0; 100]);
        drop((second, device, plugin));
        assert_eq!(stub.created("host memory"), 2, "{switch}");
        stub.assert_balanced();
    }
}

#[test]
fn host_memory_longer_than_any_slice_is_not_even_asked_for() {
    let stub = Stub::newest("unified=1");
    let plugin = stub.open().unwrap();
    let device = plugin.device(0).unwrap();
    for bytes in [isize::MAX as usize + 1, usize::MAX] {
        assert!(matches!(device.allocate_host(bytes), Err(Error::OutOfMemory { .. })));
        assert!(matches!(device.allocate_unified(bytes), Err(Error::OutOfMemory { .. })));
    }
    drop((device, plugin));
    assert_eq!((stub.created("host memory"), stub.created("unified memory")), (0, 0));
}

#[test]
fn unified_memory_of_a_platform_that_has_none_is_not_asked_for() {
    // The stub sets both functions, but reports 0.
    let stub = Stub::newest("unified=0");
    let plugin = stub.open().unwrap();
    let device = plugin.device(0).unwrap();
    assert!(!plugin.platform().supports_unified_memory());
    for bytes in [0, 100] {
        assert!(device.allocate_unified(bytes).unwrap_err().is_unsupported());
    }
    drop((device, plugin));
    assert_eq!(stub.created("unified memory"), 0);
}

#[test]
fn streams_copy_from_and_to_unified_memory() {
    let stub = Stub::newest("unified=1");
    let plugin = stub.open().unwrap();
    let device = plugin.device(0).unwrap();
    let stream = device.create_stream().unwrap();
    let memory = device.allocate(1000).unwrap();
    let mut unified = device.allocate_unified(1000).unwrap();
    unified.copy_from_slice(&pattern(1000));
    let unified = unified.into_host_memory();
    let unified = stream.copy_to_device(unified, 1000, &memory, 0).unwrap().wait().unwrap();
    assert!(device.download(&memory).unwrap() == pattern(1000));
    device.copy_to_device(&[9; 10], &memory, 0).unwrap();
    let unified = stream.copy_to_host(&memory, 0, 10, unified).unwrap().wait().unwrap();
    assert_eq!(unified[..10], [9; 10]);
    drop((unified, memory, stream, device, plugin));
    assert_eq!((stub.created("unified memory"), stub.created("host memory")), (1, 0));
    stub.assert_balanced();
}

#[test]
fn best_fit_allocator_of_the_rfc_gives_few_large_regions() {
    let stub = Stub::new("rfc-257", "allocator=bfc");
    let plugin = stub.open().unwrap();
    let device = plugin.device(0).unwrap();
    let memories: Vec<_> = (0..200).map(|_| device.upload(&pattern(1000)).unwrap()).collect();
    assert_eq!(stub.created("device memory"), 1);
    for memory in &memories {
        assert!(device.download(memory).unwrap() == pattern(1000));
    }
    // A separate allocator asks the plug-in, not the other allocator.
    let own = BfcAllocator::new(&device, BfcOptions::default());
    let more = own.allocate(10).unwrap();
    assert_eq!(stub.created("device memory"), 2);
    drop((memories, more, own, device, plugin));
    stub.assert_balanced();
    // A plug-in with its own allocation strategy is asked each time.
    let stub = Stub::new("rfc-257", "allocator=custom");
    let plugin = stub.open().unwrap();
    let device = plugin.device(0).unwrap();
    let memories: Vec<_> = (0..20).map(|_| device.upload(&pattern(1000)).unwrap()).collect();
    assert_eq!(stub.created("device memory"), 20);
    drop((memories, device, plugin));
    stub.assert_balanced();
}

/// Its `SE_InitPlugin` clears the parameters, writes no sizes, and sets neither function that
/// destroys the platform.
#[test]
fn plugin_as_in_the_rfc_is_accepted_under_its_layout() {
    let library = compile("rfc_plugin.c", "rfc-257", &[]);
    let open = |layout| PluginOptions::new().with_layout(layout).open(library.to_str().unwrap());
    let plugin = open(LayoutChoice::named("rfc-257").unwrap()).unwrap();
    let report = plugin.report();
    assert_eq!(report.layout, Some("rfc-257"));
    assert_eq!(report.platform.as_deref(), Some("SampleDevice"));
    assert_eq!(report.missing_optional[..2], ["destroy_platform", "destroy_platform_fns"]);
    assert_eq!(plugin.device_count(), 2);
    assert!(plugin.platform().uses_bfc_allocator());
    let device = plugin.device(1).unwrap();
    let memory = device.upload(&pattern(10_000)).unwrap();
    assert!(device.download(&memory).unwrap() == pattern(10_000));
    let stream = device.create_stream().unwrap();
    let host = device.allocate_host(10_000).unwrap();
    let host = stream.copy_to_host(&memory, 0, 10_000, host).unwrap().wait().unwrap();
    assert!(host[..] == pattern(10_000)[..]);
    drop((host, stream, memory, device, plugin));
    // It writes no sizes, so that its layout cannot be detected.
    let Err(Error::Refused(report)) = open(LayoutChoice::Detect) else { panic!("accepted") };
    assert!(report.reasons[0].remedy.contains("layout"), "{report:?}");
}

/// The rule of released headers applies: their hosts require both functions and a name in capitals.
#[test]
fn released_layouts_require_functions_that_the_rfc_leaves_out() {
    let stub = Stub::newest("null=destroy_platform\nname=MyDevice");
    let report = stub.refused();
    assert_eq!(report.missing_required, ["destroy_platform"]);
    assert!(report.reasons.iter().any(|reason| reason.field == "name"), "{report:?}");
    let stub = Stub::new("rfc-257", "null=destroy_platform\nname=MyDevice1");
    assert_moves_bytes(&stub.open().unwrap());
    for name in ["", "1A", "A:B", "A/B", "A B", "\u{c4}"] {
        let stub = Stub::new("rfc-257", &format!("name={name}"));
        let report = stub.refused();
        assert_eq!(report.reasons[0].field, "name", "{name}: {report:?}");
    }
}
