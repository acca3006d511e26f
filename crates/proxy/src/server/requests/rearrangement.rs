//! Creates arrays from other arrays: reuses memory where possible, and copies the rest.

use std::sync::Arc;

use prost::Message as _;
use serdes::{
    codec::Status,
    ifrt::{ArrayCopySemantics as Semantics, ArraySpec, IndexDomain, Shape},
    proto::xla::ifrt::{
        ArraySpecProto, proto::StringArrayContents, proxy::ifrt_response::Response,
    },
};
use serdes_device_state::Contents;

use super::request::{Job, Reply, Request, Work};
use crate::{
    server::{
        arrays::{
            Array, Buffer, Composition, Item, Memory, MemorySpace, Shard, contents_of, cover,
            pick_strings,
        },
        context::Context,
        promise::Promise,
        sessions::{Direction, Session},
    },
    status::status,
};

/// A request that creates arrays from other arrays.
pub(super) trait Rearrange {
    /// Returns the handles of the input arrays.
    fn inputs(&self) -> &[u64];

    /// Returns the handles that the client has chosen for the outputs.
    fn outputs(&self) -> &[u64];

    /// Returns the number of the copy semantics: inputs are copied, reused or donated.
    fn copy_semantics(&self) -> i32;

    /// Returns the answer with the handles of the outputs.
    fn response(handles: Vec<u64>) -> Response;

    /// Plans the outputs.
    ///
    /// # Errors
    /// If the outputs cannot be created from these inputs.
    fn rearrange(&self, inputs: &Inputs<'_>) -> Result<Rearrangement, Status>;
}

/// The input arrays: their type, shape and place.
pub(super) struct Inputs<'a> {
    pub(super) context: &'a Context,
    pub(super) session: &'a Session,
    pub(super) arrays: &'a [Arc<Array>],
    pub(super) semantics: Semantics,
}

/// Implements the accessors of a request's handles and its answer.
macro_rules! handles {
    ($inputs:ident[], $($rest:tt)*) => {
        fn inputs(&self) -> &[u64] {
            &self.$inputs
        }

        handles!(out $($rest)*);
    };
    ($input:ident, $($rest:tt)*) => {
        fn inputs(&self) -> &[u64] {
            std::slice::from_ref(&self.$input)
        }

        handles!(out $($rest)*);
    };
    (out $outputs:ident[] => $response:ident) => {
        fn outputs(&self) -> &[u64] {
            &self.$outputs
        }

        fn copy_semantics(&self) -> i32 {
            self.copy_semantics
        }

        fn response(array_handles: Vec<u64>) -> Response {
            Response::$response($response { array_handles })
        }
    };
    (out $output:ident => $response:ident) => {
        fn outputs(&self) -> &[u64] {
            std::slice::from_ref(&self.$output)
        }

        fn copy_semantics(&self) -> i32 {
            self.copy_semantics
        }

        fn response(handles: Vec<u64>) -> Response {
            let array_handle = handles.first().copied().unwrap_or_default();
            Response::$response($response { array_handle })
        }
    };
}
pub(super) use handles;

impl<R: Rearrange> Request for R {
    type Work = Rearranging;

    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Rearranging>, Status> {
        let number = self.copy_semantics();
        let semantics = Semantics::from_number(number).ok_or_else(|| {
            status!(
                InvalidArgument,
                "copy semantics {number}; expected 1 (always copy), 2 (reuse input) or 3 (donate input)"
            )
        })?;
        let arrays = session.table().arrays(self.inputs())?;
        let made = self.rearrange(&Inputs { context, session, arrays: &arrays, semantics })?;
        let handles = session.register(self.outputs(), made.arrays)?;
        if semantics == Semantics::DonateInput {
            let mut table = session.table();
            for handle in self.inputs() {
                table.delete(*handle)?;
            }
        }
        let response = Self::response;
        Ok(Job::Work(Rearranging { inputs: arrays, copies: made.copies, handles, response }))
    }

    fn results(&self) -> &[u64] {
        self.outputs()
    }
}

/// Memory to be created from other memory.
pub(super) struct ShardCopy {
    pub(super) promise: Promise<Arc<Memory>>,
    pub(super) space: MemorySpace,
    pub(super) source: ShardSource,
}

