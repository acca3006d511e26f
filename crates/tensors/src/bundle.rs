//! TensorFlow V2 checkpoints as sources and targets of tensors.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use serdes::ifrt::{DType, Shape};
use serdes_checkpoints::tensor_bundle::{
    Bundle, BundleOptions, BundleWriter, TensorEntry, default_consumer,
};
use serdes_files::Durability;
use serdes_graph_format::data_type::DataType;

use super::{
    Announced, Error, Listing, Metadata, Refused, Source, Target, TensorInfo, TensorSink, pass_on,
};
use crate::{ifrt_types, storage::Storage};

const KIND: &str = "tensor_bundle";

/// Key of the graph of Python objects to which the tensors belong; it is not the value of a
/// variable.
const OBJECT_GRAPH: &[u8] = b"_CHECKPOINTABLE_OBJECT_GRAPH";

/// A checkpoint as a source.
pub(super) struct BundleSource {
    bundle: Bundle,
    prefix: PathBuf,
    entries: Vec<TensorEntry>,
    listing: Listing,
}

impl BundleSource {
    /// Opens the checkpoint with a prefix.
    pub(super) fn open(storage: &Storage, prefix: &Path) -> Result<Self, Error> {
        let bundle = Bundle::open_for_data(storage.clone(), prefix)?;
        bundle.check_versions(&default_consumer())?;
        let listing = bundle.tensors();
        // TensorFlow would silently restore a damaged checkpoint in part; here it is refused.
        if let Some(defect) = listing.defects.into_iter().next() {
            return Err(defect.into());
        }
        let mut source = Self {
            bundle,
            prefix: prefix.to_path_buf(),
            entries: Vec::new(),
            listing: Listing::default(),
        };
        for entry in listing.tensors {
            match info(&entry) {
                Ok(info) => {
                    source.listing.tensors.push(info);
                    source.entries.push(entry);
                }
                Err(reason) => {
                    source
                        .listing
                        .refused
                        .push(Refused { name: entry.name().into_owned(), reason });
                }
            }
        }
        Ok(source)
    }

    fn entry(&self, position: usize) -> Result<&TensorEntry, Error> {
        let none = || Error::io("read", &self.prefix, io::ErrorKind::NotFound.into());
        self.entries.get(position).ok_or_else(none)
    }
}

fn info(entry: &TensorEntry) -> Result<TensorInfo, String> {
    let Ok(name) = std::str::from_utf8(entry.key()) else {
        return Err("its name is not UTF-8".to_owned());
    };
    let Some(dtype) = entry.data_type().and_then(ifrt_types::to_ifrt) else {
        let number = entry.data_type_number();
        let name = entry.data_type().map_or_else(|| number.to_string(), |t| t.name().to_owned());
        return Err(format!("the element type {name} has no counterpart in IFRT"));
    };
    let shape = Shape::new(entry.shape()).map_err(|error| error.to_string())?;
    TensorInfo::new(name, dtype, shape).map_err(|error| error.to_string())
}

impl Source for BundleSource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn listing(&self) -> &Listing {
        &self.listing
    }

    fn is_bookkeeping(&self, position: usize) -> bool {
        self.entries.get(position).is_some_and(|entry| entry.key() == OBJECT_GRAPH)
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        Ok(Box::new(self.bundle.reader(self.entry(position)?)?))
    }

    fn strings(&self, position: usize) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.bundle.strings(self.entry(position)?)?)
    }
}

/// A checkpoint as a target.
pub(super) struct BundleTarget {
    prefix: PathBuf,
    durability: Durability,
}

impl BundleTarget {
    pub(super) fn create(prefix: &Path, durability: Durability) -> Self {
        Self { prefix: prefix.to_path_buf(), durability }
    }
}

/// Returns TensorFlow's type of a tensor's elements.
fn data_type(info: &TensorInfo) -> Result<DataType, Error> {
    ifrt_types::from_ifrt(info.dtype).ok_or_else(|| {
        Error::refused(&info.name, format!("TensorFlow has no element type {}", info.dtype))
    })
}

impl Target for BundleTarget {
    fn keeps_metadata(&self) -> bool {
        false
    }

    fn check(&self, info: &TensorInfo) -> Result<(), Error> {
        data_type(info).map(drop)
    }

    fn begin(
        self: Box<Self>,
        tensors: Vec<TensorInfo>,
        _: &Metadata,
    ) -> Result<Box<dyn TensorSink>, Error> {
        tensors.iter().try_for_each(|info| self.check(info))?;
        let options = BundleOptions::default().with_durability(self.durability);
        let writer = BundleWriter::create(&self.prefix, options)?;
        Ok(Box::new(BundleSink { writer, tensors: Announced::in_order(tensors) }))
    }
}

struct BundleSink {
    writer: BundleWriter,
    tensors: Announced,
}

impl TensorSink for BundleSink {
    fn order(&self) -> &[usize] {
        self.tensors.order()
    }

    fn write(&mut self, position: usize, data: &mut dyn Read) -> Result<(), Error> {
        let info = self.tensors.get(position)?;
        let mut tensor = self.writer.add(&info.name, data_type(info)?, info.shape.dims())?;
        pass_on(&info.name, data, info.bytes, |bytes| Ok(tensor.write_chunk(bytes)?))?;
        Ok(tensor.finish()?)
    }

    fn write_strings(&mut self, position: usize, strings: &[Vec<u8>]) -> Result<(), Error> {
        let info = self.tensors.get(position)?;
        if info.dtype != DType::String {
            let reason = format!("it holds {}, not strings", info.dtype);
            return Err(Error::refused(&info.name, reason));
        }
        Ok(self.writer.add_strings(&info.name, info.shape.dims(), strings)?)
    }

    fn finish(self: Box<Self>) -> Result<Duration, Error> {
        Ok(self.writer.finish()?.sync_time)
    }
}

#[cfg(test)]
mod tests {
    use serdes::version::tensorflow;
    use serdes_checkpoints::{checkpoint_v1, tensor_bundle};

    #[test]
    fn default_consumers_are_the_newest_release_of_the_registry() {
        let newest = tensorflow::newest_release().unwrap();
        let of = |line| tensorflow::consumer(newest, line).unwrap();
        assert_eq!(tensor_bundle::default_consumer(), of("tensor_bundle"));
        assert_eq!(checkpoint_v1::default_consumer(), of("checkpoint"));
    }
}
