//! A compiled program: the facts that a host queries, and its runs.

use std::{
    ffi::{c_char, c_int},
    sync::{Arc, Mutex, PoisonError},
};

use serdes_abi::pjrt::args::{PJRT_Device, PJRT_Layouts_MemoryLayout, PJRT_LogicalDeviceIds};

use super::{
    Client, CompileOptions, Event, Executable, ExecutableStats, Launch, Plugin, Program, Shape,
    array::Array,
    border::Handles,
    client::{BufferOf, OpenClient, after_all, enqueue, id},
};
use crate::{Result, Status};

/// The first bytes of a serialized program, followed by the compile options with their length in
/// eight bytes, and the plug-in's bytes.
const MAGIC: &[u8; 8] = b"SDKEXE\x00\x01";

type Compiled<P> = dyn Executable<BufferOf<P>>;

/// A program of a client.
pub(super) struct Loaded<P: Plugin> {
    client: Arc<OpenClient<P>>,
    /// `None` after deletion.
    compiled: Mutex<Option<Arc<Compiled<P>>>>,
    pub(super) name: String,
    pub(super) fingerprint: Option<String>,
    pub(super) options: CompileOptions,
    pub(super) stats: ExecutableStats,
    pub(super) parameters: Values,
    pub(super) outputs: Values,
    pub(super) devices: Handles<PJRT_Device>,
    pub(super) logical_ids: Box<[PJRT_LogicalDeviceIds]>,
}

/// Arguments or results of a program, in the lists that a host reads.
pub(super) struct Values {
    pub(super) shapes: Box<[Shape]>,
    pub(super) types: Vec<c_int>,
    /// The dimensions of all values, one after another.
    pub(super) dimensions: Vec<i64>,
    /// The number of dimensions of each value.
    pub(super) ranks: Vec<usize>,
    pub(super) layouts: Handles<PJRT_Layouts_MemoryLayout>,
    /// The kind of memory of each value.
    pub(super) kinds: Handles<c_char>,
    pub(super) kind_sizes: Vec<usize>,
}

impl Values {
    /// Creates values of these shapes in a memory of the kind `kind`, which must outlive them.
    fn new(shapes: &[Shape], kind: &str) -> Self {
        let shapes: Box<[Shape]> = shapes.into();
        let kind_start = kind.as_ptr().cast_mut().cast::<c_char>();
        Self {
            types: shapes.iter().map(|shape| shape.element_type().number()).collect(),
            dimensions: shapes.iter().flat_map(|shape| shape.dimensions()).copied().collect(),
            ranks: shapes.iter().map(|shape| shape.dimensions().len()).collect(),
            layouts: Handles::of(&shapes),
            kinds: Handles::new(shapes.iter().map(|_| kind_start)),
            kind_sizes: vec![kind.len(); shapes.len()],
            shapes,
        }
    }

    /// Returns the total number of bytes on a device.
    pub(super) fn bytes(&self) -> i64 {
        let bytes = self.shapes.iter().map(|shape| shape.device_bytes());
        i64::try_from(bytes.fold(0, usize::saturating_add)).unwrap_or(i64::MAX)
    }
}

impl<P: Plugin> Loaded<P> {
    /// Compiles a program.
    ///
    /// # Errors
    /// As [`Client::compile`].
    pub(super) fn compile(
        client: &Arc<OpenClient<P>>,
        program: &Program<'_>,
        options: &[u8],
    ) -> Result<Self> {
        let options = CompileOptions::read(options, client.devices.len())?;
        let compiled = client.client.compile(program, &options)?;
        Self::new(client, compiled.into(), options)
    }

    /// Loads a program that [`Self::serialize`] returned, for other devices if `options` name some.
    ///
    /// # Errors
    /// As [`Client::load`]; `INVALID_ARGUMENT` for other bytes.
    pub(super) fn load(
        client: &Arc<OpenClient<P>>,
        bytes: &[u8],
        options: Option<&[u8]>,
    ) -> Result<Self> {
        let (written, bytes) = split(bytes).ok_or_else(|| {
            Status::invalid_argument("found other bytes, expected a program that this SDK wrote")
        })?;
        let options = CompileOptions::read(options.unwrap_or(written), client.devices.len())?;
        let compiled = client.client.load(bytes, &options)?;
        Self::new(client, compiled.into(), options)
    }

    /// Returns the program as bytes.
    ///
    /// # Errors
    /// As [`Executable::serialize`].
    pub(super) fn serialize(&self) -> Result<Vec<u8>> {
        let bytes = self.alive()?.serialize()?;
        let options = self.options.as_bytes();
        let length = (options.len() as u64).to_le_bytes();
        Ok([&MAGIC[..], &length, options, &bytes].concat())
    }

