//! Requests that run programs.

use std::{sync::Arc, time::Duration};

use serdes::{
    codec::{Status, ToProto as _},
    ifrt::ExecuteOptions,
    proto::xla::ifrt::proxy::{
        LoadedExecutableExecuteRequest, LoadedExecutableExecuteResponse,
        LoadedExecutableFetchExecuteResultRequest, LoadedExecutableFetchExecuteResultResponse,
        ifrt_response::Response, loaded_executable_execute_response::Output,
    },
};
use serdes_pjrt::LoadedExecutable;

use super::{
    compilation::loaded,
    request::{Job, Reply, Request, Work},
};
use crate::{
    server::{
        arrays::{Array, Buffer, Memory, Shard},
        context::Context,
        limits::Limits,
        programs::{Argument, Completion, Launch, Launched, Program, Running},
        promise::{Promise, Promised},
        runs::{Expiry, Run, Wanted},
        sessions::{Session, short},
    },
    status::status,
};

impl Request for LoadedExecutableExecuteRequest {
    type Work = Executing;

    /// After planning, arguments that the program takes are gone, and its results can be used,
    /// whenever it runs.
    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Executing>, Status> {
        let program = loaded(context, session, self.loaded_executable_handle)?;
        let options = match &self.execute_options {
            Some(options) => session.decode(Some(options))?,
            None => ExecuteOptions::new(),
        };
        let arrays = session.table().arrays(&self.args_handles)?;
        program.check(arrays.len())?;
        if !self.device_ids.is_empty() {
            return Err(status!(
                Unimplemented,
                "the request names {} devices for a program that was compiled for its own; name none",
                self.device_ids.len()
            ));
        }
        let kept = options.non_donatable_input_indices();
        let arguments = arrays.into_iter().enumerate().map(|(number, array)| {
            let may = !i32::try_from(number).is_ok_and(|number| kept.contains(&number));
            Argument::new(&program, number, array, may)
        });
        let arguments: Vec<_> = arguments.collect::<Result<_, _>>()?;
        let (promises, arrays) = promised(&program);
        let (status, status_handle) = status_of(self, session, &options)?;
        let given = self.args_handles.iter().copied().zip(&arguments);
        let given = given.filter(|(_, argument)| argument.is_taken());
        let given = given.map(|(handle, argument)| (handle, argument.array()));
        let handles = session.exchange(&self.result_array_handle, arrays, given)?;
        // A client that chose the handles needs no descriptions.
        let outputs = match self.result_array_handle.is_empty() {
            true => describe(&program, &handles, session)?,
            false => Vec::new(),
        };
        let launch = Launch { program, arguments, launch_id: options.launch_id() };
        let response = LoadedExecutableExecuteResponse { status_handle, outputs };
        Ok(Job::Work(Executing { launch, promises, status, response }))
    }

    fn results(&self) -> &[u64] {
        &self.result_array_handle
    }

    fn refuse(&self, session: &Session, status: &Status) {
        if self.result_status_handle != 0 {
            let outcome = Promised::known(Err(short(status)));
            // Without a free handle, the client gets none.
            drop(session.table().named_future(self.result_status_handle, outcome));
        }
    }
}

/// Creates a future of the run, if the client wants one, and the handle for the answer: none,
/// unless the options request it (clients end their process on one).
fn status_of(
    request: &LoadedExecutableExecuteRequest,
    session: &Session,
    options: &ExecuteOptions,
) -> Result<(Option<Promise<()>>, u64), Status> {
    if !options.fill_status() && request.result_status_handle == 0 {
        return Ok((None, 0));
    }
    let (promise, outcome) = Promised::coming();
    let mut table = session.table();
    let handle = match request.result_status_handle {
        0 => table.future(outcome)?,
        handle => table.named_future(handle, outcome).map(|()| handle)?,
    };
    Ok((Some(promise), if options.fill_status() { handle } else { 0 }))
}

/// The promises of the shards of outputs, by output and then by device.
type Promises = Vec<Vec<Promise<Arc<Memory>>>>;

