//! Tests of loads into memory of the host.

use serdes::ifrt::{
    ArraySpec, ConcreteEvenSharding, DType, DeviceId, DeviceList, Index, MemoryKind, Shape,
    SingleDeviceSharding,
};
use serdes_files::ReadAt;
use serdes_testkit::noise::noise;

use super::*;
use crate::{Shard, Versions, WriteOptions, Writer, tests::Pipe};

const ROWS: i64 = 97;
const COLUMNS: i64 = 53;

fn domain(origin: [i64; 2], shape: [i64; 2]) -> IndexDomain {
    IndexDomain::new(Index::new(origin), Shape::new(shape).unwrap()).unwrap()
}

/// Returns a part of a matrix with two bytes per element.
fn part_of(bytes: &[u8], [row, column]: [i64; 2], [rows, columns]: [i64; 2]) -> Vec<u8> {
    let mut part = Vec::new();
    for row in row..row + rows {
        let begin = 2 * (row * COLUMNS + column) as usize;
        part.extend(&bytes[begin..begin + 2 * columns as usize]);
    }
    part
}

fn spec(sharding: impl Into<serdes::ifrt::Sharding>) -> ArraySpec {
    ArraySpec::new(DType::BF16, Shape::new([ROWS, COLUMNS]).unwrap(), sharding)
}

fn state(chunk_bytes: u32, add: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let pipe = Pipe::default();
    let options = WriteOptions::new(Versions::current()).with_chunk_bytes(chunk_bytes);
    let mut writer = options.stream(pipe.clone()).unwrap();
    add(&mut writer);
    writer.finish().unwrap();
    pipe.bytes()
}

/// Returns a state with the array in one piece, and cut into four pieces of different sizes.
fn both(bytes: &[u8], chunk_bytes: u32) -> Vec<u8> {
    state(chunk_bytes, |writer| {
        writer.add_bytes("one", &spec(SingleDeviceSharding::new(DeviceId(0))), bytes).unwrap();
        let cuts =
            [([0, 0], [40, 20]), ([0, 20], [40, 33]), ([40, 0], [57, 50]), ([40, 50], [57, 3])];
        let parts = cuts.map(|(origin, shape)| part_of(bytes, origin, shape));
        let shards: Vec<Shard<'_, [u8]>> = (0..)
            .zip(cuts.iter().zip(&parts))
            .map(|(device, ((origin, shape), part))| {
                Shard::new(DeviceId(device), &part[..]).at(domain(*origin, *shape))
            })
            .collect();
        let sharding = ConcreteEvenSharding::new(
            DeviceList::from([0, 1, 2, 3]),
            MemoryKind::unset(),
            Shape::new([ROWS, COLUMNS]).unwrap(),
            Shape::new([40, 20]).unwrap(),
            false,
        )
        .unwrap();
        writer.add_sharded_bytes("four", &spec(sharding), &shards).unwrap();
    })
}

fn read(
    reader: &Reader,
    name: &str,
    part: Option<([i64; 2], [i64; 2])>,
    verification: Verification,
) -> Result<(Vec<u8>, u64), Error> {
    let tensor = reader.tensor(name)?;
    let [rows, columns] = part.map_or([ROWS, COLUMNS], |(_, shape)| shape);
    let mut bytes = vec![0xee; 2 * (rows * columns) as usize];
    let target = match part {
        None => HostTarget::new(&tensor, &mut bytes),
        Some((origin, shape)) => HostTarget::part(&tensor, &domain(origin, shape), &mut bytes)?,
    };
    let count = reader.read_into(vec![target], verification, &ProgressMonitor::new())?;
    Ok((bytes, count))
}

#[test]
fn parts_equal_the_saved_bytes_for_any_pieces_and_chunks() {
    let bytes = noise(2 * (ROWS * COLUMNS) as usize, 5);
    let parts = [
        ([0, 0], [ROWS, COLUMNS]),
        ([3, 0], [10, COLUMNS]),
        ([0, 19], [ROWS, 2]),
        ([39, 19], [2, 32]),
        ([96, 52], [1, 1]),
        ([50, 10], [0, 5]),
    ];
    for chunk_bytes in [64, 256, 1 << 20] {
        let reader = Reader::from_source(both(&bytes, chunk_bytes), "a state").unwrap();
        for name in ["one", "four"] {
            for verification in [Verification::Checksums, Verification::Skipped] {
                let (found, count) = read(&reader, name, None, verification).unwrap();
                assert!(found == bytes, "{name} {chunk_bytes}");
                assert_eq!(count, bytes.len() as u64);
                for (origin, shape) in parts {
                    let part = Some((origin, shape));
                    let (found, _) = read(&reader, name, part, verification).unwrap();
                    let expected = part_of(&bytes, origin, shape);
                    assert!(found == expected, "{name} {chunk_bytes} {origin:?}");
                }
            }
        }
    }
}

