//! Save and restore beside a plain write and read of the same bytes and beside the safetensors
//! crate, without and with syncing. Ratios are printed at the end: above 1 is faster than the peer.
//!
//! `SERDES_BENCH_MIB` is the size of the state in MiB (1024 for the numbers of the documentation).

use std::{
    collections::BTreeMap,
    env, fs,
    fs::File,
    hint::black_box,
    io::{Read, Write},
    path::Path,
    time::{Duration, Instant},
};

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use safetensors::tensor::{Dtype, TensorView, serialize_to_file};
use serdes::{
    device_state::{Reader, Sync, Watch, WriteOptions},
    ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding},
    stream_executor::{Device, DeviceMemory, Plugin},
    version::SerDesDefaultVersionAccessor,
};

/// Best time of each measured thing, by case and name.
type Best = BTreeMap<(String, &'static str), Duration>;

struct Case {
    label: String,
    device: Device,
    names: Vec<String>,
    host: Vec<Vec<u8>>,
    memories: Vec<DeviceMemory>,
    spec: ArraySpec,
}

impl Case {
    fn new(mebibytes: usize, count: usize) -> Self {
        let device = Plugin::host().device(0).expect("the embedded plug-in");
        let bytes = (mebibytes << 20) / count / 4 * 4;
        let shape = Shape::new([bytes as i64 / 4]).expect("a shape");
        let host: Vec<Vec<u8>> = (0..count).map(|n| vec![n as u8; bytes]).collect();
        let memories = host.iter().map(|data| device.upload(data).expect("an upload")).collect();
        Self {
            label: format!("{mebibytes} MiB in {count}"),
            device,
            names: (0..count).map(|n| format!("layer_{n:05}/kernel")).collect(),
            host,
            memories,
            spec: ArraySpec::new(DType::F32, shape, SingleDeviceSharding::new(DeviceId(0))),
        }
    }

    fn save(&self, path: &Path, sync: Sync) {
        let options = WriteOptions::new(SerDesDefaultVersionAccessor::get()).with_sync(sync);
        let mut writer = options.create(path).expect("a file");
        for (name, memory) in self.names.iter().zip(&self.memories) {
            writer.add(name, &self.spec, memory).expect("a tensor");
        }
        writer.finish().expect("a state");
    }

    fn write(&self, path: &Path, sync: Sync) {
        let mut file = File::create(path).expect("a file");
        for data in &self.host {
            file.write_all(data).expect("a write");
        }
        if sync == Sync::Data {
            file.sync_data().expect("a sync");
        }
    }

    fn safetensors(&self, path: &Path, sync: Sync) {
        let views = self.names.iter().zip(&self.host).map(|(name, data)| {
            (name, TensorView::new(Dtype::U8, vec![data.len()], data).expect("a view"))
        });
        serialize_to_file(views, None, path).expect("a file");
        if sync == Sync::Data {
            File::open(path).and_then(|file| file.sync_data()).expect("a sync");
        }
    }

    fn restore(&self, path: &Path) {
        let state = Reader::open(path).expect("a state");
        let tensors = state.tensors_in_file_order().expect("tensors");
        black_box(state.restore(&tensors, &self.device, &Watch::new()).expect("a restore"));
    }

    fn read(&self, path: &Path) {
        let mut file = File::open(path).expect("a file");
        let all: Vec<Vec<u8>> = self
            .host
            .iter()
            .map(|data| {
                let mut fresh = vec![0; data.len()];
                file.read_exact(&mut fresh).expect("a read");
                fresh
            })
            .collect();
        black_box(all);
    }
}

fn measure(
    criterion: &mut Criterion,
    best: &mut Best,
    case: &Case,
    name: &'static str,
    prepare: impl Fn(),
    run: impl Fn(),
) {
    let mut group = criterion.benchmark_group("device_state");
    let bytes = case.host.iter().map(|data| data.len() as u64).sum();
    group.sampling_mode(SamplingMode::Flat).sample_size(10).throughput(Throughput::Bytes(bytes));
    group.measurement_time(Duration::from_secs(4)).warm_up_time(Duration::from_millis(500));
    let mut fastest = Duration::MAX;
    group.bench_function(BenchmarkId::new(name, &case.label), |bencher| {
        bencher.iter_custom(|count| {
            let mut total = Duration::ZERO;
            for _ in 0..count {
                prepare();
                let begin = Instant::now();
                run();
                let time = begin.elapsed();
                fastest = fastest.min(time);
                total += time;
            }
            total
        });
    });
    best.insert((case.label.clone(), name), fastest);
}

fn main() {
    let mebibytes = env::var("SERDES_BENCH_MIB").ok().and_then(|n| n.parse().ok()).unwrap_or(256);
    let mut criterion = Criterion::default().configure_from_args();
    let mut best = Best::new();
    let directory = tempfile::tempdir().expect("a directory");
    let [state, plain, peer] =
        ["a.sds", "a.bin", "a.safetensors"].map(|name| directory.path().join(name));
    for count in [64, 10_000] {
        let case = Case::new(mebibytes, count);
        let fresh = |path: &Path| drop(fs::remove_file(path));
        for (sync, names) in [
            (Sync::None, ["save", "plain write", "safetensors"]),
            (Sync::Data, ["synced save", "synced plain write", "synced safetensors"]),
        ] {
            let [ours, write, other] = names;
            measure(
                &mut criterion,
                &mut best,
                &case,
                ours,
                || fresh(&state),
                || {
                    case.save(&state, sync);
                },
            );
            measure(
                &mut criterion,
                &mut best,
                &case,
                write,
                || fresh(&plain),
                || {
                    case.write(&plain, sync);
                },
            );
            measure(
                &mut criterion,
                &mut best,
                &case,
                other,
                || fresh(&peer),
                || {
                    case.safetensors(&peer, sync);
                },
            );
        }
        measure(&mut criterion, &mut best, &case, "restore", || (), || case.restore(&state));
        measure(&mut criterion, &mut best, &case, "plain read", || (), || case.read(&plain));
    }
    for ((label, name), time) in &best {
        let peers: &[&str] = match *name {
            "save" => &["plain write", "safetensors"],
            "synced save" => &["synced plain write", "synced safetensors"],
            "restore" => &["plain read"],
            _ => continue,
        };
        for peer in peers {
            if let Some(other) = best.get(&(label.clone(), peer)) {
                let ratio = other.as_secs_f64() / time.as_secs_f64();
                println!("{label}: {name} / {peer} = {ratio:.2}");
            }
        }
    }
    criterion.final_summary();
}
