//! `serdes serve`: a proxy server over all devices of a plug-in.

use std::{
    borrow::Cow,
    net::{SocketAddr, ToSocketAddrs as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use serdes_proxy::{Limits, ServedDevices, Server, ServerBuilder};
use tokio::{
    net::TcpListener,
    sync::mpsc::{self, UnboundedReceiver},
};

#[cfg(unix)]
use super::compile_worker;
use super::{device, negotiate, plugin_opening, save, serve_access, serve_log, serve_manager};
use crate::{
    arguments::{AccessArguments, ServeArguments},
    bridge::PythonBridge,
    failure::Failure,
    invocation,
    plugin_argument::PluginArgument,
    requests,
    signals::{self, Hangup, Request},
    status::ExitStatus,
    terminal::Terminal,
};

/// Serves until the user or the system stops it.
pub(crate) fn run(
    arguments: &ServeArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    #[cfg(unix)]
    if arguments.compile_worker {
        return compile_worker::run(arguments, terminal);
    }
    let Some(mut limits) = serve_access::limits(&arguments.access, terminal)? else {
        return Ok(ExitStatus::Success);
    };
    if let Some(seconds) = &arguments.drain {
        limits
            .set("drain-seconds", seconds)
            .map_err(|error| Failure::new(format_args!("--drain {seconds}: {error}")))?;
    }
    let runtime = negotiate::runtime()?;
    let log = {
        let _runtime = runtime.enter();
        serve_log::begin(arguments.log_format, terminal.verbosity())?
    };
    let address = address("--listen", &arguments.listen)?;
    serve_access::check(&arguments.access, address)?;
    let metrics = arguments.metrics.as_deref().map(metrics_address).transpose()?;
    let server = server(arguments, limits, terminal)?;
    let served = runtime.block_on(async {
        let (listener, address) = listen(address).await?;
        let metrics = match metrics {
            Some(metrics) => Some(listen(metrics).await?),
            None => None,
        };
        let (stop, hangups) = requests()?;
        announce(address, metrics.as_ref().map(|(_, address)| *address), terminal)?;
        if let Some((listener, _)) = metrics {
            tokio::spawn(serve_metrics(server.clone(), listener));
        }
        serve_manager::ready(address);
        let access = arguments.access.clone();
        let has_state = arguments.state.is_some();
        let saving = tokio::spawn(save_on_hangup(server.clone(), access, hangups, has_state));
        let limit = server.stop_limit() + LEFT_BEHIND;
        let stop = async move {
            stop.await;
            serve_manager::stopping(limit + LEFT_BEHIND);
            end_within(limit);
        };
        let served = server.serve(listener, stop).await;
        saving.abort();
        served.map_err(|error| negotiate::failure(&error))
    });
    // While the runtime still sends.
    log.end();
    // A hanging call into the plug-in or the system does not keep the process from ending.
    runtime.shutdown_timeout(LEFT_BEHIND);
    served.map(|()| ExitStatus::Success)
}

/// Creates the server of the command line.
fn server(
    arguments: &ServeArguments,
    limits: Limits,
    terminal: &mut Terminal,
) -> Result<Server, Failure> {
    let ranges = negotiate::ranges(&arguments.ranges)?;
    let lasting = |path: &PathBuf| save::lasting(path, &arguments.plugin).map(Cow::into_owned);
    let state = arguments.state.as_ref().map(lasting).transpose()?;
    let transfer_directory = arguments.transfer_directory.as_ref().map(lasting).transpose()?;
    let versions = save::versions("--serdes-version", &arguments.serdes_version, terminal)?;
    let devices = devices(arguments)?;
    #[cfg(unix)]
    let has_programs = matches!(devices, ServedDevices::Client(_));
    let builder = Server::builder(devices).ranges(ranges);
    let mut builder = serve_access::apply(builder, &arguments.access, limits)?;
    if let Some(directory) = &transfer_directory {
        builder = builder.transfer_directory(directory);
    }
    if let Some(path) = &state {
        builder = builder.state(path).previous_states(arguments.keep).state_versions(versions);
    }
    if let Some(name) = &arguments.platform_name {
        builder = builder.platform_name(name);
    }
    if let Some(interpreter) = &arguments.stablehlo_bridge {
        builder = builder.program_bridge(bridge(interpreter)?);
    }
    for name in &arguments.allow_compile_option {
        builder = builder.allow_compile_option(name);
    }
    for name in &arguments.allow_custom_call {
        builder = builder.allow_custom_call(name);
    }
    builder = builder.portable_programs_only();
    #[cfg(unix)]
    if has_programs && !arguments.no_compile_worker {
        builder = with_compile_workers(builder, arguments);
    }
    builder.build().map_err(|error| negotiate::failure(&error))
}

/// Opens a listener; returns it with its address.
async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let failed = |error| Failure::new(format_args!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Prints the addresses for clients and for the metrics, both at once: a reader of the first line
/// may continue before there is a second one.
fn announce(
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if terminal.json() {
        let mut object = json!({ "listening": address.to_string() });
        if let (Some(metrics), Some(object)) = (metrics, object.as_object_mut()) {
            object.insert("metrics".to_owned(), metrics.to_string().into());
        }
        return terminal.object(&object);
    }
    let mut text = format!("listening on {address}\n");
    if let Some(metrics) = metrics {
        text.push_str(&format!("metrics at http://{metrics}/metrics\n"));
    }
    terminal.raw(text.as_bytes())
}

/// Serves the metrics for as long as the server serves.
async fn serve_metrics(server: Server, listener: TcpListener) {
    if let Err(error) = server.serve_metrics(listener).await {
        tracing::error!(%error, "the metrics are not served any more");
    }
}

/// Opens the devices to serve.
fn devices(arguments: &ServeArguments) -> Result<ServedDevices, Failure> {
    let layout = arguments.layout.as_deref();
    Ok(match PluginArgument::parse(&arguments.plugin)? {
        PluginArgument::StreamExecutor(name) => (&plugin_opening::open(&name, layout)?).into(),
        PluginArgument::Pjrt { path, options } => {
            (&device::open_client(&path, options, layout)?).into()
        }
    })
}

/// Sets up trial compilation in other processes, if possible: some plug-ins give their devices to
/// one process only.
#[cfg(unix)]
fn with_compile_workers(builder: ServerBuilder, arguments: &ServeArguments) -> ServerBuilder {
    let (plugin, layout) = (arguments.plugin.clone(), arguments.layout.clone());
    let workers = compile_worker::CompileWorkers::new(move || {
        let mut command = invocation::again()?;
        command.args(["serve", "--compile-worker", "--plugin", &plugin]);
        if let Some(layout) = &layout {
            command.args(["--layout", layout]);
        }
        Ok(command)
    });
    match workers {
        Ok(workers) => builder.trial_compiler(workers),
        Err(failure) => {
            tracing::warn!(
                "programs are compiled in the server's own process, which a program that ends the compiler ends: {failure}"
            );
            builder
        }
    }
}

/// Starts a bridge for programs, so that errors are reported before clients connect.
fn bridge(interpreter: &Path) -> Result<Arc<PythonBridge>, Failure> {
    let bridge = PythonBridge::new(interpreter);
    let newest = bridge
        .start()
        .map_err(|words| Failure::new(format_args!("--stablehlo-bridge: {words}")))?;
    tracing::info!("programs up to StableHLO {newest} can be bridged");
    Ok(Arc::new(bridge))
}

/// Parses the address to listen on.
fn address(option: &str, listen: &str) -> Result<SocketAddr, Failure> {
    listen.to_socket_addrs().ok().and_then(|mut addresses| addresses.next()).ok_or_else(|| {
        Failure::new(format_args!("{option} {listen}: expected HOST:PORT, such as 127.0.0.1:0"))
    })
}

/// Parses the address for the metrics: on this machine only, if only a port is given.
fn metrics_address(listen: &str) -> Result<SocketAddr, Failure> {
    match listen.strip_prefix(':').unwrap_or(listen).parse() {
        Ok(port) => Ok(SocketAddr::from(([127, 0, 0, 1], port))),
        Err(_) => address("--metrics", listen),
    }
}

/// Longest wait for remaining tasks at the end.
const LEFT_BEHIND: Duration = Duration::from_secs(2);

/// Ends the process after a time limit, in case something hangs that cannot be stopped.
fn end_within(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit + LEFT_BEHIND);
        tracing::error!(
            "something hangs in the plug-in or in the system; the process ends without it"
        );
        std::process::exit(ExitStatus::Error as i32);
    });
}

