//! Cost of hosting a StreamExecutor plug-in: a call through the safe types against the plug-in's
//! function itself, a copy through it against a plain copy, and the best-fit allocator against the
//! system's. Ratios are printed at the end; each pair is measured in turns.
//!
//! Targets: at most 5 ns per call; copies at 0.99 of a plain copy from 64 KiB up; 150 ns for
//! an allocation and its release at 10,000 live blocks.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{Criterion, Throughput};
use serdes_stream_executor::{BfcAllocator, BfcOptions, Plugin, unguarded};

/// The number of live blocks in the allocator benches.
const LIVE: usize = 10_000;

fn calls(criterion: &mut Criterion) {
    let device = Plugin::host().device(0).expect("the embedded plug-in has a device");
    let stream = device.create_stream().expect("a stream");
    let event = device.create_event().expect("an event");
    stream.record(&event).expect("recorded");
    event.wait().expect("come");
    let mut group = criterion.benchmark_group("calls");
    let direct_event = unguarded::event_status(&event);
    group.bench_function("get_event_status/direct", |b| b.iter(|| black_box(direct_event())));
    group.bench_function("get_event_status/safe", |b| b.iter(|| black_box(event.status())));
    let mut direct_stream = unguarded::stream_status(&stream);
    group.bench_function("get_stream_status/direct", |b| b.iter(|| black_box(direct_stream())));
    group.bench_function("get_stream_status/safe", |b| b.iter(|| black_box(stream.status())));
    group.finish();
    let direct =
        in_turns(|| _ = black_box(direct_event()), || _ = black_box(event.status()), 2_000);
    println!("get_event_status: direct {:.1} ns, safe {:.1} ns", direct.0, direct.1);
    let direct =
        in_turns(|| _ = black_box(direct_stream()), || _ = black_box(stream.status()), 2_000);
    println!("get_stream_status: direct {:.1} ns, safe {:.1} ns", direct.0, direct.1);
}

fn copies(criterion: &mut Criterion) {
    let device = Plugin::host().device(0).expect("the embedded plug-in has a device");
    let mut group = criterion.benchmark_group("copies");
    let mut lines = Vec::new();
    for bytes in [4 << 10, 64 << 10, 1 << 20] {
        let source = vec![7u8; bytes];
        let mut plain = vec![0u8; bytes];
        let memory = device.allocate(bytes as u64).expect("memory");
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(format!("{bytes}/plain"), |b| {
            b.iter(|| black_box(&mut plain).copy_from_slice(black_box(&source)));
        });
        group.bench_function(format!("{bytes}/plug-in"), |b| {
            b.iter(|| device.copy_to_device(black_box(&source), &memory, 0).expect("copied"));
        });
        let (direct, through) = in_turns(
            || black_box(&mut plain).copy_from_slice(black_box(&source)),
            || device.copy_to_device(black_box(&source), &memory, 0).expect("copied"),
            (1 << 22) / bytes,
        );
        lines.push(format!("copy of {bytes} bytes: {:.3} of a plain copy", direct / through));
    }
    group.finish();
    for line in lines {
        println!("{line}");
    }
}

fn allocation(criterion: &mut Criterion) {
    let device = Plugin::host().device(0).expect("the embedded plug-in has a device");
    let allocator = BfcAllocator::new(&device, BfcOptions::default());
    let mut state = 1u64;
    let mut size = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % 65_536 + 1
    };
    let sizes: Vec<u64> = (0..LIVE).map(|_| size()).collect();
    let mut ours: Vec<_> =
        sizes.iter().map(|&bytes| Some(allocator.allocate(bytes).expect("memory"))).collect();
    let mut theirs: Vec<_> =
        sizes.iter().map(|&bytes| Some(Vec::<u8>::with_capacity(bytes as usize))).collect();
    // Each step frees one block and allocates one of another size instead.
    let mut at = 0usize;
    let mut step_ours = || {
        at = (at + 7919) % LIVE;
        ours[at] = None;
        ours[at] = Some(allocator.allocate(sizes[(at * 31) % LIVE]).expect("memory"));
    };
    let mut other = 0usize;
    let mut step_theirs = || {
        other = (other + 7919) % LIVE;
        theirs[other] = None;
        theirs[other] = Some(black_box(Vec::with_capacity(sizes[(other * 31) % LIVE] as usize)));
    };
    let mut group = criterion.benchmark_group("allocation");
    group.bench_function("best fit", |b| b.iter(&mut step_ours));
    group.bench_function("malloc", |b| b.iter(&mut step_theirs));
    group.finish();
    let (ours, theirs) = in_turns(step_ours, step_theirs, 500);
    println!(
        "allocate and free at {LIVE} live blocks: best fit {ours:.0} ns, malloc {theirs:.0} ns"
    );
}

/// Returns the nanoseconds per call of each side: the medians of 301 turns of `count` calls.
///
/// Turns are short, so that most of them are not interrupted on a busy machine.
fn in_turns(mut first: impl FnMut(), mut second: impl FnMut(), count: usize) -> (f64, f64) {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..301 {
        let began = Instant::now();
        for _ in 0..count {
            first();
        }
        times[0].push(began.elapsed());
        let began = Instant::now();
        for _ in 0..count {
            second();
        }
        times[1].push(began.elapsed());
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_nanos() as f64 / count as f64
    };
    let [mut first, mut second] = times;
    (median(&mut first), median(&mut second))
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    calls(&mut criterion);
    copies(&mut criterion);
    allocation(&mut criterion);
    criterion.final_summary();
}
