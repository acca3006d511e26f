//! Tests of plug-ins that register correctly and behave badly: the host's reaction to each fault
//! switch.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use serdes_stream_executor::{Device, Error, EventStatus, Plugin, PluginOptions, with_time_limit};

use super::plugins::{Stub, assert_moves_bytes, pattern};

fn device(stub: &Stub) -> (Plugin, Device) {
    let plugin = stub.open().unwrap();
    let device = plugin.device(0).unwrap();
    (plugin, device)
}

#[test]
fn statuses_are_fine_whether_they_are_set_or_never_touched() {
    for switch in ["", "status=ok"] {
        let stub = Stub::newest(switch);
        let plugin = stub.open().unwrap();
        assert_moves_bytes(&plugin);
        drop(plugin);
        stub.assert_balanced();
    }
}

#[test]
fn null_handles_are_legal_and_never_destroyed() {
    let stub = Stub::newest("handles=null");
    let (plugin, device) = device(&stub);
    assert_moves_bytes(&plugin);
    let (stream, event, timer) = (
        device.create_stream().unwrap(),
        device.create_event().unwrap(),
        device.create_timer().unwrap(),
    );
    stream.record(&event).unwrap();
    stream.start_timer(&timer).unwrap();
    stream.stop_timer(&timer).unwrap();
    event.wait().unwrap();
    stream.synchronize().unwrap();
    drop((stream, event, timer, device, plugin));
    // The stub creates nothing for a NULL handle, so each destroy call would be one too many.
    for kind in ["streams", "events", "timers"] {
        assert_eq!(stub.created(kind), 0);
    }
    stub.assert_balanced();
}

#[test]
fn each_error_status_comes_back_with_the_function_and_its_words() {
    type Operation = fn(&Device) -> Result<(), Error>;
    fn with_stream(
        device: &Device,
        operation: impl FnOnce(&serdes_stream_executor::Stream) -> Result<(), Error>,
    ) -> Result<(), Error> {
        operation(&device.create_stream()?)
    }
    let operations: [(&str, Operation); 20] = [
        ("create_stream", |device| device.create_stream().map(drop)),
        ("create_event", |device| device.create_event().map(drop)),
        ("create_timer", |device| device.create_timer().map(drop)),
        ("get_stream_status", |device| with_stream(device, |stream| stream.status())),
        ("create_stream_dependency", |device| {
            with_stream(device, |stream| stream.wait_for_stream(&device.create_stream()?))
        }),
        ("record_event", |device| {
            with_stream(device, |stream| stream.record(&device.create_event()?))
        }),
        ("wait_for_event", |device| {
            with_stream(device, |stream| stream.wait_for(&device.create_event()?))
        }),
        ("block_host_for_event", |device| {
            with_stream(device, |stream| {
                let event = device.create_event()?;
                stream.record(&event)?;
                event.wait()
            })
        }),
        ("start_timer", |device| {
            with_stream(device, |stream| stream.start_timer(&device.create_timer()?))
        }),
        ("stop_timer", |device| {
            with_stream(device, |stream| stream.stop_timer(&device.create_timer()?))
        }),
        ("block_host_until_done", |device| with_stream(device, |stream| stream.synchronize())),
        ("synchronize_all_activity", |device| device.synchronize()),
        ("sync_memcpy_htod", |device| device.upload(&[1, 2, 3]).map(drop)),
        ("sync_memcpy_dtoh", |device| device.download(&device.allocate(3)?).map(drop)),
        ("sync_memcpy_dtod", |device| {
            device.copy_on_device(&device.allocate(3)?, 0, &device.allocate(3)?, 0, 3)
        }),
        ("memcpy_dtoh", |device| {
            let memory = device.allocate(3)?;
            with_stream(device, |stream| {
                stream.copy_to_host(&memory, 0, 3, device.allocate_host(3)?)?.wait().map(drop)
            })
        }),
        ("memcpy_htod", |device| {
            let memory = device.allocate(3)?;
            with_stream(device, |stream| {
                stream.copy_to_device(device.allocate_host(3)?, 3, &memory, 0)?.wait().map(drop)
            })
        }),
        ("memset", |device| {
            let memory = device.allocate(3)?;
            with_stream(device, |stream| stream.memset(&memory, 0, 3, 1))
        }),
        ("memset32", |device| {
            let memory = device.allocate(4)?;
            with_stream(device, |stream| stream.memset32(&memory, 0, 4, 1))
        }),
        ("mem_zero", |device| {
            let memory = device.allocate(3)?;
            with_stream(device, |stream| stream.mem_zero(&memory, 0, 3))
        }),
    ];
    for (call, operation) in operations {
        let stub = Stub::newest(&format!("error={call}"));
        let (plugin, device) = device(&stub);
        match operation(&device) {
            Err(Error::Status(status)) => {
                assert_eq!(
                    (status.call, status.message.as_str()),
                    (call, format!("as told: {call}").as_str())
                );
                assert_eq!(status.code, serdes_abi::TF_Code::INTERNAL);
            }
            other => panic!("{call}: found {other:?}"),
        }
        drop((device, plugin));
        stub.assert_balanced();
    }
}

