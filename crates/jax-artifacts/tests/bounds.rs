//! Tests of files made to cost much: memory stays below four times the file plus 2 MiB, which are
//! for the text shown to people, and time is linear.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use peak_alloc::PeakAlloc;
use serdes_jax_artifacts::{Artifact, Judgement, Kind, Options, Release};

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

/// Returns the lock that lets one test run at a time: the peak of memory belongs to the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const MIB: usize = 1 << 20;

fn varint(out: &mut Vec<u8>, value: usize) {
    if value < 128 {
        out.push((value as u8) << 1 | 1);
    } else {
        out.push(0);
        out.extend((value as u64).to_le_bytes());
    }
}

fn section(out: &mut Vec<u8>, kind: u8, contents: &[u8]) {
    out.push(kind);
    varint(out, contents.len());
    out.extend(contents);
}

fn head() -> Vec<u8> {
    b"ML\xefR\x0dStableHLO_v1.0.0\0".to_vec()
}

/// Returns bytecode of version 6 in the dialect builtin, with the operation name `module`.
fn module(attributes: &[&[u8]], types: &[&[u8]], operations: &[u8]) -> Vec<u8> {
    let mut out = head();
    // Three strings; lengths last to first.
    let mut strings = vec![7, 9, 15, 17];
    strings.extend(b"builtin\0module\0a.b\0");
    section(&mut out, 0, &strings);
    section(&mut out, 1, &[3, 1, 3, 1, 3, 7]);
    section(&mut out, 2, &[attributes.concat(), types.concat()].concat());
    let mut offsets = Vec::new();
    varint(&mut offsets, attributes.len());
    varint(&mut offsets, types.len());
    for entries in [attributes, types].into_iter().filter(|entries| !entries.is_empty()) {
        offsets.push(1);
        varint(&mut offsets, entries.len());
        for entry in entries {
            varint(&mut offsets, entry.len() << 1 | 1);
        }
    }
    section(&mut out, 3, &offsets);
    section(&mut out, 4, operations);
    section(&mut out, 8, &[1]);
    out
}

/// An unknown location, which is attribute 0.
const LOCATION: &[u8] = &[15 << 1 | 1];
/// The string `a.b`, which is attribute 1.
const TEXT: &[u8] = &[2 << 1 | 1, 2 << 1 | 1];
/// A dictionary of `a.b` and attribute 3.
const DICTIONARY: &[u8] = &[3, 3, 3, 7];
/// A module that has attribute 2 as its attributes.
const WITH_DICTIONARY: &[u8] = &[5, 1, 1, 1, 5];

/// Returns the verdict of the newest release, the peak of additional memory in bytes, and the time.
fn cost(bytes: &[u8], kind: Kind) -> (Judgement, usize, Duration) {
    let options = Options::new();
    let before = PEAK.current_usage();
    PEAK.reset_peak_usage();
    let began = Instant::now();
    let artifact = Artifact::with_kind(kind, bytes);
    let judgement = artifact.judge(Release::latest(), &options);
    drop(artifact.inspect(&options));
    (judgement, PEAK.peak_usage().saturating_sub(before), began.elapsed())
}

fn assert_bounded(bytes: &[u8], kind: Kind) -> Judgement {
    let (judgement, peak, time) = cost(bytes, kind);
    assert!(peak <= 4 * bytes.len() + 2 * MIB, "{peak} bytes for {}", bytes.len());
    assert!(time < Duration::from_secs(20), "{time:?}");
    judgement
}

#[test]
fn constants_are_read_where_they_are() {
    let _alone = alone();
    // A dense attribute of 64 MiB.
    let mut dense = vec![18 << 1 | 1, 1];
    varint(&mut dense, 64 * MIB);
    dense.extend(vec![7; 64 * MIB]);
    let bytes = module(&[LOCATION, TEXT, DICTIONARY, &dense], &[&[3]], WITH_DICTIONARY);
    drop(dense);
    let (judgement, peak, _) = cost(&bytes, Kind::StableHlo);
    assert!(judgement.is_acceptable(), "{judgement:?}");
    assert!(peak < MIB / 4, "{peak} bytes");
    let artifact = Artifact::read(&bytes).unwrap();
    let module = artifact.inspect(&Options::new()).module;
    assert_eq!(module.constant_bytes, 64 * MIB as u64);
    assert_eq!(module.operations["builtin.module"], 1);
}

#[test]
fn attributes_of_one_byte_are_bounded() {
    let _alone = alone();
    let entries = vec![&[15_u8 << 1 | 1][..]; MIB];
    let bytes = module(&entries, &[], &[5, 1, 0, 1]);
    assert!(assert_bounded(&bytes, Kind::StableHlo).is_acceptable());
}

#[test]
fn attributes_of_no_bytes_are_refused() {
    let _alone = alone();
    let bytes = module(&vec![&[][..]; MIB], &[], &[5, 1, 0, 1]);
    assert!(!assert_bounded(&bytes, Kind::StableHlo).is_acceptable());
}

