//! The client: the handshake, the devices of a server, and arrays that live there.

mod array;
mod asking;
mod completing;
mod connection;
mod credentials;
mod devices;
mod options;
mod session;
mod small_transfers;
mod state;
mod transfer;
mod transport;

pub use array::RemoteArray;
pub use asking::{check_health, negotiate, negotiate_with};
pub use devices::{RemoteDevice, RemoteMemory};
pub use options::ClientOptions;
pub use session::Client;
