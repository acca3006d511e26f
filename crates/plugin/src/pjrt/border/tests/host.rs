//! A small host that makes the calls of the C API as C does.

use std::{
    ffi::{c_int, c_void},
    ptr, slice,
    sync::mpsc::Sender,
};

use serdes_abi::pjrt::{Minor, args::*};

use super::plugin::Loaded;
use crate::pjrt::ElementType;

/// An error that a call returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) code: c_int,
    pub(super) message: String,
}

impl Wrong {
    pub(super) fn new(code: c_int, message: &str) -> Self {
        Self { code, message: message.to_owned() }
    }
}

type Answer<T> = Result<T, Wrong>;

/// A function table in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    api: *const u8,
    minor: Minor,
}

impl Host {
    pub(super) fn of<P: Loaded>() -> Self {
        Self { api: P::table().get::<P>().cast(), minor: P::MINOR }
    }

    /// # Safety
    /// Reads the `T` at that offset.
    unsafe fn at<T: Copy>(self, offset: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { self.api.add(offset).cast::<T>().read() }
    }

    pub(super) fn struct_size(self) -> usize {
        // SAFETY: the table begins with its size.
        unsafe { self.at(0) }
    }

    pub(super) fn major_and_minor(self) -> (i32, u32) {
        // SAFETY: the version's numbers are there.
        unsafe { (self.at(32), self.at(36)) }
    }

    pub(super) fn address(self, offset: usize) -> *const () {
        assert!(offset < self.struct_size());
        // SAFETY: a pointer lies there: it is inside of the table.
        unsafe { self.at(offset) }
    }

    /// Returns the numbers and sizes of the extensions.
    pub(super) fn extensions(self) -> Vec<(i32, usize)> {
        // SAFETY: the second field is the chain's start.
        let mut next: *const u8 = unsafe { self.at(8) };
        let mut found = Vec::new();
        while !next.is_null() {
            // SAFETY: each begins with its size, its number and the next.
            unsafe {
                found.push((next.add(8).cast::<i32>().read(), next.cast::<usize>().read()));
                next = next.add(16).cast::<*const u8>().read();
            }
        }
        found
    }

    /// Returns the address of the function with those arguments, if the table has it.
    pub(super) fn has<A: Arguments>(self, _arguments: &A) -> Option<*const ()> {
        let function = serdes_abi::pjrt::function(A::FUNCTION).unwrap();
        let offset = function.offset(self.minor).filter(|offset| *offset < self.struct_size());
        offset.map(|offset| self.address(offset))
    }

    pub(super) fn call<A: Arguments>(self, arguments: &mut A) -> Answer<()> {
        let function = self.has(arguments).unwrap();
        self.answer(Self::function::<A>(function), arguments)
    }

    /// Makes a call, and returns its error without destroying it.
    pub(super) fn error_of<A: Arguments>(self, arguments: &mut A) -> *mut PJRT_Error {
        let function = Self::function::<A>(self.has(arguments).unwrap());
        // SAFETY: the tests give what the C API wants.
        unsafe { function(arguments) }
    }

    /// Calls the function at that offset with any bytes as its arguments.
    pub(super) fn call_bytes(self, offset: usize, bytes: &mut [u8; 512]) -> Answer<()> {
        #[repr(align(8))]
        struct Aligned([u8; 512]);
        let mut arguments = Aligned(*bytes);
        let answer =
            self.answer(Self::function::<Aligned>(self.address(offset)), &raw mut arguments);
        *bytes = arguments.0;
        answer
    }

    pub(super) fn call_null<A: Arguments>(self) -> Answer<()> {
        let function = self.has(&A::new()).unwrap();
        self.answer(Self::function::<A>(function), ptr::null_mut())
    }

    fn function<A>(address: *const ()) -> unsafe extern "C" fn(*mut A) -> *mut PJRT_Error {
        // SAFETY: the table has a function of this type there.
        unsafe { std::mem::transmute(address) }
    }

    fn answer<A>(
        self,
        function: unsafe extern "C" fn(*mut A) -> *mut PJRT_Error,
        arguments: *mut A,
    ) -> Answer<()> {
        // SAFETY: the tests give what the C API wants.
        self.read(unsafe { function(arguments) })
    }

