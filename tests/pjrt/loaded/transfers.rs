//! Tests of copies in progress, arrays in pieces, and queries of layouts and topologies.

use std::time::Duration;

use serdes_pjrt::{
    Buffer, Client, Device, ElementType, HostArray, MemoryLayout, PjrtError, Target, Value,
};

use super::plugins::Library;

fn client(library: &Library) -> (Client, Device) {
    let client = library.load().unwrap().create_client(&[]).unwrap();
    let device = client.addressable_devices().unwrap().swap_remove(0);
    (client, device)
}

fn buffer(client: &Client, device: &Device) -> Buffer {
    let data: Vec<u8> = (0..100).collect();
    client.put(&HostArray::new(ElementType::U8, &[10, 10]), &data, Target::Device(device)).unwrap()
}

#[test]
fn a_copy_that_is_on_its_way_has_the_memory_until_it_is_done() {
    for switches in [&[][..], &["LATE"], &["NULL_EVENTS"], &["LATE", "MAPS"]] {
        let library = Library::new(81, switches);
        let (client, device) = client(&library);
        let buffer = buffer(&client, &device);
        let memory = client.allocate_host(200).unwrap();
        assert!(memory.iter().all(|&byte| byte == 0) && memory.as_ptr().addr() % 4096 == 0);
        assert_eq!(memory.is_mapped(), switches.contains(&"MAPS"));
        let memory = buffer.begin_read_raw(90, 10, memory).unwrap().wait().unwrap();
        assert_eq!(memory[..11], [90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 0], "{switches:?}");
        let memory = buffer.begin_read(memory).unwrap().wait().unwrap();
        assert_eq!(memory[..3], [0, 1, 2]);
        let mut incoming =
            client.create_for_transfer(ElementType::U16, &[50], Target::Device(&device)).unwrap();
        assert_eq!(incoming.host_bytes(), 100);
        incoming.write(60, &memory[60..100], false).unwrap();
        let memory = incoming.begin_write(0, 60, true, memory).unwrap().wait().unwrap();
        let arrived = incoming.into_buffer().unwrap();
        assert_eq!(arrived.element_type().unwrap(), ElementType::U16);
        assert_eq!(arrived.read().unwrap(), memory[..100]);
        drop((memory, arrived, buffer, client, device));
        assert!(library.is_empty_soon(), "{switches:?}");
        assert!(library.mapped_pieces() <= i64::from(!switches.contains(&"MAPS")), "{switches:?}");
    }
}

#[test]
fn abandoned_copy_keeps_what_it_uses() {
    let library = Library::new(81, &["LATE"]);
    let (client, device) = client(&library);
    for _ in 0..4 {
        let buffer = buffer(&client, &device);
        let memory = client.allocate_host(100).unwrap();
        // The plug-in writes into the memory and reads the buffer long after this.
        drop(buffer.begin_read_raw(0, 100, memory).unwrap());
        let memory = client.allocate_host(100).unwrap();
        let mut incoming =
            client.create_for_transfer(ElementType::U8, &[100], Target::Device(&device)).unwrap();
        drop(incoming.begin_write(0, 100, true, memory).unwrap());
    }
    drop((client, device));
    assert!(library.is_empty_soon(), "{} objects are left", library.live_objects());
}

#[test]
fn event_that_never_happens_is_waited_for_within_the_limit() {
    let library = Library::new(81, &["NEVER", "UNREADY"]);
    let (client, device) = client(&library);
    let buffer = buffer(&client, &device);
    let event = buffer.ready().unwrap().unwrap();
    assert!(!event.is_ready().unwrap());
    assert!(!event.wait_at_most(Duration::from_millis(20)).unwrap());
    // Memory that the plug-in may write to at any time is never reused.
    let memory = client.allocate_host(100).unwrap();
    drop(buffer.begin_read_raw(0, 100, memory).unwrap());
    let late = Library::new(81, &["LATE"]);
    let (client, device) = self::client(&late);
    let memory = client.allocate_host(100).unwrap();
    let transfer = self::buffer(&client, &device).begin_read_raw(0, 100, memory).unwrap();
    assert!(!transfer.is_done().unwrap());
    assert_eq!(transfer.wait().unwrap()[99], 99);
    let failing = Library::new(81, &["EVENT_FAILS"]);
    let (client, device) = self::client(&failing);
    let event = device.default_memory().unwrap().and_then(|memory| {
        let array = client.create_for_transfer(ElementType::U8, &[4], Target::Memory(&memory));
        let mut array = array.unwrap();
        assert!(array.write(0, &[1, 2, 3, 4], true).unwrap_err().to_string().contains("failed"));
        array.into_buffer().err()
    });
    assert!(event.unwrap().to_string().contains("UNAVAILABLE"));
}

