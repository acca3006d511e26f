//! Device states as sources and targets of tensors, without a device.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use serdes::ifrt::{ArraySpec, DeviceId, SingleDeviceSharding};
use serdes_device_state::{Reader, Tensor, WriteOptions, Writer};

use super::{Announced, Error, Listing, Metadata, Source, Target, TensorInfo, TensorSink, aliases};
use crate::storage::Storage;

/// A device state as a source; aliases from its metadata follow the stored tensors.
pub(super) struct StateSource {
    path: PathBuf,
    tensors: Vec<Tensor>,
    listing: Listing,
    /// For each alias, the position of its tensor.
    aliases: Vec<usize>,
}

impl StateSource {
    pub(super) fn new(reader: &Reader, path: &Path) -> Result<Self, Error> {
        let tensors = reader.tensors_in_file_order()?;
        let mut infos = tensors
            .iter()
            .map(|tensor| {
                let (spec, name) = (tensor.spec(), tensor.name());
                TensorInfo::new(name, spec.dtype(), spec.shape().clone())
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut metadata = reader.metadata().map(<[_]>::to_vec);
        let stored: Vec<&str> = tensors.iter().map(Tensor::name).collect();
        let mut places = Vec::new();
        for (name, place) in aliases::take(&mut metadata, &stored) {
            if let Some(info) = infos.get(place) {
                infos.push(TensorInfo { name, ..info.clone() });
                places.push(place);
            }
        }
        let listing = Listing { metadata, ..Listing::new(infos) };
        Ok(Self { path: path.to_path_buf(), tensors, listing, aliases: places })
    }

    fn tensor(&self, position: usize) -> Result<&Tensor, Error> {
        self.tensors
            .get(self.alias_of(position).unwrap_or(position))
            .ok_or_else(|| Error::io("read", &self.path, io::ErrorKind::NotFound.into()))
    }
}

impl Source for StateSource {
    fn kind(&self) -> &'static str {
        "device_state"
    }

    fn listing(&self) -> &Listing {
        &self.listing
    }

    fn alias_of(&self, position: usize) -> Option<usize> {
        self.aliases.get(position.checked_sub(self.tensors.len())?).copied()
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        Ok(Box::new(self.tensor(position)?.read()?))
    }

    fn strings(&self, position: usize) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.tensor(position)?.strings()?)
    }
}

/// A device state as a target: its tensors are recorded as coming from device 0. The metadata in
/// the header are known when the state is started.
pub(super) struct StateTarget {
    output: StateOutput,
    options: WriteOptions,
}

/// Destination of the state.
enum StateOutput {
    At(Storage, PathBuf),
    Stream(Box<dyn Write + Send>),
}

impl StateTarget {
    pub(super) fn create(path: &Path, options: &WriteOptions) -> Self {
        Self::at(&Storage::system(), path, options)
    }

    pub(super) fn at(storage: &Storage, path: &Path, options: &WriteOptions) -> Self {
        let output = StateOutput::At(storage.clone(), path.to_path_buf());
        Self { output, options: options.clone() }
    }

    pub(super) fn stream(sink: Box<dyn Write + Send>, options: &WriteOptions) -> Self {
        Self { output: StateOutput::Stream(sink), options: options.clone() }
    }
}

impl Target for StateTarget {
    fn keeps_aliases(&self) -> bool {
        true
    }

    fn begin(
        self: Box<Self>,
        tensors: Vec<TensorInfo>,
        metadata: &Metadata,
    ) -> Result<Box<dyn TensorSink>, Error> {
        let options = self.options.with_metadata(metadata.clone());
        let writer = match self.output {
            StateOutput::At(storage, path) => storage.create_state(&path, options)?,
            StateOutput::Stream(sink) => options.stream(sink)?,
        };
        Ok(Box::new(StateSink { writer, tensors: Announced::in_order(tensors) }))
    }
}

struct StateSink {
    writer: Writer,
    tensors: Announced,
}

fn spec(info: &TensorInfo) -> ArraySpec {
    let sharding = SingleDeviceSharding::new(DeviceId(0));
    ArraySpec::new(info.dtype, info.shape.clone(), sharding)
}

impl TensorSink for StateSink {
    fn order(&self) -> &[usize] {
        self.tensors.order()
    }

    fn write(&mut self, position: usize, data: &mut dyn Read) -> Result<(), Error> {
        let info = self.tensors.get(position)?;
        Ok(self.writer.add_reader(&info.name, &spec(info), data, info.bytes)?)
    }

    fn write_strings(&mut self, position: usize, strings: &[Vec<u8>]) -> Result<(), Error> {
        let info = self.tensors.get(position)?;
        Ok(self.writer.add_strings(&info.name, &spec(info), strings)?)
    }

    fn finish(self: Box<Self>) -> Result<Duration, Error> {
        Ok(self.writer.finish()?.sync_time)
    }
}
