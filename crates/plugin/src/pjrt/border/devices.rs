//! Calls on devices, their descriptions, and memories.

use std::{ffi::c_int, sync::Arc};

use serdes_abi::pjrt::args::*;

use crate::{
    Result, Status,
    pjrt::{
        Device, Plugin,
        client::{OpenClient, OpenDevice, OpenMemory, id},
    },
};

/// Returns the client of a device, which lives as long as a host uses the device.
fn alive<P: Plugin>(client: &std::sync::Weak<OpenClient<P>>) -> Result<Arc<OpenClient<P>>> {
    client.upgrade().ok_or_else(|| Status::failed_precondition("the client was destroyed"))
}

/// Returns the handles of a device's memories, which the client owns.
fn memories<P: Plugin>(device: &OpenDevice<P>) -> Result<(*const *mut PJRT_Memory, usize)> {
    let client = alive(&device.client)?;
    let memories = client.memory_handles().all().get(device.memories.clone()).unwrap_or_default();
    Ok((memories.as_ptr(), memories.len()))
}

fn device_handle<P: Plugin>(memory: &OpenMemory<P>) -> Result<*const *mut PJRT_Device> {
    let client = alive(&memory.client)?;
    let device = client.device_handles().all().get(memory.device);
    device.map(std::ptr::from_ref).ok_or_else(|| Status::internal("there is no such device"))
}

calls! {
    description_id<P>(PJRT_DeviceDescription_Id_Args: arguments, device_description: description::<P>) {
        arguments.id = id(device_description.index);
    }

    /// Returns 0: there is one process.
    description_process_index<P>(PJRT_DeviceDescription_ProcessIndex_Args: arguments, device_description: description::<P>) {
        let _ = device_description;
        arguments.process_index = 0;
    }

    description_attributes<P>(PJRT_DeviceDescription_Attributes_Args: arguments, device_description: description::<P>) {
        let entries = device_description.attributes.entries();
        (arguments.attributes, arguments.num_attributes) = (entries.as_ptr(), entries.len());
    }

    description_kind<P>(PJRT_DeviceDescription_Kind_Args: arguments, device_description: description::<P>) {
        arguments.device_kind = device_description.kind.as_ptr().cast();
        arguments.device_kind_size = device_description.kind.len();
    }

    description_debug_string<P>(PJRT_DeviceDescription_DebugString_Args: arguments, device_description: description::<P>) {
        arguments.debug_string = device_description.text.as_ptr().cast();
        arguments.debug_string_size = device_description.text.len();
    }

    description_to_string<P>(PJRT_DeviceDescription_ToString_Args: arguments, device_description: description::<P>) {
        arguments.to_string = device_description.text.as_ptr().cast();
        arguments.to_string_size = device_description.text.len();
    }

    /// Returns the device itself: a device and its description have one handle.
    description<P>(PJRT_Device_GetDescription_Args: arguments, device: device::<P>) {
        arguments.device_description = std::ptr::from_ref(device).cast_mut().cast();
    }

    is_addressable<P>(PJRT_Device_IsAddressable_Args: arguments, device: device::<P>) {
        let _ = device;
        arguments.is_addressable = 1;
    }

    local_hardware_id<P>(PJRT_Device_LocalHardwareId_Args: arguments, device: device::<P>) {
        arguments.local_hardware_id = device.local_hardware_id;
    }

    addressable_memories<P>(PJRT_Device_AddressableMemories_Args: arguments, device: device::<P>) {
        (arguments.memories, arguments.num_memories) = memories(device)?;
    }

    default_memory<P>(PJRT_Device_DefaultMemory_Args: arguments, device: device::<P>) {
        let client = alive(&device.client)?;
        let memory = client.memory_handles().get(device.memories.start);
        arguments.memory = memory.ok_or_else(|| Status::internal("there is no such memory"))?;
    }

    memory_stats<P>(PJRT_Device_MemoryStats_Args: arguments, device: device::<P>) {
        let stats = device.device.memory_stats().ok_or_else(|| {
            Status::unimplemented("this plug-in keeps no statistics of its memory")
        })?;
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let optional = |value: Option<u64>| (number(value.unwrap_or(0)), u8::from(value.is_some()));
        arguments.bytes_in_use = number(stats.bytes_in_use);
        (arguments.peak_bytes_in_use, arguments.peak_bytes_in_use_is_set) =
            (number(stats.peak_bytes_in_use), 1);
        (arguments.num_allocs, arguments.num_allocs_is_set) = (number(stats.allocations), 1);
        (arguments.largest_alloc_size, arguments.largest_alloc_size_is_set) =
            (number(stats.largest_allocation), 1);
        (arguments.bytes_limit, arguments.bytes_limit_is_set) = optional(stats.limit);
        (arguments.bytes_reserved, arguments.bytes_reserved_is_set) =
            (number(stats.bytes_reserved), 1);
        (arguments.peak_bytes_reserved, arguments.peak_bytes_reserved_is_set) =
            (number(stats.peak_bytes_reserved), 1);
        (arguments.bytes_reservable_limit, arguments.bytes_reservable_limit_is_set) =
            optional(stats.reservable_limit);
        (arguments.largest_free_block_bytes, arguments.largest_free_block_bytes_is_set) =
            (number(stats.largest_free_block), 1);
        // Values that only newer hosts query are unknown.
        arguments.pool_bytes_is_set = 0;
        arguments.peak_pool_bytes_is_set = 0;
        arguments.peak_allocated_bytes_is_set = 0;
    }

    /// Returns the attributes of a device. They belong to the client, so the deleter frees nothing.
    device_attributes<P>(PJRT_Device_GetAttributes_Args: arguments, device: device::<P>) {
        let entries = device.attributes.entries();
        (arguments.attributes, arguments.num_attributes) = (entries.as_ptr(), entries.len());
        arguments.device_attributes = std::ptr::from_ref(device).cast_mut().cast();
        arguments.attributes_deleter = Some(keep);
    }

    memory_id<P>(PJRT_Memory_Id_Args: arguments, memory: memory::<P>) {
        arguments.id = id(memory.index);
    }

    memory_kind<P>(PJRT_Memory_Kind_Args: arguments, memory: memory::<P>) {
        (arguments.kind, arguments.kind_size) = (memory.kind.as_ptr().cast(), memory.kind.len());
    }

    memory_kind_id<P>(PJRT_Memory_Kind_Id_Args: arguments, memory: memory::<P>) {
        arguments.kind_id = memory.kind_id as c_int;
    }

    memory_debug_string<P>(PJRT_Memory_DebugString_Args: arguments, memory: memory::<P>) {
        arguments.debug_string = memory.text.as_ptr().cast();
        arguments.debug_string_size = memory.text.len();
    }

    memory_to_string<P>(PJRT_Memory_ToString_Args: arguments, memory: memory::<P>) {
        arguments.to_string = memory.text.as_ptr().cast();
        arguments.to_string_size = memory.text.len();
    }

    memory_devices<P>(PJRT_Memory_AddressableByDevices_Args: arguments, memory: memory::<P>) {
        (arguments.devices, arguments.num_devices) = (device_handle(memory)?, 1);
    }
}

/// Frees nothing.
///
/// # Safety
/// None is needed.
unsafe extern "C" fn keep(_attributes: *mut PJRT_Device_Attributes) {}
