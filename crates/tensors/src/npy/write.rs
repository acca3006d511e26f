//! Writes arrays in NumPy's format.

use std::{io::Read, time::Duration};

use serdes::ifrt::DType;

use super::{
    super::{Announced, Error, Metadata, Output, Target, TensorInfo, TensorSink, pass_on},
    KIND,
};

/// The target of an npy file.
pub(in super::super) struct NpyTarget(Output);

impl NpyTarget {
    pub(in super::super) const fn new(out: Output) -> Self {
        Self(out)
    }
}

/// An npy file that is being written; it holds one tensor.
struct NpySink {
    out: Output,
    tensors: Announced,
}

/// Encodes the header of an npy file, byte for byte like NumPy.
pub(in super::super) fn encode_header(info: &TensorInfo) -> Result<Vec<u8>, Error> {
    let descr = match info.dtype {
        DType::Pred => "|b1",
        DType::S8 => "|i1",
        DType::S16 => "<i2",
        DType::S32 => "<i4",
        DType::S64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F8E5M2 => "<f1",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::BF16 => "<V2",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        other => {
            let instead = match other {
                DType::String => "a device state (.sds), which holds strings,",
                _ => "safetensors",
            };
            let reason = format!("NumPy has no element type {other}; write {instead} instead");
            return Err(Error::refused(&info.name, reason));
        }
    };
    let dims: Vec<String> = info.shape.dims().iter().map(i64::to_string).collect();
    let shape = match dims.as_slice() {
        [one] => format!("({one},)"),
        dims => format!("({})", dims.join(", ")),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // NumPy pads the header so that the first extent can grow.
    if let Some(first) = dims.first() {
        text.push_str(&" ".repeat(21_usize.saturating_sub(first.len())));
    }
    let (version, before) = if text.len() + 75 < 1 << 16 { (1, 10) } else { (2, 12) };
    let length = (before + text.len() + 1).next_multiple_of(64) - before;
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((length as u16).to_le_bytes()),
        _ => bytes.extend((length as u32).to_le_bytes()),
    }
    bytes.extend(text.as_bytes());
    bytes.resize(before + length - 1, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

impl Target for NpyTarget {
    fn keeps_metadata(&self) -> bool {
        false
    }

    fn check(&self, info: &TensorInfo) -> Result<(), Error> {
        encode_header(info).map(drop)
    }

    fn begin(
        self: Box<Self>,
        tensors: Vec<TensorInfo>,
        _: &Metadata,
    ) -> Result<Box<dyn TensorSink>, Error> {
        let Self(mut out) = *self;
        let [info] = &tensors[..] else {
            let reason = format!("an npy file holds one tensor, not {}; use .npz", tensors.len());
            return Err(Error::UnknownForm { path: out.path().to_owned(), reason });
        };
        out.put(&encode_header(info)?)?;
        Ok(Box::new(NpySink { out, tensors: Announced::in_order(tensors) }))
    }
}

impl TensorSink for NpySink {
    fn order(&self) -> &[usize] {
        self.tensors.order()
    }

    fn write(&mut self, position: usize, data: &mut dyn Read) -> Result<(), Error> {
        let Self { tensors, out } = self;
        let info = tensors.get(position)?;
        pass_on(&info.name, data, info.bytes, |bytes| out.put(bytes))
    }

    fn write_strings(&mut self, position: usize, _: &[Vec<u8>]) -> Result<(), Error> {
        Err(self.tensors.refuse_strings(position, format!("{KIND} files hold no strings")))
    }

    fn finish(self: Box<Self>) -> Result<Duration, Error> {
        self.out.finish()
    }
}
