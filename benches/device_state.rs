//! Save and restore beside a plain write and read of the same bytes and beside the safetensors
//! crate, without and with syncing, and past the page cache; and opening a state of 100,000
//! tensors. All sides take turns within a round, so that other load affects them alike. At the end
//! the ratios of the medians of wall time and CPU time are printed: above 1 is faster than the
//! peer.
//!
//! The pipeline has three threads that wait for each other, so on shared cores it loses time that
//! a plain write, which never waits, does not lose: run it under `chrt -f 10` if the machine is not
//! quiet. In a virtual machine that returns free memory to its host, the first touch of a page can
//! cost ten times the copy into it, for every side: compare the minimum times as well.
//!
//! `SERDES_BENCH_MIB` is the size of the state in MiB (256 by default; 1024 for the numbers in the
//! documentation), `SERDES_BENCH_ROUNDS` the minimum number of rounds. `taskset -c 0` measures one
//! core.

use std::{
    env, fs,
    fs::File,
    hint::black_box,
    io::{Read, Write},
    path::Path,
    time::{Duration, Instant},
};

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use rustix::time::{ClockId, clock_gettime};
use safetensors::tensor::{Dtype, TensorView, serialize_to_file};
use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
use serdes_device_state::{Durability, ProgressMonitor, Reader, Versions, WriteOptions};
use serdes_stream_executor::{Device, DeviceMemory, Plugin};

struct Case {
    label: String,
    bytes: u64,
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
            bytes: (bytes * count) as u64,
            device,
            names: (0..count).map(|n| format!("layer_{n:05}/kernel")).collect(),
            host,
            memories,
            spec: ArraySpec::new(DType::F32, shape, SingleDeviceSharding::new(DeviceId(0))),
        }
    }

    fn save(&self, path: &Path, durability: Durability, direct: bool) {
        let options =
            WriteOptions::new(Versions::current()).with_durability(durability).with_direct(direct);
        let mut writer = options.create(path).expect("a file");
        for (name, memory) in self.names.iter().zip(&self.memories) {
            writer.add(name, &self.spec, memory).expect("a tensor");
        }
        writer.finish().expect("a state");
    }

    fn write(&self, path: &Path, durability: Durability) {
        let mut file = File::create(path).expect("a file");
        for data in &self.host {
            file.write_all(data).expect("a write");
        }
        if durability == Durability::Data {
            file.sync_data().expect("a sync");
        }
    }

    fn safetensors(&self, path: &Path, durability: Durability) {
        let views = self.names.iter().zip(&self.host).map(|(name, data)| {
            (name, TensorView::new(Dtype::U8, vec![data.len()], data).expect("a view"))
        });
        serialize_to_file(views, None, path).expect("a file");
        if durability == Durability::Data {
            File::open(path).and_then(|file| file.sync_data()).expect("a sync");
        }
    }

    fn restore(&self, path: &Path) {
        let state = Reader::open(path).expect("a state");
        let tensors = state.tensors_in_file_order().expect("tensors");
        black_box(
            state.restore(&tensors, &self.device, &ProgressMonitor::new()).expect("a restore"),
        );
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

/// One side of a comparison, with its durations, one per round.
struct Side<'a> {
    name: &'static str,
    prepare: Box<dyn Fn() + 'a>,
    run: Box<dyn Fn() + 'a>,
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

impl<'a> Side<'a> {
    fn new(name: &'static str, prepare: impl Fn() + 'a, run: impl Fn() + 'a) -> Self {
        let (prepare, run) = (Box::new(prepare), Box::new(run));
        Self { name, prepare, run, wall: Vec::new(), cpu: Vec::new() }
    }

    /// Runs one round; returns its wall time.
    fn take(&mut self) -> Duration {
        (self.prepare)();
        let (begin, cpu) = (Instant::now(), cpu_time());
        (self.run)();
        self.wall.push(begin.elapsed());
        self.cpu.push(cpu_time().saturating_sub(cpu));
        self.wall.last().copied().unwrap_or_default()
    }
}

/// Returns the CPU time of all threads of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn least(times: &[Duration]) -> Duration {
    times.iter().min().copied().unwrap_or_default()
}

