//! A loaded program: its parameters and outputs.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use serdes::{
    codec::Status,
    ifrt::{ArraySpec, Shape},
    proto::xla::ifrt::proxy::{CompileResponse, LoadedExecutableMetadataResponse},
};
use serdes_device_state::Contents;
use serdes_pjrt::{Client, CompileOptions, LoadedExecutable, ProgramFormat};

use super::{host_callbacks::HostCallbacks, parameter::Parameter};
use crate::{
    server::{
        arrays::{Kind, MemorySpace},
        budget::Permit,
        latency::LatencyEstimate,
        metrics::Counted,
    },
    status::{of_pjrt, status},
};

/// A program on the devices of a PJRT client, with its description.
#[derive(Debug)]
pub(crate) struct Program {
    pub(super) loaded: Mutex<Loaded>,
    pub(super) recipe: Recipe,
    /// True if its run is unbounded.
    pub(super) may_be_endless: bool,
    /// Positions of the program's devices, in the order of its arguments and shards.
    pub(super) devices: Vec<usize>,
    /// Parameters in the order of the arguments.
    pub(super) parameters: Vec<Parameter>,
    /// Bytes of memory that the program needs while it runs.
    pub(super) inside: u64,
    /// Indices of parameters whose memory the program takes.
    pub(super) donated: BTreeSet<usize>,
    pub(super) outputs: Vec<Output>,
    /// The client functions that the program calls.
    pub(super) callbacks: Arc<HostCallbacks>,
    /// Answer to the compile request, without handles.
    pub(super) answer: CompileResponse,
    /// Answer to the request for metadata.
    pub(super) metadata: LoadedExecutableMetadataResponse,
    pub(super) deleted: AtomicBool,
    /// Latency estimate of a launch: plug-ins may only enqueue the program, or run it to its end.
    pub(crate) latency: Arc<LatencyEstimate>,
    /// Bytes that the program takes while it is loaded.
    pub(super) kept: u64,
    /// Permit for these bytes.
    pub(super) room: Option<Permit>,
    pub(super) _held: Permit,
    pub(super) _counted: Counted,
}

/// A program, loaded by the client of a generation.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    pub(super) generation: usize,
    pub(super) executable: Arc<LoadedExecutable>,
}

/// Input of the compiler, for compiling the program again with another client of the plug-in.
#[derive(Debug)]
pub(super) struct Recipe {
    /// `None` for a program that is too large to keep.
    artifact: Option<Bytes>,
    options: Vec<u8>,
}

impl Recipe {
    /// Maximum size of a program that is kept, in bytes.
    const LONGEST: usize = 16 << 20;

    pub(super) fn new(artifact: Bytes, options: Vec<u8>) -> Self {
        Self { artifact: Some(artifact).filter(|bytes| bytes.len() <= Self::LONGEST), options }
    }

    /// Returns the size of the kept input in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let artifact = self.artifact.as_ref().map_or(0, Bytes::len);
        artifact.saturating_add(self.options.len()) as u64
    }
}

/// An output of a program.
#[derive(Debug)]
pub(crate) struct Output {
    /// Metadata of the whole array.
    pub(crate) spec: ArraySpec,
    /// The shape of a shard.
    pub(crate) shard: Shape,
    /// Contents on each device.
    pub(crate) contents: Contents,
    /// Kind of memory of the output.
    pub(crate) kind: Kind,
    /// Memories of the shards, in the order of the devices.
    pub(crate) spaces: Vec<MemorySpace>,
}

