//! Launches programs with donated or kept arguments; outputs exist before they are computed.

use std::sync::Arc;

use serdes::codec::Status;
use serdes_pjrt::{Event, ExecuteOptions, LoadedExecutable};

use super::program::{Output, Program};
use crate::{
    server::{
        arrays::{Array, Buffer, Bytes, Memory, MemorySpace, Place},
        budget::{Inside, Permit, Share},
        metrics::{Counted, Gauges},
        promise::{Promise, Promised},
        runs::Run,
    },
    status::{of_pjrt, status},
};

/// An argument array of a program.
#[derive(Debug)]
pub(crate) struct Argument {
    array: Arc<Array>,
    /// Index of the shard for each device, in the order of the program's devices.
    shards: Vec<usize>,
    /// True if the program takes the array's memory, so that its owner loses it.
    is_taken: bool,
}

impl Argument {
    /// Creates an argument from an array, whose memory the program takes if it `may`.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a device of the program has no shard of the array, or one of another
    /// type or shape than the parameter.
    pub(crate) fn new(
        program: &Program,
        number: usize,
        array: Arc<Array>,
        may: bool,
    ) -> Result<Self, Status> {
        let mut shards = Vec::with_capacity(program.devices.len());
        for (at, device) in program.devices.iter().enumerate() {
            // Usually both are in the same order.
            let same = array.shards.get(at).filter(|shard| shard.space.device == *device);
            let found = match same {
                Some(_) => Some(at),
                None => array.shards.iter().position(|shard| shard.space.device == *device),
            };
            shards.push(found.ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "argument {number} has no shard on device {device}, on which the program runs: {}; put it onto the devices of the program",
                    array.spec
                )
            })?);
        }
        if let Some(parameter) = program.parameters.get(number) {
            for shard in shards.iter().filter_map(|at| array.shards.get(*at)) {
                parameter.check(number, array.dtype(), &shard.shape)?;
            }
        }
        Ok(Self { array, shards, is_taken: may && program.takes(number) })
    }

    /// Returns true if the program takes the array's memory, so that its owner loses it.
    pub(crate) const fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// Returns the array.
    pub(crate) const fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// Waits until the shards can be passed to a program: they may still be computed.
    ///
    /// # Errors
    /// The reason why a shard will never be available.
    pub(crate) async fn wait(&self) -> Result<(), Status> {
        for shard in self.shards.iter().filter_map(|at| self.array.shards.get(*at)) {
            shard.buffer.wait_for_place().await?;
        }
        Ok(())
    }

    /// Returns the shards that are passed to a program, with their memories.
    pub(crate) fn shards(&self) -> impl Iterator<Item = (MemorySpace, &Buffer)> + '_ {
        let shards = self.shards.iter().filter_map(|at| self.array.shards.get(*at));
        shards.map(|shard| (shard.space, &shard.buffer))
    }

    /// Returns the memory of the argument for each device. It may be overwritten only if there is
    /// no other reference: from another array, a request in progress, or the state.
    fn places(self) -> Result<Vec<Place>, Status> {
        let mut buffers: Vec<Option<Buffer>> = if self.is_taken {
            match Arc::try_unwrap(self.array) {
                Ok(array) => array.shards.into_iter().map(|shard| Some(shard.buffer)).collect(),
                Err(array) => buffers_of(&array),
            }
        } else {
            buffers_of(&self.array)
        };
        let lost = || status!(Internal, "an argument lost a shard on its way");
        let places = self.shards.into_iter().map(|at| {
            let buffer = buffers.get_mut(at).and_then(Option::take);
            buffer.ok_or_else(lost)?.into_place()
        });
        places.collect()
    }
}

fn buffers_of(array: &Array) -> Vec<Option<Buffer>> {
    array.shards.iter().map(|shard| Some(shard.buffer.clone())).collect()
}

