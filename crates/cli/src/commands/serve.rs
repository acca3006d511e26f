//! `serdes serve`: a proxy server over all devices of a plug-in.

use std::net::ToSocketAddrs as _;

use serde_json::json;
use serdes::proxy::Server;
use tokio::net::TcpListener;

use super::{negotiate, plugin, serve_access};
use crate::{
    arguments::{AccessArguments, ServeArguments},
    terminal::{Failure, Status, Terminal},
};

/// Serves until the user or the system says stop.
pub(crate) fn run(arguments: &ServeArguments, terminal: &mut Terminal) -> Result<Status, Failure> {
    let Some(limits) = serve_access::limits(&arguments.access, terminal)? else {
        return Ok(Status::Yes);
    };
    logs(terminal.verbosity());
    let ranges = negotiate::ranges(&arguments.ranges)?;
    let address = arguments
        .listen
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next())
        .ok_or_else(|| {
            Failure::new(format_args!(
                "--listen {}: expected HOST:PORT, such as 127.0.0.1:0",
                arguments.listen
            ))
        })?;
    serve_access::check(&arguments.access, address)?;
    let plugin = plugin::open(&arguments.plugin, arguments.layout.as_deref())?;
    let builder = Server::builder(&plugin).ranges(ranges);
    let mut builder = serve_access::apply(builder, &arguments.access, limits)?;
    if let Some(directory) = &arguments.transfer_directory {
        builder = builder.transfer_directory(directory);
    }
    if let Some(path) = &arguments.state {
        builder = builder.state(path);
    }
    let server = builder.build().map_err(|error| negotiate::failure(&error))?;
    negotiate::runtime()?.block_on(async {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Failure::new(format_args!("cannot listen on {address}: {error}")))?;
        let address = listener
            .local_addr()
            .map_err(|error| Failure::new(format_args!("cannot listen: {error}")))?;
        let stop = stop_signal()?;
        if terminal.json() {
            terminal.object(&json!({ "listening": address.to_string() }))?;
        } else {
            terminal.raw(format!("listening on {address}\n").as_bytes())?;
        }
        #[cfg(unix)]
        let saving = tokio::spawn(save_on_signal(server.clone(), arguments.access.clone()));
        let served = server.serve(listener, stop).await;
        #[cfg(unix)]
        saving.abort();
        served.map_err(|error| negotiate::failure(&error))
    })?;
    Ok(Status::Yes)
}

/// Done when the process is asked to stop.
#[cfg(unix)]
fn stop_signal() -> Result<impl Future<Output = ()> + Send, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |error| Failure::new(format_args!("cannot wait for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn stop_signal() -> Result<impl Future<Output = ()> + Send, Failure> {
    Ok(async {
        // Without a handler the process ends by itself.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

/// Reads the tokens again and saves the state each time the process gets SIGHUP.
#[cfg(unix)]
async fn save_on_signal(server: Server, access: AccessArguments) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        serve_access::renew(&server, &access);
        // The outcome is in the log.
        let _ = server.save().await;
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
