//! Tests of the function table as a host in C uses it, over a plug-in with fault switches.

mod host;
mod plugin;
mod programs;

use std::sync::mpsc;

use serdes_abi::pjrt::{self, Minor, args::*};

use self::{
    host::{Host, Wrong},
    plugin::{Newest, OfMinor57, Switchable},
};
use crate::pjrt::{DEFAULT_MINOR, ElementType, NEWEST_MINOR};

const INVALID_ARGUMENT: i32 = 3;
const FAILED_PRECONDITION: i32 = 9;
const UNIMPLEMENTED: i32 = 12;

#[test]
fn table_has_its_size_its_minor_and_every_function() {
    for (host, minor) in [
        (Host::of::<OfMinor57>(), Minor::new(57)),
        (Host::of::<Switchable>(), DEFAULT_MINOR),
        (Host::of::<Newest>(), NEWEST_MINOR),
    ] {
        let size = pjrt::table_size(minor).unwrap().declared;
        assert_eq!((host.struct_size(), host.major_and_minor()), (size, (0, minor.number())));
        for function in pjrt::functions() {
            let Some(offset) = function.offset(minor) else { continue };
            assert!(!host.address(offset).is_null(), "{}", function.name);
        }
        assert_eq!(host.extensions(), [(4, 80)]);
    }
}

#[test]
fn functions_that_the_sdk_lacks_answer_unimplemented() {
    let host = Host::of::<Switchable>();
    let wrong = host.call(&mut PJRT_Executable_GetCostAnalysis_Args::new()).unwrap_err();
    assert_eq!(wrong.code, UNIMPLEMENTED);
    assert!(wrong.message.contains("PJRT_Executable_GetCostAnalysis: this plug-in"), "{wrong:?}");
    let wrong = host.call(&mut PJRT_Client_CreateViewOfDeviceBuffer_Args::new()).unwrap_err();
    assert!(wrong.message.contains("does not have it"), "{wrong:?}");
    // Functions later than the minor that a plug-in declares are not in its table.
    assert!(host.has(&PJRT_Event_Create_Args::new()).is_none());
}

#[test]
fn null_arguments_and_null_handles_are_errors() {
    let host = Host::of::<Switchable>();
    let wrong = host.call_null::<PJRT_Client_Devices_Args>().unwrap_err();
    assert_eq!(wrong.code, INVALID_ARGUMENT);
    let wrong = host.call(&mut PJRT_Client_Devices_Args::new()).unwrap_err();
    assert_eq!(wrong, Wrong::new(INVALID_ARGUMENT, "found NULL, expected a client"));
    let wrong = host.call(&mut PJRT_Buffer_Destroy_Args::new()).unwrap_err();
    assert_eq!(wrong, Wrong::new(INVALID_ARGUMENT, "found NULL, expected a buffer"));
}

#[test]
fn functions_stay_within_their_arguments_and_refuse_null() {
    let host = Host::of::<Newest>();
    // The first two create objects without a handle; the functions of errors return no error.
    let others =
        ["PJRT_Client_Create", "PJRT_Event_Create", "PJRT_Error_Destroy", "PJRT_Error_Message"];
    let mut refused = 0;
    for function in pjrt::functions().iter().filter(|function| !others.contains(&function.name)) {
        let Some(offset) = function.offset(NEWEST_MINOR) else { continue };
        let arguments = pjrt::structure(&format!("{}_Args", function.name)).unwrap();
        let size = arguments.size(NEWEST_MINOR).unwrap().size_of;
        // The macro of the attributes once forgot a field, which is nevertheless written.
        let shortest = if function.name == "PJRT_Plugin_Attributes" { 32 } else { 0 };
        for declared in (shortest..=size + 16).chain([usize::MAX]) {
            let mut bytes = [0xaa_u8; 512];
            bytes[..size.min(declared)].fill(0);
            bytes[..8].copy_from_slice(&declared.to_ne_bytes());
            let before = bytes;
            let answer = host.call_bytes(offset, &mut bytes);
            refused += usize::from(answer.is_err());
            let end = size.min(declared).max(8);
            assert!(bytes[end..] == before[end..], "{} of {declared} bytes", function.name);
            if answer.is_err() {
                assert!(bytes == before, "{} of {declared} bytes", function.name);
            }
        }
    }
    assert!(refused > 1000);
}

