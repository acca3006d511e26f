//! Writes safetensors files.

use std::{io::Read, path::Path, time::Duration};

use super::{
    super::{
        Announced, Error, Metadata, Output, Target, TensorInfo, TensorSink, element_bytes,
        elements::Pack, pass_on,
    },
    KIND, LONGEST_HEADER,
    header::{Description, encode},
    to_name,
};

/// The target of a safetensors file.
pub(in super::super) struct SafetensorsTarget(Output);

impl SafetensorsTarget {
    pub(in super::super) const fn new(out: Output) -> Self {
        Self(out)
    }
}

/// A safetensors file that is being written.
struct SafetensorsSink {
    out: Output,
    tensors: Announced,
}

/// A tensor that the format can hold.
struct Accepted<'a> {
    /// Position in the announced list.
    position: usize,
    info: &'a TensorInfo,
    /// The format's name of the element type.
    dtype: &'static str,
    /// Rank of the element type in the order of the reference implementation.
    rank: usize,
}

/// Keeps the given order if it aligns every tensor to its elements; otherwise uses the order of the
/// reference implementation.
fn order(tensors: &mut [Accepted<'_>]) {
    let mut offset = 0_u64;
    let aligned = tensors.iter().all(|Accepted { info, .. }| {
        let element = element_bytes(info.dtype).unwrap_or(1);
        // Machines load the parts of a complex number.
        let element = if info.dtype == serdes::ifrt::DType::C64 { 4 } else { element };
        let here = offset;
        offset = offset.wrapping_add(file_bytes(info));
        info.bytes == 0 || here.is_multiple_of(element)
    });
    if !aligned {
        tensors.sort_by(|a, b| b.rank.cmp(&a.rank).then_with(|| a.info.name.cmp(&b.info.name)));
    }
}

fn file_bytes(info: &TensorInfo) -> u64 {
    match info.dtype.bits() {
        Some(bits @ 1..8) => (info.elements() * u64::from(bits)).div_ceil(8),
        _ => info.bytes,
    }
}

/// Layout of the file: the header, and the order of tensors.
pub(in super::super) struct SafetensorsPlan {
    /// The header and its length.
    pub(in super::super) header: Vec<u8>,
    /// Order of the data: positions in the list.
    pub(in super::super) order: Vec<usize>,
}

impl SafetensorsPlan {
    /// Creates a plan for a file; the path is for messages.
    ///
    /// # Errors
    /// [`Error::Refused`] if the format cannot hold one of the tensors.
    pub(in super::super) fn new(
        tensors: &[TensorInfo],
        metadata: &Metadata,
        path: &Path,
    ) -> Result<Self, Error> {
        let mut accepted = Vec::with_capacity(tensors.len());
        for (position, info) in tensors.iter().enumerate() {
            let (dtype, rank) = accept(info)?;
            accepted.push(Accepted { position, info, dtype, rank });
        }
        order(&mut accepted);
        let described: Vec<_> = accepted
            .iter()
            .map(|&Accepted { info, dtype, .. }| Description {
                name: &info.name,
                dtype,
                shape: info.shape.dims(),
                bytes: file_bytes(info),
            })
            .collect();
        let order = accepted.iter().map(|tensor| tensor.position).collect();
        let header =
            encode(metadata, &described).filter(|header| header.len() as u64 <= LONGEST_HEADER + 8);
        let Some(header) = header else {
            let reason = format!("the header would be longer than {LONGEST_HEADER} bytes");
            return Err(Error::UnknownForm { path: path.to_owned(), reason });
        };
        Ok(Self { header, order })
    }
}

/// Returns the format's name for the type of a tensor's elements, and its rank.
pub(in super::super) fn accept(info: &TensorInfo) -> Result<(&'static str, usize), Error> {
    let Some((dtype, rank)) = to_name(info.dtype) else {
        let instead = match info.dtype {
            serdes::ifrt::DType::String => "; write a device state (.sds), which holds strings",
            _ => "",
        };
        let reason = format!("{KIND} has no element type {}{instead}", info.dtype);
        return Err(Error::refused(&info.name, reason));
    };
    let bits = u64::from(info.dtype.bits().unwrap_or(8));
    if bits < 8 && !(info.elements() * bits).is_multiple_of(8) {
        let reason = format!(
            "{} elements of {bits} bits do not fill whole bytes, as {KIND} wants",
            info.elements()
        );
        return Err(Error::refused(&info.name, reason));
    }
    if info.name == "__metadata__" {
        return Err(Error::refused(&info.name, "safetensors keeps this name for itself"));
    }
    Ok((dtype, rank))
}

/// Writes the bytes of a tensor.
pub(in super::super) fn put_tensor(
    info: &TensorInfo,
    data: &mut dyn Read,
    out: &mut Output,
) -> Result<(), Error> {
    let Some(bits @ 1..8) = info.dtype.bits() else {
        return pass_on(&info.name, data, info.bytes, |bytes| out.put(bytes));
    };
    let (mut pack, mut packed) = (Pack::default(), Vec::new());
    pass_on(&info.name, data, info.bytes, |elements| {
        packed.clear();
        pack.push(elements, bits, &mut packed);
        out.put(&packed)
    })
}

impl Target for SafetensorsTarget {
    fn check(&self, info: &TensorInfo) -> Result<(), Error> {
        accept(info).map(drop)
    }

    fn begin(
        self: Box<Self>,
        tensors: Vec<TensorInfo>,
        metadata: &Metadata,
    ) -> Result<Box<dyn TensorSink>, Error> {
        let Self(mut out) = *self;
        let plan = SafetensorsPlan::new(&tensors, metadata, out.path())?;
        out.put(&plan.header)?;
        Ok(Box::new(SafetensorsSink { out, tensors: Announced::ordered(tensors, plan.order) }))
    }
}

impl TensorSink for SafetensorsSink {
    fn order(&self) -> &[usize] {
        self.tensors.order()
    }

    fn write(&mut self, position: usize, data: &mut dyn Read) -> Result<(), Error> {
        put_tensor(self.tensors.get(position)?, data, &mut self.out)
    }

    fn write_strings(&mut self, position: usize, _: &[Vec<u8>]) -> Result<(), Error> {
        Err(self.tensors.refuse_strings(position, "safetensors hold no strings".to_owned()))
    }

    fn finish(self: Box<Self>) -> Result<Duration, Error> {
        self.out.finish()
    }
}