#[test]
fn pieces_lie_inside_the_array_and_the_last_is_the_last() {
    let library = Library::new(81, &[]);
    let (client, device) = client(&library);
    let target = Target::Device(&device);
    let mut array = client.create_for_transfer(ElementType::U8, &[10], target).unwrap();
    for (offset, bytes) in [(5, 6), (11, 0), (usize::MAX, 2)] {
        let error = array.write(offset, &vec![0; bytes], false).unwrap_err();
        assert!(matches!(error, PjrtError::OutOfRange { size: 10, .. }), "{error}");
    }
    let short = client.allocate_host(3).unwrap();
    let error = array.begin_write(0, 4, false, short).unwrap_err();
    assert!(matches!(error, PjrtError::InvalidArgument { .. }), "{error}");
    array.write(0, &[7; 10], true).unwrap();
    let error = array.write(0, &[7; 10], true).unwrap_err().to_string();
    assert!(error.contains("after the last"), "{error}");
    assert_eq!(array.into_buffer().unwrap().read().unwrap(), [7; 10]);
    // The plug-in is told of a cancelled array.
    let array = client.create_for_transfer(ElementType::U8, &[10], target).unwrap();
    assert!(array.into_buffer().unwrap_err().to_string().contains("last piece has not come"));
    assert_eq!(library.given_up_arrays(), 1);
    // Devices pack these elements, so the end of a piece depends on the device.
    let error = client.create_for_transfer(ElementType::S4, &[10], target).unwrap_err();
    assert!(error.to_string().contains("S4"), "{error}");
    let error = client.create_for_transfer(ElementType::U8, &[i64::MAX, 3], target).unwrap_err();
    assert!(matches!(error, PjrtError::InvalidArgument { .. }), "{error}");
    drop((client, device));
    assert_eq!(library.live_objects(), 0);
    let old = Library::new(59, &[]);
    let (client, device) = self::client(&old);
    let error = client.create_for_transfer(ElementType::U8, &[1], Target::Device(&device));
    assert!(error.unwrap_err().is_unsupported());
}

#[test]
fn memory_is_mapped_where_it_can_be_and_plain_elsewhere() {
    // The plug-in reports once that it cannot map memory, and is not asked again.
    let library = Library::new(81, &[]);
    let (client, _) = client(&library);
    for _ in 0..3 {
        assert!(!client.allocate_host(10).unwrap().is_mapped());
    }
    assert_eq!(library.mapped_pieces(), 1);
    let library = Library::new(81, &["MAPS", "MAP_FAILS"]);
    let (client, _) = self::client(&library);
    let first = client.allocate_host(10).unwrap();
    assert!(first.is_mapped() && !client.allocate_host(10).unwrap().is_mapped());
    drop(first);
    assert!(client.allocate_host(10).unwrap().is_mapped());
    assert_eq!(library.mapped_pieces(), 0);
    let error = client.allocate_host(usize::MAX).unwrap_err();
    assert!(matches!(error, PjrtError::OutOfHostMemory { .. }), "{error}");
}

/// Keeps memory that a device may still reach from being reused.
#[test]
fn memory_that_cannot_be_unmapped_is_dropped_and_forgotten() {
    let library = Library::new(81, &["MAPS", "NO_UNMAP"]);
    let (client, _) = client(&library);
    drop(client.allocate_host(1 << 20).unwrap());
    assert_eq!(library.mapped_pieces(), 1);
}

#[test]
fn an_array_tells_where_and_how_it_lies() {
    let library = Library::new(81, &[]);
    let (client, device) = client(&library);
    let buffer = buffer(&client, &device);
    assert!(buffer.device().unwrap() == device && buffer.client() == client);
    assert_eq!(buffer.memory().unwrap(), device.default_memory().unwrap());
    let layout = MemoryLayout::Tiled { minor_to_major: vec![1, 0], tiles: vec![] };
    assert_eq!(buffer.layout().unwrap(), layout);
    assert!(buffer.is_row_major().unwrap() && buffer.has_raw_reads());
    assert!(buffer.is_on_cpu().unwrap());
    assert_eq!(buffer.unpadded_dims().unwrap(), [10, 10]);
    assert!(buffer.dynamic_dimensions().unwrap().is_empty());
    assert_eq!(buffer.layout_text().unwrap(), "{1,0}");
    assert_eq!(client.default_layout_text(ElementType::F32, &[2, 3]).unwrap(), "{1,0}");
    let reference = buffer.external_reference().unwrap();
    assert!(!reference.address().unwrap().is_null());
    let other = Library::new(81, &[]);
    assert!(device != self::client(&other).1);
    let tiled = Library::new(81, &["LAYOUT_TILES=1"]);
    let (client, device) = self::client(&tiled);
    let array = self::buffer(&client, &device);
    let expected = MemoryLayout::Tiled { minor_to_major: vec![1, 0], tiles: vec![vec![8, 128]] };
    assert_eq!(array.layout().unwrap(), expected);
    assert!(!array.is_row_major().unwrap());
}