#[test]
fn damage_is_found_where_it_is_read_and_looked_for() {
    let bytes = noise(2 * (ROWS * COLUMNS) as usize, 6);
    let mut file = both(&bytes, 1 << 20);
    let row = part_of(&bytes, [60, 0], [1, 50]);
    let at: Vec<_> = (0..file.len() - 100).filter(|&at| file[at..at + 100] == row).collect();
    assert_eq!(at.len(), 2);
    at.iter().for_each(|&at| file[at] ^= 1);
    let reader = Reader::from_source(file, "a state").unwrap();
    for name in ["one", "four"] {
        let result = read(&reader, name, None, Verification::Checksums);
        assert!(matches!(result, Err(Error::Corrupt { .. })), "{name}");
        let (found, _) = read(&reader, name, None, Verification::Skipped).unwrap();
        assert_eq!(found.iter().zip(&bytes).filter(|(a, b)| a != b).count(), 1);
    }
    // This part does not need the damaged piece.
    let part = Some(([0, 0], [40, 30]));
    assert!(read(&reader, "four", part, Verification::Checksums).is_ok());
}

#[test]
fn a_part_costs_the_chunks_that_it_crosses_and_no_more() {
    let (rows, columns) = (64, 32 << 10);
    let bytes = noise(rows * columns, 7);
    let file = state(1 << 16, |writer| {
        let shape = Shape::new([rows as i64, columns as i64]).unwrap();
        let sharding = SingleDeviceSharding::new(DeviceId(0));
        let spec = ArraySpec::new(DType::U8, shape, sharding);
        writer.add_bytes("w", &spec, &bytes).unwrap();
    });
    let reader = Reader::from_source(file, "a state").unwrap();
    let tensor = reader.tensor("w").unwrap();
    for (rows, limit) in [(1..2, 1 << 16), (1..5, 3 << 16), (0..64, 64 * (32 << 10))] {
        let wanted = &bytes[rows.start * columns..rows.end * columns];
        let mut found = vec![0; wanted.len()];
        let part = domain([rows.start as i64, 0], [rows.len() as i64, columns as i64]);
        let target = HostTarget::part(&tensor, &part, &mut found).unwrap();
        let count = reader
            .read_into(vec![target], Verification::Checksums, &ProgressMonitor::new())
            .unwrap();
        assert!(found == wanted);
        assert!(count <= limit, "{count} bytes for {rows:?}");
    }
}

#[test]
fn piece_that_several_parts_want_is_read_once() {
    let bytes = noise(2 * (ROWS * COLUMNS) as usize, 11);
    for chunk_bytes in [64, 256, 1 << 20] {
        let reader = Reader::from_source(both(&bytes, chunk_bytes), "a state").unwrap();
        for (name, verification) in [
            ("one", Verification::Checksums),
            ("four", Verification::Checksums),
            ("four", Verification::Skipped),
        ] {
            let tensor = reader.tensor(name).unwrap();
            // Three parts of columns, which share the windows of every piece, and one part of rows.
            let parts = [
                ([0, 0], [ROWS, 10]),
                ([0, 10], [ROWS, 30]),
                ([0, 40], [ROWS, 13]),
                ([60, 0], [9, COLUMNS]),
            ];
            let mut memory =
                parts.map(|(_, [rows, columns])| vec![0; 2 * (rows * columns) as usize]);
            let targets = memory.iter_mut().zip(parts).map(|(bytes, (origin, shape))| {
                HostTarget::part(&tensor, &domain(origin, shape), bytes).unwrap()
            });
            let count =
                reader.read_into(targets.collect(), verification, &ProgressMonitor::new()).unwrap();
            for (found, (origin, shape)) in memory.iter().zip(parts) {
                assert!(
                    *found == part_of(&bytes, origin, shape),
                    "{name} {chunk_bytes} {origin:?}"
                );
            }
            assert_eq!(count, bytes.len() as u64, "{name} {chunk_bytes}");
        }
    }
}

#[test]
fn columns_of_a_large_piece_are_read_once() {
    let (rows, columns) = (64, 32 << 10);
    let bytes = noise(rows * columns, 12);
    let file = state(1 << 16, |writer| {
        let shape = Shape::new([rows as i64, columns as i64]).unwrap();
        let spec = ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)));
        writer.add_bytes("w", &spec, &bytes).unwrap();
    });
    let reader = Reader::from_source(file, "a state").unwrap();
    let tensor = reader.tensor("w").unwrap();
    let cuts = [0, 5, 20_000, columns];
    let parts = [0, 1, 2].map(|at| cuts[at]..cuts[at + 1]);
    let mut memory = parts.clone().map(|part| vec![0; rows * part.len()]);
    let targets = memory.iter_mut().zip(&parts).map(|(bytes, part)| {
        let part = domain([0, part.start as i64], [rows as i64, part.len() as i64]);
        HostTarget::part(&tensor, &part, bytes).unwrap()
    });
    let targets = targets.collect();
    let count =
        reader.read_into(targets, Verification::Checksums, &ProgressMonitor::new()).unwrap();
    for (found, part) in memory.iter().zip(&parts) {
        let wanted: Vec<u8> =
            bytes.chunks(columns).flat_map(|row| &row[part.clone()]).copied().collect();
        assert!(*found == wanted, "{part:?}");
    }
    assert_eq!(count, bytes.len() as u64);
}

