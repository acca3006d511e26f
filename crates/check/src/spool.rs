//! Keeps a stream where it can be read at any position, and reads only as much of it as a verdict
//! needs.

use serdes_files::{
    LONGEST_STREAM, ReadAt,
    read_at::{IN_MEMORY, spill},
};
use serdes_graphs::graph::Message;
use std::{
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use super::{
    CheckError, Kind,
    detect::{Detected, MLIR, detect},
    graph,
};

/// Number of bytes from which most streams are identified.
const OPENING: u64 = 64 << 10;

/// Limit for one protobuf message: no parser accepts a longer one.
const LONGEST_MESSAGE: u64 = 2 << 30;

/// Reads a stream to its end, or until the verdict is decided; `label` is used in messages, `name`
/// is the name of a pipe.
pub(super) fn spool(
    mut input: impl Read,
    label: &str,
    name: Option<&Path>,
    kind: Option<Kind>,
) -> Result<Arc<dyn ReadAt>, CheckError> {
    let failed = |source| CheckError::Io { path: label.to_owned(), source };
    let mut start = Vec::new();
    for reach in [OPENING, IN_MEMORY] {
        let wanted = reach - start.len() as u64;
        if (input.by_ref().take(wanted).read_to_end(&mut start).map_err(failed)? as u64) < wanted {
            return Ok(Arc::new(start));
        }
        if is_decided(&start, name, kind).map_err(failed)? {
            return Ok(Arc::new(start));
        }
    }
    let longest = longest(&start, name, kind).map_err(failed)?;
    // A stream that reaches the limit is too long as well.
    let kept = spill(start, input, longest - 1).map_err(failed)?;
    kept.ok_or_else(|| CheckError::TooLong { path: label.to_owned(), limit: longest })
}

fn detected(start: &[u8], name: Option<&Path>, kind: Option<Kind>) -> io::Result<Detected> {
    match kind {
        Some(kind) => Ok(Detected::ByName(kind)),
        None => detect(&start, name),
    }
}

/// Returns true if the start of a stream decides its kind, independent of the rest.
fn is_decided(start: &[u8], name: Option<&Path>, kind: Option<Kind>) -> io::Result<bool> {
    let detected = detected(start, name, kind)?;
    Ok(match detected.kind() {
        // A kind that is not judged is detected from its beginning: a table or a state, whose mark
        // is at the end, does not begin like any of them.
        kind if !kind.is_judged() => true,
        // A library can be checked in a file only.
        Kind::Plugin => true,
        // The files that the index names exist only beside a file.
        Kind::ShardIndex => true,
        // The rest of the stream cannot repair a damaged beginning.
        Kind::DeviceState => !start.starts_with(&serdes_device_state::MAGIC),
        Kind::TensorBundle | Kind::CheckpointV1 => !may_be_table(start),
        Kind::Npz => !start.starts_with(b"PK"),
        Kind::StableHlo => !start.starts_with(MLIR),
        kind @ (Kind::Npy | Kind::Safetensors | Kind::JaxExport) => {
            detect(&start, None)? != Detected::ByContent(kind)
        }
        Kind::GraphDef if detected == Detected::Unmarked && may_be_table(start) => false,
        Kind::GraphDef => graph::is_refused(&Opening(start), Message::GraphDef),
        Kind::SavedModel => graph::is_refused(&Opening(start), Message::SavedModel),
        _ => false,
    })
}

/// The beginning of a message of the maximum length: an error in it is an error in the whole.
struct Opening<'b>(&'b [u8]);

impl ReadAt for Opening<'_> {
    fn size(&self) -> io::Result<u64> {
        Ok(LONGEST_MESSAGE - 1)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..));
        let rest = rest.filter(|rest| !rest.is_empty()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let count = rest.len().min(buffer.len());
        if let Some((here, there)) = buffer.get_mut(..count).zip(rest.get(..count)) {
            here.copy_from_slice(there);
        }
        Ok(count)
    }
}

/// Returns true if a stream may begin with a block of a checkpoint's table: its first entry shares
/// nothing with an earlier one, as there is none, and its key is empty. If the block is compressed,
/// its lengths come first.
fn may_be_table(start: &[u8]) -> bool {
    let start = start.get(..start.len().min(12)).unwrap_or_default();
    start.windows(3).any(|entry| matches!(entry, [0, 0, length] if *length > 0))
}

fn longest(start: &[u8], name: Option<&Path>, kind: Option<Kind>) -> io::Result<u64> {
    Ok(match detected(start, name, kind)? {
        Detected::Unmarked if may_be_table(start) => LONGEST_STREAM,
        detected => match detected.kind() {
            Kind::GraphDef
            | Kind::GraphDefText
            | Kind::MetaGraph
            | Kind::SavedModel
            | Kind::StableHlo
            | Kind::JaxExport
            | Kind::IfrtSerialized => LONGEST_MESSAGE,
            _ => LONGEST_STREAM,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An endless stream that counts the bytes that are read.
    struct Endless<'c> {
        pattern: &'static [u8],
        taken: &'c std::cell::Cell<u64>,
    }

    impl Read for Endless<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            for (at, byte) in buffer.iter_mut().enumerate() {
                let at = self.taken.get() as usize + at;
                *byte = self.pattern[at % self.pattern.len()];
            }
            self.taken.set(self.taken.get() + buffer.len() as u64);
            Ok(buffer.len())
        }
    }

    #[test]
    fn a_stream_without_an_end_is_left_where_its_beginning_decides() {
        let kinds =
            [Kind::DeviceState, Kind::TensorBundle, Kind::Npy, Kind::Npz, Kind::Safetensors]
                .into_iter()
                .chain([Kind::JaxExport, Kind::StableHlo]);
        for (pattern, kind) in [(&b"\0"[..], None), (b"y\n", None), (b"\xff", None), (b"\0", None)]
            .into_iter()
            .chain(kinds.map(|kind| (&b"\0"[..], Some(kind))))
        {
            let taken = std::cell::Cell::new(0);
            let kept = spool(Endless { pattern, taken: &taken }, "-", None, kind).unwrap();
            assert!(taken.get() <= 2 * OPENING, "{pattern:?} {kind:?}: {}", taken.get());
            assert_eq!(kept.size().unwrap(), OPENING);
        }
    }

    #[test]
    fn stream_that_may_be_whole_is_read_to_its_end() {
        // A node of 100,000 bytes, so that the first part alone is truncated, but not malformed.
        let mut graph = vec![0x0a, 0xa0, 0x8d, 0x06];
        graph.resize(4 + 100_000, b'x');
        let kept = spool(&graph[..], "-", None, None).unwrap();
        assert_eq!(kept.size().unwrap(), graph.len() as u64);
        // A block of a table, which no parser of messages accepts.
        let mut table = vec![0, 0, 5];
        table.resize(100_000, 0);
        let kept = spool(&table[..], "-", None, None).unwrap();
        assert_eq!(kept.size().unwrap(), table.len() as u64);
    }
}
