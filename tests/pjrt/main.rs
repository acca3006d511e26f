//! Tests of the host of PJRT plug-ins, over plug-ins in C of many minors and with every fault
//! switch (`tests/plugins/pjrt_plugin.c`).

/// Loading is supported only there.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod loaded {
    mod ahead;
    mod arrays;
    mod awaited;
    mod conformance;
    mod fault_switches;
    mod host_transfers;
    mod minors;
    #[allow(dead_code, reason = "the tests of the proxy ask the plug-in for more")]
    mod plugins;
    mod programs;
    mod state;
    mod transfers;
}