#[test]
fn older_framework_creates_a_client_and_reads_attributes() {
    let host = Host::of::<Switchable>();
    let mut create = PJRT_Client_Create_Args::new();
    create.struct_size = 72;
    host.call(&mut create).unwrap();
    let mut destroy = PJRT_Client_Destroy_Args::new();
    destroy.client = create.client;
    host.call(&mut destroy).unwrap();

    let mut attributes = PJRT_Plugin_Attributes_Args::new();
    attributes.struct_size = 24;
    host.call(&mut attributes).unwrap();
    assert_eq!(attributes.num_attributes, 2, "the macro of that day forgot this field");
    create.struct_size = 64;
    assert_eq!(host.call(&mut create).unwrap_err().code, INVALID_ARGUMENT);
}

#[test]
fn panic_in_the_plugin_is_an_error_of_the_call_or_event() {
    let host = Host::of::<Switchable>();
    let wrong = host.client_with(&[("panic", 1)]).unwrap_err();
    assert_eq!(wrong.message, "the plug-in panicked: in create_client");
    let client = host.client_with(&[("panic_in_write", 1)]).unwrap();
    let wrong = client.put(ElementType::U8, &[3], &[1, 2, 3], 0).unwrap_err();
    assert_eq!(wrong.message, "the plug-in panicked: in write");
    let array = client.put(ElementType::U8, &[3], &[1, 2, 3], 1).unwrap();
    let wrong = host.wait(array.ready()).unwrap_err();
    assert_eq!(wrong.message, "the plug-in panicked: in write");
    let wrong = array.read().unwrap_err();
    assert_eq!(wrong.message, "the plug-in panicked: in write");
}

#[test]
fn arrays_round_trip_in_parts_and_from_another_memory() {
    let host = Host::of::<Switchable>();
    let client = host.client_with(&[]).unwrap();
    let bytes: Vec<u8> = (0..240).collect();
    for semantics in 0..=3 {
        let array = client.put(ElementType::F32, &[6, 10], &bytes, semantics).unwrap();
        assert_eq!(array.read().unwrap(), bytes);
        assert_eq!(array.read_raw(7, 100).unwrap(), bytes[7..107]);
        let copy = array.copy_to(client.device(1)).unwrap();
        assert_eq!(copy.read().unwrap(), bytes);
        assert_eq!((array.device(), copy.device()), (client.device(0), client.device(1)));
        assert_eq!(array.read_raw(200, 41).unwrap_err().code, INVALID_ARGUMENT);
        assert_eq!(array.read_raw(-1, 1).unwrap_err().code, INVALID_ARGUMENT);
    }
    let wrong = client.put(ElementType::F32, &[6, 10], &bytes, 4).unwrap_err();
    assert!(wrong.message.contains("found 4 as the semantics"), "{wrong:?}");
}

#[test]
fn a_deleted_array_keeps_its_shape_and_gives_no_bytes() {
    let host = Host::of::<Switchable>();
    let client = host.client_with(&[]).unwrap();
    let array = client.put(ElementType::S4, &[5], &[1, 2, 3, 4, 5], 0).unwrap();
    assert_eq!(array.on_device_size(), 3);
    array.delete();
    array.delete();
    assert_eq!((array.is_deleted(), array.on_device_size()), (true, 3));
    assert_eq!(array.read().unwrap_err().code, INVALID_ARGUMENT);
    assert_eq!(host.wait(array.ready()), Ok(()));
}

#[test]
fn abandoned_or_missing_array_fails_its_waiters() {
    let host = Host::of::<Switchable>();
    let client = host.client_with(&[]).unwrap();
    let manager = client.transfers(&[(ElementType::U8, &[4])]);
    let array = manager.retrieve(0).unwrap();
    assert_eq!(manager.retrieve(1).unwrap_err().code, INVALID_ARGUMENT);
    let ready = array.ready();
    assert!(!host.is_ready(ready));
    manager.transfer(0, &[1, 2], 0, false).unwrap();
    drop(manager);
    assert!(host.wait(ready).unwrap_err().message.contains("given up"));

    let manager = client.transfers(&[(ElementType::U8, &[4])]);
    let failed = manager.retrieve(0).unwrap();
    manager.fail(0, FAILED_PRECONDITION, "no such luck").unwrap();
    let wrong = failed.read().unwrap_err();
    assert_eq!(wrong, Wrong::new(FAILED_PRECONDITION, "no such luck"));
    assert_eq!(host.wait(failed.ready()), Err(wrong));
}

