//! `serdes serve`: a proxy server over all devices of a plug-in.

use std::{
    borrow::Cow,
    net::{SocketAddr, ToSocketAddrs as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use serdes::proxy::{ServedDevices, Server};
use tokio::{
    net::TcpListener,
    sync::mpsc::{self, UnboundedReceiver},
};

use super::{device, negotiate, plugin, save, serve_access};
use crate::{
    arguments::{AccessArguments, ServeArguments},
    bridge::PythonBridge,
    failure::Failure,
    plugin_argument::PluginArgument,
    signals::{self, Hangup, Request},
    terminal::{Status, Terminal},
};

/// Serves until the user or the system says stop.
pub(crate) fn run(arguments: &ServeArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let Some(limits) = serve_access::limits(&arguments.access, terminal)? else {
        return Ok(Status::Yes);
    };
    logs(terminal.verbosity());
    let ranges = negotiate::ranges(&arguments.ranges)?;
    let address = address(&arguments.listen)?;
    serve_access::check(&arguments.access, address)?;
    let lasting = |path: &PathBuf| save::lasting(path, &arguments.plugin).map(Cow::into_owned);
    let state = arguments.state.as_ref().map(lasting).transpose()?;
    let transfer_directory = arguments.transfer_directory.as_ref().map(lasting).transpose()?;
    let versions = save::versions(&arguments.serdes_version, terminal)?;
    let builder = Server::builder(devices(arguments)?).ranges(ranges);
    let mut builder = serve_access::apply(builder, &arguments.access, limits)?;
    if let Some(directory) = &transfer_directory {
        builder = builder.transfer_directory(directory);
    }
    if let Some(path) = &state {
        builder = builder.state(path).previous_states(arguments.keep).state_versions(versions);
    }
    if let Some(interpreter) = &arguments.stablehlo_bridge {
        builder = builder.program_bridge(bridge(interpreter)?);
    }
    let server = builder.build().map_err(|error| negotiate::failure(&error))?;
    let runtime = negotiate::runtime()?;
    let has_state = state.is_some();
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Failure::new(format_args!("cannot listen on {address}: {error}")))?;
        let address = listener
            .local_addr()
            .map_err(|error| Failure::new(format_args!("cannot listen: {error}")))?;
        let (stop, hangups) = requests()?;
        if terminal.json() {
            terminal.object(&json!({ "listening": address.to_string() }))?;
        } else {
            terminal.raw(format!("listening on {address}\n").as_bytes())?;
        }
        let access = arguments.access.clone();
        let saving = tokio::spawn(save_on_hangup(server.clone(), access, hangups, has_state));
        let limit = server.stop_limit() + LEFT_BEHIND;
        let stop = async move {
            stop.await;
            end_within(limit);
        };
        let served = server.serve(listener, stop).await;
        saving.abort();
        served.map_err(|error| negotiate::failure(&error))
    });
    // What hangs in a call into the plug-in or the system keeps nobody waiting.
    runtime.shutdown_timeout(LEFT_BEHIND);
    served.map(|()| Status::Yes)
}

/// Whose devices are served.
fn devices(arguments: &ServeArguments) -> Result<ServedDevices, Failure> {
    let layout = arguments.layout.as_deref();
    Ok(match PluginArgument::parse(&arguments.plugin)? {
        PluginArgument::StreamExecutor(name) => (&plugin::open(&name, layout)?).into(),
        PluginArgument::Pjrt { path, options } => {
            (&device::open_client(&path, options, layout)?).into()
        }
    })
}

/// A bridge for programs, which runs: a mistake in it is told before anyone connects.
fn bridge(interpreter: &Path) -> Result<Arc<PythonBridge>, Failure> {
    let bridge = PythonBridge::new(interpreter);
    let newest = bridge
        .start()
        .map_err(|words| Failure::new(format_args!("--stablehlo-bridge: {words}")))?;
    tracing::info!("programs up to StableHLO {newest} can be bridged");
    Ok(Arc::new(bridge))
}

/// Where to listen.
fn address(listen: &str) -> Result<SocketAddr, Failure> {
    listen.to_socket_addrs().ok().and_then(|mut addresses| addresses.next()).ok_or_else(|| {
        Failure::new(format_args!("--listen {listen}: expected HOST:PORT, such as 127.0.0.1:0"))
    })
}

/// How long what is left behind at the end may take to end by itself.
const LEFT_BEHIND: Duration = Duration::from_secs(2);

/// Ends the process when its time is up, should something in it hang that nobody can stop.
fn end_within(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit + LEFT_BEHIND);
        tracing::error!(
            "something hangs in the plug-in or in the system; the process ends without it"
        );
        std::process::exit(Status::Failed as i32);
    });
}

/// What people ask by signals: to stop, which is done once it is asked, and to save, as often as it
/// is. Asked to stop twice, the process ends at once.
fn requests() -> Result<(impl Future<Output = ()> + Send, UnboundedReceiver<()>), Failure> {
    let (stop, mut stops) = mpsc::unbounded_channel();
    let (hangup, hangups) = mpsc::unbounded_channel();
    signals::listen(Hangup::Asks, move |request| {
        // Where nobody waits any more, the server is at its end.
        let _ = match request {
            Request::Stop(_) => stop.send(()),
            Request::Hangup => hangup.send(()),
            Request::StopNow(signal) => signals::end_by(signal),
        };
    })
    .map_err(|error| Failure::new(format_args!("cannot wait for signals: {error}")))?;
    let stopped = async move {
        if stops.recv().await.is_none() {
            // Nobody can ask.
            std::future::pending::<()>().await;
        }
    };
    Ok((stopped, hangups))
}

/// Reads the tokens again and saves the state each time the process gets SIGHUP.
async fn save_on_hangup(
    server: Server,
    access: AccessArguments,
    mut hangups: UnboundedReceiver<()>,
    has_state: bool,
) {
    while hangups.recv().await.is_some() {
        serve_access::renew(&server, &access);
        if has_state {
            // The outcome is in the log.
            let _ = server.save().await;
        } else if access.token_file.is_none() {
            tracing::warn!(
                "SIGHUP: nothing to save into; start the server with --state FILE to have a state"
            );
        }
    }
}

/// Logs to standard error: warnings, or more with `-v`.
fn logs(verbosity: u8) {
    let level = match verbosity {
        0 => tracing::Level::WARN,
        1 => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).init();
}
