//! Tests that the conformance suite detects each fault switch, and passes plug-ins without any.

use std::time::{Duration, Instant};

use serdes_stream_executor::{
    LayoutChoice, Plugin,
    conformance::{self, Conformance, ConformanceOptions, Outcome},
};

use super::plugins::{LAYOUTS, NEWEST, Stub, compile, unused_name};

/// Returns the outcomes of the suite for the stub with these fault switches.
fn verify(layout: &str, switches: &str) -> Vec<Outcome> {
    let options = ConformanceOptions::new().with_time_limit(Duration::from_secs(10));
    let stub = Stub::new(layout, switches);
    let plugin = stub.open().unwrap_or_else(|error| panic!("{switches}: {error}"));
    conformance::verify(&plugin, options, |_| {})
}

#[test]
fn plugin_without_fault_switches_conforms_in_each_layout() {
    for (layout, _) in LAYOUTS {
        let outcomes = verify(layout, "unified=1");
        for outcome in &outcomes {
            // The stub reports a callback's error through the stream, and sets the function for
            // that.
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
}

#[test]
fn each_fault_switch_fails_the_behaviour_that_it_breaks() {
    for (switches, behaviour) in [
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
        let outcomes = verify(NEWEST, switches);
        let outcome = outcomes.iter().find(|one| one.behaviour == behaviour).unwrap();
        assert_eq!(outcome.result, Conformance::Fail, "{switches}: {outcome:?}");
    }
}

#[test]
fn function_that_a_plugin_lacks_is_unsupported_not_failed() {
    for (switches, behaviour) in [
        ("null=memcpy_dtod", "memcpy_dtod"),
        ("null=sync_memcpy_dtod", "sync_memcpy_dtod"),
        ("null=create_timer", "timer_nanoseconds"),
        ("null=nanoseconds", "timer_nanoseconds"),
        ("null=block_host_until_done", "block_host_until_done"),
        ("usage=0", "memory_usage"),
        ("stats=0", "allocator_stats"),
        ("unified=0", "unified_memory"),
    ] {
        let outcomes = verify(NEWEST, switches);
        let outcome = outcomes.iter().find(|one| one.behaviour == behaviour).unwrap();
        assert_eq!(outcome.result, Conformance::Unsupported, "{switches}: {outcome:?}");
        let failed = outcomes.iter().find(|one| one.result == Conformance::Fail);
        assert!(failed.is_none(), "{switches}: {failed:?}");
    }
}

/// Streams are threads, and copies take a few microseconds: without a delay the other stream would
/// be late enough to read the right data.
#[test]
fn streams_that_wait_for_nothing_are_found_out() {
    for (flag, broken) in [
        ("-DKEEPS_ORDER", None),
        ("-DIGNORE_DEPENDENCIES", Some("stream_dependency")),
        ("-DIGNORE_EVENTS", Some("wait_for_event")),
    ] {
        let name = format!("-DPLATFORM=\"{}\"", unused_name());
        let library = compile("queue_plugin.c", NEWEST, &[flag, &name, "-pthread"]);
        let plugin = Plugin::load(library).unwrap();
        for outcome in conformance::verify(&plugin, ConformanceOptions::default(), |_| {}) {
            if broken == Some(outcome.behaviour) {
                assert_eq!(outcome.result, Conformance::Fail, "{flag}: {outcome:?}");
            } else if broken.is_none() {
                assert_ne!(outcome.result, Conformance::Fail, "{flag}: {outcome:?}");
            }
        }
    }
}

#[test]
fn verification_ends_where_a_plugin_counts_no_device() {
    let outcomes = verify(NEWEST, "devices=0");
    let last = outcomes.last().unwrap();
    assert_eq!((last.behaviour, last.result), ("device_count", Conformance::Skipped));
    assert!(outcomes.iter().all(|one| one.result != Conformance::Fail), "{outcomes:?}");
}

#[test]
fn the_embedded_plugin_conforms() {
    for (layout, _) in LAYOUTS {
        let choice = LayoutChoice::named(layout).unwrap();
        let plugin = Plugin::open("host:devices=2", choice).unwrap();
        for outcome in conformance::verify(&plugin, ConformanceOptions::default(), |_| {}) {
            assert_ne!(outcome.result, Conformance::Fail, "{layout}: {outcome:?}");
        }
    }
}

#[test]
fn a_call_that_hangs_fails_what_needs_it_and_is_named() {
    let options = ConformanceOptions::new().with_time_limit(Duration::from_millis(500));
    let stub = Stub::newest("hang=wait_for_event");
    let began = Instant::now();
    let outcomes = conformance::verify(&stub.open().unwrap(), options, |_| {});
    assert_eq!(outcomes.len(), conformance::behaviours().count());
    let hung = outcomes.iter().find(|one| one.behaviour == "wait_for_event").unwrap();
    assert_eq!(hung.result, Conformance::Fail);
    assert!(hung.detail.contains("wait_for_event"), "{hung:?}");
    assert!(began.elapsed() < Duration::from_secs(60));
}