#[test]
fn a_transfer_is_complete_when_its_last_piece_has_come() {
    let host = Host::of::<Switchable>();
    let client = host.client_with(&[]).unwrap();
    let manager = client.transfers(&[(ElementType::U16, &[3]), (ElementType::U8, &[0])]);
    let array = manager.retrieve(0).unwrap();
    manager.transfer(0, &[5, 6], 4, false).unwrap();
    manager.transfer(0, &[1, 2, 3, 4], 0, true).unwrap();
    assert_eq!(array.read().unwrap(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(manager.transfer(0, &[1], 0, true).unwrap_err().code, FAILED_PRECONDITION);
    assert_eq!(manager.transfer(0, &[1], 6, false).unwrap_err().code, INVALID_ARGUMENT);
    let nothing = manager.retrieve(1).unwrap();
    manager.transfer(1, &[], 0, true).unwrap();
    assert!(nothing.read().unwrap().is_empty());
}

#[test]
fn callback_of_an_event_runs_once_and_owns_the_error() {
    let host = Host::of::<Newest>();
    let client = host.client_with(&[("slow", 30)]).unwrap();
    let array = client.put(ElementType::U8, &[2], &[1, 2], 1).unwrap();
    let (told, answers) = mpsc::channel();
    host.on_ready(array.ready(), told.clone());
    assert_eq!(answers.recv().unwrap(), Ok(()));
    let failed = client.failed_array(FAILED_PRECONDITION, "never").unwrap();
    host.on_ready(failed.ready(), told);
    assert_eq!(answers.recv().unwrap(), Err(Wrong::new(FAILED_PRECONDITION, "never")));
    assert!(answers.recv().is_err(), "no callback is called twice");
}

#[test]
fn an_event_of_the_host_is_set_once() {
    let host = Host::of::<Newest>();
    let event = host.event();
    assert!(!host.is_ready(event));
    host.set(event, FAILED_PRECONDITION, "of the host").unwrap();
    assert!(host.is_ready(event));
    assert_eq!(host.set(event, 0, "").unwrap_err().code, FAILED_PRECONDITION);
    assert_eq!(host.wait(event), Err(Wrong::new(FAILED_PRECONDITION, "of the host")));
    let client = host.client_with(&[]).unwrap();
    let ready = client.put(ElementType::U8, &[1], &[1], 0).unwrap().ready();
    assert_eq!(host.set(ready, 0, "").unwrap_err().code, FAILED_PRECONDITION);
    assert_eq!(host.wait(ready), Ok(()));
}

#[test]
fn raw_copy_to_later_memory_completes_or_fails_with_the_host() {
    let host = Host::of::<Newest>();
    let client = host.client_with(&[]).unwrap();
    let array = client.put(ElementType::U8, &[4], &[1, 2, 3, 4], 0).unwrap();
    assert_eq!(array.read_raw_later(3, None).unwrap(), [1, 2, 3]);
    let wrong = array.read_raw_later(3, Some("no memory")).unwrap_err();
    assert_eq!(wrong, Wrong::new(10, "no memory"));
    assert_eq!(array.read_raw_later(5, None).unwrap_err().code, INVALID_ARGUMENT);
}

#[test]
fn handles_of_another_client_and_impossible_arrays_are_refused() {
    let host = Host::of::<Switchable>();
    let (client, other) = (host.client_with(&[]).unwrap(), host.client_with(&[]).unwrap());
    let wrong = client.put_at(other.device(0), 2, &[1], &[1]).unwrap_err();
    assert!(wrong.message.contains("not one of this client"), "{wrong:?}");
    for number in [0, 23, 34, -1] {
        let wrong = client.put_at(client.device(0), number, &[1], &[1; 16]).unwrap_err();
        assert!(wrong.message.contains(&format!("element type {number}")), "{wrong:?}");
    }
    let wrong = client.put_at(client.device(0), 2, &[-1], &[]).unwrap_err();
    assert!(wrong.message.contains("a dimension is negative"), "{wrong:?}");
    // An array may go from one client of a plug-in to another.
    let array = client.put(ElementType::U8, &[2], &[7, 8], 0).unwrap();
    let copy = array.copy_to(other.device(1)).unwrap();
    assert_eq!(copy.read().unwrap(), [7, 8]);
}

#[test]
fn an_array_outlives_its_client_and_work_on_its_way_its_array() {
    let host = Host::of::<Switchable>();
    let bytes = [9; 100_000];
    for _ in 0..20 {
        let client = host.client_with(&[("slow", 2)]).unwrap();
        let (array, done) = client.begin_put(&bytes);
        drop(client);
        // The read waits for the write, and is the last holder of the client.
        let (read, got) = array.begin_read();
        drop(array);
        assert_eq!(host.wait(done), Ok(()));
        assert_eq!(host.wait(read), Ok(()));
        assert!(got == bytes);
    }
}

#[test]
fn a_callback_of_an_event_cannot_wait_for_work_behind_it() {
    let host = Host::of::<Switchable>();
    let client = host.client_with(&[("slow", 20)]).unwrap();
    let (bytes, (told, answers)) = ([1; 50_000], mpsc::channel());
    let (first, first_done) = client.begin_put(&bytes);
    let (second, second_done) = client.begin_put(&bytes);
    host.on_ready_wait_for(first.ready(), second.ready(), told);
    let wrong = answers.recv().unwrap().unwrap_err();
    assert!(wrong.message.contains("wait on another thread"), "{wrong:?}");
    assert_eq!((host.wait(first_done), host.wait(second_done)), (Ok(()), Ok(())));
}

/// Errors since 0.107 and memories since 0.105 can be used without the plug-in's table.
#[test]
fn errors_and_memories_begin_with_tables_of_functions() {
    let host = Host::of::<Newest>();
    let error = host.error_of(&mut PJRT_Client_Devices_Args::new());
    // SAFETY: an error begins with the address of its table, whose functions are its own; the words
    // are there until it is destroyed, which is done once.
    unsafe {
        let functions = &**error.cast::<*const PJRT_Error_FunctionTable>();
        assert_eq!(functions.struct_size, 56);
        let (mut words, mut length) = (std::ptr::null(), 0);
        functions.message.unwrap()(error, &raw mut words, &raw mut length);
        let words = std::slice::from_raw_parts(words.cast::<u8>(), length);
        assert_eq!(words, b"found NULL, expected a client");
        assert_eq!(functions.get_code.unwrap()(error), INVALID_ARGUMENT);
        functions.for_each_payload.unwrap()(error, None, std::ptr::null_mut());
        functions.destroy.unwrap()(error);
        functions.destroy.unwrap()(std::ptr::null_mut());
    }
}

#[test]
fn a_framework_keeps_data_of_its_own_at_a_memory() {
    use std::{
        ffi::c_void,
        sync::atomic::{AtomicUsize, Ordering},
    };
    static DESTROYED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn destroy(data: *mut c_void) {
        DESTROYED.fetch_add(data.addr(), Ordering::SeqCst);
    }
    let host = Host::of::<Newest>();
    let client = host.client_with(&[]).unwrap();
    let memory = client.memory();
    let data = |number: usize| std::ptr::without_provenance_mut::<c_void>(number);
    let (first, second) = (data(8).cast_const(), data(16).cast_const());
    // SAFETY: a memory begins with the address of its table, whose functions take any key and data.
    unsafe {
        let functions = &**memory.cast::<*const PJRT_Memory_FunctionTable>();
        assert_eq!((functions.struct_size, functions.instance_struct_size), (40, 8));
        let (get, set) = (functions.get_user_data.unwrap(), functions.set_user_data.unwrap());
        assert!(get(memory, first).is_null());
        set(memory, first, data(1), Some(destroy));
        set(memory, second, data(10), Some(destroy));
        assert_eq!((get(memory, first), get(memory, second)), (data(1), data(10)));
        assert_eq!(DESTROYED.load(Ordering::SeqCst), 0);
        // The previous data are destroyed, once; NULL removes them.
        set(memory, first, data(100), Some(destroy));
        assert_eq!(DESTROYED.load(Ordering::SeqCst), 1);
        set(memory, second, data(0), Some(destroy));
        assert!(get(memory, second).is_null());
        assert_eq!(DESTROYED.load(Ordering::SeqCst), 11);
        set(memory, second, data(1000), None);
        set(std::ptr::null_mut(), first, data(1), None);
    }
    // The rest is destroyed with the client.
    drop(client);
    assert_eq!(DESTROYED.load(Ordering::SeqCst), 111);
}
