//! Whole arrays onto one device.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serdes_files::ProgressMonitor;

use super::{
    Reader, Tensor,
    execute::{Load, Target},
    feed::with_feed,
    plan::{Plan, Source},
};
use crate::{
    Error, HostedDevice,
    pump::{Contents, Memory},
    shards::Block,
};

/// Summary of a finished restore.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Restored {
    /// Number of tensors.
    pub tensors: u64,
    /// Payload of all tensors in bytes.
    pub bytes: u64,
    /// Time from the first read until the last byte was on the device.
    pub time: Duration,
}

impl Tensor {
    /// Contents of memory for the whole tensor.
    ///
    /// # Errors
    /// If it holds strings, which stay on the host.
    pub fn contents(&self) -> Result<Contents, Error> {
        let spec = self.spec();
        Contents::new(spec.dtype(), spec.shape().dims().iter().copied())
            .ok_or(Error::TooLarge { what: "data", found: self.bytes() })
    }

    /// Restores the tensor to memory of `device`, comparing every chunk with its checksum. The
    /// device belongs to a StreamExecutor plug-in or a PJRT client.
    ///
    /// # Errors
    /// If the bytes are damaged, cannot be read, or the device fails; or if the tensor holds
    /// strings, which stay on the host.
    pub fn restore<D: HostedDevice>(&self, device: &D) -> Result<D::Memory, Error> {
        let reader = Reader { state: Arc::clone(&self.state) };
        let (mut memories, _) =
            reader.restore(std::slice::from_ref(self), device, &ProgressMonitor::new())?;
        memories.pop().ok_or_else(|| Error::Unsupported {
            name: self.name().to_owned(),
            reason: "it has no data".to_owned(),
        })
    }
}

impl Reader {
    /// Restores `tensors` of this state to memory of `device`, in order.
    ///
    /// Every chunk is compared with its checksum. Where neighbours in the file are restored
    /// together, what stands between them is compared as well.
    ///
    /// # Errors
    /// As [`Tensor::restore`]; or [`Error::Cancelled`].
    pub fn restore<D: HostedDevice>(
        &self,
        tensors: &[Tensor],
        device: &D,
        monitor: &ProgressMonitor,
    ) -> Result<(Vec<D::Memory>, Restored), Error> {
        let begin = Instant::now();
        let whole: Vec<_> = tensors.iter().filter(|tensor| tensor.is_whole()).collect();
        let mut whole = self.load_whole::<D::Memory>(&whole, device, monitor)?.into_iter();
        let mut memories = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            if tensor.is_whole() {
                memories.extend(whole.next());
                continue;
            }
            tensor.check_complete()?;
            let all = Block::whole(tensor.spec().shape());
            memories.extend(tensor.load_blocks::<D>(&[(all, device)], monitor)?.memories);
        }
        let bytes = memories.iter().map(Memory::bytes).sum();
        let restored = Restored { tensors: tensors.len() as u64, bytes, time: begin.elapsed() };
        Ok((memories, restored))
    }

    /// Puts tensors of one piece each into memory of `device`.
    pub(super) fn load_whole<M: Memory>(
        &self,
        tensors: &[&Tensor],
        device: &M::Device,
        monitor: &ProgressMonitor,
    ) -> Result<Vec<M>, Error> {
        let mut sources = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            let name = tensor.name();
            if tensor.spec().dtype().bits().is_none() {
                let reason = "strings have no buffer on a device".to_owned();
                return Err(Error::Unsupported { name: name.to_owned(), reason });
            }
            let pieces = tensor.pieces();
            sources.extend(pieces.map(|(number, piece)| Source { number, piece, name }));
        }
        let plan = Plan::each(&self.state, sources);
        let make = |bytes| {
            let buffer = M::allocate_host(device, bytes).map(Into::into);
            buffer.map_err(|error| M::failed("allocating host memory for", "", error))
        };
        with_feed(&self.state, &plan, make, |feed, returns| {
            let targets = (0..plan.sources.len()).map(Target::of_one).collect();
            let memories = Vec::with_capacity(plan.sources.len());
            let made = tensors.iter().map(|tensor| {
                let memory = M::allocate(device, &tensor.contents()?);
                memory.map_err(|error| M::failed("writing", tensor.name(), error))
            });
            // Nothing is collected: every memory takes all of one piece.
            let load = Load::new(&plan, targets, memories, 0, returns, monitor).making(made);
            Ok(load.run(feed)?.0)
        })
    }
}
