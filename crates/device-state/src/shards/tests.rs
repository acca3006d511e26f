use serdes::{
    ifrt::{
        ArraySpec, ConcreteEvenSharding, ConcreteSharding, DType, DeviceId, DeviceList,
        HloSharding, Index, IndexDomain, MemoryKind, Shape, Sharding, ShardingParamSharding,
        SingleDeviceSharding,
        sharding::ShardShapes,
        xla::{OpSharding, TileAssignment},
    },
    version::{AnyVersionAccessor, SerDesAnyVersionAccessor},
};
use serdes_files::{Durability, ProgressMonitor};
use serdes_stream_executor::{Device, DeviceMemory, LayoutChoice, Plugin};
use serdes_testkit::noise::noise;

use super::*;
use crate::{Error, Reader, Shard, ShardTarget, Versions, WriteOptions, Writer, tests::Pipe};

fn devices(count: usize) -> Vec<Device> {
    let plugin = Plugin::open(&format!("host:devices={count}"), LayoutChoice::default()).unwrap();
    (0..count).map(|number| plugin.device(number).unwrap()).collect()
}

fn ids(count: usize) -> DeviceList {
    DeviceList::new((0..count as i32).map(DeviceId))
}

fn shape(dims: &[i64]) -> Shape {
    Shape::new(dims).unwrap()
}

/// Returns a sharding in `tiles` over `count` devices; the remaining devices hold replicas.
fn hlo(count: usize, tiles: &[i64]) -> Sharding {
    let used: i64 = tiles.iter().product();
    let replicas = count as i64 / used;
    let op = if used == 1 {
        OpSharding::replicated()
    } else if replicas == 1 {
        OpSharding::tiled(TileAssignment::iota(tiles, [count as i64], [0]).unwrap())
    } else {
        let dims: Vec<_> = tiles.iter().copied().chain([replicas]).collect();
        OpSharding::partially_replicated(TileAssignment::iota(dims, [count as i64], [0]).unwrap())
    };
    HloSharding::new(ids(count), MemoryKind::unset(), op).unwrap().into()
}

/// Returns the elements of a block from the bytes of the whole array, copied one by one.
fn cut(bytes: &[u8], dims: &[i64], block: &Block, element: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let total = bytes.len() / element;
    for number in 0..total {
        let mut rest = number as u64;
        let mut inside = true;
        for (size, (start, extent)) in dims.iter().zip(&block.dims).rev() {
            let at = rest % *size as u64;
            rest /= *size as u64;
            inside &= (*start..start + extent).contains(&at);
        }
        if inside {
            out.extend(&bytes[number * element..][..element]);
        }
    }
    out
}

fn blocks(sharding: &Sharding, dims: &[i64]) -> Vec<Block> {
    let blocks = block::blocks_of(sharding, &shape(dims)).unwrap();
    blocks.into_iter().map(|(_, block)| block).collect()
}

struct Array {
    spec: ArraySpec,
    bytes: Vec<u8>,
    memories: Vec<DeviceMemory>,
}

impl Array {
    fn new(dtype: DType, dims: &[i64], sharding: Sharding, on: &[Device], seed: u64) -> Self {
        let spec = ArraySpec::new(dtype, shape(dims), sharding);
        let bytes = noise(spec.byte_size().unwrap().unwrap() as usize, seed);
        let element = usize::from(dtype.bits().unwrap().div_ceil(8) as u8);
        let memories = blocks(spec.sharding(), dims)
            .iter()
            .zip(on)
            .map(|(block, device)| device.upload(&cut(&bytes, dims, block, element)).unwrap())
            .collect();
        Self { spec, bytes, memories }
    }

    fn shards(&self) -> Vec<Shard<'_>> {
        let devices = self.spec.sharding().devices();
        let pairs = devices.ids().iter().zip(&self.memories);
        pairs.map(|(device, memory)| Shard::new(*device, memory)).collect()
    }
}

fn options() -> WriteOptions {
    WriteOptions::new(Versions::current()).with_chunk_bytes(64)
}

fn saved(arrays: &[(&str, &Array)]) -> Reader {
    let pipe = Pipe::default();
    let mut writer = options().stream(pipe.clone()).unwrap();
    for (name, array) in arrays {
        writer.add_sharded(name, &array.spec, &array.shards()).unwrap();
    }
    writer.finish().unwrap();
    let reader = Reader::from_source(pipe.bytes(), "x.sds").unwrap();
    assert!(reader.verify(&ProgressMonitor::new()).unwrap().is_empty());
    reader
}

