//! Finds the version of a plug-in in its file.
//!
//! A plug-in's table begins with its size, an address, 24 (the size of the version), an address,
//! and major and minor number. Old plug-ins have the table in their data; newer ones fill it in the
//! first call of `GetPjrtApi`, and then the numbers are constants in the code, or are loaded from
//! the data. Each form is recognised by its own pattern; in all examined plug-ins it occurs only
//! where the table is filled.

use std::{collections::BTreeSet, io, path::Path};

use super::{
    aarch64,
    image::Image,
    recognised::{Recognised, VersionInFile, minor, table_size},
    x86_64,
};

/// The maximum number of candidates that are examined: a real plug-in has one or two.
const MOST_PLACES: usize = 4096;

/// Returns the version of the plug-in at `path`, if exactly one is recognised.
pub(super) fn version(path: &Path, architecture: &str) -> io::Result<Option<VersionInFile>> {
    of_image(&Image::open(path)?, architecture)
}

fn of_image(image: &Image, architecture: &str) -> io::Result<Option<VersionInFile>> {
    let mut found = BTreeSet::new();
    for segment in image.segments() {
        let mut add = |place: Recognised| {
            if found.len() < MOST_PLACES {
                found.insert(place);
            }
        };
        if segment.is_data() {
            image.windows(segment, DATA_OVERLAP, |_, data| scan_data(data, &mut add))?;
        } else if segment.is_code() && architecture == "x86_64" {
            image.windows(segment, x86_64::OVERLAP, |at, code| x86_64::scan(at, code, &mut add))?;
        } else if segment.is_code() && architecture == "aarch64" {
            image
                .windows(segment, aarch64::OVERLAP, |at, code| aarch64::scan(at, code, &mut add))?;
        }
    }
    if found.len() == MOST_PLACES {
        return Ok(None);
    }
    let mut versions: BTreeSet<_> =
        found.iter().filter_map(|place| resolve(*place, image)).collect();
    Ok(versions.pop_first().filter(|_| versions.is_empty()))
}

fn resolve(found: Recognised, image: &Image) -> Option<VersionInFile> {
    match found {
        Recognised::Version(version) => Some(version),
        Recognised::Loaded { struct_size, address } => {
            let version = VersionInFile { minor: minor(image.word_at(address)?)?, struct_size };
            version.is_consistent().then_some(version)
        }
    }
}

/// The length of a table's head, in words of eight bytes.
const HEAD: usize = 5;
const DATA_OVERLAP: usize = HEAD * 8;

/// Reports every head of a table in data.
fn scan_data(data: &[u8], found: &mut impl FnMut(Recognised)) {
    let (words, _) = data.as_chunks::<8>();
    for head in words.windows(HEAD) {
        let &[size, _, version_size, extension, version] = head else { continue };
        if version_size != 24_u64.to_le_bytes() || extension != [0; 8] {
            continue;
        }
        let (size, version) = (u64::from_le_bytes(size), u64::from_le_bytes(version));
        if let (Some(struct_size), Some(minor)) = (table_size(size), minor(version)) {
            let version = VersionInFile { minor, struct_size };
            if version.is_consistent() {
                found(Recognised::Version(version));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use object::elf::{PF_W, PF_X, ProgramFlags};
    use serdes_abi::pjrt::Minor;

    use super::*;
    use crate::inspect::image::tests::image;

    fn head(size: u64, minor: u32) -> Vec<u8> {
        [size, 0x7f00, 24, 0, u64::from(minor) << 32].map(u64::to_le_bytes).concat()
    }

    fn found(bytes: &[u8], flags: ProgramFlags) -> Option<(u32, usize)> {
        let found = of_image(&image(bytes, flags), "x86_64").unwrap()?;
        Some((found.minor.number(), found.struct_size))
    }

    #[test]
    fn a_table_that_is_data_says_its_version() {
        assert_eq!(found(&head(808, 40), PF_W), Some((40, 808)));
        assert_eq!(found(&[vec![0; 64], head(592, 2)].concat(), PF_W), Some((2, 592)));
        assert_eq!(found(&[head(808, 40), head(808, 40)].concat(), PF_W), Some((40, 808)));
        // Two different versions count as none, and so does a size that its minor never had.
        assert_eq!(found(&[head(808, 40), head(984, 81)].concat(), PF_W), None);
        assert_eq!(found(&head(816, 54), PF_W), None);
        assert_eq!(found(&head(808, 40)[..39], PF_W), None);
        // The version is not searched in code, nor code in data.
        assert_eq!(found(&head(808, 40), PF_X), None);
    }

    #[test]
    fn a_table_across_two_windows_is_seen() {
        for before in [(1 << 20) - 40, (1 << 20) - 24, (1 << 20) - 8] {
            let data = [vec![0; before], head(984, 81)].concat();
            assert_eq!(found(&data, PF_W), Some((81, 984)), "{before}");
        }
    }

    #[test]
    fn a_file_of_nothing_but_tables_is_given_up() {
        let sizes = (0..MOST_PLACES as u64).flat_map(|extra| head(1144 + 8 * extra, 200));
        assert_eq!(found(&sizes.collect::<Vec<u8>>(), PF_W), None);
    }

    #[test]
    fn size_unknown_for_its_minor_is_inconsistent() {
        let version = |minor, struct_size| VersionInFile { minor: Minor::new(minor), struct_size };
        assert!(version(81, 984).is_consistent() && version(54, 808).is_consistent());
        assert!(version(117, 1144).is_consistent() && version(200, 4000).is_consistent());
        assert!(!version(81, 1144).is_consistent() && !version(117, 984).is_consistent());
        assert!(!version(0, 984).is_consistent());
    }
}
