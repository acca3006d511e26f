//! Detects bytes of a file that no archive accounts for: of several concatenated archives only one
//! would be read, and the others lost.

use std::{io, path::Path};

use serdes_files::{ReadAt, read_at::read_up_to};

use super::{
    super::{
        Error,
        archive::{Member, RawEntry, read_error},
    },
    KIND,
};

/// Size in bytes of the end record of an archive, without its comment.
const END_BYTES: u64 = 22;

/// Maximum size in bytes of the comment after the end record.
const LONGEST_COMMENT: u64 = 0xffff;

/// Size in bytes of the ZIP64 end record's locator.
const LOCATOR_BYTES: u64 = 20;

/// Size in bytes of the ZIP64 end record.
const LONGER_BYTES: u64 = 56;

/// Maximum number of zeros between entries, for alignment.
const LONGEST_PADDING: u64 = 4096;

/// Maximum size in bytes of the data descriptor after an entry.
const DESCRIPTION_BYTES: u64 = 24;

/// Returns an error for a file whose name marks it as a part of a torch.distributed checkpoint.
pub(super) fn refuse_part(path: &Path) -> Result<(), Error> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("distcp")) {
        let reason = "is a part of a checkpoint of torch.distributed, which does not say what its tensors are called; name the folder that it is in, which has .metadata";
        return Err(Error::unsupported(path, reason));
    }
    Ok(())
}

/// Returns an error for a truncated archive, and for a web page that was saved instead of a file.
pub(super) fn check_end(file: &dyn ReadAt, path: &Path) -> Result<(), Error> {
    let failed = |error| read_error(path, KIND, error);
    let size = file.size().map_err(failed)?;
    match End::find(file, size).map_err(failed)? {
        Some(_) => Ok(()),
        None => Err(Error::corrupt(
            path,
            KIND,
            "an archive that is cut off, or has bytes behind its end",
            "all of it, and its list of entries last; fetch it again",
        )),
    }
}

/// Returns an error for an HTML page that was saved instead of a file.
pub(super) fn refuse_page(file: &dyn ReadAt, path: &Path) -> Result<(), Error> {
    let mut head = [0; 256];
    let head = read_up_to(file, &mut head, 0).map_err(|error| read_error(path, KIND, error))?;
    if head.trim_ascii_start().starts_with(b"<") {
        let reason = "is a page of HTML, which was saved in place of the file; open it to see what it says, and fetch the file again";
        return Err(Error::unsupported(path, reason));
    }
    Ok(())
}

/// Range of an entry in the file, including its header.
pub(super) struct Extent {
    /// Position of the header.
    begin: u64,
    /// Position of the end of the entry's bytes.
    end: u64,
}

impl Extent {
    pub(super) fn of(found: &RawEntry<'_>) -> Self {
        let begin = found.data_start().unwrap_or_default();
        Self { begin: found.header_start(), end: begin.saturating_add(found.compressed_size()) }
    }
}

/// Returns an error if an archive has bytes before its first entry, between entries, or after its
/// end.
pub(super) fn check(
    file: &dyn ReadAt,
    path: &Path,
    members: &[Member<Extent>],
) -> Result<(), Error> {
    let failed = |error| read_error(path, KIND, error);
    let size = file.size().map_err(failed)?;
    let several = |bytes: u64, place: String| {
        let reason = format!(
            "{bytes} bytes {place} belong to no archive: several files of torch.save in one, or a part of a checkpoint of torch.distributed (name its folder); load each with torch and save it by itself"
        );
        Error::unsupported(path, reason)
    };
    let Some(end) = End::find(file, size).map_err(failed)? else { return check_end(file, path) };
    let before = end.begin.saturating_sub(end.list.saturating_add(end.list_bytes));
    if before > 0 {
        return Err(several(before, "before the archive".to_owned()));
    }
    let mut places: Vec<(u64, u64, u32)> = members
        .iter()
        .map(|member| {
            let checksum = member.content.map_or(0, |content| content.checksum);
            (member.detail.begin, member.detail.end, checksum)
        })
        .collect();
    places.sort_unstable();
    let mut reached = (0, 0);
    for (begin, next, checksum) in places.into_iter().chain([(end.list, end.begin, 0)]) {
        let gap = begin.saturating_sub(reached.0);
        if gap > 0 && !is_padding(file, reached.0, gap, reached.1).map_err(failed)? {
            return Err(several(gap, format!("at byte {}", reached.0)));
        }
        reached = (next, checksum);
    }
    Ok(())
}