fn targets(on: &[Device]) -> Vec<ShardTarget<'_>> {
    on.iter().zip(0..).map(|(device, id)| ShardTarget::new(DeviceId(id), device)).collect()
}

/// Returns the shardings of the matrix over `count` devices: even and uneven, partly and fully
/// replicated.
fn shardings(count: usize) -> Vec<Sharding> {
    let count_i = count as i64;
    let mut shardings =
        vec![hlo(count, &[1, 1]), hlo(count, &[count_i, 1]), hlo(count, &[1, count_i])];
    if count.is_multiple_of(2) && count > 2 {
        shardings.push(hlo(count, &[2, count_i / 2]));
        shardings.push(hlo(count, &[2, 1]));
        shardings.push(hlo(count, &[1, 2]));
    }
    shardings
}

#[test]
fn shardings_convert_into_each_other_with_one_read_per_byte() {
    let all = devices(8);
    let monitor = ProgressMonitor::new();
    // Even and uneven for all numbers of devices, smaller than some of them, and one with elements
    // smaller than a byte.
    let cases = [(DType::F32, [24, 8]), (DType::BF16, [7, 13]), (DType::S4, [5, 3])];
    for (seed, (dtype, dims)) in cases.iter().enumerate() {
        for from in [1, 2, 3, 4, 8] {
            for source in shardings(from) {
                let array = Array::new(*dtype, dims, source.clone(), &all, seed as u64);
                let reader = saved(&[("w", &array)]);
                let tensor = reader.tensor("w").unwrap();
                assert_eq!(tensor.bytes(), array.bytes.len() as u64, "stored once: {source}");
                let mut whole = Vec::new();
                std::io::Read::read_to_end(&mut tensor.read().unwrap(), &mut whole).unwrap();
                assert!(whole == array.bytes, "{source}");
                for to in [1, 2, 3, 4, 8] {
                    for target in shardings(to) {
                        let restored = tensor
                            .restore_sharded(&target, &targets(&all[..to]), &monitor)
                            .unwrap();
                        let what = format!("{source} to {target}");
                        assert_eq!(restored.bytes_read, array.bytes.len() as u64, "{what}");
                        let element = array.bytes.len() / (dims[0] * dims[1]) as usize;
                        let expected = blocks(&target, dims);
                        for ((memory, block), device) in
                            restored.memories.iter().zip(&expected).zip(&all)
                        {
                            let found = device.download(memory).unwrap();
                            let wanted = cut(&array.bytes, dims, block, element);
                            assert!(found == wanted, "{what}: {block:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn large_arrays_use_the_reading_thread_and_collect_short_runs() {
    let all = devices(4);
    let dims = [1500, 700];
    let rows = Array::new(DType::U16, &dims, hlo(4, &[4, 1]), &all, 1);
    let columns = Array::new(DType::U16, &dims, hlo(4, &[1, 4]), &all, 2);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    let mut writer = WriteOptions::new(Versions::current())
        .with_chunk_bytes(1 << 17)
        .with_durability(Durability::None)
        .create(&path)
        .unwrap();
    writer.add_sharded("rows", &rows.spec, &rows.shards()).unwrap();
    writer.add_sharded("columns", &columns.spec, &columns.shards()).unwrap();
    writer.finish().unwrap();
    let reader = Reader::open(&path).unwrap();
    for (name, array, target) in
        [("rows", &rows, hlo(4, &[1, 4])), ("columns", &columns, hlo(4, &[4, 1]))]
    {
        let tensor = reader.tensor(name).unwrap();
        let restored =
            tensor.restore_sharded(&target, &targets(&all), &ProgressMonitor::new()).unwrap();
        assert_eq!(restored.bytes_read, array.bytes.len() as u64);
        for ((memory, block), device) in
            restored.memories.iter().zip(blocks(&target, &dims)).zip(&all)
        {
            assert!(device.download(memory).unwrap() == cut(&array.bytes, &dims, &block, 2));
        }
        let whole = tensor.restore(&all[3]).unwrap();
        assert!(all[3].download(&whole).unwrap() == array.bytes);
        let mut sums = tensor.sums();
        array.bytes.chunks(999).for_each(|part| sums.update(part));
        sums.compare(&tensor).unwrap();
        let mut sums = tensor.sums();
        sums.update(&array.bytes[..100]);
        assert!(sums.compare(&tensor).is_err());
    }
    let tensors = reader.tensors_in_file_order().unwrap();
    let (memories, restored) = reader.restore(&tensors, &all[0], &ProgressMonitor::new()).unwrap();
    assert_eq!(restored.bytes, (rows.bytes.len() + columns.bytes.len()) as u64);
    assert!(all[0].download(&memories[1]).unwrap() == columns.bytes);
}

#[test]
fn a_process_reads_no_more_than_its_shards() {
    let all = devices(4);
    let array = Array::new(DType::U8, &[1 << 12, 1 << 8], hlo(4, &[4, 1]), &all, 1);
    let reader = saved(&[("w", &array)]);
    let tensor = reader.tensor("w").unwrap();
    let ours = [ShardTarget::new(DeviceId(1), &all[0]), ShardTarget::new(DeviceId(3), &all[1])];
    let restored =
        tensor.restore_sharded(&hlo(4, &[4, 1]), &ours, &ProgressMonitor::new()).unwrap();
    assert_eq!(restored.bytes_read, array.bytes.len() as u64 / 2);
    let quarter = array.bytes.len() / 4;
    assert!(all[0].download(&restored.memories[0]).unwrap() == array.bytes[quarter..2 * quarter]);
    assert!(all[1].download(&restored.memories[1]).unwrap() == array.bytes[3 * quarter..]);
    let none =
        tensor.restore_sharded::<Device>(&hlo(4, &[4, 1]), &[], &ProgressMonitor::new()).unwrap();
    assert_eq!((none.bytes, none.bytes_read), (0, 0));
    let unknown = [ShardTarget::new(DeviceId(9), &all[0])];
    let error =
        tensor.restore_sharded(&hlo(4, &[4, 1]), &unknown, &ProgressMonitor::new()).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
}

#[test]
fn scalars_and_arrays_without_elements_have_shards_too() {
    let all = devices(4);
    let scalar = Array::new(DType::F64, &[], hlo(4, &[]), &all, 1);
    let empty = Array::new(DType::F32, &[0, 4], hlo(4, &[4, 1]), &all, 1);
    let short = Array::new(DType::F32, &[2], hlo(4, &[4]), &all, 1);
    let reader = saved(&[("scalar", &scalar), ("empty", &empty), ("short", &short)]);
    for (name, array) in [("scalar", &scalar), ("empty", &empty), ("short", &short)] {
        let tensor = reader.tensor(name).unwrap();
        let whole = tensor.restore(&all[0]).unwrap();
        assert_eq!(all[0].download(&whole).unwrap(), array.bytes);
        let sharding = array.spec.sharding();
        let restored =
            tensor.restore_sharded(sharding, &targets(&all), &ProgressMonitor::new()).unwrap();
        assert_eq!(restored.bytes_read, array.bytes.len() as u64);
    }
}

fn domain(origin: &[i64], dims: &[i64]) -> IndexDomain {
    IndexDomain::new(Index::new(origin), shape(dims)).unwrap()
}

#[test]
fn shardings_without_index_domains_take_those_of_the_shards() {
    let all = devices(2);
    let whole = noise(6, 1);
    let memories = [all[0].upload(&whole[..2]).unwrap(), all[1].upload(&whole[2..]).unwrap()];
    let shapes = ShardShapes::Static {
        shape: shape([6].as_slice()),
        shard_shapes: vec![shape(&[2]), shape(&[4])],
    };
    let concrete = ConcreteSharding::new(ids(2), MemoryKind::unset(), shapes).unwrap();
    let domains = [domain(&[0], &[2]), domain(&[2], &[4])];
    let plain = [Shard::new(DeviceId(0), &memories[0]), Shard::new(DeviceId(1), &memories[1])];
    let placed: Vec<_> =
        plain.iter().cloned().zip(domains.clone()).map(|(shard, at)| shard.at(at)).collect();
    let with_domains = concrete.clone().with_index_domains(domains.to_vec()).unwrap();
    let even =
        ConcreteEvenSharding::new(ids(2), MemoryKind::unset(), shape(&[6]), shape(&[3]), false)
            .unwrap();

    let pipe = Pipe::default();
    let mut writer = options().stream(pipe.clone()).unwrap();
    let spec = |sharding: Sharding| ArraySpec::new(DType::U8, shape(&[6]), sharding);
    for sharding in [Sharding::from(concrete.clone()), even.clone().into()] {
        let error = writer.add_sharded("a", &spec(sharding), &plain).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }) && error.to_string().contains("`at`"));
    }
    writer.add_sharded("a", &spec(concrete.clone().into()), &placed).unwrap();
    writer.add_sharded("b", &spec(with_domains.into()), &plain).unwrap();
    writer.add_sharded("c", &spec(even.into()), &placed).unwrap();
    // A shard as large as the array needs no domain.
    let replicated =
        ConcreteEvenSharding::new(ids(2), MemoryKind::unset(), shape(&[2]), shape(&[2]), true);
    let spec = ArraySpec::new(DType::U8, shape(&[2]), replicated.unwrap());
    let copies = [Shard::new(DeviceId(0), &memories[0]), Shard::new(DeviceId(1), &memories[0])];
    writer.add_sharded("d", &spec, &copies).unwrap();
    writer.finish().unwrap();
    let reader = Reader::from_source(pipe.bytes(), "x.sds").unwrap();
    for name in ["a", "b", "c"] {
        let tensor = reader.tensor(name).unwrap();
        assert_eq!(all[0].download(&tensor.restore(&all[0]).unwrap()).unwrap(), whole);
        let swapped = [
            ShardTarget::new(DeviceId(0), &all[0]).at(domain(&[3], &[3])),
            ShardTarget::new(DeviceId(1), &all[1]).at(domain(&[1], &[4])),
        ];
        let sharding = tensor.spec().sharding().clone();
        let restored =
            tensor.restore_sharded(&sharding, &swapped, &ProgressMonitor::new()).unwrap();
        assert_eq!(all[0].download(&restored.memories[0]).unwrap(), whole[3..]);
        assert_eq!(all[1].download(&restored.memories[1]).unwrap(), whole[1..5]);
        assert_eq!(restored.bytes_read, 6);
    }
    assert_eq!(reader.tensor("d").unwrap().bytes(), 2);
}

#[test]
fn shards_that_do_not_cover_the_array_are_refused() {
    let all = devices(2);
    let memory = all[0].upload(&[0; 4]).unwrap();
    let long = all[1].upload(&[0; 5]).unwrap();
    let spec = ArraySpec::new(DType::U8, shape(&[8]), hlo(2, &[2]));
    let mut writer = options().stream(Pipe::default()).unwrap();
    let first = || Shard::new(DeviceId(0), &memory);
    let second = || Shard::new(DeviceId(1), &memory);
    let cases: Vec<(Vec<Shard<'_>>, &str)> = vec![
        (vec![first()], "none for the part [(4, 4)]"),
        (vec![first(), first()], "two of them"),
        (vec![first(), Shard::new(DeviceId(1), &long)], "5 bytes"),
        (vec![first(), second(), Shard::new(DeviceId(2), &memory)], "not one of its sharding"),
        (vec![first().at(domain(&[0], &[4])), second()], "all or none"),
        (vec![first().at(domain(&[0], &[4])), second().at(domain(&[2], &[4]))], "overlap"),
        (vec![first().at(domain(&[0], &[4])), second().at(domain(&[6], &[4]))], "does not lie"),
        (vec![first().at(domain(&[0], &[4]))], "4 elements, the array has 8"),
    ];
    for (shards, reason) in cases {
        let error = writer.add_sharded("a", &spec, &shards).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
    // None of these errors damaged the state.
    writer.add_sharded("a", &spec, &[first(), second()]).unwrap();
    writer.finish().unwrap();
}

#[test]
fn strings_and_other_layouts_are_refused_with_the_reason() {
    use serdes::ifrt::PjRtLayout;
    let all = devices(1);
    let memory = all[0].upload(&[0; 4]).unwrap();
    let mut writer = options().stream(Pipe::default()).unwrap();
    let shards = [Shard::new(DeviceId(0), &memory)];
    let single = SingleDeviceSharding::new(DeviceId(0));
    let strings = ArraySpec::new(DType::String, shape(&[4]), single.clone());
    let error = writer.add_sharded("a", &strings, &shards).unwrap_err();
    assert!(error.to_string().contains("no place on a device"), "{error}");
    let matrix = ArraySpec::new(DType::U8, shape(&[2, 2]), single);
    let column_major = matrix.clone().with_layout(PjRtLayout::from_text(b"{0,1}").unwrap());
    let error = writer.add_sharded("a", &column_major, &shards).unwrap_err();
    assert!(error.to_string().contains("row by row"), "{error}");
    let row_major = matrix.with_layout(PjRtLayout::from_text(b"{1,0}").unwrap());
    writer.add_sharded("a", &row_major, &shards).unwrap();
}

#[test]
fn sharding_param_is_saved_at_versions_that_can_express_it() {
    let all = devices(2);
    let version = |number| SerDesAnyVersionAccessor::get(number).unwrap();
    let halves = [all[0].upload(&[1, 2]).unwrap(), all[1].upload(&[3, 4]).unwrap()];
    let shards = [Shard::new(DeviceId(0), &halves[0]), Shard::new(DeviceId(1), &halves[1])];
    let sharding = |text: &str| {
        ShardingParamSharding::new(text.parse().unwrap(), ids(2), MemoryKind::unset()).unwrap()
    };
    let plain = ArraySpec::new(DType::U8, shape(&[4]), sharding("2 to [0] on 2"));
    let unreduced = ArraySpec::new(DType::U8, shape(&[4]), sharding("1 to [0] on 2 unreduced [0]"));
    for number in [0, 1] {
        let pipe = Pipe::default();
        let mut writer =
            WriteOptions::new(Versions::new(AnyVersionAccessor::minimum(), version(number)))
                .stream(pipe.clone())
                .unwrap();
        writer.add_sharded("w", &plain, &shards).unwrap();
        let written = writer.add_bytes("summands", &unreduced, &[0; 4]);
        let sharded = writer.add_sharded("more summands", &unreduced, &shards).unwrap_err();
        if number == 0 {
            for error in [written.unwrap_err(), sharded] {
                let Error::Encode { source, .. } = &error else { panic!("{error}") };
                let text = source.to_string();
                assert!(text.contains("unreduced_axes"), "{text}");
                assert!(text.contains("version 0") && text.contains('1'), "{text}");
            }
        } else {
            written.unwrap();
            assert!(sharded.to_string().contains("summands"), "{sharded}");
        }
        writer.finish().unwrap();
        let reader = Reader::from_source(pipe.bytes(), "x.sds").unwrap();
        assert_eq!(reader.ifrt_version(), number);
        let tensor = reader.tensor("w").unwrap();
        assert_eq!(tensor.spec(), &plain);
        assert_eq!(all[0].download(&tensor.restore(&all[0]).unwrap()).unwrap(), [1, 2, 3, 4]);
        let recorded = reader.tensor("summands").map(|tensor| tensor.spec().clone());
        assert_eq!(recorded.ok(), (number == 1).then_some(unreduced.clone()));
    }
}

#[test]
fn devices_are_saved_concurrently_into_the_same_bytes() {
    let all = devices(3);
    let dims = [3 * 700, 1 << 11];
    let array = Array::new(DType::U16, &dims, hlo(3, &[3, 1]), &all, 4);
    let small = Array::new(DType::U8, &[9], hlo(3, &[3]), &all, 5);
    let write = |mut writer: Writer| {
        writer.add_sharded("a", &small.spec, &small.shards()).unwrap();
        writer.add_sharded("w", &array.spec, &array.shards()).unwrap();
        writer.add_sharded("z", &small.spec, &small.shards()).unwrap();
        writer.finish().unwrap();
    };
    let mut options = WriteOptions::new(Versions::current()).with_durability(Durability::None);
    options.threaded = true;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sds");
    write(options.clone().create(&path).unwrap());
    let pipe = Pipe::default();
    write(options.stream(pipe.clone()).unwrap());
    assert!(std::fs::read(&path).unwrap() == pipe.bytes());
    let reader = Reader::open(&path).unwrap();
    assert!(reader.verify(&ProgressMonitor::new()).unwrap().is_empty());
    let whole = reader.tensor("w").unwrap().restore(&all[0]).unwrap();
    assert!(all[0].download(&whole).unwrap() == array.bytes);
}

#[test]
fn flipped_bits_truncations_and_swaps_of_shards_are_found() {
    let all = devices(4);
    let rows = Array::new(DType::U16, &[8, 5], hlo(4, &[4, 1]), &all, 1);
    let pipe = Pipe::default();
    let mut writer = options().stream(pipe.clone()).unwrap();
    writer.add_sharded("w", &rows.spec, &rows.shards()).unwrap();
    writer.finish().unwrap();
    let bytes = pipe.bytes();
    let is_whole = |bytes: Vec<u8>| {
        Reader::from_source(bytes, "x.sds").is_ok_and(|reader| {
            reader.tensors().all(|tensor| tensor.is_ok())
                && reader.verify(&ProgressMonitor::new()).unwrap().is_empty()
        })
    };
    assert!(is_whole(bytes.clone()));
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!is_whole(bytes), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(!is_whole(bytes[..length].to_vec()), "{length} bytes");
    }
    assert!(!is_whole([&bytes[..], b"\0"].concat()));
    let count = bytes.len() / 64;
    for (first, second) in (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))) {
        let mut swapped = bytes.clone();
        let (head, tail) = swapped.split_at_mut(second * 64);
        head[first * 64..][..64].swap_with_slice(&mut tail[..64]);
        assert!(swapped == bytes || !is_whole(swapped), "{first} and {second}");
    }
}