#[test]
fn attributes_that_hold_many_are_bounded() {
    let _alone = alone();
    // An array with the location a million times.
    let mut array = vec![1];
    varint(&mut array, MIB);
    array.extend(vec![1; MIB]);
    let bytes = module(&[LOCATION, TEXT, DICTIONARY, &array], &[], WITH_DICTIONARY);
    assert!(assert_bounded(&bytes, Kind::StableHlo).is_acceptable());
}

#[test]
fn attributes_that_hold_themselves_are_refused() {
    let _alone = alone();
    // An array that contains itself, and a long chain of arrays.
    let bytes = module(&[LOCATION, TEXT, DICTIONARY, &[1, 3, 7]], &[], WITH_DICTIONARY);
    let judgement = assert_bounded(&bytes, Kind::StableHlo);
    assert!(judgement.reasons[0].message.contains("hold itself"), "{judgement:?}");
    let mut entries = vec![LOCATION.to_vec(), TEXT.to_vec(), DICTIONARY.to_vec()];
    for at in 4..100_000 {
        let mut array = vec![1, 3];
        varint(&mut array, at);
        entries.push(array);
    }
    entries.push(vec![1, 1]);
    let entries: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
    let bytes = module(&entries, &[], WITH_DICTIONARY);
    let judgement = assert_bounded(&bytes, Kind::StableHlo);
    assert!(judgement.reasons[0].message.contains("4096"), "{judgement:?}");
    let bytes = module(&[&entries[..999], &[&[1, 1][..]]].concat(), &[], WITH_DICTIONARY);
    assert!(assert_bounded(&bytes, Kind::StableHlo).is_acceptable());
}

#[test]
fn operations_beside_one_another_are_bounded() {
    let _alone = alone();
    // As many operations of three bytes as fit into a megabyte: a name, no parts, a location.
    let mut operations = Vec::new();
    varint(&mut operations, (MIB / 3) << 1);
    operations.extend([1, 0, 1].repeat(MIB / 3));
    let bytes = module(&[LOCATION], &[], &operations);
    let (judgement, peak, _) = cost(&bytes, Kind::StableHlo);
    assert!(judgement.is_acceptable(), "{judgement:?}");
    assert!(peak < MIB / 4, "{peak} bytes");
    let artifact = Artifact::read(&bytes).unwrap();
    let module = artifact.inspect(&Options::new()).module;
    assert_eq!(module.operations["builtin.module"], MIB as u64 / 3);
}

#[test]
fn properties_of_many_operations_are_checked_for_each_name() {
    let _alone = alone();
    // `cbrt_v2` has one property, `slice_v1` has three; these properties are enough for the first.
    let of = |operations: &[[u8; 4]]| {
        let mut bytes = head();
        let mut strings = vec![9, 17, 19, 17, 11];
        strings.extend(b"vhlo\0cbrt_v2\0slice_v1\0builtin\0");
        section(&mut bytes, 0, &strings);
        section(&mut bytes, 1, &[5, 1, 13, 5, 1, 5, 7, 11]);
        section(&mut bytes, 2, LOCATION);
        section(&mut bytes, 3, &[3, 1, 3, 3, 7]);
        let mut contents = Vec::new();
        varint(&mut contents, operations.len() << 1);
        contents.extend(operations.concat());
        section(&mut bytes, 4, &contents);
        section(&mut bytes, 8, &[3, 3, 1]);
        cost(&bytes, Kind::StableHlo).0
    };
    let [cbrt, slice] = [[1, 0x40, 1, 1], [3, 0x40, 1, 1]];
    let accepted = of(&[cbrt, cbrt]);
    assert!(accepted.is_acceptable(), "{accepted:?}");
    let refused = of(&[cbrt, cbrt, slice]);
    assert!(refused.reasons[0].message.contains("another byte"), "{refused:?}");
}

#[test]
fn operations_in_operations_are_bounded() {
    let _alone = alone();
    let mut operations = vec![5];
    for _ in 0..MIB / 64 {
        operations.extend([1, 0x10, 1, 5, 3, 1, 5]);
    }
    let bytes = module(&[LOCATION], &[], &operations);
    let judgement = assert_bounded(&bytes, Kind::StableHlo);
    assert!(judgement.reasons[0].message.contains("4096"), "{judgement:?}");
}

#[test]
fn strings_and_values_are_bounded() {
    let _alone = alone();
    let mut strings = Vec::new();
    varint(&mut strings, MIB);
    strings.extend(vec![3; MIB]);
    strings.extend(vec![0; MIB]);
    let mut file = head();
    section(&mut file, 0, &strings);
    for kind in [1, 2, 3, 4, 8] {
        section(&mut file, kind, &[1, 1]);
    }
    assert!(!assert_bounded(&file, Kind::StableHlo).is_acceptable());
    // A region that announces more values than possible, and uses the last of them.
    let mut operations = vec![5, 1, 0x10, 1, 5, 3];
    varint(&mut operations, 1 << 40);
    operations.extend([5, 1, 4, 1, 3]);
    varint(&mut operations, (1 << 40) - 1);
    let bytes = module(&[LOCATION], &[], &operations);
    assert!(!assert_bounded(&bytes, Kind::StableHlo).is_acceptable());
}

