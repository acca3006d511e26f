//! Simulates a save of many processes on one machine: each holds one row of every array, together
//! they save one state, and one process restores it. Prints the time and the output of each step,
//! to plan for larger clusters (`docs/scale.md`).
//!
//! ```text
//! cargo run --release --example many_processes -- PROCESSES ARRAYS BYTES_PER_SHARD DIRECTORY
//! ```

use std::{error::Error, path::Path, time::Instant};

use serdes::ifrt::{
    ArraySpec, DType, DeviceId, DeviceList, HloSharding, MemoryKind, Shape,
    xla::{OpSharding, TileAssignment},
};
use serdes_device_state::{
    Durability, Part, ProgressMonitor, Reader, SaveId, Shard, Versions, WriteOptions, merge,
};
use serdes_stream_executor::Plugin;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [processes, arrays, bytes, directory] = &arguments[..] else {
        return Err("usage: many_processes PROCESSES ARRAYS BYTES_PER_SHARD DIRECTORY".into());
    };
    let (processes, arrays): (i32, usize) = (processes.parse()?, arrays.parse()?);
    let bytes: usize = bytes.parse()?;
    let path = Path::new(directory).join("simulated.sds");
    let plugin = Plugin::host();
    let device = plugin.device(0)?;
    let shard = device.upload(&vec![7; bytes])?;

    let rows = i64::from(processes);
    let tiles = OpSharding::tiled(TileAssignment::iota([rows, 1], [rows], [0])?);
    let devices = DeviceList::new((0..processes).map(DeviceId));
    let sharding = HloSharding::new(devices, MemoryKind::unset(), tiles)?;
    let shape = Shape::new([rows, i64::try_from(bytes)?])?;
    let spec = ArraySpec::new(DType::U8, shape, sharding);
    let options = WriteOptions::new(Versions::current()).with_durability(Durability::None);
    let save = SaveId::random();

    let mut part_seconds = Vec::new();
    for number in 0..processes {
        let begin = Instant::now();
        let part = Part::new(save, number.unsigned_abs(), processes.unsigned_abs())?;
        let mut writer = options.clone().create_part(&path, part)?;
        for array in 0..arrays {
            let shards = [Shard::new(DeviceId(number), &shard)];
            writer.add_sharded(&format!("layer.{array:06}.kernel"), &spec, &shards)?;
        }
        writer.finish()?;
        part_seconds.push(begin.elapsed().as_secs_f64());
    }
    part_seconds.sort_by(f64::total_cmp);
    let directory = path.with_file_name("simulated.sds.parts");
    let name = Part::new(save, 0, processes.unsigned_abs())?.name();
    println!(
        "part    {:.4} s median, {} bytes",
        part_seconds[part_seconds.len() / 2],
        directory.join(name).metadata()?.len()
    );

    let begin = Instant::now();
    let merged = merge(&path, save, &options)?;
    println!(
        "merge   {:.4} s, index of {} bytes",
        begin.elapsed().as_secs_f64(),
        merged.index_bytes
    );
    let begin = Instant::now();
    let reader = Reader::open(&path)?;
    println!(
        "open    {:.4} s, {} arrays in {} parts",
        begin.elapsed().as_secs_f64(),
        reader.len(),
        reader.parts()
    );
    let begin = Instant::now();
    let mut listed = 0_u64;
    for tensor in reader.tensors() {
        listed += tensor?.bytes();
    }
    println!("list    {:.4} s, {listed} bytes of data", begin.elapsed().as_secs_f64());
    let begin = Instant::now();
    let restored = reader.tensor("layer.000000.kernel")?.restore(&device)?;
    println!(
        "restore {:.4} s for one array of {} bytes",
        begin.elapsed().as_secs_f64(),
        restored.size()
    );
    let begin = Instant::now();
    let damaged = reader.verify(&ProgressMonitor::new())?.len();
    println!("verify  {:.4} s, {damaged} damaged", begin.elapsed().as_secs_f64());
    if let Ok(status) = std::fs::read_to_string("/proc/self/status")
        && let Some(most) = status.lines().find(|line| line.starts_with("VmHWM"))
    {
        println!("memory  {}", most.trim_start_matches("VmHWM:").trim());
    }
    Ok(())
}
