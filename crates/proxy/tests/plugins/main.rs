//! Tests of the server over PJRT plug-ins in C, with every fault switch that concerns it
//! (`tests/plugins/pjrt_plugin.c` of the workspace).

/// Loading is supported only there.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod loaded {
    #[allow(dead_code, reason = "the library's tests of the host ask the plug-in for more")]
    #[path = "../../../../../tests/pjrt/loaded/plugins.rs"]
    mod plugins;
    mod served_again;
    mod served_array;
    mod served_callbacks;
    mod served_hang;
    mod served_programs;
}