#[test]
fn trees_that_share_their_branches_end() {
    let _alone = alone();
    // The field offsets of the outermost table (a name, a tree) are at 4, those of the nodes
    // (children) at 16.
    let mut bytes = vec![28, 0, 0, 0, 10, 0, 12, 0, 0, 0, 4, 0, 8, 0, 0, 0];
    bytes.extend([8, 0, 8, 0, 0, 0, 4, 0, 0, 0, 0, 0]);
    // The outermost table is at 28, the name at 40; the nodes begin at 48.
    for number in [24_u32, 8, 12, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    // 60 levels of nodes, whose two children are the same node.
    for level in 0..60_u32 {
        let at = 48 + 20 * level;
        let children = if level < 59 { 2 } else { 0 };
        for number in [at - 16, 4, children, 8, 4] {
            bytes.extend(number.to_le_bytes());
        }
    }
    let judgement = assert_bounded(&bytes, Kind::JaxExport);
    assert!(judgement.reasons[0].message.contains("over and over"), "{judgement:?}");
}

/// Returns a flatbuffer whose outermost table has these fields: each is the number of a field and
/// the vector that it refers to.
fn exported(fields: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut places = [0_u16; 26];
    let mut table = Vec::new();
    let (vtable, root) = (4, 4 + 4 + 2 * 26);
    let mut end = root + 4 + 4 * fields.len();
    for (number, (field, vector)) in fields.iter().enumerate() {
        places[*field] = (4 + 4 * number) as u16;
        table.extend(((end - (root + 4 + 4 * number)) as u32).to_le_bytes());
        end += vector.len();
    }
    let mut bytes = (root as u32).to_le_bytes().to_vec();
    bytes.extend((4 + 2 * 26_u16).to_le_bytes());
    bytes.extend(4_u16.to_le_bytes());
    bytes.extend(places.iter().flat_map(|place| place.to_le_bytes()));
    bytes.extend(((root - vtable) as i32).to_le_bytes());
    bytes.extend(table);
    bytes.extend(fields.iter().flat_map(|(_, vector)| vector));
    bytes
}

/// Returns a vector of four-byte numbers.
fn vector(numbers: impl ExactSizeIterator<Item = u32>) -> Vec<u8> {
    let length = numbers.len() as u32;
    std::iter::once(length).chain(numbers).flat_map(u32::to_le_bytes).collect()
}

#[test]
fn lists_of_a_jax_export_are_bounded() {
    let _alone = alone();
    const COUNT: u32 = 1 << 16;
    let name = vec![1, 0, 0, 0, b'f', 0, 0, 0];
    // A list of offsets that all lead to the same string or table behind the list.
    let same = |behind: &[u8]| {
        let list = vector((0..COUNT).map(|at| 4 * (COUNT - at)));
        [list, behind.to_vec()].concat()
    };
    let text = [4, 0, 0, 0, b'c', b'p', b'u', b'!'];
    // An empty table; its field offsets precede it.
    let table = [4, 0, 0, 0, 4, 0, 4, 0, 8, 0, 0, 0];
    for field in [3, 7, 9, 10, 12, 19, 20, 21] {
        for behind in [&text[..], &table[..]] {
            let bytes = exported(&[(1, name.clone()), (field, same(behind))]);
            assert_bounded(&bytes, Kind::JaxExport);
        }
    }
    for field in 22..26 {
        let indexes = vector((0..COUNT).map(|_| 0));
        let bytes = exported(&[(1, name.clone()), (19, same(&table)), (field, indexes)]);
        assert_bounded(&bytes, Kind::JaxExport);
    }
}

#[test]
fn functions_that_share_a_type_are_bounded() {
    let _alone = alone();
    let mut bytes = head();
    // "vhlo" and "func_v1"; lengths last to first.
    let mut strings = vec![5, 17, 11];
    strings.extend(b"vhlo\0func_v1\0");
    section(&mut bytes, 0, &strings);
    section(&mut bytes, 1, &[3, 1, 3, 1, 3, 7]);
    // Attribute 0 is the type 0; type 0 is a function of many values of type 1; type 1 is a
    // boolean.
    let mut function = vec![8 << 1 | 1];
    varint(&mut function, MIB / 16);
    function.extend(vec![3; MIB / 16]);
    function.push(1);
    let contents = [&[17 << 1 | 1, 1][..], &function, &[1]].concat();
    section(&mut bytes, 2, &contents);
    let mut offsets = vec![3, 5, 1, 3, 2 << 2 | 2 | 1, 1, 5];
    varint(&mut offsets, function.len() << 1 | 1);
    offsets.push(7);
    section(&mut bytes, 3, &offsets);
    let mut operations = Vec::new();
    varint(&mut operations, (MIB / 16) << 1);
    for _ in 0..MIB / 16 {
        operations.extend([1, 0x40, 1, 1]);
    }
    section(&mut bytes, 4, &operations);
    section(&mut bytes, 8, &[3, 11, 1, 1, 1, 1, 1]);
    assert_bounded(&bytes, Kind::StableHlo);
}