#[test]
fn strings_are_verified_as_numbers_are() {
    let strings: Vec<_> = (0..3000).map(|number| format!("string {number}")).collect();
    let file = state(256, |writer| {
        let shape = Shape::new([3000]).unwrap();
        let spec = ArraySpec::new(DType::String, shape, SingleDeviceSharding::new(DeviceId(0)));
        writer.add_strings("s", &spec, &strings).unwrap();
        let shape = Shape::new([1]).unwrap();
        let spec = ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)));
        writer.add_bytes("b", &spec, &[1]).unwrap();
    });
    let mut damaged = file.clone();
    let at = file.windows(11).position(|bytes| bytes == b"string 2718").unwrap();
    damaged[at + 10] = b'9';
    let open = |file| Reader::from_source(file, "a state").unwrap();
    let (reader, damaged) = (open(file), open(damaged));
    let read = |reader: &Reader, verification| {
        reader.read_strings(&reader.tensor("s").unwrap(), verification, &ProgressMonitor::new())
    };
    for verification in [Verification::Checksums, Verification::Skipped] {
        let found = read(&reader, verification).unwrap();
        assert!(found.iter().zip(&strings).all(|(a, b)| *a == b.as_bytes()));
    }
    let result = read(&damaged, Verification::Checksums);
    assert!(matches!(result, Err(Error::Corrupt { .. })), "{result:?}");
    assert_eq!(read(&damaged, Verification::Skipped).unwrap()[2718], b"string 2719");
    let stopped = ProgressMonitor::new();
    stopped.cancel();
    let (skipped, tensor) = (Verification::Skipped, reader.tensor("s").unwrap());
    let result = reader.read_strings(&tensor, skipped, &stopped);
    assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
    let result = damaged.read_strings(&tensor, skipped, &ProgressMonitor::new());
    assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    let result =
        reader.read_strings(&reader.tensor("b").unwrap(), skipped, &ProgressMonitor::new());
    assert!(matches!(result, Err(Error::Unsupported { .. })), "{result:?}");
}

#[test]
fn memory_of_another_length_and_tensors_of_others_are_refused() {
    let bytes = noise(2 * (ROWS * COLUMNS) as usize, 8);
    let reader = Reader::from_source(both(&bytes, 256), "a state").unwrap();
    let other = Reader::from_source(both(&bytes, 256), "another").unwrap();
    let tensor = reader.tensor("one").unwrap();
    let mut short = vec![0; bytes.len() - 1];
    let target = vec![HostTarget::new(&tensor, &mut short)];
    let result = reader.read_into(target, Verification::Skipped, &ProgressMonitor::new());
    assert!(matches!(result, Err(Error::SizeMismatch { .. })), "{result:?}");
    let mut memory = vec![0; bytes.len()];
    let target = vec![HostTarget::new(&tensor, &mut memory)];
    let result = other.read_into(target, Verification::Skipped, &ProgressMonitor::new());
    assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    assert!(HostTarget::part(&tensor, &domain([90, 0], [8, 1]), &mut memory).is_err());
}

#[test]
fn a_watch_stops_the_work() {
    let bytes = noise(2 * (ROWS * COLUMNS) as usize, 9);
    let reader = Reader::from_source(both(&bytes, 256), "a state").unwrap();
    let tensor = reader.tensor("one").unwrap();
    let mut memory = vec![0; bytes.len()];
    let monitor = ProgressMonitor::new();
    monitor.cancel();
    let target = vec![HostTarget::new(&tensor, &mut memory)];
    let result = reader.read_into(target, Verification::Checksums, &monitor);
    assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
}

#[test]
fn late_source_is_asked_only_for_what_is_read() {
    /// A source that answers after a short time.
    struct Late(Vec<u8>);

    impl ReadAt for Late {
        fn size(&self) -> std::io::Result<u64> {
            self.0.size()
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
            self.0.read_at(buffer, offset)
        }

        fn answers_late(&self) -> bool {
            true
        }

        fn begin_read(
            &self,
            range: Range<u64>,
        ) -> Option<std::sync::mpsc::Receiver<std::io::Result<bytes::Bytes>>> {
            let (send, answer) = std::sync::mpsc::sync_channel(1);
            let bytes = &self.0[range.start as usize..range.end as usize];
            send.send(Ok(bytes::Bytes::copy_from_slice(bytes))).unwrap();
            Some(answer)
        }
    }

    let bytes = noise(2 * (ROWS * COLUMNS) as usize, 10);
    let reader = Reader::from_source(Late(both(&bytes, 256)), "a state").unwrap();
    for name in ["one", "four"] {
        for part in [None, Some(([39, 19], [2, 32]))] {
            let (found, _) = read(&reader, name, part, Verification::Checksums).unwrap();
            let (origin, shape) = part.unwrap_or(([0, 0], [ROWS, COLUMNS]));
            assert!(found == part_of(&bytes, origin, shape), "{name} {part:?}");
        }
    }
}
