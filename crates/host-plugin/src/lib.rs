//! The reference StreamExecutor plug-in over host memory, as a shared library.
//!
//! Options come from the environment variable `SERDES_HOST_PLUGIN`, in the form
//! `devices=2,memory=1073741824`.

serdes_plugin::export!(serdes_host_memory::HostMemory::from_environment);
