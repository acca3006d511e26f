//! Tests of the host of plug-ins: over the embedded plug-in, and over plug-ins in C of every layout
//! and with every fault switch (`tests/plugins`).

mod header;
mod host;
mod stress;

/// Loading is supported only there.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod loaded {
    mod behaviour;
    mod conformance;
    mod files;
    mod layouts;
    mod memory;
    mod plugins;
    mod refusals;
    mod registry;
    mod saves;
}