    /// Reads an error and destroys it.
    pub(super) fn read(self, error: *mut PJRT_Error) -> Answer<()> {
        if error.is_null() {
            return Ok(());
        }
        let mut code = PJRT_Error_GetCode_Args::new();
        code.error = error;
        self.call(&mut code)?;
        let mut message = PJRT_Error_Message_Args::new();
        message.error = error;
        let mut destroy = PJRT_Error_Destroy_Args::new();
        destroy.error = error;
        let [say, free] = [self.has(&message).unwrap(), self.has(&destroy).unwrap()];
        // SAFETY: the table has functions of these types there, and the error is alive until the
        // second.
        let words = unsafe {
            let say: unsafe extern "C" fn(*mut PJRT_Error_Message_Args) = std::mem::transmute(say);
            say(&raw mut message);
            let words = slice::from_raw_parts(message.message.cast::<u8>(), message.message_size);
            let words = String::from_utf8(words.to_vec()).unwrap();
            let free: unsafe extern "C" fn(*mut PJRT_Error_Destroy_Args) =
                std::mem::transmute(free);
            free(&raw mut destroy);
            words
        };
        Err(Wrong { code: code.code, message: words })
    }

    /// Waits for an event and destroys it.
    pub(super) fn wait(self, event: *mut PJRT_Event) -> Answer<()> {
        let mut arguments = PJRT_Event_Await_Args::new();
        arguments.event = event;
        let outcome = self.call(&mut arguments);
        let mut destroy = PJRT_Event_Destroy_Args::new();
        destroy.event = event;
        self.call(&mut destroy)?;
        outcome
    }

    /// Creates an event that the host sets.
    pub(super) fn event(self) -> *mut PJRT_Event {
        let mut arguments = PJRT_Event_Create_Args::new();
        self.call(&mut arguments).unwrap();
        arguments.event
    }

    pub(super) fn set(self, event: *mut PJRT_Event, code: c_int, words: &str) -> Answer<()> {
        let mut arguments = PJRT_Event_Set_Args::new();
        (arguments.event, arguments.error_code) = (event, code);
        (arguments.error_message, arguments.error_message_size) =
            (words.as_ptr().cast(), words.len());
        self.call(&mut arguments)
    }

    pub(super) fn is_ready(self, event: *mut PJRT_Event) -> bool {
        let mut arguments = PJRT_Event_IsReady_Args::new();
        arguments.event = event;
        self.call(&mut arguments).unwrap();
        arguments.is_ready != 0
    }

    /// Sends the result of an event, and destroys the event.
    pub(super) fn on_ready(self, event: *mut PJRT_Event, told: Sender<Answer<()>>) {
        unsafe extern "C" fn tell(error: *mut PJRT_Error, user_arg: *mut c_void) {
            // SAFETY: it is what was boxed below, and this is called once.
            let (host, told) =
                *unsafe { Box::from_raw(user_arg.cast::<(Host, Sender<Answer<()>>)>()) };
            told.send(host.read(error)).unwrap();
        }
        let mut arguments = PJRT_Event_OnReady_Args::new();
        arguments.event = event;
        arguments.callback = Some(tell);
        arguments.user_arg = Box::into_raw(Box::new((self, told))).cast();
        self.call(&mut arguments).unwrap();
        let mut destroy = PJRT_Event_Destroy_Args::new();
        destroy.event = event;
        self.call(&mut destroy).unwrap();
    }

    /// When the first event has happened, waits for the second inside the callback, and sends its
    /// result. Destroys both.
    pub(super) fn on_ready_wait_for(
        self,
        first: *mut PJRT_Event,
        second: *mut PJRT_Event,
        told: Sender<Answer<()>>,
    ) {
        type Given = (Host, *mut PJRT_Event, Sender<Answer<()>>);
        unsafe extern "C" fn wait(error: *mut PJRT_Error, user_arg: *mut c_void) {
            // SAFETY: it is what was boxed below, and this is called once.
            let (host, second, told) = *unsafe { Box::from_raw(user_arg.cast::<Given>()) };
            host.read(error).unwrap();
            told.send(host.wait(second)).unwrap();
        }
        let mut arguments = PJRT_Event_OnReady_Args::new();
        arguments.event = first;
        arguments.callback = Some(wait);
        arguments.user_arg = Box::into_raw(Box::<Given>::new((self, second, told))).cast();
        self.call(&mut arguments).unwrap();
        let mut destroy = PJRT_Event_Destroy_Args::new();
        destroy.event = first;
        self.call(&mut destroy).unwrap();
    }

