//! The reference plug-in, through its table of C functions, beside the limits of the machine:
//! memcpy, and malloc with fresh pages.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serdes_stream_executor::Plugin;

/// Returns the best of many runs of each side in nanoseconds per call. The sides take turns, so
/// that other load affects both alike.
fn best_of(
    rounds: usize,
    calls: usize,
    mut ours: impl FnMut(),
    mut peer: impl FnMut(),
) -> (f64, f64) {
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        let begun = Instant::now();
        (0..calls).for_each(|_| ours());
        best.0 = best.0.min(begun.elapsed());
        let begun = Instant::now();
        (0..calls).for_each(|_| peer());
        best.1 = best.1.min(begun.elapsed());
    }
    let each = |time: Duration| time.as_nanos() as f64 / calls as f64;
    (each(best.0), each(best.1))
}

fn copies(criterion: &mut Criterion) {
    let plugin = Plugin::host();
    let device = plugin.device(0).unwrap();
    for size in [64, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20_usize] {
        let source = vec![7_u8; size];
        let mut target = vec![0_u8; size];
        let memory = device.upload(&source).unwrap();
        let calls = ((64 << 20) / size).clamp(1, 20_000);
        let (ours, peer) = best_of(
            30,
            calls,
            || device.copy_to_device(black_box(&source), &memory, 0).unwrap(),
            || target.copy_from_slice(black_box(&source)),
        );
        println!(
            "copy of {size} bytes to the device: {ours:.0} ns, memcpy {peer:.0} ns, ratio {:.3}",
            peer / ours
        );
        let mut group = criterion.benchmark_group(format!("copy/{size}"));
        group.throughput(Throughput::Bytes(size as u64)).sample_size(10);
        group.bench_function("device", |bench| {
            bench.iter(|| device.copy_to_device(black_box(&source), &memory, 0))
        });
        group.bench_function("memcpy", |bench| {
            bench.iter(|| target.copy_from_slice(black_box(&source)))
        });
        group.finish();
    }
}

fn streams(criterion: &mut Criterion) {
    let plugin = Plugin::host();
    let device = plugin.device(0).unwrap();
    let stream = device.create_stream().unwrap();
    let memory = device.allocate(1 << 20).unwrap();
    for size in [64, 4 << 10, 64 << 10, 1 << 20_usize] {
        let mut host = Some(device.allocate_host(size).unwrap());
        let mut trip = || {
            let transfer = stream.copy_to_host(&memory, 0, size, host.take().unwrap()).unwrap();
            host = Some(transfer.wait().unwrap());
        };
        let (ours, _) = best_of(20, 200, &mut trip, || ());
        println!("asynchronous copy of {size} bytes and its wait: {ours:.0} ns");
        criterion.bench_function(&format!("asynchronous/{size}"), |bench| bench.iter(&mut trip));
    }
}

fn allocations(criterion: &mut Criterion) {
    let plugin = Plugin::host();
    let device = plugin.device(0).unwrap();
    let bytes = vec![7_u8; 4 << 20];
    let (ours, peer) = best_of(
        30,
        4,
        || drop(device.upload(black_box(&bytes)).unwrap()),
        || drop(black_box(bytes.clone())),
    );
    println!(
        "allocate, fill and free 4 MiB: {ours:.0} ns, a vector {peer:.0} ns, ratio {:.3}",
        peer / ours
    );
    criterion.bench_function("upload/4 MiB", |bench| {
        bench.iter(|| drop(device.upload(black_box(&bytes))))
    });
    let (ours, peer) = best_of(
        30,
        2000,
        || drop(device.allocate(black_box(1000)).unwrap()),
        || drop(black_box(Vec::<u8>::with_capacity(black_box(1000)))),
    );
    println!("allocate and free 1000 bytes: {ours:.0} ns, a vector {peer:.0} ns");
}

criterion_group!(benches, copies, streams, allocations);
criterion_main!(benches);
