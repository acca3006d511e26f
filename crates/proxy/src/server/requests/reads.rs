//! Reads arrays into host buffers.

use std::sync::Arc;

use serdes::{
    codec::Status,
    ifrt::IndexDomain,
    proto::xla::ifrt::proxy::{
        CopyToHostBufferRequest, CopyToHostBufferResponse, ifrt_response::Response,
    },
};

use super::request::{Job, Reply, Request, Work};
use crate::server::{
    arrays::{Array, Composition, Item, Region, assemble, item_size},
    context::Context,
    sessions::{Direction, Filling, HostBuffer, HostBufferBuilder, Session},
};

/// Maximum size in bytes of a buffer that is read at once: another scheduling turn would cost more.
const SMALL: u64 = 64 << 10;

/// Reads the bytes of an array into a host buffer, which exists before the answer.
impl Request for CopyToHostBufferRequest {
    type Work = Reading;

    fn plan(&self, _: &Context, session: &Session) -> Result<Job<Reading>, Status> {
        let array = session.table().array(self.array_handle)?;
        let item = item_size(array.dtype())?;
        let region = match item {
            Item::Bytes(bytes) => Region::new(
                array.shape().dims(),
                bytes,
                self.byte_strides.as_ref().map(|strides| &strides.strides[..]),
            )?,
            Item::Strings => Region::dense(array.shape().dims(), 1)?,
        };
        let domains = array.domains()?;
        let filling = session.host_buffers.fill(self.host_buffer_handle)?;
        Ok(Job::Work(Reading { array, item, region, domains, filling }))
    }
}

/// An array to be read to the host, in the layout of the region.
pub(super) struct Reading {
    array: Arc<Array>,
    item: Item,
    region: Region,
    domains: Vec<IndexDomain>,
    filling: Filling,
}

impl Work for Reading {
    async fn run(self, session: Arc<Session>) -> Reply {
        let Self { array, item, region, domains, filling } = self;
        match bring(&session, &array, item, region, domains).await {
            Ok(buffer) => filling.finish(buffer),
            Err(status) => {
                filling.fail(status.clone());
                return Err(status);
            }
        }
        Ok(Response::CopyToHostBufferResponse(CopyToHostBufferResponse {}))
    }
}

async fn bring(
    session: &Session,
    array: &Array,
    item: Item,
    region: Region,
    domains: Vec<IndexDomain>,
) -> Result<HostBuffer, Status> {
    let mut parts = Vec::new();
    for (shard, domain) in array.shards.iter().zip(domains) {
        let whole = domain.shape() == array.shape();
        parts.push((shard.buffer.wait().await?, domain));
        if whole {
            parts = parts.split_off(parts.len() - 1);
            break;
        }
    }
    if let [(memory, domain)] = &parts[..]
        && domain.shape() == array.shape()
        && (item == Item::Strings || region.is_dense())
    {
        if memory.size() <= SMALL {
            let (memory, held) =
                (Arc::clone(memory), session.hold(memory.size(), Direction::Result).await?);
            let context = Arc::clone(&session.context);
            let read = move || {
                let bytes = context.transfers.note(|| memory.read())?;
                Ok(HostBuffer::of_bytes(bytes.into(), held))
            };
            return session.by_latency(&session.context.transfers, read).await;
        }
        // The buffer is read piece by piece when it is looked up.
        let held = session.hold(0, Direction::Result).await?;
        return Ok(HostBuffer::of_memory(Arc::clone(memory), held));
    }
    let size = match item {
        Item::Bytes(_) => region.bytes(),
        Item::Strings => parts.iter().map(|(memory, _)| memory.size()).sum(),
    };
    let held = session.hold(size, Direction::Result).await?;
    let shape = array.shape().clone();
    let (bytes, held) = match item {
        Item::Bytes(item) => {
            session.compose(Composition::whole(&parts, item, region)?, held).await?
        }
        Item::Strings => {
            let whole = move || Ok((assemble(&parts, Item::Strings, &region, &shape)?, held));
            session.blocking(whole).await?
        }
    };
    let mut buffer = HostBufferBuilder::new(bytes.len() as u64, held);
    buffer.push(bytes.into())?;
    buffer.finish()
}
