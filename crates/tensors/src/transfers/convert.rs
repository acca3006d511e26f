//! Converts tensors of files to another file, without a device.

use std::{
    io::{self, Read},
    time::Instant,
};

use serdes::ifrt::DType;
use serdes_files::{Cancelled, Phase, ProgressMonitor};

use super::{
    Moved,
    plan::{Choice, Plan, Planned, announce, plan},
};
use crate::{Error, Refused, Source, Target, aliases};

/// Options for converting tensors.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    only: Vec<String>,
    skip_unsupported: bool,
}

impl ConvertOptions {
    /// Creates options for all tensors; tensors that cannot be moved are errors.
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects tensors by patterns of their names (`*`, `?`, `[a-z]`).
    #[must_use]
    pub fn with_only(mut self, patterns: Vec<String>) -> Self {
        self.only = patterns;
        self
    }

    /// Sets if tensors and values that cannot be moved are left out.
    #[must_use]
    pub fn with_skip_unsupported(mut self, skip: bool) -> Self {
        self.skip_unsupported = skip;
        self
    }
}

/// Summary of a conversion.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConvertReport {
    /// Amounts read and written, and times.
    pub moved: Moved,
    /// Tensors and values that were left out.
    pub skipped: Vec<Refused>,
    /// Properties of moved tensors that the target cannot hold: attributes, keys that are not text,
    /// values.
    pub left_out: Vec<Refused>,
}

/// Streams the tensors of `sources` into `target`, in steps of a megabyte.
///
/// If the target's metadata hold aliases, a tensor with several names is written once; otherwise
/// under each name. The metadata come from the first source that has any.
///
/// # Errors
/// [`Error::CannotSave`] for tensors that cannot be moved, unless they are left out; two tensors of
/// one name; a tensor that the target cannot hold; errors of the sources or the target. No file is
/// left behind then, and an old one stays.
pub fn convert(
    sources: &[Box<dyn Source>],
    target: Box<dyn Target>,
    options: &ConvertOptions,
    monitor: &ProgressMonitor,
) -> Result<ConvertReport, Error> {
    let choice = Choice {
        only: &options.only,
        skip_unsupported: options.skip_unsupported,
        keep_aliases: target.keeps_aliases(),
    };
    let Plan { tensors, metadata, mut skipped, mut left_out } = plan(sources, choice)?;
    let tensors = held(tensors, &*target, options.skip_unsupported, &mut skipped)?;
    if !target.keeps_metadata() {
        let reason = "is a value, for which the target has no place; a state (.sds) and safetensors have one";
        let names = aliases::names_of(&metadata).into_iter();
        left_out.extend(names.map(|name| Refused::new(name, reason)));
    }
    let bytes = tensors.iter().map(|tensor| tensor.info.bytes).sum();
    let infos = tensors.iter().map(|tensor| tensor.info.clone()).collect();
    let mut sink = target.begin(infos, &metadata)?;

    let begin = Instant::now();
    monitor.begin(Phase::Convert, bytes);
    let mut moved = Moved { bytes, ..Moved::default() };
    let order = sink.order().to_vec();
    announce(sources, order.iter().filter_map(|position| tensors.get(*position)));
    for position in order {
        let Some(tensor) = tensors.get(position) else { continue };
        moved.tensors += 1;
        if tensor.info.dtype == DType::String {
            sink.write_strings(position, &tensor.source.strings(tensor.position)?)?;
            monitor.advance(tensor.info.bytes)?;
            continue;
        }
        let data = tensor.source.read(tensor.position)?;
        let mut data = Watched { data, monitor };
        sink.write(position, &mut data).map_err(|error| match monitor.check() {
            Ok(()) => error,
            Err(cancelled) => Error::from(cancelled),
        })?;
    }
    monitor.check()?;
    moved.time = begin.elapsed();
    moved.sync_time = sink.finish()?;
    Ok(ConvertReport { moved, skipped, left_out })
}

/// Returns the tensors that a target can hold. Others go to `skipped`, if they may be left out.
fn held<'a>(
    tensors: Vec<Planned<'a>>,
    target: &dyn Target,
    skip_unsupported: bool,
    skipped: &mut Vec<Refused>,
) -> Result<Vec<Planned<'a>>, Error> {
    let mut held = Vec::with_capacity(tensors.len());
    for planned in tensors {
        let Err(error) = target.check(planned.info) else {
            held.push(planned);
            continue;
        };
        let is_left_out = skip_unsupported || planned.source.is_bookkeeping(planned.position);
        match error {
            Error::Refused { name, reason } if is_left_out => {
                skipped.push(Refused::new(name, reason))
            }
            error => return Err(error),
        }
    }
    Ok(held)
}

/// Reader that reports its bytes to a monitor.
struct Watched<'a, R> {
    data: R,
    monitor: &'a ProgressMonitor,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.data.read(out)?;
        self.monitor
            .advance(count as u64)
            .map_err(|cancelled: Cancelled| io::Error::other(cancelled))?;
        Ok(count)
    }
}
