//! The plug-in over host memory with the newest table that the SDK knows: `libhost_pjrt_newest.so`.
//!
//! `libserdes_host_pjrt.so` says the minor that most frameworks know. This one shows that nothing
//! but the number changes.

use serdes_host_memory::pjrt::HostMemoryPjrt;
use serdes_plugin::{
    Result,
    pjrt::{Minor, NEWEST_MINOR, Options, Plugin, Value},
};

struct Newest;

impl Plugin for Newest {
    type Client = <HostMemoryPjrt as Plugin>::Client;

    const MINOR: Minor = NEWEST_MINOR;

    fn attributes() -> Vec<(String, Value)> {
        HostMemoryPjrt::attributes()
    }

    fn create_client(options: &Options) -> Result<Self::Client> {
        HostMemoryPjrt::create_client(options)
    }
}

serdes_plugin::export_pjrt!(Newest);
