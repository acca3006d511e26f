//! A small host that uses the C interface, and a platform of devices that dereference no addresses.

use std::{
    ffi::{CStr, CString, c_char},
    ptr,
    sync::Arc,
};

use serdes_abi::{
    Layout, SE_CreateDeviceParams, SE_CreateStreamExecutorParams, SE_PlatformRegistrationParams,
    SP_Device, SP_DeviceMemoryBase, SP_Platform, SP_PlatformFns, SP_Stream, SP_StreamExecutor,
    StatusFunctions, TF_Code, TF_Status, layout_named,
};

use crate::{
    Allocation, AllocationRequest, Allocator, Counters, Description, DeviceMemory, HostSource,
    HostTarget, MemoryDevice, MemoryUsage, Platform, Queued, Result, Settings, Status, register,
    testing::Slab,
};

/// The struct behind a `TF_Status` of this host.
pub(crate) struct HostStatus(TF_Code, CString);

pub(crate) unsafe extern "C" fn new_status() -> *mut TF_Status {
    Box::into_raw(Box::new(HostStatus(TF_Code::OK, CString::default()))).cast()
}

pub(crate) unsafe extern "C" fn delete_status(status: *mut TF_Status) {
    // SAFETY: a status of `new_status`, used no more.
    drop(unsafe { Box::from_raw(status.cast::<HostStatus>()) });
}

pub(crate) unsafe extern "C" fn set_status(
    status: *mut TF_Status,
    code: TF_Code,
    message: *const c_char,
) {
    // SAFETY: a live status of `new_status`, and a text with a NUL.
    unsafe { *status.cast::<HostStatus>() = HostStatus(code, CStr::from_ptr(message).to_owned()) };
}

pub(crate) unsafe extern "C" fn get_code(status: *const TF_Status) -> TF_Code {
    // SAFETY: a live status of `new_status`.
    unsafe { (*status.cast::<HostStatus>()).0 }
}

pub(crate) unsafe extern "C" fn message(status: *const TF_Status) -> *const c_char {
    // SAFETY: a live status of `new_status`.
    unsafe { (*status.cast::<HostStatus>()).1.as_ptr() }
}

pub(crate) const FUNCTIONS: StatusFunctions =
    StatusFunctions { new_status, delete_status, set_status, get_code, message };

/// Runs `operation` with a new status, and returns the status's result.
pub(crate) fn call(operation: impl FnOnce(*mut TF_Status)) -> Result<()> {
    // SAFETY: the functions of this host on a status of its own.
    unsafe {
        let status = new_status();
        operation(status);
        let code = get_code(status);
        let text = CStr::from_ptr(message(status)).to_string_lossy().into_owned();
        delete_status(status);
        if code == TF_Code::OK { Ok(()) } else { Err(Status::new(code, text)) }
    }
}

/// Slabs, and the fault switches of a test.
#[derive(Clone, Default)]
pub(crate) struct Slabs {
    pub(crate) name: Option<&'static str>,
    pub(crate) layout: Option<&'static Layout>,
    pub(crate) allocator: Allocator,
    pub(crate) counters: Arc<Counters>,
    pub(crate) panics: bool,
}

pub(crate) struct PanickingSlab(Slab, bool);

impl MemoryDevice for PanickingSlab {
    fn description(&self) -> Description {
        Description {
            hardware_name: Some("slab\0cut".to_owned()),
            vendor: Some("tests".to_owned()),
            pci_bus_id: None,
            numa_node: Some(3),
            memory_bandwidth: Some(54),
            gflops: None,
        }
    }
    fn allocate(&self, request: AllocationRequest) -> Option<Allocation> {
        assert!(!self.1, "no allocation today");
        self.0.allocate(request)
    }
    fn deallocate(&self, memory: DeviceMemory) {
        self.0.deallocate(memory);
    }
    fn read(&self, source: &DeviceMemory, target: &mut HostTarget) -> Result<()> {
        assert!(!self.1, "no reading today");
        self.0.read(source, target)
    }
    fn write(&self, target: &DeviceMemory, source: &HostSource) -> Result<()> {
        self.0.write(target, source)
    }
    fn memory_usage(&self) -> Option<MemoryUsage> {
        self.0.memory_usage()
    }
}

impl Platform for Slabs {
    type Device = Queued<PanickingSlab>;
    fn name(&self) -> &str {
        self.name.unwrap_or("SLAB")
    }
    fn device_count(&self) -> Result<u32> {
        Ok(2)
    }
    fn create_device(&self, _ordinal: u32) -> Result<Self::Device> {
        Ok(Queued::new(PanickingSlab(Slab::new(1 << 20), self.panics)))
    }
    fn settings(&self) -> Settings {
        Settings {
            unified_memory: false,
            allocator: self.allocator,
            layout: self.layout,
            counters: Arc::clone(&self.counters),
        }
    }
}

/// Oversized, zeroed memory for a struct, aligned for all structs; reached by one pointer, which
/// stays valid while the plug-in keeps it.
pub(crate) struct StructBuffer<T>(*mut [u64; 512], std::marker::PhantomData<T>);

