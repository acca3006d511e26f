//! Functions that a stream runs on the host.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::behaviour::{Behaviour, Verdict, expect, failed, first_device, pattern, same_bytes};
use crate::{error::Error, plugin::Plugin};

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "host_callback",
        demand: "a callback that is accepted runs exactly once",
        run: host_callback,
    },
    Behaviour {
        name: "host_callback_order",
        demand: "callbacks run in order, and what comes behind them after them",
        run: host_callback_order,
    },
    Behaviour {
        name: "host_callback_error",
        demand: "the error of a callback shows, in the answer or in the stream",
        run: host_callback_error,
    },
];

fn host_callback(plugin: &Plugin) -> Verdict {
    let stream = first_device(plugin)?.create_stream()?;
    let callbacks: Vec<_> =
        (0..8).map(|_| stream.host_callback(|| Ok(()))).collect::<Result<_, _>>()?;
    for callback in &callbacks {
        callback.outcome()?;
    }
    // A second run may come slightly later.
    std::thread::sleep(Duration::from_millis(20));
    for callback in &callbacks {
        callback.outcome()?;
    }
    stream.status()?;
    Ok("8 callbacks ran once each".to_owned())
}

fn host_callback_order(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut callbacks = Vec::new();
    for index in 0..32 {
        let order = Arc::clone(&order);
        callbacks.push(stream.host_callback(move || {
            order.lock().unwrap_or_else(PoisonError::into_inner).push(index);
            Ok(())
        })?);
    }
    let bytes = pattern(1 << 16, 20);
    let memory = device.upload(&bytes)?;
    let host = device.allocate_host(bytes.len())?;
    let host = stream.copy_to_host(&memory, 0, bytes.len(), host)?.wait()?;
    same_bytes("a copy behind callbacks", &host, &bytes)?;
    for callback in &callbacks {
        callback.outcome()?;
    }
    let order = order.lock().unwrap_or_else(PoisonError::into_inner).clone();
    expect("the order of 32 callbacks", order, (0..32).collect())?;
    Ok("32 callbacks ran in order, and the copy behind them after them".to_owned())
}

/// Checks that an error of a callback is reported: the plug-in returns false, or the stream is in
/// error afterwards.
fn host_callback_error(plugin: &Plugin) -> Verdict {
    let stream = first_device(plugin)?.create_stream()?;
    match stream.host_callback(|| Err("an error on purpose".to_owned())) {
        Err(Error::CallbackRefused) => return Ok("host_callback answered false".to_owned()),
        Err(error) => return Err(error.into()),
        Ok(callback) => match callback.outcome() {
            Err(Error::CallbackFailed { .. }) => {}
            Err(error) => return Err(error.into()),
            Ok(()) => return failed("the callback failed, and its outcome is OK"),
        },
    }
    match stream.status() {
        Err(error) => Ok(format!("the stream is in error: {error}")),
        Ok(()) => failed("the callback set an error, and the stream's status is OK"),
    }
}
