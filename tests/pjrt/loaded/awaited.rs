//! Tests of arrays of one transfer manager, and of reads whose memory is given later.

use serdes_pjrt::{Client, Device, ElementType, HostArray, PjrtError, Target};

use super::plugins::Library;

fn client(library: &Library) -> (Client, Device) {
    let client = library.load().unwrap().create_client(&[]).unwrap();
    let device = client.addressable_devices().unwrap().swap_remove(0);
    (client, device)
}

const ARRAYS: [(ElementType, &[i64]); 3] =
    [(ElementType::U8, &[10]), (ElementType::F32, &[2, 3]), (ElementType::U16, &[0])];

#[test]
fn arrays_of_one_manager_come_independently_of_each_other() {
    for minor in [62, 81, 114] {
        let library = Library::new(minor, &["EQUAL_SIZES"]);
        let (client, device) = client(&library);
        let mut arrays = client.create_all_for_transfer(&ARRAYS, Target::Device(&device)).unwrap();
        assert_eq!(arrays.iter().map(|array| array.host_bytes()).collect::<Vec<_>>(), [10, 24, 0]);
        let data: Vec<u8> = (0..24).collect();
        // Pieces of the arrays in any order; the last array has only its final, empty piece.
        arrays[1].write(12, &data[12..], false).unwrap();
        arrays[0].write(0, &data[..10], true).unwrap();
        arrays[2].write(0, &[], true).unwrap();
        arrays[1].write(0, &data[..12], true).unwrap();
        assert!(matches!(
            arrays[0].write(9, &data[..2], true),
            Err(PjrtError::InvalidArgument { .. })
        ));
        assert!(arrays[1].write(24, &data[..1], true).is_err());
        let arrived: Vec<_> =
            arrays.into_iter().map(|array| array.into_buffer().unwrap().read().unwrap()).collect();
        assert_eq!(arrived, [&data[..10], &data, &[]], "0.{minor}");
        // Arrays that are dropped are cancelled; the others are unaffected.
        let mut arrays = client.create_all_for_transfer(&ARRAYS, Target::Device(&device)).unwrap();
        let mut kept = arrays.swap_remove(0);
        drop(arrays);
        assert_eq!(library.given_up_arrays(), 2, "0.{minor}");
        kept.write(0, &data[..10], true).unwrap();
        assert_eq!(kept.into_buffer().unwrap().read().unwrap(), data[..10]);
        drop((client, device));
        assert_eq!(library.live_objects(), 0, "0.{minor}");
    }
}

#[test]
fn an_array_that_cannot_be_had_gives_up_those_that_were() {
    for (switch, part) in [
        ("NULL_INCOMING=2", "RetrieveBuffer gave NULL"),
        ("COUNT_SAID=2", "gave 2 as the number of arrays"),
        ("INCOMING_SAID=11", "gave 11 as the size of the array"),
    ] {
        let library = Library::new(81, &[switch]);
        let (client, device) = client(&library);
        let made = client.create_all_for_transfer(&ARRAYS, Target::Device(&device));
        assert!(made.unwrap_err().to_string().contains(part), "{switch}");
        drop((client, device));
        assert_eq!(library.live_objects(), 0, "{switch}");
    }
    let library = Library::new(81, &[]);
    let (client, device) = client(&library);
    let target = Target::Device(&device);
    assert!(client.create_all_for_transfer(&[], target).is_err());
    let packed = [(ElementType::U8, &[1][..]), (ElementType::S4, &[2])];
    assert!(client.create_all_for_transfer(&packed, target).is_err());
    let many = vec![(ElementType::U8, &[1][..]); (1 << 16) + 1];
    assert!(client.create_all_for_transfer(&many, target).is_err());
}

#[test]
fn a_raw_read_goes_on_when_its_memory_has_come() {
    for (minor, switches) in
        [(84, &["EQUAL_SIZES"][..]), (114, &["EQUAL_SIZES"]), (114, &["NULL_EVENTS"])]
    {
        let library = Library::new(minor, switches);
        let (client, device) = client(&library);
        let data: Vec<u8> = (0..100).collect();
        let array = HostArray::new(ElementType::U8, &[100]);
        let buffer = client.put(&array, &data, Target::Device(&device)).unwrap();
        let read = buffer.begin_read_raw_later(90, 10).unwrap();
        // The array may be dropped before the memory is given.
        drop(buffer);
        let memory = client.allocate_host(12).unwrap();
        let memory = read.into_memory(memory).unwrap().wait().unwrap();
        assert_eq!(memory[..], [90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 0, 0], "0.{minor}");
        drop((memory, client, device));
        assert_eq!(library.live_objects(), 0, "0.{minor}");
    }
}

#[test]
fn a_raw_read_without_memory_is_given_up() {
    let library = Library::new(114, &[]);
    let (client, device) = client(&library);
    let array = HostArray::new(ElementType::U8, &[4]);
    let buffer = client.put(&array, &[1, 2, 3, 4], Target::Device(&device)).unwrap();
    drop(buffer.begin_read_raw_later(0, 4).unwrap());
    assert_eq!(library.given_up_arrays(), 1);
    let short = client.allocate_host(3).unwrap();
    let error = buffer.begin_read_raw_later(0, 4).unwrap().into_memory(short).unwrap_err();
    assert!(matches!(error, PjrtError::InvalidArgument { .. }), "{error}");
    assert_eq!(library.given_up_arrays(), 2);
    assert!(matches!(buffer.begin_read_raw_later(1, 4), Err(PjrtError::OutOfRange { .. })));
    drop((buffer, client, device));
    assert_eq!(library.live_objects(), 0);
    for (minor, switches, part) in [
        (114, &["NO_CALLBACK"][..], "PJRT_Buffer_CopyRawToHostFuture gave NULL"),
        (114, &["FAILING=\"PJRT_Buffer_CopyRawToHostFuture\""], "as told"),
        (83, &[], "does not have PJRT_Buffer_CopyRawToHostFuture, which came with 0.84"),
    ] {
        let library = Library::new(minor, switches);
        let (client, device) = self::client(&library);
        let buffer = client.put(&array, &[1, 2, 3, 4], Target::Device(&device)).unwrap();
        let error = buffer.begin_read_raw_later(0, 4).unwrap_err().to_string();
        assert!(error.contains(part), "{switches:?}: {error}");
        drop((buffer, client, device));
        assert_eq!(library.live_objects(), 0, "{switches:?}");
    }
}
