//! The interface to the C API: all code that dereferences a pointer of the C API, or calls a
//! plug-in's function by its signature.
//!
//! The lowest layer has memory for structs, statuses, and the call in progress, which depend on
//! nothing else here. Above it are a plug-in's functions, in one form for all layouts, and the
//! calls on one device. The module does not depend on the loading of plug-ins, or on the owners of
//! the objects that they create.

mod calls;
mod function_table;
mod memory_functions;
mod status;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod status_shim;
mod struct_memory;
mod time_limit;

pub(super) use calls::Calls;
pub(super) use function_table::{
    FunctionTable, allocator_functions, custom_allocator_functions, device_functions,
    executor_functions, platform_functions, rfc_platform_functions, timer_functions, view,
};
pub(super) use memory_functions::{
    Bound, DeviceAllocate, DeviceFree, HostAllocate, HostFree, MemoryFunctions, Pair, Statistics,
    Usage,
};
pub(super) use status::{FUNCTIONS, Status, report_to_plugin};
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) use status_shim::install as serve_status_functions;
pub(super) use struct_memory::{BLOCK_BYTES, StructMemory, StructView};
pub(super) use time_limit::enter;
pub use time_limit::with_time_limit;
