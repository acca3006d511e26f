//! Measures a save and a restore of device state through a PJRT plug-in: their times beside plain
//! copies and writes, and their host memory. Checks that every bit comes back.
//!
//! ```sh
//! cargo run --release --example pjrt_state -- xla_cpu_pjrt.so [MEBIBYTES [FOLDER [ROUNDS]]]
//! ```
//!
//! It prints one fact per line, `name: value`. Times are in seconds; ratios are medians of rounds.

use std::{
    env,
    error::Error,
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
use serdes_device_state::{Durability, ProgressMonitor, Reader, Versions, WriteOptions};
use serdes_pjrt::{Array, ElementType, HostArray, IncomingArray, MemorySpace, PjrtPlugin};
use serdes_stream_executor::Plugin;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The number of elements of one array, four bytes each.
const ELEMENTS: usize = 16 << 20;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let plugin = arguments.next().ok_or("give the path of a plug-in")?;
    let mebibytes: usize = arguments.next().map_or(Ok(1024), |text| text.parse())?;
    let folder = arguments.next().map_or_else(env::temp_dir, PathBuf::from);
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let folder = folder.join(format!("pjrt-state-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let done = compare(&plugin, mebibytes, &folder, rounds);
    fs::remove_dir_all(&folder)?;
    done
}

fn compare(plugin: &str, mebibytes: usize, folder: &Path, rounds: usize) -> Result<()> {
    let client = PjrtPlugin::load(plugin)?.create_client(&[])?;
    let spaces = client.memory_spaces()?;
    let space = spaces.first().ok_or("there is no device")?;
    let count = mebibytes.div_ceil((4 * ELEMENTS) >> 20);
    println!("version: {}", client.minor());
    println!("bytes: {}", count * 4 * ELEMENTS);
    let arrays = (0..count).map(|seed| filled(space, seed)).collect::<Result<Vec<_>>>()?;
    println!("pieces: {}", arrays.iter().all(|array| !array.is_read_whole()));
    let (plain, state) = (folder.join("plain"), folder.join("state.sds"));

    let (mut saves, mut restores) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // Both write to a new file. A truncated file would free its pages for the next write, a
        // replaced one would not.
        for old in [&plain, &state] {
            if old.exists() {
                fs::remove_file(old)?;
            }
        }
        // The two take turns at being first, as pages that were just freed cost less.
        let mut plainly = 0.0;
        if round % 2 == 0 {
            plainly = timed(|| save_plainly(&arrays, &plain))?;
        }
        let ours = timed(|| save(&arrays, &state))?;
        if round % 2 == 1 {
            plainly = timed(|| save_plainly(&arrays, &plain))?;
        }
        println!("save: {ours:.3} plain: {plainly:.3}");
        saves.push(plainly / ours);
    }
    let before = resident()?;
    save(&arrays, &state)?;
    println!("save peak MiB: {}", (peak()? - before) >> 20);
    println!("save ratio: {:.2}", median(&mut saves));
    same_on_another_device(&arrays, &state)?;
    drop(arrays);

    for _ in 0..rounds {
        let plainly = timed(|| restore_plainly(space, &plain, count).map(drop))?;
        let ours = timed(|| restore(space, &state).map(drop))?;
        println!("restore: {ours:.3} plain: {plainly:.3}");
        restores.push(plainly / ours);
    }
    let _ = resident()?;
    let restored = restore(space, &state)?;
    let highest = peak()?;
    println!("restore peak MiB: {}", highest.saturating_sub(resident()?) >> 20);
    println!("restore ratio: {:.2}", median(&mut restores));
    println!("same: {}", is_same(&restored)?);
    Ok(())
}

/// Fills in the bytes of an array. All words differ, within an array and between arrays.
fn words(seed: usize, from: usize, to: &mut [u8]) {
    for (at, word) in to.chunks_exact_mut(4).enumerate() {
        let number = (seed * ELEMENTS + from + at) as u32;
        word.copy_from_slice(&number.wrapping_mul(0x9e37_79b1).to_le_bytes());
    }
}

fn filled(space: &MemorySpace, seed: usize) -> Result<Array> {
    let dims = [4096, (ELEMENTS / 4096) as i64];
    let mut array = IncomingArray::new(space, ElementType::F32, &dims)?;
    let mut piece = vec![0; 1 << 20];
    for offset in (0..4 * ELEMENTS).step_by(piece.len()) {
        words(seed, offset / 4, &mut piece);
        array.write(offset as u64, &piece)?;
    }
    Ok(array.finish()?)
}

fn save(arrays: &[Array], path: &Path) -> Result<()> {
    let options = WriteOptions::new(Versions::current()).with_durability(Durability::None);
    let mut state = options.create(path)?;
    for (number, array) in arrays.iter().enumerate() {
        let sharding = SingleDeviceSharding::new(DeviceId(array.space().device_id()));
        let spec = ArraySpec::new(DType::F32, Shape::new(array.dims())?, sharding);
        state.add(&format!("array-{number:04}"), &spec, array)?;
    }
    state.finish()?;
    Ok(())
}

fn save_plainly(arrays: &[Array], path: &Path) -> Result<()> {
    let mut file = File::create(path)?;
    let mut host = vec![0; 4 * ELEMENTS];
    for array in arrays {
        array.buffer().read_into(&mut host)?;
        file.write_all(&host)?;
    }
    Ok(())
}

fn restore(space: &MemorySpace, path: &Path) -> Result<Vec<Array>> {
    let state = Reader::open(path)?;
    let tensors = state.tensors_in_file_order()?;
    Ok(state.restore(&tensors, space, &ProgressMonitor::new())?.0)
}

fn restore_plainly(space: &MemorySpace, path: &Path, count: usize) -> Result<Vec<Array>> {
    let mut file = File::open(path)?;
    let mut host = vec![0; 4 * ELEMENTS];
    let dims = [4096, (ELEMENTS / 4096) as i64];
    let array = HostArray::new(ElementType::F32, &dims);
    let mut arrays = Vec::new();
    for _ in 0..count {
        file.read_exact(&mut host)?;
        let buffer = space.client().put(&array, &host, space.target())?;
        if let Some(ready) = buffer.ready()? {
            ready.wait()?;
        }
        arrays.push(Array::new(buffer)?);
    }
    Ok(arrays)
}

/// Returns true if the restored arrays equal the original ones.
fn is_same(arrays: &[Array]) -> Result<bool> {
    let (mut found, mut expected) = (vec![0; 4 * ELEMENTS], vec![0; 4 * ELEMENTS]);
    for (seed, array) in arrays.iter().enumerate() {
        array.read(0, &mut found)?;
        words(seed, 0, &mut expected);
        if found != expected {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Restores the first array onto a device of a StreamExecutor plug-in, and compares it.
fn same_on_another_device(arrays: &[Array], state: &Path) -> Result<()> {
    let device = Plugin::host().device(0)?;
    let memory = Reader::open(state)?.tensor("array-0000")?.restore(&device)?;
    let first = arrays.first().ok_or("there is no array")?;
    println!("same elsewhere: {}", device.download(&memory)? == first.buffer().read()?);
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed().as_secs_f64())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Resets the peak of the process's memory, and returns the bytes that it has now.
fn resident() -> Result<u64> {
    // 5 resets the peak.
    fs::write("/proc/self/clear_refs", "5")?;
    status("VmRSS:")
}

/// Returns the peak in bytes since the reset.
fn peak() -> Result<u64> {
    status("VmHWM:")
}

fn status(name: &str) -> Result<u64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes << 10)
}