/// Runs the sides in turn. Each round begins with another side, and every second one goes
/// backwards, so that no side always follows the same other one and reuses its memory. Criterion
/// gets the time of the first side.
fn compare(
    criterion: &mut Criterion,
    ratios: &mut Vec<String>,
    label: &str,
    bytes: u64,
    mut sides: Vec<Side<'_>>,
) {
    let rounds = env::var("SERDES_BENCH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let mut group = criterion.benchmark_group("device_state");
    group.sampling_mode(SamplingMode::Flat).sample_size(rounds.max(10));
    group.throughput(Throughput::Bytes(bytes)).warm_up_time(Duration::from_millis(1));
    group.measurement_time(Duration::from_millis(1));
    let name = sides.first().map_or("", |side| side.name);
    group.bench_function(BenchmarkId::new(name, label), |bencher| {
        bencher.iter_custom(|count| {
            let mut ours = Duration::ZERO;
            for _ in 0..count {
                // A sample is one round, so its count does not say which side is first.
                let round = sides.first().map_or(0, |side| side.wall.len());
                for turn in 0..sides.len() {
                    let ahead = (turn + round / 2) % sides.len();
                    let number =
                        if round.is_multiple_of(2) { ahead } else { sides.len() - 1 - ahead };
                    let time = sides.get_mut(number).map(Side::take).unwrap_or_default();
                    ours += if number == 0 { time } else { Duration::ZERO };
                }
            }
            ours
        });
    });
    let [ours, peers @ ..] = &mut sides[..] else { return };
    if ours.wall.is_empty() {
        // A filter skipped the benchmark.
        return;
    }
    let (wall, cpu) = (median(&mut ours.wall), median(&mut ours.cpu));
    let ratio = |peer: Duration, ours: Duration| peer.as_secs_f64() / ours.as_secs_f64();
    for peer in peers {
        let (other_wall, other_cpu) = (median(&mut peer.wall), median(&mut peer.cpu));
        ratios.push(format!(
            "{label}: {} {:.0} ms / {} {:.0} ms = {:.2} (least {:.2}, CPU time {:.2}), {} rounds",
            ours.name,
            wall.as_secs_f64() * 1e3,
            peer.name,
            other_wall.as_secs_f64() * 1e3,
            ratio(other_wall, wall),
            ratio(least(&peer.wall), least(&ours.wall)),
            ratio(other_cpu, cpu),
            ours.wall.len(),
        ));
    }
}

fn main() {
    let mebibytes = env::var("SERDES_BENCH_MIB").ok().and_then(|n| n.parse().ok()).unwrap_or(256);
    let mut criterion = Criterion::default().configure_from_args();
    let mut ratios = Vec::new();
    let directory = tempfile::tempdir().expect("a directory");
    let [state, plain, peer] =
        ["a.sds", "a.bin", "a.safetensors"].map(|name| directory.path().join(name));
    let fresh = |path: &Path| drop(fs::remove_file(path));
    // Dirty pages of one side must not throttle the next: removing its file drops its dirty pages,
    // and the sync waits for pages that are being written already.
    let flushed = || {
        for path in [&state, &plain, &peer] {
            fresh(path);
        }
        File::open(directory.path()).and_then(|file| file.sync_all()).expect("a sync");
    };
    for count in [64, 10_000] {
        let case = Case::new(mebibytes, count);
        for (durability, [ours, write, other]) in [
            (Durability::None, ["save", "plain write", "safetensors"]),
            (Durability::Data, ["synced save", "synced plain write", "synced safetensors"]),
        ] {
            let sides = vec![
                Side::new(ours, flushed, || case.save(&state, durability, false)),
                Side::new(write, flushed, || case.write(&plain, durability)),
                Side::new(other, flushed, || case.safetensors(&peer, durability)),
            ];
            compare(&mut criterion, &mut ratios, &case.label, case.bytes, sides);
        }
        let durability = Durability::Data;
        let sides = vec![
            Side::new("direct save", flushed, || case.save(&state, durability, true)),
            Side::new("cached save", flushed, || case.save(&plain, durability, false)),
            Side::new("cached plain write", flushed, || case.write(&peer, durability)),
        ];
        compare(&mut criterion, &mut ratios, &case.label, case.bytes, sides);
        // A filter may have skipped the benchmark that writes the files.
        case.save(&state, Durability::None, false);
        case.write(&plain, Durability::None);
        let sides = vec![
            Side::new("restore", || (), || case.restore(&state)),
            Side::new("plain read", || (), || case.read(&plain)),
        ];
        compare(&mut criterion, &mut ratios, &case.label, case.bytes, sides);
        for path in [&state, &plain, &peer] {
            fresh(path);
        }
    }
    let case = Case::new(10, 100_000);
    case.save(&state, Durability::None, false);
    let bytes = fs::metadata(&state).map_or(0, |metadata| metadata.len());
    let list = || {
        let state = Reader::open(&state).expect("a state");
        let listed: usize = state
            .tensors()
            .map(|tensor| {
                let tensor = tensor.expect("a tensor");
                black_box(tensor.spec());
                tensor.name().len() + tensor.bytes() as usize
            })
            .sum();
        black_box(listed);
    };
    let open = || drop(black_box(Reader::open(&state)));
    let names = || {
        let state = Reader::open(&state).expect("a state");
        black_box(state.names().map(str::len).sum::<usize>());
    };
    for (name, run) in [
        ("open", &open as &dyn Fn()),
        ("open and list the names", &names),
        ("open and list with specs and sizes", &list),
    ] {
        criterion
            .benchmark_group("device_state")
            .throughput(Throughput::Bytes(bytes))
            .bench_function(BenchmarkId::new(name, "100,000 tensors"), |b| b.iter(run));
    }
    for line in &ratios {
        println!("{line}");
    }
    criterion.final_summary();
}