#[test]
fn dropped_doubled_and_refused_host_callbacks_are_told_apart() {
    let runs = Arc::new(AtomicU32::new(0));
    let outcome = |switch: &str| {
        runs.store(0, Ordering::SeqCst);
        let stub = Stub::newest(switch);
        let (plugin, device) = device(&stub);
        let stream = device.create_stream().unwrap();
        let count = Arc::clone(&runs);
        let run = move || {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let outcome = stream.host_callback(run).and_then(|callback| callback.outcome());
        let stream_is_ok = stream.is_ok();
        drop((stream, device, plugin));
        (outcome, runs.load(Ordering::SeqCst), stream_is_ok)
    };
    assert!(matches!(outcome(""), (Ok(()), 1, true)));
    assert!(matches!(outcome("callback=refuse"), (Err(Error::CallbackRefused), 0, false)));
    assert!(matches!(outcome("callback=drop"), (Err(Error::CallbackDropped), 0, _)));
    let doubled = outcome("callback=twice");
    assert!(matches!(doubled, (Err(Error::CallbackRepeated { times: 2 }), 1, _)), "{doubled:?}");
    let failed = outcome("callback=error");
    assert!(failed.0.is_err() && failed.1 == 1, "{failed:?}");
}

#[test]
fn event_states_beyond_pending_and_complete_are_failures() {
    let cases = [(0, None), (1, None), (2, Some(false)), (3, Some(true)), (4, None), (-7, None)];
    for (number, expected) in cases {
        let stub = Stub::newest(&format!("event={number}"));
        let (_plugin, device) = device(&stub);
        let stream = device.create_stream().unwrap();
        let event = device.create_event().unwrap();
        stream.record(&event).unwrap();
        let status = event.status().unwrap();
        match expected {
            Some(true) => assert_eq!(status, EventStatus::Complete),
            Some(false) => assert_eq!(status, EventStatus::Pending),
            None => assert!(
                status != EventStatus::Complete && status != EventStatus::Pending,
                "{number}: {status:?}"
            ),
        }
        if expected.is_none() {
            let memory = device.upload(&[1, 2, 3]).unwrap();
            let transfer = stream.copy_to_host(&memory, 0, 3, device.allocate_host(3).unwrap());
            let error = transfer.unwrap().wait().unwrap_err().to_string();
            assert!(error.contains(&format!("state {number}")), "{error}");
        }
    }
}

#[test]
fn a_copy_that_fails_late_is_an_error_when_it_is_waited_for() {
    let stub = Stub::newest("late=1");
    let (plugin, device) = device(&stub);
    let stream = device.create_stream().unwrap();
    let memory = device.upload(&pattern(100)).unwrap();
    let waited = stream
        .copy_to_host(&memory, 0, 100, device.allocate_host(100).unwrap())
        .and_then(serdes_stream_executor::Transfer::wait);
    assert!(waited.unwrap_err().to_string().contains("late"));
    assert!(stream.synchronize().unwrap_err().to_string().contains("late"));
    drop((memory, stream, device, plugin));
    stub.assert_balanced();
}

#[test]
fn corrupt_and_short_copies_show_in_the_bytes() {
    for switch in ["corrupt=1", "short=1"] {
        let stub = Stub::newest(switch);
        let (_plugin, device) = device(&stub);
        let bytes = pattern(1000);
        let stream = device.create_stream().unwrap();
        let memory = device.upload(&bytes).unwrap();
        // Two flips of the same bit cancel out, so only one copy is checked.
        let second = device.allocate(1000).unwrap();
        stream.copy_on_device(&memory, 0, &second, 0, 1000).unwrap();
        stream.synchronize().unwrap();
        assert!(device.download(&second).unwrap() != bytes, "{switch}");
    }
}

#[test]
fn slow_calls_are_waited_for() {
    let stub = Stub::newest("slow=memcpy_dtoh\nslow=create_stream\nslow=sync_memcpy_htod");
    let plugin = stub.open().unwrap();
    assert_moves_bytes(&plugin);
    drop(plugin);
    stub.assert_balanced();
}

#[test]
fn a_call_that_hangs_is_named_when_the_time_is_up() {
    for call in ["SE_InitPlugin", "create_device_fns", "create_stream_executor", "get_device_count"]
    {
        let stub = Stub::newest(&format!("hang={call}"));
        let limit = Duration::from_millis(300);
        let begun = Instant::now();
        let opened =
            PluginOptions::new().with_time_limit(limit).open(stub.path().to_str().unwrap());
        match opened {
            Err(Error::TimedOut { call: named, .. }) => assert_eq!(named, call),
            other => panic!("{call}: found {other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
    for call in [
        "create_device",
        "create_stream",
        "memcpy_dtoh",
        "block_host_until_done",
        "sync_memcpy_htod",
        "record_event",
        "block_host_for_event",
    ] {
        let stub = Stub::newest(&format!("hang={call}"));
        let plugin = stub.open().unwrap();
        let result = with_time_limit(Duration::from_millis(300), move || {
            let device = plugin.device(0)?;
            let memory = device.upload(&[1, 2, 3])?;
            let stream = device.create_stream()?;
            let host = device.allocate_host(3)?;
            stream.copy_to_host(&memory, 0, 3, host)?.wait()?;
            stream.synchronize()?;
            let event = device.create_event()?;
            stream.record(&event)?;
            event.wait()
        });
        match result {
            Err(Error::TimedOut { call: named, .. }) => assert_eq!(named, call),
            other => panic!("{call}: found {other:?}"),
        }
    }
}

#[test]
fn out_of_memory_and_wrong_allocations_are_errors() {
    let stub = Stub::newest("memory=null");
    let (plugin, device) = device(&stub);
    assert!(matches!(device.allocate(100), Err(Error::OutOfMemory { bytes: 100, .. })));
    assert!(device.upload(&[1]).is_err());
    drop((device, plugin));
    stub.assert_balanced();

    let stub = Stub::newest("memory=small");
    let (plugin, device) = self::device(&stub);
    let error = device.allocate(100).unwrap_err();
    assert!(
        matches!(error, Error::BadStruct { structure: "SP_DeviceMemoryBase", field: "size", .. }),
        "{error}"
    );
    drop((device, plugin));
    stub.assert_balanced();
}

#[test]
fn odd_addresses_are_the_plugins_own_business() {
    let stub = Stub::newest("memory=unaligned");
    let plugin = stub.open().unwrap();
    assert_moves_bytes(&plugin);
    drop(plugin);
    stub.assert_balanced();
}

#[test]
fn unavailable_device_facts_are_none() {
    let stub = Stub::newest("usage=0\nstats=0");
    let (_plugin, device) = device(&stub);
    assert_eq!(device.memory_usage().unwrap(), None);
    assert_eq!(device.allocator_stats().unwrap(), None);
    let stub = Stub::newest("");
    let (_plugin, device) = self::device(&stub);
    let usage = device.memory_usage().unwrap().unwrap();
    assert_eq!((usage.free, usage.total), (40, 50));
    assert_eq!(device.allocator_stats().unwrap().unwrap().bytes_in_use, 123);
}

#[test]
fn bytes_beyond_the_fields_are_warned_of_and_zero_ones_are_not() {
    for (switches, warns) in [("", false), ("deprecated=1", true)] {
        let stub = Stub::newest(switches);
        let plugin = stub.open().unwrap();
        assert_moves_bytes(&plugin);
        assert_eq!(!plugin.report().warnings.is_empty(), warns, "{:?}", plugin.report().warnings);
    }
}

#[test]
fn a_device_that_forgets_its_ordinal_is_still_itself() {
    for switch in ["device=unwritten", "device=gone"] {
        let stub = Stub::newest(switch);
        let plugin = stub.open().unwrap();
        assert_eq!(plugin.device(1).unwrap().ordinal(), 1, "{switch}");
        assert_moves_bytes(&plugin);
        drop(plugin);
        stub.assert_balanced();
    }
}

#[test]
fn eight_threads_share_a_plugin_and_nothing_is_left() {
    let stub = Stub::newest("");
    let plugin = stub.open().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert_moves_bytes(&plugin);
                }
            });
        }
    });
    drop(plugin);
    stub.assert_balanced();
}
