//! Arrays in the state of a server of the IFRT proxy, which clients of JAX cannot name or reach.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pyo3::{
    exceptions::{
        PyConnectionError, PyKeyError, PyKeyboardInterrupt, PyNotImplementedError, PyRuntimeError,
        PyValueError,
    },
    prelude::*,
};
use serdes::{
    codec::StatusCode,
    ifrt::{ArraySpec, DeviceList, HloSharding, Sharding},
};
use serdes_device_state::files::ProgressMonitor;
use serdes_proxy::{Client, ClientOptions, ProxyError, RemoteArray};
use tokio::runtime::{Builder, Runtime};

use crate::{
    memory::{Readable, Writable},
    work::interruptible,
    writer::{sharding_of, spec_of},
};

/// Interval at which work checks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// An array: IFRT type, shape, the ids of all devices, the serialized XLA sharding if there is one,
/// the memory kind, its elements.
type GivenArray<'py> =
    (String, Vec<i64>, Vec<i32>, Option<String>, Option<String>, Bound<'py, PyAny>);

/// A session with a server that keeps arrays in its state.
#[pyclass(frozen, module = "serdes_ml._native")]
pub(crate) struct Session {
    client: Client,
    kept: Mutex<Vec<(String, RemoteArray)>>,
    put: Mutex<Vec<RemoteArray>>,
    /// Dropped last: the arrays and the client need it.
    runtime: Runtime,
}

#[pymethods]
impl Session {
    /// Opens a session of a name.
    #[staticmethod]
    #[pyo3(signature = (address, session, token, authority, certificate, seconds))]
    fn open(
        py: Python<'_>,
        address: &str,
        session: &str,
        token: Option<String>,
        authority: Option<Vec<u8>>,
        certificate: Option<(Vec<u8>, Vec<u8>)>,
        seconds: f64,
    ) -> PyResult<Self> {
        let limit = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mut options = ClientOptions::new().with_timeout(limit).with_state_names(session, []);
        if let Some(token) = token {
            options = options.with_token(token);
        }
        if let Some(authority) = authority {
            options = options.with_certificate_authority(authority);
        }
        if let Some((certificate, key)) = certificate {
            options = options.with_certificate(certificate, key);
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let client = wait(py, &runtime, Client::connect_with(address, options))?;
        Ok(Self { client, kept: Mutex::default(), put: Mutex::default(), runtime })
    }

    /// Names of the arrays that the state has now, with their types and shapes.
    fn arrays(&self, py: Python<'_>) -> PyResult<Vec<(String, &'static str, Vec<i64>)>> {
        let kept = wait(py, &self.runtime, self.client.current_state_arrays())?;
        let described = kept.iter().map(|(name, array)| {
            (name.clone(), array.dtype().name(), array.shape().dims().to_vec())
        });
        let described = described.collect();
        *lock(&self.kept) = kept;
        Ok(described)
    }

    /// Puts an array on the server.
    fn put(&self, py: Python<'_>, given: GivenArray<'_>) -> PyResult<()> {
        let (dtype, dims, devices, words, kind, array) = given;
        let sharding = sharding_of(&devices, words.as_deref(), kind)?;
        let sharding = match sharding {
            Sharding::Hlo(sharding) => sharding,
            // The server splits the array only by the serialized sharding.
            other => {
                let first = DeviceList::new(other.devices().ids().iter().copied().take(1));
                HloSharding::replicated(first, other.memory_kind().clone())
                    .map_err(|error| PyValueError::new_err(error.to_string()))?
            }
        };
        let spec: ArraySpec = spec_of(&dtype, &dims, sharding)?;
        let bytes = Readable::of(&array)?.bytes().to_vec();
        let made = wait(py, &self.runtime, async {
            let made = self.client.put_as(&spec, bytes).await?;
            self.client.wait(&made).await?;
            Ok(made)
        })?;
        lock(&self.put).push(made);
        Ok(())
    }

    /// Has the state keep the arrays that were put, by these names, in place of all below `name`.
    /// The last one stays in the session, which does not end while it has an array.
    #[pyo3(signature = (name, names, previous_token))]
    fn keep(
        &self,
        py: Python<'_>,
        name: &str,
        names: Vec<String>,
        previous_token: Option<&str>,
    ) -> PyResult<()> {
        let put = std::mem::take(&mut *lock(&self.put));
        let arrays = names.iter().map(String::as_str).zip(&put);
        let kept = interruptibly(py, &self.runtime, self.client.keep(name, arrays, previous_token));
        kept?.map_err(|error| unkept(&error))?;
        let last = names.into_iter().zip(put).last();
        *lock(&self.kept) = last.into_iter().collect();
        Ok(())
    }

    /// Lets go of arrays that were put and not kept, and of those of the state but for one.
    fn release(&self, but: &str) {
        lock(&self.put).clear();
        lock(&self.kept).retain(|(name, _)| name == but);
    }

    /// Reads all of an array of the state.
    fn read_into(&self, py: Python<'_>, name: &str, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut memory = Writable::of([array])?;
        let found = {
            let kept = lock(&self.kept);
            let found = kept.iter().find(|(known, _)| known == name);
            let missing = || PyKeyError::new_err(format!("the server keeps no array {name:?}"));
            let (_, array) = found.ok_or_else(missing)?;
            wait(py, &self.runtime, self.client.get(array))?
        };
        let target = memory.bytes().into_iter().next();
        match target.filter(|target| target.len() == found.len()) {
            Some(target) => target.copy_from_slice(&found),
            None => {
                let words = format!("{name:?} has {} bytes on the server", found.len());
                return Err(PyValueError::new_err(words));
            }
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for an answer of the server, unless Ctrl-C interrupts it.
fn wait<T: Send>(
    py: Python<'_>,
    runtime: &Runtime,
    work: impl Future<Output = Result<T, ProxyError>> + Send,
) -> PyResult<T> {
    interruptibly(py, runtime, work)?.map_err(|error| failure(&error))
}

/// Like [`wait`], but returns the unconverted error.
fn interruptibly<T: Send>(
    py: Python<'_>,
    runtime: &Runtime,
    work: impl Future<Output = Result<T, ProxyError>> + Send,
) -> PyResult<Result<T, ProxyError>> {
    let done = interruptible(py, None, 0, |monitor| {
        runtime.block_on(async {
            tokio::select! {
                done = work => Some(done),
                () = stopped(monitor) => None,
            }
        })
    })?;
    done.ok_or_else(|| PyKeyboardInterrupt::new_err(()))
}

async fn stopped(monitor: &ProgressMonitor) {
    while !monitor.is_cancelled() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Returns the error for arrays that cannot be stored: a `NotImplementedError` if the server stores
/// none at all.
fn unkept(error: &ProxyError) -> PyErr {
    match error {
        ProxyError::Status(status)
            if matches!(
                status.code(),
                StatusCode::Unimplemented | StatusCode::FailedPrecondition
            ) =>
        {
            PyNotImplementedError::new_err(error.to_string())
        }
        error => failure(error),
    }
}

fn failure(error: &ProxyError) -> PyErr {
    let words = error.to_string();
    if matches!(error, ProxyError::Connection { .. }) {
        PyConnectionError::new_err(words)
    } else {
        PyRuntimeError::new_err(words)
    }
}
