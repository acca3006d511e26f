//! The host of PJRT plug-ins, over plug-ins in C of many minors and with every fault switch
//! (`tests/plugins/pjrt_plugin.c`).

/// Loading is supported there alone.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod loaded {
    mod ahead;
    mod arrays;
    mod awaited;
    #[cfg(feature = "conformance")]
    mod conformance;
    mod habits;
    mod host_transfers;
    mod minors;
    mod plugins;
    mod programs;
    #[cfg(feature = "proxy")]
    mod served_array;
    #[cfg(feature = "proxy")]
    mod served_callbacks;
    #[cfg(feature = "proxy")]
    mod served_hang;
    #[cfg(feature = "proxy")]
    mod served_programs;
    mod state;
    mod transfers;
}
