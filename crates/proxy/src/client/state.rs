//! Arrays that a server keeps in its state: names for those of a session, and the way back to them.

use prost::Message as _;
use serdes::{
    codec::FromProto as _,
    ifrt::{AnyDevice, ArraySpec, AttributeValue, with_devices},
    proto::xla::ifrt::ArraySpecProto,
};

use super::{Client, ClientOptions, RemoteArray};
use crate::ProxyError;

/// The keys of the server's attributes; the name of an array follows.
const HANDLE: &str = "serdes.state.handle.";
const SPEC: &str = "serdes.state.spec.";

impl ClientOptions {
    /// Has the server keep the session's arrays in its state: the first one that
    /// [`put_as`](Client::put_as) makes under the first of these names, and so on. They belong to
    /// the clients that open a session of the name `session`, or to this client alone on a server
    /// that knows its clients.
    #[must_use]
    pub fn with_state_names<'a>(
        mut self,
        session: &str,
        arrays: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        // Handles are counted from 1 in each session.
        let names = (1_u64..).zip(arrays);
        let names = names.map(|(handle, name)| (format!("serdes.state.name.{handle}"), name));
        let own = ("serdes.state.name".to_owned(), session);
        let known = self.initialization_data.iter();
        let known = known.map(|(key, value)| (key.to_owned(), value.clone()));
        let names = std::iter::once(own).chain(names);
        let names = names.map(|(key, name)| (key, AttributeValue::from(name)));
        self.initialization_data = known.chain(names).collect();
        self
    }
}

impl Client {
    /// The arrays of the server's state that this client may see, by their names, as they were
    /// when the session began. Dropping one does not take it out of the state;
    /// [`delete`](Self::delete) does.
    ///
    /// # Errors
    /// [`ProxyError::Decode`] if the server describes one in a way that this build does not know.
    pub fn state_arrays(&self) -> Result<Vec<(String, RemoteArray)>, ProxyError> {
        let mut arrays = Vec::new();
        for (key, value) in self.attributes().iter() {
            let (Some(name), AttributeValue::Int64(handle)) = (key.strip_prefix(HANDLE), value)
            else {
                continue;
            };
            let spec = self.attributes().get(&format!("{SPEC}{name}"))?;
            let AttributeValue::String(spec) = spec else {
                return Err(ProxyError::Protocol(format!(
                    "the spec of the array {name:?} is no text"
                )));
            };
            let spec = ArraySpecProto::decode(&spec[..])
                .map_err(|error| ProxyError::Protocol(format!("the spec of {name:?}: {error}")))?;
            // The server has resolved the devices: they are its own.
            let spec = ArraySpec::from_proto(&spec, &with_devices(AnyDevice))?;
            arrays.push((name.to_owned(), self.known(handle.cast_unsigned(), spec)));
        }
        Ok(arrays)
    }
}