/// Returns the outputs of a program as pending arrays, and the promises of their shards.
fn promised(program: &Program) -> (Promises, Vec<Array>) {
    let mut promises = Vec::with_capacity(program.outputs().len());
    let mut arrays = Vec::with_capacity(program.outputs().len());
    for output in program.outputs() {
        let mut of_devices = Vec::with_capacity(output.spaces.len());
        let mut shards = Vec::with_capacity(output.spaces.len());
        for space in &output.spaces {
            let (promise, buffer) = Buffer::of_program();
            of_devices.push(promise);
            shards.push(Shard { space: *space, shape: output.shard.clone(), buffer });
        }
        promises.push(of_devices);
        arrays.push(Array { spec: output.spec.clone(), shards });
    }
    (promises, arrays)
}

/// Describes the outputs for the client.
///
/// # Errors
/// The errors of encoding them at the negotiated version.
fn describe(program: &Program, handles: &[u64], session: &Session) -> Result<Vec<Output>, Status> {
    let version = session.agreement.serdes();
    let outputs = program.outputs().iter().zip(handles).map(|(output, handle)| {
        let spec = output.spec.to_proto(version).map_err(|error| error.to_status())?;
        Ok(Output {
            dtype: spec.dtype,
            shape: spec.shape,
            sharding: spec.sharding,
            array_handle: *handle,
        })
    });
    outputs.collect()
}

/// A program to be run when its arguments are available.
pub(super) struct Executing {
    launch: Launch,
    promises: Promises,
    status: Option<Promise<()>>,
    response: LoadedExecutableExecuteResponse,
}

impl Work for Executing {
    /// Answers when the plug-in has accepted the program; the results report later errors.
    async fn run(self, session: Arc<Session>) -> Reply {
        let Self { launch, promises, status, response } = self;
        let (launched, watch) = match begin(launch, &session).await {
            Ok(begun) => begun,
            Err(error) => {
                let kept = short(&error);
                for promise in promises.into_iter().flatten() {
                    promise.keep(Err(kept.clone()));
                }
                if let Some(status) = status {
                    status.keep(Err(kept));
                }
                return Err(error);
            }
        };
        if watch.is_needed() && launched.done.iter().any(|done| done.outcome.now().is_none()) {
            tokio::spawn(watch.until_done(launched.done.clone()));
        }
        for (promises, memories) in promises.into_iter().zip(launched.outputs) {
            for (promise, memory) in promises.into_iter().zip(memories) {
                promise.keep(Ok(Arc::new(memory)));
            }
        }
        if let Some(status) = status {
            tokio::spawn(async move {
                let mut outcome = Ok(());
                for done in launched.done {
                    outcome = outcome.and(done.outcome.wait().await);
                }
                status.keep(outcome.map_err(|status| short(&status)));
            });
        }
        Ok(Response::LoadedExecutableExecuteResponse(response))
    }
}

/// Launches a program when its arguments are available, the quotas permit it, and it is its turn.
async fn begin(launch: Launch, session: &Arc<Session>) -> Result<(Launched, Watch), Status> {
    for argument in &launch.arguments {
        argument.wait().await?;
    }
    let context = &session.context;
    let running = session.execution().await?;
    let said = match launch.program.callback_bytes() {
        0 => None,
        bytes => Some(session.said(bytes).await?),
    };
    let inside = session.inside(launch.program.inside()).await?;
    let run = context.enter(Wanted {
        session: session.number,
        peer: &session.quotas.peer,
        devices: launch.program.devices(),
        may_be_endless: launch.program.may_be_endless(),
    });
    let run = run.await?;
    let generation = run.generation();
    let loaded = loaded_on(&launch, generation, session).await?;
    let watch = Watch::of(&run, &context.limits);
    let running = Running::new(running, said, inside, run, &context.gauges);
    let in_order = context.launches.take(generation, launch.program.devices()).await;
    let own = Arc::clone(session);
    let (calls_back, latency) = (launch.program.calls_back(), Arc::clone(&launch.program.latency));
    let own_latency = Arc::clone(&latency);
    let run = move || {
        let _in_order = in_order;
        own_latency.note(|| {
            launch.run(running, &loaded, &own.context.gauges, |output| {
                own.quotas.shard(output.kind, output.contents.bytes())
            })
        })
    };
    let launched = async {
        match calls_back {
            true => session.calling(run).await,
            // A call that may never return runs where the waiting request can abandon it.
            false if watch.is_needed() => session.launching(watch.given_up.clone(), run).await,
            false => session.by_latency(&latency, run).await,
        }
    };
    let launched = tokio::select! {
        biased;
        launched = launched => match watch.given_up.now() {
            Some(_) => return Err(watch.overdue_for_others()),
            None => launched?,
        },
        overdue = watch.overdue() => return Err(overdue),
    };
    Ok((launched, watch))
}

