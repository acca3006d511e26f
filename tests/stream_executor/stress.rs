//! Tests of many threads that share a plug-in, its streams and its events: order is kept, bytes are
//! intact, and nothing is freed too early.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use serdes_stream_executor::{BfcAllocator, BfcOptions, LayoutChoice, Plugin};

/// Returns the next number of a small generator, so that a run can be repeated.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Every round writes its number through one stream and reads it through another, ordered by an
/// event or a dependency.
#[test]
fn streams_tied_by_events_and_dependencies_see_earlier_writes() {
    let plugin = Plugin::host();
    thread::scope(|scope| {
        for seed in 0..4u64 {
            let plugin = plugin.clone();
            scope.spawn(move || {
                let device = plugin.device(0).unwrap();
                let streams: Vec<_> = (0..4).map(|_| device.create_stream().unwrap()).collect();
                let memory = device.allocate(4096).unwrap();
                let mut state = seed + 1;
                let mut last = 0;
                let mut reads = Vec::new();
                for round in 0..300u32 {
                    let stream = next(&mut state) as usize % 4;
                    if stream != last {
                        if next(&mut state).is_multiple_of(2) {
                            streams[stream].wait_for_stream(&streams[last]).unwrap();
                        } else {
                            let event = device.create_event().unwrap();
                            streams[last].record(&event).unwrap();
                            streams[stream].wait_for(&event).unwrap();
                        }
                        last = stream;
                    }
                    streams[stream].memset32(&memory, 0, 4096, round).unwrap();
                    let host = device.allocate_host(4096).unwrap();
                    let read = streams[stream].copy_to_host(&memory, 0, 4096, host).unwrap();
                    reads.push((round, read));
                    if next(&mut state).is_multiple_of(16) {
                        check(reads.drain(..));
                    }
                }
                check(reads.drain(..));
            });
        }
    });

    fn check(reads: impl Iterator<Item = (u32, serdes_stream_executor::Transfer)>) {
        for (round, read) in reads {
            let expected = round.to_ne_bytes().repeat(1024);
            assert!(read.wait().unwrap()[..] == expected[..], "round {round}");
        }
    }
}

#[test]
fn stream_takes_work_from_many_threads() {
    let device = Plugin::host().device(0).unwrap();
    let stream = device.create_stream().unwrap();
    let runs = Arc::new(AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..8u8 {
            let (device, stream, runs) = (&device, &stream, Arc::clone(&runs));
            scope.spawn(move || {
                for round in 0..100u8 {
                    let memory = device.allocate(1000).unwrap();
                    let mut host = device.allocate_host(1000).unwrap();
                    host.fill(thread ^ round);
                    let up = stream.copy_to_device(host, 1000, &memory, 0).unwrap();
                    let host = device.allocate_host(1000).unwrap();
                    let down = stream.copy_to_host(&memory, 0, 1000, host).unwrap();
                    // The stream keeps the memory that the copies use.
                    drop((memory, up));
                    let runs = Arc::clone(&runs);
                    let callback = stream.host_callback(move || {
                        runs.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    });
                    drop(callback.unwrap());
                    assert!(down.wait().unwrap().iter().all(|&byte| byte == thread ^ round));
                }
            });
        }
    });
    stream.synchronize().unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 800);
}

#[test]
fn allocator_shared_by_threads_gives_each_its_own_memory() {
    let plugin = Plugin::open("host:memory=64000000", LayoutChoice::Detect).unwrap();
    let device = plugin.device(0).unwrap();
    let allocator = BfcAllocator::new(&device, BfcOptions::default());
    thread::scope(|scope| {
        for thread in 0..8u64 {
            let (device, allocator) = (&device, allocator.clone());
            scope.spawn(move || {
                let mut state = thread + 1;
                let mut live = Vec::new();
                for round in 0..400u64 {
                    let bytes = next(&mut state) as usize % 20_000 + 1;
                    let byte = (thread * 31 + round) as u8;
                    let memory = allocator.allocate(bytes as u64).unwrap();
                    device.copy_to_device(&vec![byte; bytes], &memory, 0).unwrap();
                    live.push((memory, byte));
                    if live.len() > 20 {
                        let index = next(&mut state) as usize % live.len();
                        let (memory, byte) = live.swap_remove(index);
                        let bytes = device.download(&memory).unwrap();
                        assert!(bytes.iter().all(|&found| found == byte));
                    }
                }
            });
        }
    });
    assert_eq!(allocator.stats().bytes_in_use, 0);
}