impl<T> StructBuffer<T> {
    pub(crate) fn new(struct_size: usize) -> Self {
        let mut words = Box::new([0; 512]);
        words[0] = struct_size as u64;
        Self(Box::into_raw(words), std::marker::PhantomData)
    }
    pub(crate) fn get(&self) -> *mut T {
        self.0.cast()
    }
    pub(crate) fn words(&self) -> [u64; 512] {
        // SAFETY: made from a box, which is freed with `self`.
        unsafe { *self.0 }
    }
    pub(crate) fn word(&self, offset: usize) -> u64 {
        self.words()[offset / 8]
    }
    pub(crate) fn set_struct_size(&self, size: u64) {
        // SAFETY: made from a box, which is freed with `self`; there is no other user now.
        unsafe { self.0.cast::<u64>().write(size) };
    }
}

impl<T> Drop for StructBuffer<T> {
    fn drop(&mut self) {
        // SAFETY: made from a box, and the plug-in was told to destroy what is in it.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// A registration, with all structs of the sizes that a host of `layout` declares.
pub(crate) struct Registration {
    pub(crate) platform: StructBuffer<SP_Platform>,
    pub(crate) functions: StructBuffer<SP_PlatformFns>,
    pub(crate) params: SE_PlatformRegistrationParams,
}

impl Registration {
    pub(crate) fn new(layout: &Layout) -> Self {
        let size = |name: &str| layout.structure(name).map_or(0, |found| found.struct_size);
        Self {
            platform: StructBuffer::new(size("SP_Platform")),
            functions: StructBuffer::new(size("SP_PlatformFns")),
            params: SE_PlatformRegistrationParams {
                struct_size: SE_PlatformRegistrationParams::STRUCT_SIZE,
                ext: ptr::null_mut(),
                major_version: 0,
                minor_version: 0,
                patch_version: 1,
                platform: ptr::null_mut(),
                platform_fns: ptr::null_mut(),
                destroy_platform: None,
                destroy_platform_fns: None,
            },
        }
    }

    pub(crate) fn register(&mut self, slabs: Slabs) -> Result<()> {
        self.params.platform = self.platform.get();
        self.params.platform_fns = self.functions.get();
        self.register_as_is(slabs)
    }

    pub(crate) fn register_as_is(&mut self, slabs: Slabs) -> Result<()> {
        // SAFETY: the parameters, the structs they point to and the status are this host's.
        call(|status| unsafe { register(&raw mut self.params, status, FUNCTIONS, || Ok(slabs)) })
    }

    pub(crate) fn destroy(&mut self) {
        // SAFETY: the functions that the plug-in gave for these structs.
        unsafe {
            self.params.destroy_platform_fns.unwrap()(self.functions.get());
            self.params.destroy_platform.unwrap()(self.platform.get());
        }
    }
}

pub(crate) fn newest() -> &'static Layout {
    layout_named("tensorflow-2.14").unwrap()
}

/// A device of the newest layout, ready for calls.
pub(crate) struct Bench {
    pub(crate) registration: Registration,
    pub(crate) device: StructBuffer<SP_Device>,
    pub(crate) executor: SP_StreamExecutor,
}

impl Bench {
    pub(crate) fn new(slabs: Slabs) -> Self {
        let mut registration = Registration::new(newest());
        registration.register(slabs).unwrap();
        let device = StructBuffer::<SP_Device>::new(SP_Device::STRUCT_SIZE);
        let executor = StructBuffer::<SP_StreamExecutor>::new(SP_StreamExecutor::STRUCT_SIZE);
        // SAFETY: the structs are filled by the plug-in and alive.
        let executor = unsafe {
            let functions = *registration.functions.get();
            let mut params = SE_CreateDeviceParams {
                struct_size: SE_CreateDeviceParams::STRUCT_SIZE,
                ext: ptr::null_mut(),
                ordinal: 1,
                device: device.get(),
            };
            let platform = registration.platform.get();
            call(|status| functions.create_device.unwrap()(platform, &raw mut params, status))
                .unwrap();
            let mut params = SE_CreateStreamExecutorParams {
                struct_size: SE_CreateStreamExecutorParams::STRUCT_SIZE,
                ext: ptr::null_mut(),
                stream_executor: executor.get(),
            };
            call(|status| {
                functions.create_stream_executor.unwrap()(platform, &raw mut params, status)
            })
            .unwrap();
            *executor.get()
        };
        Self { registration, device, executor }
    }

    pub(crate) fn allocate(&mut self, size: u64) -> SP_DeviceMemoryBase {
        let mut memory = empty_memory();
        // SAFETY: a live device and room for the answer.
        unsafe { self.executor.allocate.unwrap()(self.device.get(), size, 0, &raw mut memory) };
        memory
    }

    pub(crate) fn stream(&mut self) -> SP_Stream {
        let mut stream = ptr::null_mut();
        let device = self.device.get();
        // SAFETY: a live device and room for the answer.
        call(|status| unsafe {
            self.executor.create_stream.unwrap()(device, &raw mut stream, status)
        })
        .unwrap();
        stream
    }

    pub(crate) fn destroy(mut self) {
        // SAFETY: the functions that the plug-in gave for these structs.
        unsafe {
            let functions = *self.registration.functions.get();
            let platform = self.registration.platform.get();
            functions.destroy_device.unwrap()(platform, self.device.get());
            functions.destroy_stream_executor.unwrap()(platform, &raw mut self.executor);
        }
        self.registration.destroy();
    }
}

pub(crate) fn empty_memory() -> SP_DeviceMemoryBase {
    SP_DeviceMemoryBase {
        struct_size: SP_DeviceMemoryBase::STRUCT_SIZE,
        ext: ptr::null_mut(),
        opaque: ptr::null_mut(),
        size: 0,
        payload: 0,
    }
}