/// Resources of a running program, held until its last device is done.
#[derive(Debug)]
pub(crate) struct Running {
    _held: Permit,
    /// Permit for host memory of messages to its client.
    _said: Option<Permit>,
    /// Permit for memory that the program needs while it runs.
    _inside: Inside,
    _counted: Counted,
    /// Registration among the running programs.
    _run: Run,
}

impl Running {
    /// Creates the resources from their permits.
    pub(crate) fn new(
        held: Permit,
        said: Option<Permit>,
        inside: Inside,
        run: Run,
        gauges: &Arc<Gauges>,
    ) -> Self {
        gauges.executions_begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let counted = gauges.hold(|gauges| &gauges.executions, 1);
        Self { _held: held, _said: said, _inside: inside, _counted: counted, _run: run }
    }
}

/// A program with its arguments, all of which are available.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: Arc<Program>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) launch_id: i32,
}

/// A launched program.
#[derive(Debug)]
pub(crate) struct Launched {
    /// The shards of each output, in the order of the program's devices.
    pub(crate) outputs: Vec<Vec<Memory>>,
    /// Completion of each device, or of each output.
    pub(crate) done: Vec<Completion>,
}

/// A part of a program's work, and the promise of its completion.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    pub(crate) outcome: Promised<()>,
    pub(crate) promise: Promise<()>,
}

/// A shard that a program reads and does not take, with the location of its bytes at the launch.
type KeptShard = (Arc<Memory>, Arc<Bytes>);

/// Argument lists, converted from order by argument to order by device.
struct Lists {
    taken: Vec<Vec<Option<serdes_pjrt::Buffer>>>,
    kept: Vec<Vec<Option<KeptShard>>>,
}

impl Launch {
    /// Launches the program, and waits only until the plug-in has accepted it. `share` reserves
    /// memory for a shard of an output.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; the plug-in's error; INTERNAL if its outputs differ from the
    /// description.
    pub(crate) fn run(
        self,
        running: Running,
        loaded: &LoadedExecutable,
        gauges: &Arc<Gauges>,
        share: impl Fn(&Output) -> Result<Share, Status>,
    ) -> Result<Launched, Status> {
        let Self { program, arguments, launch_id } = self;
        let places: Vec<_> =
            arguments.into_iter().map(Argument::places).collect::<Result<_, _>>()?;
        // Taken arguments return their memory first.
        let mut lists = Lists::of(places)?;
        let shares = program.outputs.iter().map(|output| {
            output.spaces.iter().map(|_| share(output)).collect::<Result<Vec<_>, _>>()
        });
        let shares: Vec<_> = shares.collect::<Result<_, _>>()?;
        let transfers = program.callbacks.transfers(program.devices.len());
        let options =
            ExecuteOptions::new().with_launch_id(launch_id).with_host_transfers(transfers);
        let execution = loaded.execute(lists.arguments(program.devices.len())?, &options);
        let (buffers, events) = execution.map_err(|error| of_pjrt(&error))?.into_parts();
        let done = completions(&buffers, events, program.devices.len(), running)?;
        outputs(&program, buffers, shares, &done, gauges).map(|outputs| {
            let done = done.into_iter().flatten().collect();
            Launched { outputs, done }
        })
    }
}

impl Lists {
    fn of(places: Vec<Vec<Place>>) -> Result<Self, Status> {
        let (mut taken, mut kept) = (Vec::new(), Vec::new());
        for of_devices in places {
            let (mut taken_here, mut kept_here) = (Vec::new(), Vec::new());
            for place in of_devices {
                let (sole, shared) = match place {
                    Place::Sole(memory) => (memory.into_pjrt_array(), None),
                    Place::Shared(memory) => (None, Some(memory)),
                };
                taken_here.push(sole.map(serdes_pjrt::Array::into_buffer));
                kept_here.push(shared.map(|memory| {
                    let bytes = memory.bytes();
                    (memory, bytes)
                }));
            }
            taken.push(taken_here);
            kept.push(kept_here);
        }
        Ok(Self { taken, kept })
    }

