//! Calls on clients.

use std::{ptr::NonNull, slice, sync::Arc};

use serdes_abi::pjrt::args::*;

use super::{pointers, values};
use crate::{
    HostTarget, Result, Status,
    pjrt::{
        Client, Options,
        client::{OpenClient, id},
    },
};

calls! {
    create<P>(PJRT_Client_Create_Args: arguments) {
        // SAFETY: the caller's promise.
        let options = unsafe { values::read(arguments.create_options, arguments.num_options) }?;
        let client = OpenClient::<P>::new(P::create_client(&Options::new(options))?)?;
        arguments.client = pointers::give(client);
    }

    destroy<P>(PJRT_Client_Destroy_Args: arguments) {
        // SAFETY: the host destroys a client once.
        drop(unsafe { pointers::take::<Arc<OpenClient<P>>, _>(arguments.client, "a client") }?);
    }

    platform_name<P>(PJRT_Client_PlatformName_Args: arguments, client: client::<P>) {
        arguments.platform_name = client.platform_name.as_ptr().cast();
        arguments.platform_name_size = client.platform_name.len();
    }

    platform_version<P>(PJRT_Client_PlatformVersion_Args: arguments, client: client::<P>) {
        arguments.platform_version = client.platform_version.as_ptr().cast();
        arguments.platform_version_size = client.platform_version.len();
    }

    /// Returns 0: there is one process.
    process_index<P>(PJRT_Client_ProcessIndex_Args: arguments, client: client::<P>) {
        let _ = client;
        arguments.process_index = 0;
    }

    devices<P>(PJRT_Client_Devices_Args: arguments, client: client::<P>) {
        let devices = client.device_handles().all();
        (arguments.devices, arguments.num_devices) = (devices.as_ptr(), devices.len());
    }

    addressable_devices<P>(PJRT_Client_AddressableDevices_Args: arguments, client: client::<P>) {
        let devices = client.device_handles().all();
        arguments.addressable_devices = devices.as_ptr();
        arguments.num_addressable_devices = devices.len();
    }

    addressable_memories<P>(PJRT_Client_AddressableMemories_Args: arguments, client: client::<P>) {
        let memories = client.memory_handles().all();
        arguments.addressable_memories = memories.as_ptr();
        arguments.num_addressable_memories = memories.len();
    }

    lookup_device<P>(PJRT_Client_LookupDevice_Args: arguments, client: client::<P>) {
        let found = usize::try_from(arguments.id).ok();
        let found = found.and_then(|index| client.device_handles().get(index));
        let id = arguments.id;
        arguments.device =
            found.ok_or_else(|| Status::invalid_argument(format!("there is no device {id}")))?;
    }

    lookup_addressable_device<P>(PJRT_Client_LookupAddressableDevice_Args: arguments, client: client::<P>) {
        let id = arguments.local_hardware_id;
        let found = client.devices.iter().position(|device| device.local_hardware_id == id);
        let found = found.and_then(|index| client.device_handles().get(index));
        arguments.addressable_device = found.ok_or_else(|| {
            Status::invalid_argument(format!("there is no device with the local hardware id {id}"))
        })?;
    }

    /// Assigns devices in their order, each at most once.
    default_device_assignment<P>(PJRT_Client_DefaultDeviceAssignment_Args: arguments, client: client::<P>) {
        let (replicas, partitions) = (arguments.num_replicas, arguments.num_partitions);
        let devices = client.devices.len();
        let count = usize::try_from(replicas).ok().zip(usize::try_from(partitions).ok());
        let count = count
            .and_then(|(replicas, partitions)| replicas.checked_mul(partitions))
            .filter(|count| *count <= devices && *count <= arguments.default_assignment_size)
            .ok_or_else(|| Status::invalid_argument(format!(
                "{replicas} replicas of {partitions} partitions; there are {devices} devices"
            )))?;
        if count > 0 {
            if arguments.default_assignment.is_null() {
                return Err(Status::invalid_argument("found NULL, expected room for devices"));
            }
            // SAFETY: the host provides space for as many numbers as it declares, which was
            // checked.
            let assignment =
                unsafe { slice::from_raw_parts_mut(arguments.default_assignment, count) };
            for (index, device) in assignment.iter_mut().enumerate() {
                *device = id(index);
            }
        }
    }

    topology<P>(PJRT_Client_TopologyDescription_Args: arguments, client: client::<P>) {
        arguments.topology = Arc::as_ptr(client).cast_mut().cast();
    }

    dma_map<P>(PJRT_Client_DmaMap_Args: arguments, client: client::<P>) {
        if arguments.data.is_null() {
            return Err(Status::invalid_argument("found NULL, expected memory to map"));
        }
        // SAFETY: by the C API the memory exists until it is unmapped.
        let memory = unsafe { HostTarget::from_raw(arguments.data, arguments.size) };
        client.client.map_host_memory(&memory)?;
    }

    dma_unmap<P>(PJRT_Client_DmaUnmap_Args: arguments, client: client::<P>) {
        let start = NonNull::new(arguments.data)
            .ok_or_else(|| Status::invalid_argument("found NULL, expected mapped memory"))?;
        client.client.unmap_host_memory(start)?;
    }
}
