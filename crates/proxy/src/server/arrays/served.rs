//! The devices that a server serves.

use serdes_pjrt::Client;
use serdes_stream_executor::Plugin;

/// The devices that a server serves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServedDevices {
    /// Devices of a StreamExecutor plug-in.
    Plugin(Plugin),
    /// Devices of a PJRT client that this process can use.
    Client(Client),
}

impl From<&Plugin> for ServedDevices {
    fn from(plugin: &Plugin) -> Self {
        Self::Plugin(plugin.clone())
    }
}

impl From<&Client> for ServedDevices {
    fn from(client: &Client) -> Self {
        Self::Client(client.clone())
    }
}