    /// Creates a client with those numbers as options.
    pub(super) fn client_with(self, options: &[(&str, u64)]) -> Answer<Client> {
        let named = options.iter().map(|&(name, value)| PJRT_NamedValue {
            struct_size: size_of::<PJRT_NamedValue>(),
            extension_start: ptr::null_mut(),
            name: name.as_ptr().cast(),
            name_size: name.len(),
            r#type: 1,
            value,
            value_size: 1,
        });
        let named: Vec<PJRT_NamedValue> = named.collect();
        let mut arguments = PJRT_Client_Create_Args::new();
        (arguments.create_options, arguments.num_options) = (named.as_ptr(), named.len());
        self.call(&mut arguments)?;
        Ok(Client { host: self, raw: arguments.client })
    }
}

/// A client, destroyed when it is dropped.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) host: Host,
    pub(super) raw: *mut PJRT_Client,
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut arguments = PJRT_Client_Destroy_Args::new();
        arguments.client = self.raw;
        self.host.call(&mut arguments).unwrap();
    }
}

impl Client {
    pub(super) fn device(&self, index: usize) -> *mut PJRT_Device {
        let mut arguments = PJRT_Client_Devices_Args::new();
        arguments.client = self.raw;
        self.host.call(&mut arguments).unwrap();
        // SAFETY: the number of devices is the declared one; they live as long as the client.
        let devices = unsafe { slice::from_raw_parts(arguments.devices, arguments.num_devices) };
        devices[index]
    }

    pub(super) fn memory(&self) -> *mut PJRT_Memory {
        let mut arguments = PJRT_Device_DefaultMemory_Args::new();
        arguments.device = self.device(0);
        self.host.call(&mut arguments).unwrap();
        arguments.memory
    }

    /// Puts an array onto the first device. The bytes stay valid until the plug-in is done with
    /// them.
    pub(super) fn put(
        &self,
        element_type: ElementType,
        dims: &[i64],
        bytes: &[u8],
        semantics: c_int,
    ) -> Answer<Array> {
        let mut arguments = self.put_arguments(self.device(0), element_type.number(), dims);
        arguments.data = bytes.as_ptr().cast();
        arguments.host_buffer_semantics = semantics;
        self.host.call(&mut arguments)?;
        let array = Array { host: self.host, raw: arguments.buffer };
        self.host.wait(arguments.done_with_host_buffer)?;
        Ok(array)
    }

    /// Begins to put bytes onto the first device; they must stay valid until the event has
    /// happened.
    pub(super) fn begin_put(&self, bytes: &[u8]) -> (Array, *mut PJRT_Event) {
        let dims = [i64::try_from(bytes.len()).unwrap()];
        let mut arguments = self.put_arguments(self.device(0), ElementType::U8.number(), &dims);
        arguments.data = bytes.as_ptr().cast();
        arguments.host_buffer_semantics = 1;
        self.host.call(&mut arguments).unwrap();
        (Array { host: self.host, raw: arguments.buffer }, arguments.done_with_host_buffer)
    }

    pub(super) fn put_at(
        &self,
        device: *mut PJRT_Device,
        element_type: c_int,
        dims: &[i64],
        bytes: &[u8],
    ) -> Answer<Array> {
        let mut arguments = self.put_arguments(device, element_type, dims);
        arguments.data = bytes.as_ptr().cast();
        self.host.call(&mut arguments)?;
        self.host.wait(arguments.done_with_host_buffer)?;
        Ok(Array { host: self.host, raw: arguments.buffer })
    }

    fn put_arguments(
        &self,
        device: *mut PJRT_Device,
        element_type: c_int,
        dims: &[i64],
    ) -> PJRT_Client_BufferFromHostBuffer_Args {
        let mut arguments = PJRT_Client_BufferFromHostBuffer_Args::new();
        arguments.client = self.raw;
        arguments.device = device;
        arguments.r#type = element_type;
        (arguments.dims, arguments.num_dims) = (dims.as_ptr(), dims.len());
        arguments
    }

