//! The reference PJRT plug-in over host memory, as a shared library: `libserdes_host_pjrt.so`.
//!
//! A client takes the options `devices` and `memory`; what is not given comes from the environment
//! variable `SERDES_HOST_PLUGIN`, in the form `devices=4,memory=1073741824`.

serdes_plugin::export_pjrt!(serdes_host_memory::pjrt::HostMemoryPjrt);