/// Returns true if a gap consists of the data descriptor of the entry before it, and zeros.
fn is_padding(file: &dyn ReadAt, at: u64, length: u64, checksum: u32) -> io::Result<bool> {
    if length > LONGEST_PADDING + DESCRIPTION_BYTES {
        return Ok(false);
    }
    let mut gap = vec![0; length as usize];
    file.read_exact_at(&mut gap, at)?;
    let sum = checksum.to_le_bytes();
    let lengths = match gap.strip_prefix(b"PK\x07\x08") {
        Some(rest) if rest.starts_with(&sum) => [16, 24],
        None if at > 0 && gap.starts_with(&sum) => [12, 20],
        _ => [0; 2],
    };
    let is_zero =
        |from: usize| gap.get(from..).is_some_and(|rest| rest.iter().all(|byte| *byte == 0));
    Ok(lengths.into_iter().any(is_zero) || is_zero(0))
}

/// The end of an archive.
struct End {
    /// Position of the end record after the directory.
    begin: u64,
    /// Position of the directory, from the end record.
    list: u64,
    list_bytes: u64,
}

impl End {
    /// Finds the end of the archive that ends at the end of the file.
    fn find(file: &dyn ReadAt, size: u64) -> io::Result<Option<Self>> {
        // Nearly all archives end without a comment.
        for reach in [END_BYTES, END_BYTES + LONGEST_COMMENT] {
            let from = size.saturating_sub(reach);
            let mut tail = vec![0; (size - from) as usize];
            let tail = read_up_to(file, &mut tail, from)?;
            let places = (0..tail.len()).rev();
            let ends_here = |at: &usize| {
                let record = tail.get(*at..).unwrap_or_default();
                record.starts_with(b"PK\x05\x06")
                    && u16_at(record, 20).is_some_and(|comment| {
                        END_BYTES + u64::from(comment) == record.len() as u64
                    })
            };
            if let Some(at) = places.into_iter().find(ends_here) {
                let record = tail.get(at..).unwrap_or_default();
                return Self::of_record(file, from + at as u64, record);
            }
        }
        Ok(None)
    }

    fn of_record(file: &dyn ReadAt, begin: u64, record: &[u8]) -> io::Result<Option<Self>> {
        let (Some(list_bytes), Some(list)) = (u32_at(record, 12), u32_at(record, 16)) else {
            return Ok(None);
        };
        let mut end = Self { begin, list: list.into(), list_bytes: list_bytes.into() };
        // A ZIP64 end record and its locator may come before.
        let mut locator = [0; LOCATOR_BYTES as usize];
        let locator = match begin.checked_sub(LOCATOR_BYTES) {
            Some(at) => read_up_to(file, &mut locator, at)?,
            None => &[],
        };
        let Some(place) = locator.strip_prefix(b"PK\x06\x07").and_then(|rest| u64_at(rest, 4))
        else {
            return Ok(Some(end));
        };
        end.begin = begin.saturating_sub(LOCATOR_BYTES);
        // The ZIP64 record ends here, wherever the archive begins: at its recorded position in the
        // file another archive may have such a record as well.
        for place in [end.begin.saturating_sub(LONGER_BYTES), place] {
            let mut longer = [0; LONGER_BYTES as usize];
            let longer = read_up_to(file, &mut longer, place)?;
            if let Some(rest) = longer.strip_prefix(b"PK\x06\x06")
                && let (Some(list_bytes), Some(list)) = (u64_at(rest, 36), u64_at(rest, 44))
                && u64_at(rest, 0).and_then(|bytes| bytes.checked_add(place + 12))
                    == Some(end.begin)
            {
                return Ok(Some(Self { begin: place, list, list_bytes }));
            }
        }
        Ok(Some(end))
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|two| u16::from_le_bytes(*two))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|eight| u64::from_le_bytes(*eight))
}
