//! The table of functions that `GetPjrtApi` hands out.

use std::{
    any::TypeId,
    collections::HashMap,
    ffi::c_int,
    ptr,
    sync::{Mutex, OnceLock, PoisonError},
};

use serdes_abi::pjrt::{self, Minor, args::*};

use super::{
    NamedValues, arrays, clients, devices, errors, events, layouts,
    refusals::{FIRST_SLOT, REFUSALS, SLOTS},
    topologies, transfers,
};
use crate::{
    Result,
    pjrt::{NEWEST_MINOR, Plugin},
};

/// The table as it lies in memory, as long as the newest one; what the plug-in's minor does not
/// have is NULL, and beyond its size.
#[repr(C)]
struct Api {
    struct_size: usize,
    extension_start: *const layouts::Extension,
    version: Version,
    functions: [*const (); SLOTS],
}

#[repr(C)]
struct Version {
    struct_size: usize,
    extension_start: *const (),
    major: c_int,
    minor: c_int,
}

const _: () = assert!(std::mem::offset_of!(Api, functions) == FIRST_SLOT);

// SAFETY: addresses of functions and of an extension that is never freed; nobody writes them.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// The table of a plug-in, made when a host first asks for it. `export_pjrt!` has one.
pub struct ApiTable(OnceLock<(Box<layouts::Extension>, Box<Api>)>);

impl ApiTable {
    /// A table that is made later.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The address of the table of that plug-in: what `GetPjrtApi` answers. It is good as long as
    /// the value is, which is to be a `static`.
    pub fn get<P: Plugin>(&self) -> *const () {
        let (_, api) = self.0.get_or_init(|| {
            let extension = Box::new(layouts::Extension::new::<P>());
            let api = Box::new(Api::new::<P>(&raw const *extension));
            (extension, api)
        });
        ptr::from_ref::<Api>(api).cast()
    }
}

impl Default for ApiTable {
    fn default() -> Self {
        Self::new()
    }
}

impl Api {
    fn new<P: Plugin>(extension_start: *const layouts::Extension) -> Self {
        const {
            let minor = P::MINOR.number();
            assert!(
                minor >= Minor::APPEND_ONLY.number() && minor <= NEWEST_MINOR.number(),
                "Plugin::MINOR is between Minor::APPEND_ONLY and NEWEST_MINOR"
            );
        };
        let struct_size = pjrt::table_size(P::MINOR).map_or(0, |size| size.declared);
        let mut functions = [ptr::null(); SLOTS];
        let in_table = (struct_size - FIRST_SLOT) / size_of::<*const ()>();
        for (slot, refusal) in functions.iter_mut().zip(REFUSALS).take(in_table) {
            *slot = refusal as *const ();
        }
        for (name, function) in own::<P>() {
            let slot = pjrt::function(name).and_then(|function| function.slot(P::MINOR));
            if let Some(slot) = slot.and_then(|slot| functions.get_mut(slot)) {
                *slot = function;
            }
        }
        let version = Version {
            struct_size: size_of::<Version>(),
            extension_start: ptr::null(),
            major: 0,
            minor: P::MINOR.number().cast_signed(),
        };
        Self { struct_size, extension_start, version, functions }
    }
}

/// The functions that a plug-in of this SDK has: names, and addresses of functions that take a
/// pointer and answer an error, or nothing.
macro_rules! functions {
    ($($name:ident = $function:expr;)*) => {
        vec![$((stringify!($name), $function as unsafe extern "C" fn(*mut _) -> _ as *const ())),*]
    };
}

