//! Zip archives: the kind, by the names of their entries.

use std::io;

use super::{super::Kind, file::File};

/// Length of the part at the end of an archive that contains its end record: the record and the
/// longest comment, in bytes.
const LONGEST_END: usize = 22 + 0xffff;

/// Limit on the bytes of the list of entries that are read.
const LONGEST_LIST: usize = 64 * 1024;

/// Returns true if the bytes begin an archive: with an entry, or with the end record of an empty
/// one. The bytes after `PK` are tags of the field 0, which no protobuf parser accepts.
pub(super) fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

/// Returns the kind of an archive; a generic archive has the kind that its file name implies.
pub(super) fn kind(file: &File<'_>) -> io::Result<Kind> {
    let first = first_name(file.head).unwrap_or_default();
    // A truncated archive has no list, but still its first entry.
    let names = names(file)?.filter(|names| !names.is_empty());
    let names = names.unwrap_or_else(|| vec![first.to_owned()]);
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    let kind = if !names.is_empty() && names.iter().all(|name| name.ends_with(".npy")) {
        Kind::Npz
    } else if names.iter().any(|name| name == "data.pkl" || name.ends_with("/data.pkl"))
        || names.iter().any(|name| name.ends_with("/archive_format"))
    {
        Kind::Torch
    } else if (has("config.json") && (has("metadata.json") || has("model.weights.h5")))
        || first == "metadata.json"
    {
        Kind::Keras
    } else {
        match file.name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "npz" => Kind::Npz,
            "pt" | "pth" => Kind::Torch,
            "keras" => Kind::Keras,
            _ => Kind::Zip,
        }
    };
    Ok(kind)
}

/// Returns the name of the first entry.
fn first_name(head: &[u8]) -> Option<&str> {
    name(head, b"PK\x03\x04", 26, 30)
}

/// Returns the name at `name_at`, whose length is at `length_at`.
fn name<'b>(entry: &'b [u8], mark: &[u8], length_at: usize, name_at: usize) -> Option<&'b str> {
    let rest = entry.strip_prefix(mark)?;
    let length = rest.get(length_at - mark.len()..)?.first_chunk()?;
    let length = usize::from(u16::from_le_bytes(*length));
    std::str::from_utf8(entry.get(name_at..name_at + length)?).ok()
}

/// Returns the names of the first entries, from the list at the end; `None` if there is no list.
fn names(file: &File<'_>) -> io::Result<Option<Vec<String>>> {
    let Some((offset, length)) = list(file)? else { return Ok(None) };
    let mut list = vec![0; usize::try_from(length).unwrap_or(usize::MAX).min(LONGEST_LIST)];
    let mut rest = file.read(&mut list, offset)?;
    let mut names = Vec::new();
    while let Some(found) = name(rest, b"PK\x01\x02", 28, 46) {
        names.push(found.to_owned());
        let two = |at: usize| {
            rest.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |two| u16::from_le_bytes(*two))
        };
        let length = 46 + [28, 30, 32].iter().map(|at| usize::from(two(*at))).sum::<usize>();
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(Some(names))
}

/// Returns the offset and length of the list of entries, from the end record.
fn list(file: &File<'_>) -> io::Result<Option<(u64, u64)>> {
    // Nearly every archive ends without a comment.
    for reach in [22, LONGEST_END] {
        let mut end = vec![0; usize::try_from(file.size).unwrap_or(usize::MAX).min(reach)];
        let start = file.size.saturating_sub(end.len() as u64);
        let end = file.read(&mut end, start)?;
        let Some(at) = end.windows(4).rposition(|mark| mark == b"PK\x05\x06") else { continue };
        let four = |from: usize| {
            end.get(at + from..)
                .and_then(<[u8]>::first_chunk)
                .map(|four| u64::from(u32::from_le_bytes(*four)))
        };
        let Some((length, offset)) = four(12).zip(four(16)) else { continue };
        if offset != u64::from(u32::MAX) {
            return Ok(Some((offset, length)));
        }
        // Beyond 4 GiB the record follows one with wider numbers, and a pointer to it.
        return list_beyond(file, start + at as u64);
    }
    Ok(None)
}

fn list_beyond(file: &File<'_>, end_record: u64) -> io::Result<Option<(u64, u64)>> {
    let mut pointer = [0; 20];
    let pointer = file.read(&mut pointer, end_record.saturating_sub(20))?;
    let Some(at) = pointer.strip_prefix(b"PK\x06\x07").and_then(|rest| eight(rest, 4)) else {
        return Ok(None);
    };
    let mut record = [0; 56];
    let record = file.read(&mut record, at)?;
    let Some(rest) = record.strip_prefix(b"PK\x06\x06") else { return Ok(None) };
    Ok(eight(rest, 44).zip(eight(rest, 36)))
}

fn eight(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|eight| u64::from_le_bytes(*eight))
}
