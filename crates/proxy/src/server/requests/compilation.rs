//! Requests about programs: compilation, description, deletion.

use std::sync::{Arc, atomic::Ordering};

use serdes::{
    codec::{Status, ToProto as _},
    ifrt::AttributeMap,
    proto::xla::ifrt::proxy::{
        CompileRequest, LoadedExecutableCostAnalysisRequest, LoadedExecutableCostAnalysisResponse,
        LoadedExecutableDeleteRequest, LoadedExecutableDeleteResponse,
        LoadedExecutableDestructRequest, LoadedExecutableDestructResponse,
        LoadedExecutableHumanReadableProgramTextRequest,
        LoadedExecutableHumanReadableProgramTextResponse, LoadedExecutableIsDeletedRequest,
        LoadedExecutableIsDeletedResponse, LoadedExecutableMetadataRequest,
        ifrt_response::Response, loaded_executable_cost_analysis_response::Result as Costs,
        loaded_executable_human_readable_program_text_response::Result as Text,
    },
};
use serdes_pjrt::Client;

use super::{
    refused::unserved,
    request::{Job, Nothing, Reply, Request, Work},
};
use crate::{
    server::{
        arrays::attribute,
        budget::Permit,
        context::Context,
        programs::{
            Compiler, Deadline, HostCallback, HostCallbacks, Program, Source, Target, compile,
        },
        promise::Promised,
        sessions::{Session, short},
    },
    status::{of_pjrt, status, to_proto},
};

impl Request for CompileRequest {
    type Work = Compiling;

    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Compiling>, Status> {
        let generation = context.devices.generation();
        let client = context.devices.client_of(generation);
        let client = client.ok_or_else(|| unserved("compile programs"))?.clone();
        let limit = context.limits.callback_timeout;
        let callbacks =
            self.host_callbacks.iter().map(|bytes| HostCallback::read(bytes.clone(), limit));
        let callbacks = HostCallbacks::new(callbacks.collect::<Result<_, _>>()?);
        let (program, options) = (self.program.as_ref(), self.compile_options.as_ref());
        let devices = context.devices.ids();
        let target = Target { minor: client.minor(), devices: &devices };
        let rules = &context.compilation.rules;
        let source = Source::read(program, options, Arc::clone(&callbacks), rules, target)?;
        let held = session.quotas.programs.take_now(1)?;
        let deadline = Deadline::after(context.limits.compilation_timeout);
        Ok(Job::Work(Compiling { client, generation, source, callbacks, held, deadline }))
    }
}

/// Returns the program of a handle.
///
/// # Errors
/// UNIMPLEMENTED if the server has no programs at all; NOT_FOUND.
pub(super) fn loaded(
    context: &Context,
    session: &Session,
    handle: u64,
) -> Result<Arc<Program>, Status> {
    context.devices.client().ok_or_else(|| unserved("load or run programs"))?;
    session.table().program(handle)
}

/// A program to be compiled.
pub(super) struct Compiling {
    client: Client,
    generation: usize,
    source: Source,
    callbacks: Arc<HostCallbacks>,
    held: Permit,
    deadline: Deadline,
}

impl Work for Compiling {
    async fn run(self, session: Arc<Session>) -> Reply {
        let Self { client, generation, source, callbacks, held, deadline } = self;
        let own = Arc::clone(&session);
        let program = session
            .compiling(move || {
                let context = &own.context;
                let compilation = &context.compilation;
                let (bridge, trials) = (compilation.bridge.as_deref(), &compilation.trials);
                let portable_only = compilation.portable_only.as_ref();
                let compiler = Compiler {
                    client: &client,
                    generation,
                    bridge,
                    trials,
                    deadline,
                    portable_only,
                };
                let mut program =
                    compile(&context.devices, &source, held, &context.gauges, compiler)?;
                // Refuse a program that can never be run within the quotas.
                own.quotas.can_hold(program.least())?;
                let room = own.quotas.loaded(program.kept())?;
                program.hold(room);
                Ok(program)
            })
            .await?;
        let mut answer = program.answer();
        let gauges = &session.context.gauges;
        gauges.programs_compiled.fetch_add(1, Ordering::Relaxed);
        let mut table = session.table();
        // The program is ready; clients of old builds ask for it once.
        answer.ready_future_handle = Some(table.future(Promised::known(Ok(())))?);
        // Each callback is polled by a request that lasts as long as the program.
        let most = session.context.limits.requests_per_session / 2;
        answer.loaded_host_callback_handles = table.add_callbacks(callbacks.list(), most)?;
        answer.loaded_executable_handle = table.add_program(Arc::new(program))?;
        Ok(Response::CompileResponse(answer))
    }
}

