use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::{
    block::{Block, BlockCursor},
    format::Footer,
    *,
};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tensorflow/ckpt").join(name)
}

fn entries(bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let table = Table::open(bytes.to_vec()).unwrap();
    let mut cursor = table.cursor();
    let mut found = Vec::new();
    cursor.first();
    while cursor.valid() {
        found.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.advance();
    }
    assert!(cursor.defects().is_empty(), "{:?}", cursor.defects());
    found
}

fn write(entries: &[(Vec<u8>, Vec<u8>)], options: TableOptions) -> Vec<u8> {
    let mut writer = TableWriter::new(Vec::new(), options);
    for (key, value) in entries {
        writer.add(key, value).unwrap();
    }
    let (bytes, len) = writer.finish().unwrap();
    assert_eq!(bytes.len() as u64, len);
    bytes
}

#[test]
fn table_of_tensorflow_is_written_again_byte_for_byte() {
    let files = [
        "base/ckpt.index",
        "many/ckpt.index",
        "shards3/ckpt.index",
        "dtypes/ckpt.index",
        "saver_v2/ckpt.index",
    ];
    for name in files.into_iter().chain([
        "saver_v1/model.ckpt",
        "v1_dtype_rank6/model.ckpt",
        "saver_v1_plain/model.ckpt",
    ]) {
        let bytes = std::fs::read(corpus(name)).unwrap();
        let entries = entries(&bytes);
        assert!(!entries.is_empty(), "{name}");
        assert_eq!(write(&entries, TableOptions::default()), bytes, "{name}");
        assert!(Table::open(bytes).unwrap().verify_blocks().is_empty(), "{name}");
    }
}

#[test]
fn keys_must_ascend() {
    let mut writer = TableWriter::new(Vec::new(), TableOptions::default());
    writer.add(b"", b"").unwrap();
    writer.add(b"b", b"").unwrap();
    assert!(matches!(writer.add(b"b", b""), Err(TableError::KeyOrder { .. })));
    assert!(matches!(writer.add(b"a", b""), Err(TableError::KeyOrder { .. })));
}

#[test]
fn a_table_without_entries_is_a_table() {
    let bytes = write(&[], TableOptions::default());
    assert_eq!(entries(&bytes), []);
    assert_eq!(Table::open(bytes).unwrap().get(b"").unwrap(), None);
}

#[test]
fn faults_have_tensorflows_status() {
    let good = std::fs::read(corpus("base/ckpt.index")).unwrap();
    let open = |bytes: &[u8]| Table::open(bytes.to_vec()).map(drop).map_err(|error| error.status());
    assert_eq!(open(&good[..47]), Err(StatusCode::DataLoss));
    assert_eq!(open(&good[..good.len() - 1]), Err(StatusCode::DataLoss));
    assert_eq!(open(&good[good.len() - 48..]), Err(StatusCode::OutOfRange));
    let mut padded = good.clone();
    let at = padded.len() - 12;
    padded[at] = 1;
    assert_eq!(open(&padded), Ok(()));
    assert!(matches!(
        Table::open(padded).unwrap().verify_blocks()[..],
        [TableDefect::FooterPadding]
    ));
}

/// Returns the handles of a table's data blocks.
fn data_blocks(bytes: &Vec<u8>) -> Vec<BlockHandle> {
    let len = bytes.len() as u64;
    let footer = Footer::read(bytes.last_chunk().unwrap()).unwrap();
    let index = Block::read(bytes, len, footer.index).unwrap();
    let mut cursor = BlockCursor::default();
    let mut handles = Vec::new();
    cursor.first(&index).unwrap();
    while cursor.valid() {
        handles.push(BlockHandle::read(cursor.value(&index)).unwrap().0);
        cursor.advance(&index).unwrap();
    }
    handles
}

/// Returns a table whose index leads alternately to two blocks of 100 kB, `entries` times.
fn alternating(entries: u32) -> Vec<u8> {
    let values = [(b"a".to_vec(), vec![1; 100_000]), (b"b".to_vec(), vec![2; 100_000])];
    let mut file = write(&values, TableOptions::default().with_block_size(1));
    let handles = data_blocks(&file);
    let index: Vec<_> = (0..entries)
        .map(|i| {
            let mut value = Vec::new();
            handles[i as usize % 2].write(&mut value);
            (i.to_be_bytes().to_vec(), value)
        })
        .collect();
    // The one data block of another table serves as this one's index block.
    let other = write(&index, TableOptions::default().with_block_size(usize::MAX));
    let block = data_blocks(&other)[0];
    let moved = BlockHandle { offset: file.len() as u64, size: block.size };
    file.extend_from_slice(&other[..block.size as usize + 5]);
    file.extend_from_slice(&Footer::write(handles[0], moved));
    file
}

#[test]
fn blocks_that_are_named_repeatedly_are_not_followed_for_ever() {
    let overlapping = |error: &TableError| matches!(error, TableError::Overlapping { .. });
    let table = Table::open(alternating(20_000)).unwrap();
    let defects = table.verify_blocks();
    assert!(
        matches!(defects.last(), Some(TableDefect::Block(error)) if overlapping(error)),
        "{:?}",
        defects.last()
    );
    let mut cursor = table.cursor();
    cursor.first();
    let mut entries = 0;
    while cursor.valid() {
        entries += 1;
        cursor.advance();
    }
    assert!(entries < 100);
    assert!(cursor.defects().iter().any(overlapping));
}

#[test]
fn a_block_that_cannot_be_read_is_passed_over() {
    let wanted: Vec<_> = (0..40u8).map(|i| (vec![i], vec![i; 50])).collect();
    let mut bytes = write(&wanted, TableOptions::default().with_block_size(500));
    let blocks = data_blocks(&bytes);
    assert!(blocks.len() > 3);
    bytes[blocks[1].offset as usize + 20] ^= 1;
    let table = Table::open(bytes).unwrap();
    let mut cursor = table.cursor();
    cursor.first();
    let mut found = Vec::new();
    while cursor.valid() {
        found.push(cursor.key()[0]);
        cursor.advance();
    }
    assert!(found.len() < 40 && found.first() == Some(&0) && found.last() == Some(&39));
    assert!(matches!(cursor.defects(), [TableError::BlockChecksum { .. }]));
    let lost = (0..40).find(|i| !found.contains(i)).unwrap();
    assert!(matches!(table.get(&[lost]), Err(TableError::BlockChecksum { .. })));
    assert_eq!(table.get(&[39]).unwrap(), Some(vec![39; 50]));
    assert!(matches!(
        table.verify_blocks()[..],
        [TableDefect::Block(TableError::BlockChecksum { .. })]
    ));
}

proptest! {
    #[test]
    fn written_data_is_read_back(
        map in proptest::collection::btree_map(
            proptest::collection::vec(any::<u8>(), 0..12),
            proptest::collection::vec(any::<u8>(), 0..40), 0..80),
        block_size in 1usize..600,
        interval in 1usize..20,
        snappy in any::<bool>(),
    ) {
        let wanted: Vec<_> = map.into_iter().collect();
        let options = TableOptions::default().with_block_size(block_size).with_restart_interval(interval).with_snappy(snappy);
        let bytes = write(&wanted, options);
        prop_assert_eq!(&entries(&bytes), &wanted);
        let table = Table::open(bytes).unwrap();
        prop_assert!(table.verify_blocks().is_empty());
        for (key, value) in &wanted {
            let found = table.get(key).unwrap();
            prop_assert_eq!(found.as_ref(), Some(value));
        }
        prop_assert_eq!(table.get(b"\x01 a key of 16 bytes").unwrap(), None);
    }
}