    fn new(
        client: &Arc<OpenClient<P>>,
        compiled: Arc<Compiled<P>>,
        options: CompileOptions,
    ) -> Result<Self> {
        let first = options.devices().first().and_then(|device| client.devices.get(*device));
        let first = first.ok_or_else(|| Status::internal("a program without a device"))?;
        let kind = &client.memory(first.memories.start)?.kind;
        let handles = options.devices().iter().map(|device| client.device_handles().get(*device));
        let handles: Option<Vec<_>> = handles.collect();
        let logical_ids = (0..options.devices().len()).map(|place| {
            let (replica, partition) = options.logical(place);
            PJRT_LogicalDeviceIds { replica: id(replica), partition: id(partition) }
        });
        Ok(Self {
            name: compiled.name().to_owned(),
            fingerprint: compiled.fingerprint().map(str::to_owned),
            stats: compiled.memory_stats(),
            parameters: Values::new(compiled.parameters(), kind),
            outputs: Values::new(compiled.outputs(), kind),
            devices: Handles::new(handles.unwrap_or_default().into_iter()),
            logical_ids: logical_ids.collect(),
            compiled: Mutex::new(Some(compiled)),
            client: Arc::clone(client),
            options,
        })
    }

    pub(super) fn client(&self) -> &Arc<OpenClient<P>> {
        &self.client
    }

    /// Returns the author's part of the program.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if it is deleted.
    fn alive(&self) -> Result<Arc<Compiled<P>>> {
        let compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.as_ref().map(Arc::clone).ok_or_else(|| {
            Status::failed_precondition(format!("the program {} was deleted", self.name))
        })
    }

    /// Frees the author's part of the program when no run needs it any more.
    pub(super) fn delete(&self) {
        let compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(compiled);
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Starts a run on one device; returns the results, and an event that is done when they are
    /// written.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for arguments that do not match the program, were deleted, or are on
    /// another device; `RESOURCE_EXHAUSTED` if there is not enough memory for the results.
    pub(super) fn launch(
        &self,
        (place, device): (usize, usize),
        launch_id: i32,
        arguments: &[&Arc<Array<P>>],
    ) -> Result<(Vec<Array<P>>, Event)> {
        let compiled = self.alive()?;
        self.check(device, arguments)?;
        let of_device = self.client.devices.get(device);
        let of_device = of_device.ok_or_else(|| Status::internal("there is no such device"))?;
        let (completer, done) = Event::pending();
        let memory = of_device.memories.start;
        let inputs = arguments.iter().map(|array| array.storage()).collect::<Result<Vec<_>>>()?;
        let shapes = self.outputs.shapes.iter();
        let outputs = shapes
            .map(|shape| Array::allocate(&self.client, memory, shape.clone(), done.clone()))
            .collect::<Result<Vec<_>>>()?;
        let targets = outputs.iter().map(Array::storage).collect::<Result<Vec<_>>>()?;
        let run = move || {
            let inputs: Vec<&BufferOf<P>> = inputs.iter().map(|buffer| &**buffer).collect();
            let targets: Vec<&BufferOf<P>> = targets.iter().map(|buffer| &**buffer).collect();
            let launch = Launch { device, place, launch_id, ..Launch::new(&inputs, &targets) };
            compiled.execute(&launch)
        };
        let ready: Vec<Event> = arguments.iter().map(|array| array.ready().clone()).collect();
        let client = Arc::clone(&self.client);
        after_all(ready.into_iter(), move |outcome| match (outcome, client.devices.get(device)) {
            // A program may take long even with few bytes.
            (Ok(()), Some(device)) => enqueue(&device.runs, usize::MAX, completer, run),
            (Ok(()), None) => drop(completer),
            (Err(failure), _) => {
                completer.complete(Err(failure.context("an argument of the program had failed")));
            }
        });
        Ok((outputs, done))
    }

    fn check(&self, device: usize, arguments: &[&Arc<Array<P>>]) -> Result<()> {
        let expected = &self.parameters.shapes;
        if arguments.len() != expected.len() {
            return Err(Status::invalid_argument(format!(
                "found {} arguments, expected {} for the program {}",
                arguments.len(),
                expected.len(),
                self.name
            )));
        }
        for (number, (array, shape)) in arguments.iter().zip(expected).enumerate() {
            if array.shape() != shape {
                return Err(Status::invalid_argument(format!(
                    "found {} as argument {number} of the program {}, expected {shape}",
                    array.shape(),
                    self.name
                )));
            }
            let is_here =
                Arc::ptr_eq(array.client(), &self.client) && array.memory()?.device == device;
            if !is_here {
                return Err(Status::invalid_argument(format!(
                    "argument {number} of the program {} lies on another device than device \
                     {device}",
                    self.name
                )));
            }
        }
        Ok(())
    }
}

/// Splits a serialized program into the compile options and the plug-in's bytes.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}
