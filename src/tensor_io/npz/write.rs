use std::{
    fs::File,
    io::{BufWriter, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{
    super::{Error, Metadata, Target, TensorInfo, npy::encode_header, pass_on},
    KIND,
};
use crate::device_state::{Replacement, Sync};

/// An npz file in the making; its arrays are stored without compression, as `numpy.savez` does.
pub(in super::super) struct NpzTarget {
    path: PathBuf,
    replacement: Replacement,
    sync: Sync,
    archive: ZipWriter<BufWriter<File>>,
    tensors: Vec<TensorInfo>,
}

impl NpzTarget {
    pub(in super::super) fn create(path: &Path, sync: Sync) -> Result<Self, Error> {
        let replacement = Replacement::create(path)?;
        let file =
            replacement.file().try_clone().map_err(|error| Error::io("create", path, error))?;
        Ok(Self {
            path: path.to_path_buf(),
            replacement,
            sync,
            archive: ZipWriter::new(BufWriter::with_capacity(1 << 20, file)),
            tensors: Vec::new(),
        })
    }
}

impl Target for NpzTarget {
    fn begin(&mut self, tensors: &[TensorInfo], _: &Metadata) -> Result<Vec<usize>, Error> {
        for info in tensors {
            encode_header(info)?;
        }
        self.tensors = tensors.to_vec();
        Ok((0..tensors.len()).collect())
    }

    fn write(&mut self, position: usize, data: &mut dyn Read) -> Result<(), Error> {
        let Self { tensors, archive, path, .. } = self;
        let Some(info) = tensors.get(position) else { return Ok(()) };
        let header = encode_header(info)?;
        let bytes = header.len() as u64 + info.bytes;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(bytes >= u64::from(u32::MAX));
        archive
            .start_file(format!("{}.npy", info.name), options)
            .map_err(|error| Error::io("write", path, error.into()))?;
        let mut put = |bytes: &[u8]| {
            archive.write_all(bytes).map_err(|error| Error::io("write", path, error))
        };
        put(&header)?;
        pass_on(&info.name, data, info.bytes, put)
    }

    fn write_strings(&mut self, position: usize, _: &[Vec<u8>]) -> Result<(), Error> {
        let name = self.tensors.get(position).map_or("", |info| &info.name);
        Err(Error::refused(name, format!("{KIND} files hold no strings")))
    }

    fn finish(self: Box<Self>) -> Result<Duration, Error> {
        let io = |error| Error::io("write", &self.path, error);
        let mut out = self.archive.finish().map_err(|error| io(error.into()))?;
        out.flush().map_err(io)?;
        Ok(self.replacement.finish(self.sync)?)
    }
}