#[test]
fn a_client_tells_of_its_devices_memories_and_topology() {
    let library = Library::new(114, &[]);
    let (client, device) = client(&library);
    let second = client.device(8).unwrap();
    assert!(second != device && client.device(7).unwrap() == device);
    assert!(client.device(9).unwrap_err().to_string().contains("no device has this number"));
    let memories = client.addressable_memories().unwrap();
    assert_eq!((memories.len(), memories[0].kind_id().unwrap()), (2, -5));
    assert_eq!(memories[0].devices().unwrap()[0], device);
    assert_eq!(memories[0].debug_string().unwrap(), "memory");
    assert_eq!(client.default_device_assignment(1, 2).unwrap(), [7, 8]);
    for (replicas, partitions) in [(0, 1), (u32::MAX, 2), (1 << 11, 1 << 11)] {
        let error = client.default_device_assignment(replicas, partitions).unwrap_err();
        assert!(matches!(error, PjrtError::InvalidArgument { .. }), "{error}");
    }
    assert_eq!(device.attributes().unwrap(), [("core".to_owned(), Value::Integer(5))]);
    let counted = device.memory_statistics().unwrap().unwrap();
    assert_eq!((counted.bytes_in_use, counted.peak_bytes_in_use), (1000, Some(2000)));
    // A number that is not marked as set is absent.
    assert_eq!((counted.allocations, counted.peak_allocated_bytes), (None, None));
    device.clear_memory_statistics().unwrap();
    let topology = client.topology().unwrap();
    assert_eq!(
        (topology.platform_name().unwrap(), topology.fingerprint().unwrap()),
        ("double".to_owned(), 42)
    );
    assert_eq!(topology.devices().unwrap()[1].short_string().unwrap(), "double 0");
    let bytes = topology.serialize().unwrap();
    let again = client.plugin().deserialize_topology(&bytes).unwrap();
    assert_eq!(again.serialize().unwrap(), bytes);
    assert!(client.plugin().deserialize_topology(b"other").is_err());
    drop((again, topology, client, device, second, memories));
    assert_eq!(library.live_objects(), 0);
}

#[test]
fn array_in_another_order_is_read_in_host_order() {
    let library = Library::new(81, &["TURNED"]);
    let client = library.load().unwrap().create_client(&[]).unwrap();
    let device = client.addressable_devices().unwrap().swap_remove(0);
    let array = HostArray::new(ElementType::U8, &[2, 3]);
    // In the layout of the device, column by column.
    let buffer = client.put(&array, &[0, 3, 1, 4, 2, 5], Target::Device(&device)).unwrap();
    assert_eq!(buffer.read().unwrap(), [0, 1, 2, 3, 4, 5]);
    let target = client.allocate_host(8).unwrap();
    let read = buffer.begin_read(target).unwrap().wait().unwrap();
    assert_eq!(read[..6], [0, 1, 2, 3, 4, 5]);
    drop((buffer, device, client));
    assert_eq!(library.live_objects(), 0);
}

