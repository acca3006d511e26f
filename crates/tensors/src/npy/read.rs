//! Reads NumPy arrays.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes::ifrt::DType;
use serdes_files::ReadAt;

use super::{
    super::{Error, Listing, Refused, Source, TensorInfo, elements::Swap, section::Section},
    KIND, NpyHeader,
    fortran::RowMajor,
};

/// An npy file: one tensor with the name of the file.
pub(in super::super) struct NpySource {
    file: Arc<dyn ReadAt>,
    path: PathBuf,
    header: NpyHeader,
    listing: Listing,
}

impl NpySource {
    /// Opens a file; the tensor gets the file's name.
    pub(in super::super) fn named(file: Arc<dyn ReadAt>, path: &Path) -> Result<Self, Error> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::new(file, path, &name)
    }

    pub(in super::super) fn new(
        file: Arc<dyn ReadAt>,
        path: &Path,
        name: &str,
    ) -> Result<Self, Error> {
        let header = NpyHeader::read(&file, path)?;
        let mut listing = Listing::default();
        match &header.dtype {
            Ok(dtype) => {
                let info = TensorInfo::new(name, *dtype, header.shape.clone())?;
                let size = file.size().map_err(|error| Error::io("read", path, error))?;
                let found = size.saturating_sub(header.data_offset);
                let Some(behind) = found.checked_sub(info.bytes) else {
                    return Err(Error::corrupt(
                        path,
                        KIND,
                        format!("{found} bytes of elements"),
                        format!("{} bytes", info.bytes),
                    ));
                };
                listing.passed_over.extend(bytes_behind(name, behind));
                listing.tensors.push(info);
            }
            Err(reason) => {
                listing.refused.push(Refused { name: name.to_owned(), reason: reason.clone() });
                listing.pickled.extend(header.is_pickled.then(|| name.to_owned()));
            }
        }
        Ok(Self { file, path: path.to_path_buf(), header, listing })
    }
}

/// Returns the refusal for bytes after the elements of an array, which NumPy ignores: a second
/// array saved to the same file, or other data.
pub(in super::super) fn bytes_behind(name: &str, count: u64) -> Option<Refused> {
    let reason = || format!("has {count} bytes behind its elements, which numpy.load passes over");
    (count > 0).then(|| Refused::new(name, reason()))
}

/// Returns a reader of the elements after a header, in the layout of a device state.
pub(in super::super) fn elements<'a, S: ReadAt + 'a>(
    source: S,
    header: &NpyHeader,
    info: &TensorInfo,
) -> Result<Box<dyn Read + Send + 'a>, Error> {
    let element = super::super::element_bytes(info.dtype).unwrap_or(1);
    let begin = header.data_offset;
    let plain: Box<dyn Read + Send + 'a> = if header.fortran_order && info.shape.rank() > 1 {
        let reader = RowMajor::new(source, begin, element, info.shape.dims());
        Box::new(reader.ok_or_else(|| {
            let reason = "its rows, in Fortran order, are longer than 16 MiB; save it in C order";
            Error::refused(&info.name, reason)
        })?)
    } else {
        Box::new(Section::new(source, begin, begin.saturating_add(info.bytes)))
    };
    let width = match info.dtype {
        DType::C64 | DType::C128 => element / 2,
        _ => element,
    };
    Ok(if header.big_endian && width > 1 {
        Box::new(Swap::new(plain, width as usize))
    } else {
        plain
    })
}

impl Source for NpySource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn listing(&self) -> &Listing {
        &self.listing
    }

    fn compare_size(&self) -> Result<(), Error> {
        match &self.header.dtype {
            Ok(_) => Ok(()),
            Err(_) => self.header.compare_size(&self.file, &self.path),
        }
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        let Some(info) = self.listing.tensors.get(position) else {
            return Err(Error::io("read", &self.path, std::io::ErrorKind::NotFound.into()));
        };
        elements(&self.file, &self.header, info)
    }
}