fn own<P: Plugin>() -> Vec<(&'static str, *const ())> {
    functions! {
        PJRT_Error_Destroy = errors::destroy;
        PJRT_Error_Message = errors::message;
        PJRT_Error_GetCode = errors::code;
        PJRT_Error_ForEachPayload = errors::for_each_payload;
        PJRT_Plugin_Initialize = initialize;
        PJRT_Plugin_Attributes = attributes::<P>;
        PJRT_Event_Destroy = events::destroy;
        PJRT_Event_IsReady = events::is_ready;
        PJRT_Event_Error = events::error;
        PJRT_Event_Await = events::wait;
        PJRT_Event_OnReady = events::on_ready;
        PJRT_Event_Create = events::create;
        PJRT_Event_Set = events::set;
        PJRT_Client_Create = clients::create::<P>;
        PJRT_Client_Destroy = clients::destroy::<P>;
        PJRT_Client_PlatformName = clients::platform_name::<P>;
        PJRT_Client_PlatformVersion = clients::platform_version::<P>;
        PJRT_Client_ProcessIndex = clients::process_index::<P>;
        PJRT_Client_Devices = clients::devices::<P>;
        PJRT_Client_AddressableDevices = clients::addressable_devices::<P>;
        PJRT_Client_AddressableMemories = clients::addressable_memories::<P>;
        PJRT_Client_LookupDevice = clients::lookup_device::<P>;
        PJRT_Client_LookupAddressableDevice = clients::lookup_addressable_device::<P>;
        PJRT_Client_DefaultDeviceAssignment = clients::default_device_assignment::<P>;
        PJRT_Client_TopologyDescription = clients::topology::<P>;
        PJRT_Client_DmaMap = clients::dma_map::<P>;
        PJRT_Client_DmaUnmap = clients::dma_unmap::<P>;
        PJRT_Client_BufferFromHostBuffer = arrays::from_host::<P>;
        PJRT_Client_CreateUninitializedBuffer = arrays::uninitialized::<P>;
        PJRT_Client_CreateErrorBuffer = arrays::failed::<P>;
        PJRT_Client_CreateBuffersForAsyncHostToDevice = transfers::create::<P>;
        PJRT_DeviceDescription_Id = devices::description_id::<P>;
        PJRT_DeviceDescription_ProcessIndex = devices::description_process_index::<P>;
        PJRT_DeviceDescription_Attributes = devices::description_attributes::<P>;
        PJRT_DeviceDescription_Kind = devices::description_kind::<P>;
        PJRT_DeviceDescription_DebugString = devices::description_debug_string::<P>;
        PJRT_DeviceDescription_ToString = devices::description_to_string::<P>;
        PJRT_Device_GetDescription = devices::description::<P>;
        PJRT_Device_IsAddressable = devices::is_addressable::<P>;
        PJRT_Device_LocalHardwareId = devices::local_hardware_id::<P>;
        PJRT_Device_AddressableMemories = devices::addressable_memories::<P>;
        PJRT_Device_DefaultMemory = devices::default_memory::<P>;
        PJRT_Device_MemoryStats = devices::memory_stats::<P>;
        PJRT_Device_GetAttributes = devices::device_attributes::<P>;
        PJRT_Memory_Id = devices::memory_id::<P>;
        PJRT_Memory_Kind = devices::memory_kind::<P>;
        PJRT_Memory_Kind_Id = devices::memory_kind_id::<P>;
        PJRT_Memory_DebugString = devices::memory_debug_string::<P>;
        PJRT_Memory_ToString = devices::memory_to_string::<P>;
        PJRT_Memory_AddressableByDevices = devices::memory_devices::<P>;
        PJRT_Buffer_Destroy = arrays::destroy::<P>;
        PJRT_Buffer_ElementType = arrays::element_type::<P>;
        PJRT_Buffer_Dimensions = arrays::dimensions::<P>;
        PJRT_Buffer_UnpaddedDimensions = arrays::unpadded_dimensions::<P>;
        PJRT_Buffer_DynamicDimensionIndices = arrays::dynamic_dimensions::<P>;
        PJRT_Buffer_GetMemoryLayout = arrays::layout::<P>;
        PJRT_Buffer_OnDeviceSizeInBytes = arrays::on_device_size::<P>;
        PJRT_Buffer_Device = arrays::device::<P>;
        PJRT_Buffer_Memory = arrays::memory::<P>;
        PJRT_Buffer_IsOnCpu = arrays::is_on_cpu::<P>;
        PJRT_Buffer_ReadyEvent = arrays::ready::<P>;
        PJRT_Buffer_Delete = arrays::delete::<P>;
        PJRT_Buffer_IsDeleted = arrays::is_deleted::<P>;
        PJRT_Buffer_UnsafePointer = arrays::address::<P>;
        PJRT_Buffer_OpaqueDeviceMemoryDataPointer = arrays::data_pointer::<P>;
        PJRT_Buffer_IncreaseExternalReferenceCount = arrays::hold::<P>;
        PJRT_Buffer_DecreaseExternalReferenceCount = arrays::release::<P>;
        PJRT_Buffer_ToHostBuffer = arrays::to_host::<P>;
        PJRT_Buffer_CopyRawToHost = arrays::raw_to_host::<P>;
        PJRT_Buffer_CopyRawToHostFuture = arrays::raw_to_host_future::<P>;
        PJRT_Buffer_CopyToDevice = arrays::to_device::<P>;
        PJRT_Buffer_CopyToMemory = arrays::to_memory::<P>;
        PJRT_AsyncHostToDeviceTransferManager_Destroy = transfers::destroy::<P>;
        PJRT_AsyncHostToDeviceTransferManager_TransferData = transfers::transfer::<P>;
        PJRT_AsyncHostToDeviceTransferManager_TransferLiteral = transfers::literal::<P>;
        PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer = transfers::buffer::<P>;
        PJRT_AsyncHostToDeviceTransferManager_Device = transfers::device::<P>;
        PJRT_AsyncHostToDeviceTransferManager_BufferCount = transfers::count::<P>;
        PJRT_AsyncHostToDeviceTransferManager_BufferSize = transfers::size::<P>;
        PJRT_AsyncHostToDeviceTransferManager_SetBufferError = transfers::fail::<P>;
        PJRT_AsyncHostToDeviceTransferManager_AddMetadata = transfers::metadata::<P>;
        PJRT_TopologyDescription_PlatformName = topologies::platform_name::<P>;
        PJRT_TopologyDescription_PlatformVersion = topologies::platform_version::<P>;
        PJRT_TopologyDescription_GetDeviceDescriptions = topologies::descriptions::<P>;
        PJRT_TopologyDescription_Attributes = topologies::attributes::<P>;
        PJRT_TopologyDescription_Serialize = topologies::serialize::<P>;
        PJRT_TopologyDescription_Fingerprint = topologies::fingerprint::<P>;
    }
}

calls! {
    /// There is nothing to be prepared.
    initialize(PJRT_Plugin_Initialize_Args: _arguments) {}

    attributes<P>(PJRT_Plugin_Attributes_Args: arguments) {
        let entries = attributes_of::<P>().entries();
        (arguments.attributes, arguments.num_attributes) = (entries.as_ptr(), entries.len());
    }
}

/// What a plug-in says of itself, asked once. A host keeps it as long as the process lives, so it
/// is never freed.
fn attributes_of<P: Plugin>() -> &'static NamedValues {
    static ASKED: Mutex<Option<HashMap<TypeId, &'static NamedValues>>> = Mutex::new(None);
    let known = |plugin| {
        let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
        asked.as_ref().and_then(|asked| asked.get(plugin).copied())
    };
    let plugin = TypeId::of::<P>();
    if let Some(known) = known(&plugin) {
        return known;
    }
    // Not under the lock: it is the author's code.
    let attributes = NamedValues::new(P::attributes());
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = asked.get_or_insert_default();
    asked.entry(plugin).or_insert_with(|| Box::leak(Box::new(attributes)))
}
