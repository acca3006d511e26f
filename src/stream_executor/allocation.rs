//! Which functions allocate: the executor's, or those of one of the two kinds of allocators that RFC #257 has.

use std::ffi::c_void;

use serdes_abi::rfc::{
    SE_CreateAllocatorParams, SE_CreateCustomAllocatorParams, SP_Allocator, SP_AllocatorFns,
    SP_CustomAllocator, SP_CustomAllocatorFns,
};
use serdes_abi::{
    SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase, SP_Platform, SP_StreamExecutor,
};

use super::block::{Block, View};
use super::call::enter;
use super::error::Error;
use super::registration::{Registration, check_size, refuse_status};
use super::report::Report;
use super::status::Status;
use super::table::{self, PlatformTable};

/// The alignment that custom allocators are asked for, in bytes: what TensorFlow asks of its own allocators.
const ALIGNMENT: usize = 64;

/// Who allocates for a plug-in's devices.
#[derive(Debug)]
pub(crate) enum Allocation {
    /// SP_StreamExecutor, in all released layouts.
    Executor,
    /// SP_AllocatorFns of `create_allocator`.
    Allocator { block: Block, functions_block: Block, functions: SP_AllocatorFns, unified: bool },
    /// SP_CustomAllocatorFns of `create_custom_allocator`.
    Custom { block: Block, functions_block: Block, functions: SP_CustomAllocatorFns },
}

impl Allocation {
    /// Makes the allocator that the plug-in has, if it has one, and checks its functions.
    pub(crate) fn new(registration: &Registration, report: &mut Report) -> Self {
        let table = &registration.table.allocators;
        let platform = registration.platform.as_ptr::<SP_Platform>().cast_const();
        if let Some(create) = table.create_allocator {
            let (structure, functions_structure) =
                const { (&SP_Allocator::LAYOUT, &SP_AllocatorFns::LAYOUT) };
            let block = Block::new(SP_Allocator::STRUCT_SIZE);
            let functions_block = Block::new(SP_AllocatorFns::STRUCT_SIZE);
            let mut parameters = SE_CreateAllocatorParams {
                struct_size: SE_CreateAllocatorParams::STRUCT_SIZE,
                ext: std::ptr::null_mut(),
                allocator: block.as_ptr(),
                allocator_fns: functions_block.as_ptr(),
            };
            let mut status = Status::new();
            {
                let _call = enter(&"create_allocator");
                // SAFETY: the platform is the plug-in's own; parameters, blocks and status live through the call.
                unsafe { create(platform, &raw mut parameters, status.as_mut_ptr()) };
            }
            if refuse_status(status, "create_allocator", report) {
                return Self::Executor;
            }
            check_size(&block, structure, report);
            check_size(&functions_block, functions_structure, report);
            let functions = table::allocator_functions(View::new(
                &functions_block,
                functions_structure,
                functions_block.struct_size(),
            ));
            let unified = View::new(&block, structure, block.struct_size())
                .scalar::<u8>("supports_unified_memory")
                .is_some_and(|value| value != 0);
            requirements(
                report,
                "SP_AllocatorFns",
                &[
                    ("allocate", functions.allocate.is_some(), true),
                    ("deallocate", functions.deallocate.is_some(), true),
                    ("host_memory_allocate", functions.host_memory_allocate.is_some(), true),
                    ("host_memory_deallocate", functions.host_memory_deallocate.is_some(), true),
                    (
                        "unified_memory_allocate",
                        functions.unified_memory_allocate.is_some(),
                        unified,
                    ),
                    (
                        "unified_memory_deallocate",
                        functions.unified_memory_deallocate.is_some(),
                        unified,
                    ),
                    ("get_allocator_stats", functions.get_allocator_stats.is_some(), true),
                    ("device_memory_usage", functions.device_memory_usage.is_some(), true),
                ],
            );
            return Self::Allocator { block, functions_block, functions, unified };
        }
        if let Some(create) = table.create_custom_allocator {
            let (structure, functions_structure) =
                const { (&SP_CustomAllocator::LAYOUT, &SP_CustomAllocatorFns::LAYOUT) };
            let block = Block::new(SP_CustomAllocator::STRUCT_SIZE);
            let functions_block = Block::new(SP_CustomAllocatorFns::STRUCT_SIZE);
            let mut parameters = SE_CreateCustomAllocatorParams {
                struct_size: SE_CreateCustomAllocatorParams::STRUCT_SIZE,
                ext: std::ptr::null_mut(),
                custom_allocator: block.as_ptr(),
                custom_allocator_fns: functions_block.as_ptr(),
            };
            let mut status = Status::new();
            {
                let _call = enter(&"create_custom_allocator");
                // SAFETY: the platform is the plug-in's own; parameters, blocks and status live through the call.
                unsafe { create(platform, &raw mut parameters, status.as_mut_ptr()) };
            }
            if refuse_status(status, "create_custom_allocator", report) {
                return Self::Executor;
            }
            check_size(&block, structure, report);
            check_size(&functions_block, functions_structure, report);
            let functions = table::custom_allocator_functions(View::new(
                &functions_block,
                functions_structure,
                functions_block.struct_size(),
            ));
            requirements(
                report,
                "SP_CustomAllocatorFns",
                &[
                    ("allocate_raw", functions.allocate_raw.is_some(), true),
                    ("deallocate_raw", functions.deallocate_raw.is_some(), true),
                    ("host_allocate_raw", functions.host_allocate_raw.is_some(), false),
                    (
                        "host_deallocate_raw",
                        functions.host_deallocate_raw.is_some(),
                        functions.host_allocate_raw.is_some(),
                    ),
                    ("get_allocator_stats", functions.get_allocator_stats.is_some(), false),
                    ("device_memory_usage", functions.device_memory_usage.is_some(), false),
                ],
            );
            return Self::Custom { block, functions_block, functions };
        }
        Self::Executor
    }