impl Request for LoadedExecutableMetadataRequest {
    type Work = Nothing;

    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Nothing>, Status> {
        let program = loaded(context, session, self.loaded_executable_handle)?;
        Ok(Job::Done(Response::LoadedExecutableMetadataResponse(program.metadata())))
    }
}

impl Request for LoadedExecutableDestructRequest {
    type Work = Dropping;

    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Dropping>, Status> {
        loaded(context, session, self.loaded_executable_handle)?;
        session.table().take_program(self.loaded_executable_handle).map(Dropping).map(Job::Work)
    }
}

/// A program whose last handle was dropped.
pub(super) struct Dropping(Arc<Program>);

impl Work for Dropping {
    async fn run(self, session: Arc<Session>) -> Reply {
        let program = self.0;
        session
            .blocking(move || {
                drop(program);
                Ok(())
            })
            .await?;
        Ok(Response::LoadedExecutableDestructResponse(LoadedExecutableDestructResponse {}))
    }
}

impl Request for LoadedExecutableDeleteRequest {
    type Work = Nothing;

    /// The answer's future has the result of the deletion.
    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Nothing>, Status> {
        let program = loaded(context, session, self.loaded_executable_handle)?;
        let outcome = program.delete().map_err(|status| short(&status));
        let future_handle = session.table().future(Promised::known(outcome))?;
        Ok(Job::Done(Response::LoadedExecutableDeleteResponse(LoadedExecutableDeleteResponse {
            future_handle,
        })))
    }
}

impl Request for LoadedExecutableIsDeletedRequest {
    type Work = Nothing;

    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Nothing>, Status> {
        let is_deleted = loaded(context, session, self.loaded_executable_handle)?.is_deleted();
        Ok(Job::Done(Response::LoadedExecutableIsDeletedResponse(
            LoadedExecutableIsDeletedResponse { is_deleted },
        )))
    }
}

impl Request for LoadedExecutableCostAnalysisRequest {
    type Work = Estimate;

    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Estimate>, Status> {
        loaded(context, session, self.loaded_executable_handle).map(Estimate).map(Job::Work)
    }
}

/// Request for the costs of a program. An error of the plug-in is part of the answer, where clients
/// take it for missing data.
pub(super) struct Estimate(Arc<Program>);

impl Work for Estimate {
    async fn run(self, session: Arc<Session>) -> Reply {
        let version = session.agreement.serdes();
        let program = self.0;
        let costs = session.blocking(move || {
            let loaded = program.loaded();
            let costs = loaded.executable().cost_analysis().map_err(|error| of_pjrt(&error))?;
            let costs = costs.iter().map(|(name, value)| (name, attribute(value)));
            let costs: AttributeMap = costs.collect();
            costs.to_proto(version).map_err(|error| error.to_status())
        });
        let result = match costs.await {
            Ok(costs) => Costs::Attributes(costs),
            Err(status) => Costs::Status(to_proto(&status)),
        };
        Ok(Response::LoadedExecutableCostAnalysisResponse(LoadedExecutableCostAnalysisResponse {
            result: Some(result),
        }))
    }
}

impl Request for LoadedExecutableHumanReadableProgramTextRequest {
    type Work = Nothing;

    /// The C interface has no program text; the error inside of the answer is raised by clients
    /// where the text is used.
    fn plan(&self, context: &Context, session: &Session) -> Result<Job<Nothing>, Status> {
        loaded(context, session, self.loaded_executable_handle)?;
        let status = status!(Unimplemented, "PJRT plug-ins give no text of a compiled program");
        let result = Some(Text::Status(to_proto(&status)));
        Ok(Job::Done(Response::LoadedExecutableHumanReadableProgramTextResponse(
            LoadedExecutableHumanReadableProgramTextResponse { result },
        )))
    }
}
