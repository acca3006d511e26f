//! Arrays in the state of a server of the IFRT proxy, which clients of JAX cannot name or reach.

use std::{
    future::Future,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use pyo3::{
    exceptions::{
        PyConnectionError, PyKeyError, PyKeyboardInterrupt, PyRuntimeError, PyValueError,
    },
    prelude::*,
};
use serdes::ifrt::{ArraySpec, DeviceList, HloSharding, Sharding};
use serdes_device_state::files::Watch;
use serdes_proxy::{Client, ClientOptions, ProxyError, RemoteArray};
use tokio::runtime::{Builder, Runtime};

use crate::{
    memory::{Readable, Writable},
    work::interruptible,
    writer::{sharding_of, spec_of},
};

/// Interval at which work looks whether it was stopped.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// An array: type in IFRT's words, shape, the ids of all devices, the sharding in XLA's words where
/// there are some, the kind of memory, its elements.
type GivenArray<'py> =
    (String, Vec<i64>, Vec<i32>, Option<String>, Option<String>, Bound<'py, PyAny>);

/// A session with a server that keeps arrays in its state.
#[pyclass(frozen, module = "serdes_ml._native")]
pub(crate) struct Session {
    client: Client,
    kept: Vec<(String, RemoteArray)>,
    put: Mutex<Vec<RemoteArray>>,
    /// Dropped last: the arrays and the client need it.
    runtime: Runtime,
}

#[pymethods]
impl Session {
    /// Opens a session of a name, whose arrays get names in the order in which they are put.
    #[staticmethod]
    #[pyo3(signature = (address, session, names, token, authority, certificate, seconds))]
    #[expect(clippy::too_many_arguments, reason = "they are those of a function of Python")]
    fn open(
        py: Python<'_>,
        address: &str,
        session: &str,
        names: Vec<String>,
        token: Option<String>,
        authority: Option<Vec<u8>>,
        certificate: Option<(Vec<u8>, Vec<u8>)>,
        seconds: f64,
    ) -> PyResult<Self> {
        let limit = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mut options = ClientOptions::new()
            .with_timeout(limit)
            .with_state_names(session, names.iter().map(String::as_str));
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
        let kept = client.state_arrays().map_err(|error| failure(&error))?;
        Ok(Self { client, kept, put: Mutex::default(), runtime })
    }

    /// Names of the arrays in the state, with their types and shapes.
    fn arrays(&self) -> Vec<(&str, &'static str, Vec<i64>)> {
        let described = self.kept.iter().map(|(name, array)| {
            (name.as_str(), array.dtype().name(), array.shape().dims().to_vec())
        });
        described.collect()
    }

    /// Puts an array on the server, under the next name.
    fn put(&self, py: Python<'_>, given: GivenArray<'_>) -> PyResult<()> {
        let (dtype, dims, devices, words, kind, array) = given;
        let sharding = sharding_of(&devices, words.as_deref(), kind)?;
        let sharding = match sharding {
            Sharding::Hlo(sharding) => sharding,
            // The server cuts by words alone.
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
        self.put.lock().unwrap_or_else(PoisonError::into_inner).push(made);
        Ok(())
    }

    /// Leaves the arrays that were put to the server.
    fn leave(&self) {
        let put = std::mem::take(&mut *self.put.lock().unwrap_or_else(PoisonError::into_inner));
        put.into_iter().for_each(RemoteArray::leave);
    }

    /// Reads all of an array of the state.
    fn read_into(&self, py: Python<'_>, name: &str, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let kept = self.find(name)?;
        let mut memory = Writable::of([array])?;
        let found = wait(py, &self.runtime, self.client.get(kept))?;
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

    /// Takes arrays out of the state.
    fn delete(&self, py: Python<'_>, names: Vec<String>) -> PyResult<()> {
        for name in &names {
            let kept = self.find(name)?;
            wait(py, &self.runtime, self.client.delete(kept))?;
        }
        Ok(())
    }
}

impl Session {
    fn find(&self, name: &str) -> PyResult<&RemoteArray> {
        let found = self.kept.iter().find(|(known, _)| known == name);
        let missing = || PyKeyError::new_err(format!("the server keeps no array {name:?}"));
        found.map(|(_, array)| array).ok_or_else(missing)
    }
}

/// Waits for an answer of the server, unless Ctrl-C stops it.
fn wait<T: Send>(
    py: Python<'_>,
    runtime: &Runtime,
    work: impl Future<Output = Result<T, ProxyError>> + Send,
) -> PyResult<T> {
    let done = interruptible(py, None, 0, |watch| {
        runtime.block_on(async {
            tokio::select! {
                done = work => Some(done),
                () = stopped(watch) => None,
            }
        })
    })?;
    done.ok_or_else(|| PyKeyboardInterrupt::new_err(()))?.map_err(|error| failure(&error))
}

async fn stopped(watch: &Watch) {
    while !watch.is_cancelled() {
        tokio::time::sleep(LOOK_EVERY).await;
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