impl Program {
    fn state(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the compiled program, for rare requests.
    pub(crate) fn loaded(&self) -> Arc<LoadedExecutable> {
        Arc::clone(&self.state().executable)
    }

    /// Returns the compiled program, if the client of this generation has loaded it.
    pub(crate) fn loaded_on(&self, generation: usize) -> Option<Arc<LoadedExecutable>> {
        let loaded = self.state();
        (loaded.generation == generation).then(|| Arc::clone(&loaded.executable))
    }

    /// Compiles the program again, for the client of another generation. Waits for the plug-in.
    ///
    /// # Errors
    /// The compiler's error; UNAVAILABLE for a program that was too large to keep.
    pub(crate) fn load_on(
        &self,
        generation: usize,
        client: &Client,
    ) -> Result<Arc<LoadedExecutable>, Status> {
        let artifact = self.recipe.artifact.as_ref().ok_or_else(|| {
            status!(
                Unavailable,
                "the devices were given to another client of the plug-in, because a program did not end, and the executable `{}` was too large to be kept: compile it again",
                self.answer.name
            )
        })?;
        let options = CompileOptions::of_bytes(self.recipe.options.clone());
        let options = options.map_err(|error| of_pjrt(&error))?;
        let program = serdes_pjrt::Program::new(artifact, ProgramFormat::Mlir);
        let loaded = client.compile(&program, &options).map_err(|error| of_pjrt(&error))?;
        let executable = Arc::new(loaded);
        *self.state() = Loaded { generation, executable: Arc::clone(&executable) };
        Ok(executable)
    }

    /// Returns true if the run is unbounded: it has loops, or parts that wait for one another.
    pub(crate) const fn may_be_endless(&self) -> bool {
        self.may_be_endless
    }

    /// Returns the positions of the program's devices.
    pub(crate) fn devices(&self) -> &[usize] {
        &self.devices
    }

    /// Returns true if the program calls functions of its client, and so may wait for it.
    pub(crate) fn calls_back(&self) -> bool {
        !self.callbacks.list().is_empty()
    }

    /// Returns the number of bytes that a run may hold on the host at a time for callbacks.
    pub(crate) fn callback_bytes(&self) -> u64 {
        self.callbacks.bytes().saturating_mul(self.devices.len() as u64)
    }

    /// Outputs of the program.
    pub(crate) fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Returns true if the program takes the memory of this argument, unless a run overrides it.
    pub(crate) fn takes(&self, argument: usize) -> bool {
        self.donated.contains(&argument)
    }

    /// Checks that the program can be run with this number of arrays.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if it was deleted, INVALID_ARGUMENT if the number differs from its
    /// parameters.
    pub(crate) fn check(&self, arguments: usize) -> Result<(), Status> {
        if self.is_deleted() {
            return Err(status!(
                FailedPrecondition,
                "the executable `{}` was deleted; compile it again",
                self.answer.name
            ));
        }
        let expected = self.parameters.len();
        if expected == arguments {
            return Ok(());
        }
        Err(status!(
            InvalidArgument,
            "the executable `{}` is run with {arguments} arrays; expected {expected}, one for each parameter",
            self.answer.name
        ))
    }

    /// Returns the bytes that the program needs while it runs, on all of its devices together.
    pub(crate) fn inside(&self) -> u64 {
        self.inside
    }

    /// Returns the bytes that the program takes while it is loaded: its kept source and its code.
    /// If the plug-in does not report the code's size, that counts as the source's size.
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    /// Sets the permit for the memory that the program takes while it is loaded.
    pub(crate) fn hold(&mut self, room: Permit) {
        self.room = Some(room);
    }

    /// Returns the minimum of bytes for a run: its temporary memory, and outputs that do not reuse
    /// arguments.
    pub(crate) fn least(&self) -> u64 {
        let outputs = self
            .outputs
            .iter()
            .map(|output| output.contents.bytes().saturating_mul(output.spaces.len() as u64));
        let outputs = match self.donated.is_empty() {
            true => outputs.fold(0, u64::saturating_add),
            false => 0,
        };
        self.inside.saturating_add(outputs)
    }

    /// Returns the answer to the compile request, without handles.
    pub(crate) fn answer(&self) -> CompileResponse {
        self.answer.clone()
    }

    /// Returns the answer to the request for metadata.
    pub(crate) fn metadata(&self) -> LoadedExecutableMetadataResponse {
        self.metadata.clone()
    }

    /// Frees the program's resources on the devices; it cannot be run any more. May wait for the
    /// plug-in.
    ///
    /// # Errors
    /// The error that the plug-in reports.
    pub(crate) fn delete(&self) -> Result<(), Status> {
        if self.deleted.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.loaded().delete().map_err(|error| of_pjrt(&error))
    }

    /// Returns true if it was deleted.
    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Relaxed)
    }
}
