//! Device states: opening, verifying and reading whatever the bytes are.

use std::io::Read;

use serdes::artifact::checksum::crc32c;
use serdes::device_state::{Reader, Watch};

/// The first byte says whether the checksums are mended, so that what lies behind them is reached; the rest is the file.
pub fn device_state(data: &[u8]) {
    let Some((choice, file)) = data.split_first() else { return };
    let mut file = file.to_vec();
    if choice & 1 == 1 {
        mend(&mut file);
    }
    let Ok(state) = Reader::from_source(file, "fuzz") else { return };
    let damaged = state.verify(&Watch::new()).expect("memory can be read");
    for name in state.names() {
        let Ok(tensor) = state.tensor(name) else { continue };
        let whole = !damaged.iter().any(|damage| damage.tensor == name);
        let mut data = Vec::new();
        let Ok(mut reader) = tensor.read() else { continue };
        let read = reader.read_to_end(&mut data);
        assert!(read.is_ok() || !whole, "{name:?} was verified and cannot be read");
        assert!(read.is_err() || data.len() as u64 == tensor.bytes());
        let _ = tensor.strings();
    }
    let _ = state.tensors_in_file_order();
}

/// Sets the checksums of first bytes, header, index and trailer to what they should be, where the file is long enough.
fn mend(file: &mut [u8]) {
    let Some(trailer) = file.len().checked_sub(64) else { return };
    let u64_at = |file: &[u8], at: usize| {
        file.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes) as usize
    };
    let set = |file: &mut [u8], at: usize, sum: u32| {
        if let Some(place) = file.get_mut(at..at.saturating_add(4)) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    };
    let first = crc32c(&file[..28]);
    set(file, 28, first);
    let header = u64_at(file, 20) & 0xffff_ffff;
    let end = header.saturating_sub(4);
    let header_sum = file.get(..end).map_or(0, crc32c);
    set(file, end, header_sum);
    let (begin, length) = (u64_at(file, trailer), u64_at(file, trailer + 8));
    let index_sum = file.get(begin..begin.saturating_add(length)).map_or(0, crc32c);
    set(file, trailer + 24, index_sum);
    set(file, trailer + 28, header_sum);
    let sum = crc32c(&file[trailer..trailer + 52]);
    set(file, trailer + 52, sum);
}