    pub(super) fn failed_array(&self, code: c_int, words: &str) -> Answer<Array> {
        let mut arguments = PJRT_Client_CreateErrorBuffer_Args::new();
        arguments.client = self.raw;
        arguments.error_code = code;
        (arguments.error_message, arguments.error_message_size) =
            (words.as_ptr().cast(), words.len());
        arguments.shape_element_type = ElementType::U8.number();
        arguments.memory = self.memory();
        self.host.call(&mut arguments)?;
        Ok(Array { host: self.host, raw: arguments.buffer })
    }

    pub(super) fn transfers(&self, shapes: &[(ElementType, &[i64])]) -> Manager {
        let specs = shapes.iter().map(|(element_type, dims)| PJRT_ShapeSpec {
            struct_size: 36,
            extension_start: ptr::null_mut(),
            dims: dims.as_ptr(),
            num_dims: dims.len(),
            element_type: element_type.number(),
        });
        let mut specs: Vec<PJRT_ShapeSpec> = specs.collect();
        let mut arguments = PJRT_Client_CreateBuffersForAsyncHostToDevice_Args::new();
        arguments.client = self.raw;
        (arguments.shape_specs, arguments.num_shape_specs) = (specs.as_mut_ptr(), specs.len());
        arguments.memory = self.memory();
        self.host.call(&mut arguments).unwrap();
        Manager { host: self.host, raw: arguments.transfer_manager }
    }
}

/// An array, destroyed when it is dropped.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) host: Host,
    pub(super) raw: *mut PJRT_Buffer,
}

impl Drop for Array {
    fn drop(&mut self) {
        let mut arguments = PJRT_Buffer_Destroy_Args::new();
        arguments.buffer = self.raw;
        self.host.call(&mut arguments).unwrap();
    }
}

impl Array {
    pub(super) fn ready(&self) -> *mut PJRT_Event {
        let mut arguments = PJRT_Buffer_ReadyEvent_Args::new();
        arguments.buffer = self.raw;
        self.host.call(&mut arguments).unwrap();
        arguments.event
    }

    /// Begins to read the array; the bytes are valid once the event has happened.
    fn try_begin_read(&self) -> Answer<(*mut PJRT_Event, Vec<u8>)> {
        let mut arguments = PJRT_Buffer_ToHostBuffer_Args::new();
        arguments.src = self.raw;
        self.host.call(&mut arguments)?;
        let mut bytes = vec![0; arguments.dst_size.max(1)];
        arguments.dst = bytes.as_mut_ptr().cast();
        self.host.call(&mut arguments)?;
        bytes.truncate(arguments.dst_size);
        Ok((arguments.event, bytes))
    }

    pub(super) fn begin_read(&self) -> (*mut PJRT_Event, Vec<u8>) {
        self.try_begin_read().unwrap()
    }

    pub(super) fn read(&self) -> Answer<Vec<u8>> {
        let (event, bytes) = self.try_begin_read()?;
        self.host.wait(event).map(|()| bytes)
    }

