//! Host buffers out of arrays.

use std::sync::Arc;

use prost::Message as _;

use super::{
    array::Array,
    element::{Item, item_size, zeroed},
    host_buffer::{HostBuffer, HostBufferBuilder},
    memory::Memory,
    region::Region,
    session::{Answer, Direction, Session},
    strings::{positions, read_strings},
};
use crate::{
    codec::Status,
    ifrt::{IndexDomain, Shape},
    proto::xla::ifrt::{
        proto::StringArrayContents,
        proxy::{CopyToHostBufferRequest, CopyToHostBufferResponse, ifrt_response::Response},
    },
    proxy::status::status,
};

impl Session {
    /// The bytes of an array as a host buffer, which is there before the answer.
    pub(super) fn copy_to_host_buffer(
        self: &Arc<Self>,
        request: CopyToHostBufferRequest,
    ) -> Answer {
        let prepared = (|| {
            let array = self.table().array(request.array_handle)?;
            let item = item_size(array.dtype())?;
            let region = match item {
                Item::Bytes(bytes) => Region::new(
                    array.shape().dims(),
                    bytes,
                    request.byte_strides.as_ref().map(|strides| &strides.strides[..]),
                )?,
                Item::Strings => Region::dense(array.shape().dims(), 1)?,
            };
            let domains = array.domains()?;
            let filling = self.host_buffers.fill(request.host_buffer_handle)?;
            Ok((array, item, region, domains, filling))
        })();
        match prepared {
            Err(status) => Answer::Now(Err(status)),
            Ok((array, item, region, domains, filling)) => {
                let session = Arc::clone(self);
                Answer::later(async move {
                    match session.bring(&array, item, region, domains).await {
                        Ok(buffer) => filling.finish(buffer),
                        Err(status) => {
                            filling.fail(status.clone());
                            return Err(status);
                        }
                    }
                    Ok(Response::CopyToHostBufferResponse(CopyToHostBufferResponse {}))
                })
            }
        }
    }
    /// Brings the bytes of an array to the host, in the order that the region says.
    async fn bring(
        self: &Arc<Self>,
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
            // Read piece by piece when it is looked up.
            let held = self.hold(0, Direction::Result).await?;
            return Ok(HostBuffer::of_memory(Arc::clone(memory), held));
        }
        let size = match item {
            Item::Bytes(_) => region.bytes(),
            Item::Strings => parts.iter().map(|(memory, _)| memory.size()).sum(),
        };
        let held = self.hold(size, Direction::Result).await?;
        let shape = array.shape().clone();
        let bytes = self.blocking(move || assemble(&parts, item, &region, &shape)).await?;
        let mut buffer = HostBufferBuilder::new(bytes.len() as u64, held);
        buffer.push(bytes.into())?;
        buffer.finish()
    }
}

/// Puts the parts of an array together. Waits for devices.
///
/// # Errors
/// INTERNAL if a part is not as large as it should be; what the plug-in reports.
pub(super) fn assemble(
    parts: &[(Arc<Memory>, IndexDomain)],
    item: Item,
    region: &Region,
    shape: &Shape,
) -> Result<Vec<u8>, Status> {
    let only = match parts {
        [(memory, domain)] if domain.shape() == shape => Some(memory),
        _ => None,
    };
    match (item, only) {
        (Item::Bytes(_), Some(memory)) if region.is_dense() => memory.read(),
        (Item::Strings, Some(memory)) => memory.read(),
        (Item::Bytes(item), _) => {
            let mut bytes = zeroed(region.bytes())?;
            for (memory, domain) in parts {
                let part = Region::dense(domain.shape().dims(), item)?;
                let zero = vec![0; part.shape().len()];
                let origin = domain.origin().elements();
                part.copy_block(
                    &memory.read()?,
                    &zero,
                    region,
                    &mut bytes,
                    origin,
                    domain.shape().dims(),
                )?;
            }
            Ok(bytes)
        }
        (Item::Strings, None) => {
            let count = usize::try_from(region.bytes()).unwrap_or(usize::MAX);
            let mut places = Vec::new();
            for (memory, domain) in parts {
                let strings = read_strings(memory.read()?.into(), domain.shape())?;
                places.extend(positions(shape, domain)?.into_iter().zip(strings));
            }
            places.sort_by_key(|(position, _)| *position);
            places.dedup_by_key(|(position, _)| *position);
            if places.len() != count {
                return Err(status!(
                    Internal,
                    "the shards hold {} strings of {count}",
                    places.len()
                ));
            }
            let strings = places.into_iter().map(|(_, string)| string).collect();
            Ok(StringArrayContents { strings }.encode_to_vec())
        }
    }
}
