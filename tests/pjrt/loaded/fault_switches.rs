//! Tests of plug-ins that violate the interface: the host survives each violation, or reports it.

use serdes_pjrt::{ElementType, HostArray, PjrtError, Target};

use super::plugins::Library;

/// Sends an array to the device and back, with all queries on the way.
fn trip(library: &Library) -> Result<Vec<u8>, PjrtError> {
    let client = library.load()?.create_client(&[])?;
    let devices = client.devices()?;
    let device = &devices[0];
    let _ = (device.id()?, device.kind()?, device.debug_string()?, device.is_addressable()?);
    let _ = (device.memories()?, device.default_memory()?);
    let array = HostArray::new(ElementType::U8, &[4]);
    let buffer = client.put(&array, &[1, 2, 3, 4], Target::Device(device))?;
    let mut raw = [0; 2];
    buffer.read_raw(2, &mut raw)?;
    buffer.ready()?.map_or(Ok(()), |event| event.wait())?;
    assert_eq!(buffer.copy_to(Target::Device(device))?.read()?.len(), 4);
    let read = buffer.read()?;
    buffer.delete()?;
    assert!(buffer.is_deleted()?);
    Ok(read)
}

#[test]
fn plugin_faults_are_named() {
    for (switches, part) in [
        (&["NULL_CLIENT"][..], "PJRT_Client_Create gave NULL"),
        (&["NULL_BUFFER"], "PJRT_Client_BufferFromHostBuffer gave NULL"),
        (&["NULL_DEVICES"], "PJRT_Client_Devices gave NULL for 2 entries"),
        (&["NULL_DEVICE"], "PJRT_Client_Devices gave NULL"),
        (&["DEVICES_SAID=(size_t)-1"], "18446744073709551615 entries"),
        (&["TYPE_SAID=99"], "gave 99 as an element type"),
        (&["TYPE_SAID=23"], "gave 23 as an element type"),
        (&["TYPE_SAID=-1"], "gave -1 as an element type"),
        (&["RANK_SAID=(size_t)-1"], "254 at most"),
        (&["NEGATIVE"], "none that is negative"),
        (&["EVENT_FAILS"], "the work before it failed (UNAVAILABLE)"),
        (&["FAILING=\"PJRT_Client_Create\""], "PJRT_Client_Create: as told (INTERNAL)"),
        (&["FAILING=\"PJRT_Client_Create\"", "CODE=99"], "(code 99)"),
        (&["FAILING=\"PJRT_Buffer_ToHostBuffer\"", "NULL_MESSAGE"], "(no message)"),
        (&["FAILING=\"PJRT_Plugin_Initialize\""], "PJRT_Plugin_Initialize: as told"),
        (&["NULL_SLOT=SLOT_PJRT_Client_Create"], "does not have PJRT_Client_Create"),
        (&["NULL_SLOT=SLOT_PJRT_Event_Await"], "does not have PJRT_Event_Await"),
        (&["NULL_SLOT=SLOT_PJRT_Error_GetCode"], "does not have PJRT_Error_GetCode"),
        (&["TABLE_SAID=48"], "does not have"),
    ] {
        let library = Library::new(81, switches);
        let error = trip(&library).unwrap_err().to_string();
        assert!(error.contains(part), "{switches:?}: {error}");
    }
}

#[test]
fn host_works_without_optional_functions() {
    for switches in [
        &[][..],
        &["NULL_EVENTS"],
        &["TWICE"],
        &["ENDLESS"],
        &["ODD_CHAIN"],
        &["FAILING=\"PJRT_Plugin_Attributes\"", "CODE=12"],
        &["FAILING=\"PJRT_Plugin_Initialize\"", "CODE=12"],
        &["FAILING=\"PJRT_Device_AddressableMemories\"", "CODE=12"],
        &["FAILING=\"PJRT_Device_DefaultMemory\"", "CODE=12"],
        &["NULL_SLOT=SLOT_PJRT_Plugin_Attributes"],
        &["NULL_SLOT=SLOT_PJRT_Device_DefaultMemory"],
        &["NULL_SLOT=SLOT_PJRT_Error_Message"],
        &["TABLE_SAID=(TABLE_SIZE+1)"],
    ] {
        let library = Library::new(81, switches);
        let read = trip(&library).unwrap_or_else(|error| panic!("{switches:?}: {error}"));
        assert_eq!(read, [1, 2, 3, 4], "{switches:?}");
        assert_eq!(library.live_objects(), 0, "{switches:?}");
    }
}

#[test]
fn oddities_of_a_table_are_warnings() {
    for (switch, part) in [
        ("ENDLESS", "does not end after 64"),
        ("ODD_CHAIN", "odd address"),
        ("NULL_SLOT=SLOT_PJRT_Buffer_Delete", "PJRT_Buffer_Delete is NULL"),
        ("TABLE_SAID=900", "900 bytes"),
    ] {
        let plugin = Library::new(81, &[switch]).load().unwrap();
        let warnings = plugin.warnings().concat();
        assert!(warnings.contains(part), "{switch}: {warnings}");
    }
}

#[test]
fn a_message_is_of_bounded_length_and_steers_no_terminal() {
    let switches = ["FAILING=\"PJRT_Client_Create\"", "MESSAGE_SAID=((size_t)1<<20)"];
    let error = trip(&Library::new(81, &switches)).unwrap_err().to_string();
    assert!(error.len() < 200_000 && !error.contains('\u{1b}'), "{}", error.len());
    let library = Library::new(81, &[]);
    let client = library.load().unwrap().create_client(&[]).unwrap();
    assert_eq!(client.platform_version(), "1\\u{1b}[2J");
}

#[test]
fn callback_that_comes_twice_runs_once() {
    let library = Library::new(81, &["TWICE"]);
    let client = library.load().unwrap().create_client(&[]).unwrap();
    let device = client.addressable_devices().unwrap().swap_remove(0);
    let array = HostArray::new(ElementType::U8, &[4]);
    let semantics = serdes_pjrt::HostBufferSemantics::ImmutableZeroCopy;
    for _ in 0..10 {
        let target = Target::Device(&device);
        drop(client.put_owned(&array, vec![0; 4], semantics, target).unwrap());
    }
    drop((client, device));
    assert_eq!(library.live_objects(), 0);
}