    /// Whether the executor allocates.
    pub(crate) fn is_executor(&self) -> bool {
        matches!(self, Self::Executor)
    }

    /// Whether the plug-in has the RFC's allocator for the default strategy, which is best fit with coalescing.
    pub(crate) fn asks_for_bfc(&self) -> bool {
        matches!(self, Self::Allocator { .. })
    }

    /// Whether there is unified memory, given what the platform says.
    pub(crate) fn supports_unified_memory(&self, platform: bool) -> bool {
        match self {
            Self::Executor => platform,
            Self::Allocator { unified, .. } => *unified,
            Self::Custom { .. } => false,
        }
    }

    /// Has the plug-in free what it put into the allocator. The allocator must not be used afterwards.
    pub(crate) fn destroy(&mut self, platform: *const SP_Platform, table: &PlatformTable) {
        match std::mem::replace(self, Self::Executor) {
            Self::Executor => {}
            Self::Allocator { block, functions_block, .. } => {
                if let Some(destroy) = table.allocators.destroy_allocator {
                    let _call = enter(&"destroy_allocator");
                    // SAFETY: both were filled in by create_allocator of this platform, and are destroyed once.
                    unsafe { destroy(platform, block.as_ptr(), functions_block.as_ptr()) };
                }
            }
            Self::Custom { block, functions_block, .. } => {
                if let Some(destroy) = table.allocators.destroy_custom_allocator {
                    let _call = enter(&"destroy_custom_allocator");
                    // SAFETY: both were filled in by create_custom_allocator of this platform, and are destroyed once.
                    unsafe { destroy(platform, block.as_ptr(), functions_block.as_ptr()) };
                }
            }
        }
    }

    /// Allocates device memory into `memory`, which is zeroed and whose size is preset.
    ///
    /// # Safety
    /// `device` is a living device of the plug-in, and `memory` a block's.
    pub(crate) unsafe fn allocate(
        &self,
        executor: &SP_StreamExecutor,
        device: *const SP_Device,
        bytes: u64,
        memory: *mut SP_DeviceMemoryBase,
    ) -> Result<(), Error> {
        match self {
            Self::Executor => {
                let allocate =
                    executor.allocate.ok_or(Error::Unsupported { function: "allocate" })?;
                let _call = enter(&"allocate");
                // SAFETY: the caller's.
                unsafe { allocate(device, bytes, 0, memory) };
            }
            Self::Allocator { block, functions, .. } => {
                let allocate =
                    functions.allocate.ok_or(Error::Unsupported { function: "allocate" })?;
                let _call = enter(&"allocate");
                // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                unsafe { allocate(device, block.as_ptr(), bytes, 0, memory) };
            }
            Self::Custom { block, functions, .. } => {
                let allocate = functions
                    .allocate_raw
                    .ok_or(Error::Unsupported { function: "allocate_raw" })?;
                let size = usize::try_from(bytes)
                    .map_err(|_| Error::OutOfMemory { call: "allocate_raw", bytes })?;
                let _call = enter(&"allocate_raw");
                // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                let opaque = unsafe { allocate(device, block.as_ptr(), size, ALIGNMENT) };
                // SAFETY: the caller's block holds a whole SP_DeviceMemoryBase.
                unsafe {
                    (*memory).opaque = opaque;
                    (*memory).size = bytes;
                }
            }
        }
        Ok(())
    }