/// Returns the program on the devices of a generation, which may differ from the one that it was
/// compiled for, with its arguments there.
async fn loaded_on(
    launch: &Launch,
    generation: usize,
    session: &Arc<Session>,
) -> Result<Arc<LoadedExecutable>, Status> {
    let devices = &session.context.devices;
    let client = || {
        let client = devices.client_of(generation).cloned();
        client.ok_or_else(|| status!(Internal, "the devices have no client of PJRT"))
    };
    if generation > 0 {
        for (space, buffer) in launch.arguments.iter().flat_map(Argument::shards) {
            let (client, devices) = (client()?, Arc::clone(devices));
            if buffer.wait_for_place().await?.is_of(&client) {
                continue;
            }
            let memory = buffer.wait().await?;
            let to_move =
                move || memory.move_to(&client, devices.at_of(generation, space)?, space.kind);
            session.blocking(to_move).await?;
        }
    }
    match launch.program.loaded_on(generation) {
        Some(loaded) => Ok(loaded),
        None => {
            let (client, program) = (client()?, Arc::clone(&launch.program));
            session.compiling(move || program.load_on(generation, &client)).await
        }
    }
}

/// The conditions under which a running program is no longer waited for.
struct Watch {
    is_watched: bool,
    given_up: Promised<()>,
    expiry: Expiry,
    limit: Option<Duration>,
    shared_limit: Option<Duration>,
}

impl Watch {
    fn of(run: &Run, limits: &Limits) -> Self {
        Self {
            is_watched: run.is_watched(),
            given_up: run.given_up(),
            expiry: run.expiry(),
            limit: limits.execution_limit(),
            shared_limit: limits.shared_execution_limit(),
        }
    }

    /// Returns true if the program may have to be abandoned before it ends.
    const fn is_needed(&self) -> bool {
        self.is_watched || self.limit.is_some()
    }

    /// Completes when the program has taken too long, with the error for its client.
    async fn overdue(&self) -> Status {
        let expired = async {
            match self.limit {
                Some(limit) => {
                    tokio::time::sleep(limit).await;
                    limit
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            limit = expired => {
                self.expiry.expire();
                overdue(limit)
            }
            // A promise that is dropped unfulfilled belongs to a run that has ended.
            Ok(()) = self.given_up.wait() => self.overdue_for_others(),
            else => std::future::pending().await,
        }
    }

    fn overdue_for_others(&self) -> Status {
        let others = match self.shared_limit {
            Some(limit) => format!(
                " within the {} seconds that the limit `shared-execution-seconds` of this server allows it then",
                limit.as_secs_f64()
            ),
            None => String::new(),
        };
        status!(
            DeadlineExceeded,
            "programs of other clients waited for the devices, and the program, or one of this client before it, did not end{others}: they have the devices now; make the program shorter, run it while no other client waits, or ask the server's operator to set the limit"
        )
    }

    /// Marks a program as expired when its client no longer waits for it, unless it ends before.
    async fn until_done(self, done: Vec<Completion>) {
        let all = async {
            for done in &done {
                // The results report the outcome.
                let _ = done.outcome.wait().await;
            }
        };
        let overdue = tokio::select! {
            biased;
            () = all => return,
            overdue = self.overdue() => overdue,
        };
        for done in done {
            done.promise.keep(Err(overdue.clone()));
        }
    }
}

fn overdue(limit: Duration) -> Status {
    status!(
        DeadlineExceeded,
        "the program did not end within the {} seconds that the limit `execution-seconds` of this server allows; it cannot be stopped, and its devices may still be busy with it",
        limit.as_secs_f64()
    )
}

impl Request for LoadedExecutableFetchExecuteResultRequest {
    type Work = Fetching;

    fn plan(&self, _: &Context, session: &Session) -> Result<Job<Fetching>, Status> {
        session.table().take_future(self.result_status_handle).map(Fetching).map(Job::Work)
    }
}

/// Waits for a run.
pub(super) struct Fetching(Promised<()>);

impl Work for Fetching {
    async fn run(self, _: Arc<Session>) -> Reply {
        self.0.wait().await?;
        // The C interface does not measure device time.
        Ok(Response::LoadedExecutableFetchExecuteResultResponse(
            LoadedExecutableFetchExecuteResultResponse::default(),
        ))
    }
}