    pub(super) fn read_raw(&self, offset: i64, size: i64) -> Answer<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(size).unwrap()];
        let mut arguments = PJRT_Buffer_CopyRawToHost_Args::new();
        arguments.buffer = self.raw;
        arguments.dst = bytes.as_mut_ptr().cast();
        (arguments.offset, arguments.transfer_size) = (offset, size);
        self.host.call(&mut arguments)?;
        self.host.wait(arguments.event).map(|()| bytes)
    }

    /// Returns the array's device, found through its memory.
    pub(super) fn device(&self) -> *mut PJRT_Device {
        let mut memory = PJRT_Buffer_Memory_Args::new();
        memory.buffer = self.raw;
        self.host.call(&mut memory).unwrap();
        let mut devices = PJRT_Memory_AddressableByDevices_Args::new();
        devices.memory = memory.memory;
        self.host.call(&mut devices).unwrap();
        assert_eq!(devices.num_devices, 1);
        let mut device = PJRT_Buffer_Device_Args::new();
        device.buffer = self.raw;
        self.host.call(&mut device).unwrap();
        // SAFETY: there is one.
        assert_eq!(unsafe { *devices.devices }, device.device);
        device.device
    }

    /// Reads raw bytes into memory that is given later, or reports an error in place of memory.
    pub(super) fn read_raw_later(&self, size: i64, wrong: Option<&str>) -> Answer<Vec<u8>> {
        let mut arguments = PJRT_Buffer_CopyRawToHostFuture_Args::new();
        arguments.buffer = self.raw;
        arguments.transfer_size = size;
        self.host.call(&mut arguments)?;
        assert!(!self.host.is_ready(arguments.event));
        let mut bytes = vec![0; usize::try_from(size).unwrap()];
        let words = wrong.unwrap_or_default();
        let mut memory = PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
            struct_size: size_of::<PJRT_Buffer_CopyRawToHostFuture_Callback_Args>(),
            callback_data: arguments.callback_data,
            error_code: if wrong.is_some() { 10 } else { 0 },
            error_message: words.as_ptr().cast(),
            error_message_size: words.len(),
            dst: bytes.as_mut_ptr().cast(),
        };
        // SAFETY: called once, with what was handed over, and memory that stays until the event.
        unsafe { arguments.future_ready_callback.unwrap()(&raw mut memory) };
        self.host.wait(arguments.event).map(|()| bytes)
    }

    pub(super) fn copy_to(&self, device: *mut PJRT_Device) -> Answer<Self> {
        let mut arguments = PJRT_Buffer_CopyToDevice_Args::new();
        arguments.buffer = self.raw;
        arguments.dst_device = device;
        self.host.call(&mut arguments)?;
        Ok(Self { host: self.host, raw: arguments.dst_buffer })
    }

    pub(super) fn delete(&self) {
        let mut arguments = PJRT_Buffer_Delete_Args::new();
        arguments.buffer = self.raw;
        self.host.call(&mut arguments).unwrap();
    }

    pub(super) fn is_deleted(&self) -> bool {
        let mut arguments = PJRT_Buffer_IsDeleted_Args::new();
        arguments.buffer = self.raw;
        self.host.call(&mut arguments).unwrap();
        arguments.is_deleted != 0
    }

    pub(super) fn on_device_size(&self) -> usize {
        let mut arguments = PJRT_Buffer_OnDeviceSizeInBytes_Args::new();
        arguments.buffer = self.raw;
        self.host.call(&mut arguments).unwrap();
        arguments.on_device_size_in_bytes
    }
}

/// A transfer manager, destroyed when it is dropped.
#[derive(Debug)]
pub(super) struct Manager {
    host: Host,
    raw: *mut PJRT_AsyncHostToDeviceTransferManager,
}

impl Drop for Manager {
    fn drop(&mut self) {
        let mut arguments = PJRT_AsyncHostToDeviceTransferManager_Destroy_Args::new();
        arguments.transfer_manager = self.raw;
        self.host.call(&mut arguments).unwrap();
    }
}

impl Manager {
    pub(super) fn retrieve(&self, index: c_int) -> Answer<Array> {
        let mut arguments = PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args::new();
        (arguments.transfer_manager, arguments.buffer_index) = (self.raw, index);
        self.host.call(&mut arguments)?;
        Ok(Array { host: self.host, raw: arguments.buffer_out })
    }

    /// Transfers bytes, and waits until they have been taken.
    pub(super) fn transfer(
        &self,
        index: c_int,
        bytes: &[u8],
        offset: i64,
        is_last: bool,
    ) -> Answer<()> {
        let mut arguments = PJRT_AsyncHostToDeviceTransferManager_TransferData_Args::new();
        (arguments.transfer_manager, arguments.buffer_index) = (self.raw, index);
        arguments.data = bytes.as_ptr().cast();
        arguments.offset = offset;
        arguments.transfer_size = i64::try_from(bytes.len()).unwrap();
        arguments.is_last_transfer = u8::from(is_last);
        self.host.call(&mut arguments)?;
        self.host.wait(arguments.done_with_h2d_transfer)
    }

    pub(super) fn fail(&self, index: c_int, code: c_int, words: &str) -> Answer<()> {
        let mut arguments = PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args::new();
        (arguments.transfer_manager, arguments.buffer_index) = (self.raw, index);
        arguments.error_code = code;
        (arguments.error_message, arguments.error_message_size) =
            (words.as_ptr().cast(), words.len());
        self.host.call(&mut arguments)
    }
}