    /// Frees device memory.
    ///
    /// # Safety
    /// `device` is a living device, and `memory` describes memory of it that is in use by nobody.
    pub(crate) unsafe fn deallocate(
        &self,
        executor: &SP_StreamExecutor,
        device: *const SP_Device,
        memory: *mut SP_DeviceMemoryBase,
    ) {
        match self {
            Self::Executor => {
                if let Some(deallocate) = executor.deallocate {
                    let _call = enter(&"deallocate");
                    // SAFETY: the caller's.
                    unsafe { deallocate(device, memory) };
                }
            }
            Self::Allocator { block, functions, .. } => {
                if let Some(deallocate) = functions.deallocate {
                    let _call = enter(&"deallocate");
                    // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                    unsafe { deallocate(device, block.as_ptr(), memory) };
                }
            }
            Self::Custom { block, functions, .. } => {
                if let Some(deallocate) = functions.deallocate_raw {
                    let _call = enter(&"deallocate_raw");
                    // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                    unsafe { deallocate(device, block.as_ptr(), (*memory).opaque) };
                }
            }
        }
    }

    /// Allocates host memory that asynchronous copies can use; NULL is failure.
    ///
    /// # Safety
    /// `device` is a living device.
    pub(crate) unsafe fn allocate_host(
        &self,
        executor: &SP_StreamExecutor,
        device: *const SP_Device,
        bytes: u64,
    ) -> Result<*mut c_void, Error> {
        let unsupported = Error::Unsupported { function: "host_memory_allocate" };
        let _call = enter(&"host_memory_allocate");
        // Memory that could never be given back is not asked for.
        match self {
            Self::Executor => {
                match (executor.host_memory_allocate, executor.host_memory_deallocate) {
                    // SAFETY: the caller's.
                    (Some(allocate), Some(_)) => Ok(unsafe { allocate(device, bytes) }),
                    _ => Err(unsupported),
                }
            }
            Self::Allocator { block, functions, .. } => {
                match (functions.host_memory_allocate, functions.host_memory_deallocate) {
                    (Some(allocate), Some(_)) => {
                        // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                        Ok(unsafe { allocate(device, block.as_ptr(), bytes) })
                    }
                    _ => Err(unsupported),
                }
            }
            Self::Custom { block, functions, .. } => {
                match (functions.host_allocate_raw, functions.host_deallocate_raw) {
                    (Some(allocate), Some(_)) => {
                        // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                        Ok(unsafe { allocate(device, block.as_ptr(), bytes) })
                    }
                    _ => Err(unsupported),
                }
            }
        }
    }

    /// Frees host memory of [`Self::allocate_host`].
    ///
    /// # Safety
    /// `device` is a living device, and `memory` came from it and is in use by nobody.
    pub(crate) unsafe fn deallocate_host(
        &self,
        executor: &SP_StreamExecutor,
        device: *const SP_Device,
        memory: *mut c_void,
    ) {
        let _call = enter(&"host_memory_deallocate");
        match self {
            Self::Executor => {
                if let Some(deallocate) = executor.host_memory_deallocate {
                    // SAFETY: the caller's.
                    unsafe { deallocate(device, memory) };
                }
            }
            Self::Allocator { block, functions, .. } => {
                if let Some(deallocate) = functions.host_memory_deallocate {
                    // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                    unsafe { deallocate(device, block.as_ptr(), memory) };
                }
            }
            Self::Custom { block, functions, .. } => {
                if let Some(deallocate) = functions.host_deallocate_raw {
                    // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                    unsafe { deallocate(device, block.as_ptr(), memory) };
                }
            }
        }
    }