/// Source of a shard's bytes.
pub(super) enum ShardSource {
    /// The whole of another shard.
    Shard(Buffer),
    /// Parts of an array that together contain the wanted part.
    Parts { parts: Vec<(Buffer, IndexDomain)>, wanted: IndexDomain, shape: Shape, item: Item },
}

/// Arrays to be created, and the copies that they need.
#[derive(Default)]
pub(super) struct Rearrangement {
    pub(super) arrays: Vec<Array>,
    pub(super) copies: Vec<ShardCopy>,
}

impl Rearrangement {
    /// Returns a shard with the bytes of another one: the same memory if that is permitted.
    pub(super) fn shard(
        &mut self,
        source: &Shard,
        space: MemorySpace,
        shape: Shape,
        semantics: Semantics,
    ) -> Shard {
        if source.space == space && semantics != Semantics::AlwaysCopy {
            return Shard { space, shape, buffer: source.buffer.clone() };
        }
        self.copy(ShardSource::Shard(source.buffer.clone()), space, shape)
    }

    /// Returns a shard with separate memory.
    pub(super) fn copy(&mut self, source: ShardSource, space: MemorySpace, shape: Shape) -> Shard {
        let (promise, buffer) = Buffer::coming();
        self.copies.push(ShardCopy { promise, space, source });
        Shard { space, shape, buffer }
    }
}

/// Returns the specs of the outputs, one for each input.
///
/// # Errors
/// INVALID_ARGUMENT for a wrong number; the errors of decoding specs.
pub(super) fn specs(
    session: &Session,
    specs: &[ArraySpecProto],
    expected: usize,
) -> Result<Vec<ArraySpec>, Status> {
    if specs.len() != expected {
        return Err(status!(
            InvalidArgument,
            "found {} array specs; expected {expected}, one for each array",
            specs.len()
        ));
    }
    specs.iter().map(|spec| session.decode(Some(spec))).collect()
}

/// Waits for the inputs, and makes the copies.
pub(super) struct Rearranging {
    inputs: Vec<Arc<Array>>,
    copies: Vec<ShardCopy>,
    handles: Vec<u64>,
    response: fn(Vec<u64>) -> Response,
}

impl Work for Rearranging {
    async fn run(self, session: Arc<Session>) -> Reply {
        let mut outcome = Ok(());
        for array in &self.inputs {
            outcome = outcome.and(array.wait().await);
        }
        drop(self.inputs);
        for ShardCopy { promise, space, source } in self.copies {
            let done = match source {
                ShardSource::Shard(source) => match source.wait().await {
                    Ok(source) => session.copy(space, source).await,
                    Err(status) => Err(status),
                },
                ShardSource::Parts { parts, wanted, shape, item } => {
                    put_together(&session, space, parts, wanted, shape, item).await
                }
            };
            let done = done.map(Arc::new);
            outcome = outcome.and(done.as_ref().map(drop).map_err(Clone::clone));
            promise.keep(done);
        }
        outcome.map(|()| (self.response)(self.handles))
    }
}

async fn put_together(
    session: &Arc<Session>,
    space: MemorySpace,
    parts: Vec<(Buffer, IndexDomain)>,
    wanted: IndexDomain,
    shape: Shape,
    item: Item,
) -> Result<Memory, Status> {
    let mut sources = Vec::with_capacity(parts.len());
    for (buffer, domain) in parts {
        sources.push((buffer.wait().await?, domain));
    }
    let beside = sources.iter().map(|(memory, _)| memory.size()).sum();
    let beside = session.hold(beside, Direction::Result).await?;
    match item {
        Item::Bytes(item) => {
            let part = Composition::cut(&sources, &wanted, item)?;
            let contents = match sources.first() {
                Some((memory, _)) => contents_of(memory.contents().dtype(), wanted.shape())?,
                // A placeholder without memory.
                None => Contents::of_bytes(part.size()),
            };
            session.pump(space, contents, part, Some(Arc::new(beside))).await
        }
        Item::Strings => {
            let own = Arc::clone(session);
            let strings = move || {
                let _beside = beside;
                let all = cover(&sources, &shape)?;
                let strings = pick_strings(&all, &shape, &wanted)?;
                own.write(space, &StringArrayContents { strings }.encode_to_vec())
            };
            session.blocking(strings).await
        }
    }
}