/// Returns the requests from signals: a future of the request to stop, and a channel of requests to
/// save. A second request to stop ends the process at once.
fn requests() -> Result<(impl Future<Output = ()> + Send, UnboundedReceiver<()>), Failure> {
    let (stop, mut stops) = mpsc::unbounded_channel();
    let (hangup, hangups) = mpsc::unbounded_channel();
    requests::listen(Hangup::Asks, move |request| {
        // Without a receiver, the server is about to end.
        let _ = match request {
            Request::Stop(_) => stop.send(()),
            Request::Hangup => hangup.send(()),
            Request::StopNow(signal) => signals::end_by(signal),
        };
    })
    .map_err(|error| Failure::new(format_args!("cannot wait for signals: {error}")))?;
    let stopped = async move {
        if stops.recv().await.is_none() {
            // There is no source of requests.
            std::future::pending::<()>().await;
        }
    };
    Ok((stopped, hangups))
}

/// Reads tokens and certificates again and saves the state on each SIGHUP.
async fn save_on_hangup(
    server: Server,
    access: AccessArguments,
    mut hangups: UnboundedReceiver<()>,
    has_state: bool,
) {
    while hangups.recv().await.is_some() {
        // A read from a pipe may block.
        let (renewed, given) = (server.clone(), access.clone());
        let renewing = move || serve_access::renew(&renewed, &given);
        let _ = tokio::task::spawn_blocking(renewing).await;
        if has_state {
            // The outcome is logged.
            let _ = server.save().await;
        } else if access.token_file.is_none() && access.tls_cert.is_none() {
            tracing::warn!(
                "SIGHUP: nothing to save into; start the server with --state FILE to have a state"
            );
        }
    }
}
