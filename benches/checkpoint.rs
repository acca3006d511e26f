//! Checkpoints: opening and listing an index of 100,000 tensors, verifying a data file against
//! reading it, writing one against a plain write of the same bytes.
//!
//! `tests/interop/tensorflow_checkpoints.py --time` measures TensorFlow beside this crate.

use std::{
    fs::File,
    hint::black_box,
    io::{Read, Write},
    path::Path,
    time::{Duration, Instant},
};

use criterion::{Criterion, criterion_group, criterion_main};
use serdes_checkpoints::tensor_bundle::{
    Bundle, BundleOptions, BundleWriter, VerifyOptions, data_path,
};
use serdes_graph_format::data_type::DataType;

const LARGE: usize = 64;
const LARGE_BYTES: usize = 16 << 20;

fn write(prefix: &Path, tensors: impl Iterator<Item = (String, Vec<i64>)>, bytes: &[u8]) {
    let mut writer =
        BundleWriter::create(prefix, BundleOptions::default()).expect("a directory to write to");
    for (name, shape) in tensors {
        writer.add_bytes(&name, DataType::Float32, &shape, bytes).expect("a tensor that fits");
    }
    writer.finish().expect("room on the disk");
}

/// Returns the medians of `times` runs of each side, in turn so that other load affects both alike.
fn side_by_side(
    times: usize,
    mut ours: impl FnMut(),
    mut theirs: impl FnMut(),
) -> (Duration, Duration) {
    let mut found = (Vec::new(), Vec::new());
    for _ in 0..times {
        let start = Instant::now();
        ours();
        found.0.push(start.elapsed());
        let start = Instant::now();
        theirs();
        found.1.push(start.elapsed());
    }
    found.0.sort();
    found.1.sort();
    (found.0[times / 2], found.1[times / 2])
}

fn report(what: &str, (ours, theirs): (Duration, Duration), peer: &str) {
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    println!(
        "{what}: {:.1} ms, {peer} {:.1} ms, {ratio:.2} of its speed",
        ours.as_secs_f64() * 1e3,
        theirs.as_secs_f64() * 1e3
    );
}

fn index(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let prefix = directory.path().join("many");
    let names =
        (0..100_000).map(|i| (format!("layer_{}/block_{}/kernel", i / 100, i % 100), Vec::new()));
    write(&prefix, names, &1f32.to_le_bytes());
    let mut group = criterion.benchmark_group("index of 100,000 tensors");
    group.bench_function("open and verify", |bencher| {
        bencher.iter(|| {
            let bundle = Bundle::open(&prefix).expect("it was written");
            assert!(bundle.table().verify_blocks().is_empty());
        });
    });
    group.bench_function("open and list", |bencher| {
        bencher.iter(|| {
            black_box(Bundle::open(&prefix).expect("it was written").tensors().tensors.len())
        });
    });
    group.finish();
}

fn data(_: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let prefix = directory.path().join("large");
    let bytes: Vec<u8> = (0..LARGE_BYTES).map(|i| (i * 31) as u8).collect();
    let names = || (0..LARGE).map(|i| (format!("t{i}"), vec![(LARGE_BYTES / 4) as i64]));
    write(&prefix, names(), &bytes);
    let mut buffer = vec![0; 1 << 20];
    let mut read = || {
        let mut file = File::open(data_path(&prefix, 0, 1)).expect("it was written");
        while file.read(&mut buffer).expect("it can be read") > 0 {}
    };
    let verify = |threads| {
        let options = VerifyOptions::default().with_data(true).with_threads(threads);
        let report = Bundle::open(&prefix).expect("it was written").verify(&options);
        assert!(report.errors.is_empty());
    };
    report("verify 1 GiB, one thread", side_by_side(7, || verify(1), &mut read), "reading it");
    report("verify 1 GiB, all threads", side_by_side(7, || verify(0), &mut read), "reading it");
    let copy = directory.path().join("copy");
    let plain = directory.path().join("plain");
    let plain_write = || {
        // A new file, as the bundle writes new ones.
        let _ = std::fs::remove_file(&plain);
        let mut file = File::create(&plain).expect("a directory to write to");
        for _ in 0..LARGE {
            file.write_all(&bytes).expect("room on the disk");
        }
    };
    let fresh_write = || {
        let _ = std::fs::remove_file(data_path(&copy, 0, 1));
        write(&copy, names(), &bytes);
    };
    report("write 1 GiB", side_by_side(5, fresh_write, plain_write), "a plain write");
}

criterion_group!(benches, index, data);
criterion_main!(benches);