    /// Allocates unified memory; NULL is failure.
    ///
    /// # Safety
    /// `device` is a living device.
    pub(crate) unsafe fn allocate_unified(
        &self,
        executor: &SP_StreamExecutor,
        device: *const SP_Device,
        bytes: u64,
    ) -> Result<*mut c_void, Error> {
        let unsupported = Error::Unsupported { function: "unified_memory_allocate" };
        let _call = enter(&"unified_memory_allocate");
        match self {
            Self::Executor => {
                match (executor.unified_memory_allocate, executor.unified_memory_deallocate) {
                    // SAFETY: the caller's.
                    (Some(allocate), Some(_)) => Ok(unsafe { allocate(device, bytes) }),
                    _ => Err(unsupported),
                }
            }
            Self::Allocator { block, functions, .. } => {
                match (functions.unified_memory_allocate, functions.unified_memory_deallocate) {
                    (Some(allocate), Some(_)) => {
                        // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                        Ok(unsafe { allocate(device, block.as_ptr(), bytes) })
                    }
                    _ => Err(unsupported),
                }
            }
            Self::Custom { .. } => Err(unsupported),
        }
    }

    /// Frees unified memory of [`Self::allocate_unified`].
    ///
    /// # Safety
    /// `device` is a living device, and `memory` came from it and is in use by nobody.
    pub(crate) unsafe fn deallocate_unified(
        &self,
        executor: &SP_StreamExecutor,
        device: *const SP_Device,
        memory: *mut c_void,
    ) {
        let _call = enter(&"unified_memory_deallocate");
        match self {
            Self::Executor => {
                if let Some(deallocate) = executor.unified_memory_deallocate {
                    // SAFETY: the caller's.
                    unsafe { deallocate(device, memory) };
                }
            }
            Self::Allocator { block, functions, .. } => {
                if let Some(deallocate) = functions.unified_memory_deallocate {
                    // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                    unsafe { deallocate(device, block.as_ptr(), memory) };
                }
            }
            Self::Custom { .. } => {}
        }
    }

    /// Fills in statistics; false: not available.
    ///
    /// # Safety
    /// `device` is a living device, and `stats` a zeroed block's, its size preset.
    pub(crate) unsafe fn statistics(
        &self,
        executor: &SP_StreamExecutor,
        device: *const SP_Device,
        stats: *mut SP_AllocatorStats,
    ) -> Result<bool, Error> {
        let unsupported = Error::Unsupported { function: "get_allocator_stats" };
        let _call = enter(&"get_allocator_stats");
        let available = match self {
            Self::Executor => match executor.get_allocator_stats {
                // SAFETY: the caller's.
                Some(get) => unsafe { get(device, stats) },
                None => return Err(unsupported),
            },
            Self::Allocator { block, functions, .. } => match functions.get_allocator_stats {
                // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                Some(get) => unsafe { get(device, block.as_ptr(), stats) },
                None => return Err(unsupported),
            },
            Self::Custom { block, functions, .. } => match functions.get_allocator_stats {
                // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                Some(get) => unsafe { get(device, block.as_ptr(), stats) },
                None => return Err(unsupported),
            },
        };
        Ok(available != 0)
    }

    /// Gives free and total bytes; false: not available.
    ///
    /// # Safety
    /// `device` is a living device.
    pub(crate) unsafe fn usage(
        &self,
        executor: &SP_StreamExecutor,
        device: *const SP_Device,
        free: &mut i64,
        total: &mut i64,
    ) -> Result<bool, Error> {
        let unsupported = Error::Unsupported { function: "device_memory_usage" };
        let _call = enter(&"device_memory_usage");
        let available = match self {
            Self::Executor => match executor.device_memory_usage {
                // SAFETY: the caller's.
                Some(get) => unsafe { get(device, free, total) },
                None => return Err(unsupported),
            },
            Self::Allocator { block, functions, .. } => match functions.device_memory_usage {
                // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                Some(get) => unsafe { get(device, block.as_ptr(), free, total) },
                None => return Err(unsupported),
            },
            Self::Custom { block, functions, .. } => match functions.device_memory_usage {
                // SAFETY: the caller's, and the allocator is the one that the plug-in filled in.
                Some(get) => unsafe { get(device, block.as_ptr(), free, total) },
                None => return Err(unsupported),
            },
        };
        Ok(available != 0)
    }
}

/// Records the functions of an allocator that are missing: name, whether it is there, whether it must be.
fn requirements(
    report: &mut Report,
    structure: &'static str,
    functions: &[(&'static str, bool, bool)],
) {
    for &(field, _, required) in functions.iter().filter(|(_, present, _)| !present) {
        super::requirements::missing(report, structure, field, required);
    }
}
