//! The segments of a 64-bit ELF file: the positions of code and data, and the bytes at an address.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use object::{
    Endianness, ReadCache,
    elf::{FileHeader64, PF_W, PF_X, PT_LOAD, ProgramFlags, ProgramHeader64},
    read::elf::{FileHeader, ProgramHeader},
};

/// The number of bytes that are read at a time; a multiple of every alignment within a segment.
const WINDOW: usize = 1 << 20;
/// The maximum number of bytes that are read of a file; eight times the size of the largest known
/// plug-in.
const MOST: u64 = 4 << 30;

/// A part of the file that is loaded into memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// The address in memory.
    address: u64,
    /// The offset in the file, in bytes.
    offset: u64,
    /// The size in the file, in bytes.
    bytes: u64,
    flags: ProgramFlags,
}

impl Segment {
    fn has(&self, flag: ProgramFlags) -> bool {
        self.flags & flag != ProgramFlags::default()
    }

    /// Returns true if the segment is executable.
    pub(super) fn is_code(&self) -> bool {
        self.has(PF_X)
    }

    /// Returns true if the segment is writable, like a table of addresses while the library is
    /// loaded.
    pub(super) fn is_data(&self) -> bool {
        self.has(PF_W) && !self.is_code()
    }
}

/// A file, with its segments.
#[derive(Debug)]
pub(super) struct Image {
    file: File,
    segments: Vec<Segment>,
}

impl Image {
    /// Reads the headers; there are no segments if the file is not a complete 64-bit ELF file.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let segments = segments(&file).unwrap_or_default();
        Ok(Self { file, segments })
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Passes a segment to `look`, one window at a time, with the address of each window. Windows
    /// overlap by `overlap` bytes, a multiple of 8, and begin at multiples of 8 if the segment
    /// does.
    pub(super) fn windows(
        &self,
        segment: &Segment,
        overlap: usize,
        mut look: impl FnMut(u64, &[u8]),
    ) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(segment.offset))?;
        let mut rest = file.take(segment.bytes.min(MOST));
        let mut window = Vec::with_capacity(WINDOW + overlap);
        let mut address = segment.address;
        loop {
            let passed = window.len() - window.len().min(overlap);
            window.drain(..passed);
            address = address.wrapping_add(passed as u64);
            if (&mut rest).take(WINDOW as u64).read_to_end(&mut window)? == 0 {
                return Ok(());
            }
            look(address, &window);
        }
    }

    /// Returns the eight bytes at an address as a number; `None` if the file does not contain them.
    pub(super) fn word_at(&self, address: u64) -> Option<u64> {
        let place = |segment: &Segment| {
            let within = address.checked_sub(segment.address)?;
            (within.checked_add(8)? <= segment.bytes).then(|| segment.offset.checked_add(within))?
        };
        let offset = self.segments.iter().find_map(place)?;
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset)).ok()?;
        let mut word = [0; 8];
        file.read_exact(&mut word).ok()?;
        Some(u64::from_le_bytes(word))
    }
}

fn segments(file: &File) -> Option<Vec<Segment>> {
    let cache = ReadCache::new(file);
    let header = FileHeader64::<Endianness>::parse(&cache).ok()?;
    let endian = header.endian().ok()?;
    let headers = header.program_headers(endian, &cache).ok()?.iter();
    let segment = |header: &ProgramHeader64<Endianness>| Segment {
        address: header.p_vaddr(endian),
        offset: header.p_offset(endian),
        bytes: header.p_filesz(endian),
        flags: header.p_flags(endian),
    };
    Some(headers.filter(|header| header.p_type(endian) == PT_LOAD).map(segment).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a file with these bytes as one segment at `0x1000`.
    pub(in crate::inspect) fn image(bytes: &[u8], flags: ProgramFlags) -> Image {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, bytes).unwrap();
        let segment = Segment { address: 0x1000, offset: 0, bytes: bytes.len() as u64, flags };
        Image { file, segments: vec![segment] }
    }

    #[test]
    fn windows_overlap_and_say_where_they_lie() {
        let mut bytes = vec![0; 2 * WINDOW + 100];
        bytes[WINDOW - 4..WINDOW + 4].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let image = image(&bytes, PF_X);
        let mut found = Vec::new();
        let look = |address: u64, window: &[u8]| {
            let places = window.windows(8).enumerate().filter(|(_, bytes)| bytes[0] == 1);
            found.extend(places.map(|(at, _)| address + at as u64));
            assert!(address.is_multiple_of(8));
        };
        image.windows(&image.segments()[0], 64, look).unwrap();
        assert_eq!(found, [0x1000 + WINDOW as u64 - 4]);
    }

    #[test]
    fn range_outside_of_the_file_is_not_read() {
        let image = image(&[1, 0, 0, 0, 0, 0, 0, 0, 2], PF_W);
        assert_eq!(image.word_at(0x1000), Some(1));
        assert_eq!(image.word_at(0x1001), Some(2 << 56));
        for address in [0xfff, 0x1002, 0, u64::MAX, u64::MAX - 4] {
            assert_eq!(image.word_at(address), None);
        }
        // A file that is not ELF has no segments.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "text").unwrap();
        assert!(Image::open(&path).unwrap().segments().is_empty());
    }
}