#[test]
fn plugin_faults_in_transfers_and_layouts_are_named() {
    for (switches, part) in [
        (&["NULL_MANAGER"][..], "PJRT_Client_CreateBuffersForAsyncHostToDevice gave NULL"),
        (&["NULL_INCOMING=0"], "RetrieveBuffer gave NULL"),
        (&["COUNT_SAID=0"], "gave 0 as the number of arrays"),
        (&["COUNT_SAID=(size_t)-1"], "gave 18446744073709551615 as the number of arrays"),
        (&["INCOMING_SAID=1"], "gave 1 as the size of the array"),
        (&["NULL_TOPOLOGY"], "PJRT_Client_TopologyDescription gave NULL"),
        (&["DESCRIPTIONS_SAID=(size_t)-1"], "GetDeviceDescriptions gave 18446744073709551615"),
        (&["TOPOLOGY_SAID=(size_t)-1"], "4 GiB at most"),
        (&["NULL_BYTES"], "PJRT_TopologyDescription_Serialize gave NULL"),
        (&["ATTRIBUTES_SAID=(size_t)-1"], "PJRT_DeviceDescription_Attributes gave 184467"),
        (&["NULL_LAYOUT"], "PJRT_Layouts_PJRT_Buffer_MemoryLayout gave NULL"),
        (&["LAYOUT_SAID=7"], "gave 7 as the kind of a layout"),
        (&["LAYOUT_RANK=(size_t)-1"], "254 at most of either"),
        (&["LAYOUT_TILES=(size_t)-1"], "254 at most of either"),
        (&["LAYOUT_TILES=1", "TILE_RANK=(size_t)-1"], "the dimensions of tiles"),
        (&["NULL_COPY"], "gave NULL as a buffer"),
        (&["NULL_DEVICE_OF"], "PJRT_Buffer_Device gave NULL"),
        (&["DYNAMIC_SAID=(size_t)-1"], "PJRT_Buffer_DynamicDimensionIndices gave 184467"),
        (&["FAILING=\"PJRT_AsyncHostToDeviceTransferManager_TransferData\""], "TransferData: as"),
        (&["FAILING=\"PJRT_AsyncHostToDeviceTransferManager_BufferSize\""], "BufferSize: as told"),
        (&["NULL_SLOT=SLOT_PJRT_AsyncHostToDeviceTransferManager_TransferData"], "TransferData"),
    ] {
        let library = Library::new(81, switches);
        let error = everything(&library).unwrap_err().to_string();
        assert!(error.contains(part), "{switches:?}: {error}");
        assert_eq!(library.live_objects(), 0, "{switches:?}");
    }
    for switches in [
        &[][..],
        &["FAILING=\"PJRT_AsyncHostToDeviceTransferManager_BufferSize\"", "CODE=12"],
        &["NULL_SLOT=SLOT_PJRT_AsyncHostToDeviceTransferManager_BufferCount"],
        &["NULL_SLOT=SLOT_PJRT_AsyncHostToDeviceTransferManager_SetBufferError"],
        &["FAILING=\"PJRT_Device_MemoryStats\"", "CODE=12"],
        &["FAILING=\"PJRT_Client_DmaMap\""],
    ] {
        everything(&Library::new(81, switches))
            .unwrap_or_else(|error| panic!("{switches:?}: {error}"));
    }
}

/// Makes all queries of transfers, layouts and topologies.
fn everything(library: &Library) -> Result<(), PjrtError> {
    let client = library.load()?.create_client(&[])?;
    let device = client.addressable_devices()?.swap_remove(0);
    let target = Target::Device(&device);
    let mut array = client.create_for_transfer(ElementType::U8, &[2, 5], target)?;
    drop(client.create_for_transfer(ElementType::U8, &[2, 5], target)?);
    let memory = client.allocate_host(10)?;
    array.begin_write(0, 10, true, memory)?.wait()?;
    let buffer = array.into_buffer()?;
    let _ = (buffer.layout()?, buffer.layout_text()?, buffer.device()?, buffer.memory()?);
    let _ = (buffer.dynamic_dimensions()?, device.attributes()?, device.memory_statistics()?);
    let _ = (buffer.copy_to(target)?, buffer.is_row_major()?);
    let topology = client.topology()?;
    let _ = (topology.devices()?, topology.serialize()?, topology.attributes()?);
    Ok(())
}

#[test]
fn error_payloads_have_a_bounded_length() {
    let failing = "FAILING=\"PJRT_Client_Create\"";
    for (switches, count, length) in [
        (&[failing][..], 0, 0),
        (&[failing, "PAYLOADS=2"], 2, 8),
        (&[failing, "PAYLOADS=100000"], 64, 8),
        (&[failing, "PAYLOADS=1", "PAYLOAD_SAID=(1<<17)"], 1, 64 << 10),
        (&[failing, "PAYLOADS=1", "NULL_PAYLOAD"], 1, 0),
    ] {
        let library = Library::new(114, switches);
        let error = library.load().unwrap().create_client(&[]).unwrap_err();
        let PjrtError::Status { payloads, .. } = error else { panic!("{error}") };
        assert_eq!(payloads.len(), count, "{switches:?}");
        let first = payloads.first();
        assert_eq!(first.map_or(0, |payload| payload.value.len()), length, "{switches:?}");
        assert!(first.is_none_or(|payload| payload.key == "type\\u{1b}[2J"), "{first:?}");
    }
    // Before 0.99 the function does not exist.
    let library = Library::new(98, &[failing]);
    let error = library.load().unwrap().create_client(&[]).unwrap_err();
    assert!(matches!(error, PjrtError::Status { payloads, .. } if payloads.is_empty()));
}