    /// Returns the arguments of each device.
    fn arguments(&mut self, devices: usize) -> Result<Vec<Vec<serdes_pjrt::Argument<'_>>>, Status> {
        let mut lists: Vec<Vec<_>> = (0..devices).map(|_| Vec::new()).collect();
        for (taken, kept) in self.taken.iter_mut().zip(&self.kept) {
            for ((list, taken), kept) in lists.iter_mut().zip(taken).zip(kept) {
                let kept = kept.as_ref().and_then(|(_, bytes)| bytes.pjrt_array());
                list.push(match (taken.take(), kept) {
                    (Some(buffer), _) => serdes_pjrt::Argument::Given(buffer),
                    (None, Some(array)) => serdes_pjrt::Argument::Kept(array.buffer()),
                    (None, None) => {
                        return Err(status!(Internal, "an argument is not on a PJRT device"));
                    }
                });
            }
        }
        Ok(lists)
    }
}

/// Creates the promises of the outputs for each device: one for all if the plug-in reports the end
/// on a device, or else one for each.
fn completions(
    buffers: &[Vec<serdes_pjrt::Buffer>],
    events: Vec<Event>,
    devices: usize,
    running: Running,
) -> Result<Vec<Vec<Completion>>, Status> {
    let running = Arc::new(running);
    if events.len() == devices {
        return Ok(events.iter().map(|event| vec![completion(Some(event), &running)]).collect());
    }
    let of_device = |buffers: &Vec<serdes_pjrt::Buffer>| {
        let of_buffer = |buffer: &serdes_pjrt::Buffer| {
            let event = buffer.ready().map_err(|error| of_pjrt(&error))?;
            Ok(completion(event.as_ref(), &running))
        };
        buffers.iter().map(of_buffer).collect()
    };
    buffers.iter().map(of_device).collect()
}

/// Creates a promise that is fulfilled by an event.
fn completion(event: Option<&Event>, running: &Arc<Running>) -> Completion {
    let (promise, outcome) = Promised::coming();
    let completion = Completion { outcome, promise: promise.clone() };
    let Some(event) = event else {
        promise.keep(Ok(()));
        return completion;
    };
    let running = Arc::clone(running);
    let done = event.when_ready(move |result| {
        promise.keep(result.map_err(|error| of_pjrt(&error)));
        drop(running);
    });
    if done.is_err() {
        // Wait, if the plug-in cannot call back.
        completion.promise.clone().keep(event.wait().map_err(|error| of_pjrt(&error)));
    }
    completion
}

/// Returns the outputs as memory, by output and then by device.
fn outputs(
    program: &Program,
    buffers: Vec<Vec<serdes_pjrt::Buffer>>,
    shares: Vec<Vec<Share>>,
    done: &[Vec<Completion>],
    gauges: &Arc<Gauges>,
) -> Result<Vec<Vec<Memory>>, Status> {
    let mut outputs: Vec<Vec<Memory>> = shares.iter().map(|_| Vec::new()).collect();
    let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
    for (of_device, done) in buffers.into_iter().zip(done) {
        let places = outputs.iter_mut().zip(&mut shares).zip(&program.outputs);
        for (at, (buffer, ((output, shares), described))) in
            of_device.into_iter().zip(places).enumerate()
        {
            let computed = done.get(at).or(done.first()).map(|done| done.outcome.clone());
            let (Some(computed), Some(share)) = (computed, shares.next()) else {
                return Err(status!(Internal, "the plug-in gave an output that it did not say"));
            };
            let array = serdes_pjrt::Array::new(buffer).map_err(|error| of_pjrt(&error))?;
            let contents = &described.contents;
            if array.element_type().name() != contents.dtype().name()
                || array.dims() != contents.dims()
            {
                return Err(status!(
                    Internal,
                    "the plug-in gave {}{:?} as output {at}; it had said {}{:?}",
                    array.element_type().name(),
                    array.dims(),
                    contents.dtype(),
                    contents.dims(),
                ));
            }
            output.push(Memory::of_program(array, contents.clone(), computed, share, gauges));
        }
    }
    Ok(outputs)
}
