//! Device states as sources and targets of tensors, without a device.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Error, Metadata, Source, Target, TensorInfo, output::STREAM};
use crate::{
    device_state::{Reader, Tensor, WriteOptions, Writer},
    ifrt::{ArraySpec, DeviceId, SingleDeviceSharding},
};

/// A device state as a source.
pub(super) struct StateSource {
    path: PathBuf,
    tensors: Vec<Tensor>,
    infos: Vec<TensorInfo>,
    metadata: Metadata,
}

impl StateSource {
    pub(super) fn new(reader: &Reader, path: &Path) -> Result<Self, Error> {
        let tensors = reader.tensors_in_file_order()?;
        let infos = tensors
            .iter()
            .map(|tensor| {
                let (spec, name) = (tensor.spec(), tensor.name());
                TensorInfo::new(name, spec.dtype(), spec.shape().clone())
            })
            .collect::<Result<_, _>>()?;
        let metadata = reader.metadata().map(<[_]>::to_vec);
        Ok(Self { path: path.to_path_buf(), tensors, infos, metadata })
    }

    fn tensor(&self, position: usize) -> Result<&Tensor, Error> {
        self.tensors
            .get(position)
            .ok_or_else(|| Error::io("read", &self.path, io::ErrorKind::NotFound.into()))
    }
}

impl Source for StateSource {
    fn kind(&self) -> &'static str {
        "device_state"
    }

    fn tensors(&self) -> &[TensorInfo] {
        &self.infos
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        Ok(Box::new(self.tensor(position)?.read()?))
    }

    fn strings(&self, position: usize) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.tensor(position)?.strings()?)
    }
}

/// A device state as a target: its tensors say that they come from device 0.
pub(super) struct StateTarget {
    place: Place,
    options: WriteOptions,
    writer: Option<Writer>,
    tensors: Vec<TensorInfo>,
}

/// Where the state goes.
enum Place {
    File(PathBuf),
    /// `None` once the writer has it.
    Stream(Option<Box<dyn Write + Send>>),
}

impl Place {
    /// What a caller did who wrote before it began, or began a stream twice.
    fn misused(&self) -> Error {
        let path = match self {
            Self::File(path) => path,
            Self::Stream(_) => Path::new(STREAM),
        };
        Error::io("write", path, io::ErrorKind::InvalidInput.into())
    }
}

impl StateTarget {
    pub(super) fn create(path: &Path, options: &WriteOptions) -> Self {
        Self::new(Place::File(path.to_path_buf()), options)
    }

    pub(super) fn stream(sink: Box<dyn Write + Send>, options: &WriteOptions) -> Self {
        Self::new(Place::Stream(Some(sink)), options)
    }

    fn new(place: Place, options: &WriteOptions) -> Self {
        // The metadata, which stands in the header, is known when the target begins.
        Self { place, options: options.clone(), writer: None, tensors: Vec::new() }
    }

    fn writer(&mut self) -> Result<&mut Writer, Error> {
        let Self { place, writer, .. } = self;
        writer.as_mut().ok_or_else(|| place.misused())
    }
}

fn spec(info: &TensorInfo) -> ArraySpec {
    let sharding = SingleDeviceSharding::new(DeviceId(0));
    ArraySpec::new(info.dtype, info.shape.clone(), sharding)
}

impl Target for StateTarget {
    fn begin(&mut self, tensors: &[TensorInfo], metadata: &Metadata) -> Result<Vec<usize>, Error> {
        let options = self.options.clone().with_metadata(metadata.clone());
        self.writer = Some(match &mut self.place {
            Place::File(path) => options.create(path)?,
            Place::Stream(sink) => match sink.take() {
                Some(sink) => options.stream(sink)?,
                None => return Err(self.place.misused()),
            },
        });
        self.tensors = tensors.to_vec();
        Ok((0..tensors.len()).collect())
    }

    fn write(&mut self, position: usize, data: &mut dyn Read) -> Result<(), Error> {
        let Some(info) = self.tensors.get(position).cloned() else { return Ok(()) };
        self.writer()?.add_reader(&info.name, &spec(&info), data, info.bytes)?;
        Ok(())
    }

    fn write_strings(&mut self, position: usize, strings: &[Vec<u8>]) -> Result<(), Error> {
        let Some(info) = self.tensors.get(position).cloned() else { return Ok(()) };
        Ok(self.writer()?.add_strings(&info.name, &spec(&info), strings)?)
    }

    fn finish(mut self: Box<Self>) -> Result<Duration, Error> {
        match self.writer.take() {
            Some(writer) => Ok(writer.finish()?.sync_time),
            None => Err(self.place.misused()),
        }
    }
}
