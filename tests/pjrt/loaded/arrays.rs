//! Tests of arrays: data that are put onto a device are read back unchanged, and input that would
//! crash plug-ins is never passed to them.

use serdes_pjrt::{
    Client, Device, ElementType, HostArray, HostBufferSemantics, Minor, PjrtError, Target, Value,
};

use super::plugins::Library;

fn client(library: &Library) -> (Client, Device) {
    let client = library.load().unwrap().create_client(&[]).unwrap();
    let device = client.addressable_devices().unwrap().swap_remove(0);
    (client, device)
}

#[test]
fn element_types_of_the_plugin_round_trip_others_are_refused() {
    for (minor, count) in [(49, 22), (81, 28), (106, 30), (114, 32)] {
        let library = Library::new(minor, &[]);
        let (client, device) = client(&library);
        let mut known = 0;
        for &element_type in ElementType::ALL {
            let data: Vec<u8> = (0..6 * element_type.host_bytes()).map(|at| at as u8).collect();
            let array = HostArray::new(element_type, &[3, 2]);
            let found = client.put(&array, &data, Target::Device(&device));
            if element_type.number_in(Minor::new(minor)).is_none() {
                let error = found.unwrap_err().to_string();
                assert!(error.contains(element_type.name()), "{error}");
                continue;
            }
            let buffer = found.unwrap();
            known += 1;
            assert_eq!(buffer.element_type().unwrap(), element_type);
            assert_eq!(buffer.dims().unwrap(), [3, 2]);
            assert_eq!(buffer.read().unwrap(), data, "{element_type}");
        }
        assert_eq!(known, count, "0.{minor}");
    }
}

#[test]
fn strides_are_checked_before_the_call() {
    let library = Library::new(81, &[]);
    let (client, device) = client(&library);
    let data: Vec<u8> = (0..6).collect();
    let put = |dims: &[i64], strides: &[i64]| {
        let array = HostArray::new(ElementType::U8, dims).with_byte_strides(strides);
        client.put(&array, &data, Target::Device(&device))
    };
    // Transposed, and one row three times.
    assert_eq!(put(&[3, 2], &[1, 3]).unwrap().read().unwrap(), [0, 3, 1, 4, 2, 5]);
    assert_eq!(put(&[3, 2], &[0, 1]).unwrap().read().unwrap(), [0, 1, 0, 1, 0, 1]);
    for (dims, strides) in [
        (&[3, 2][..], &[-1, 3][..]),
        (&[3, 2], &[3, 3]),
        (&[3, 2], &[1]),
        (&[7], &[]),
        (&[-1], &[]),
        (&[i64::MAX, 4], &[1, 1]),
    ] {
        let error = put(dims, strides).unwrap_err();
        assert!(matches!(error, PjrtError::InvalidArgument { .. }), "{dims:?} {strides:?} {error}");
    }
    // Scalars and empty arrays are arrays.
    assert_eq!(put(&[], &[]).unwrap().read().unwrap(), [0]);
    assert!(put(&[0, 9], &[]).unwrap().read().unwrap().is_empty());
}

#[test]
fn donated_host_memory_is_kept_until_the_plugin_releases_it() {
    let array = HostArray::new(ElementType::U8, &[4096]);
    let data = || vec![77; 4096];
    let kinds = [
        HostBufferSemantics::ImmutableUntilTransferCompletes,
        HostBufferSemantics::ImmutableZeroCopy,
        HostBufferSemantics::MutableZeroCopy,
    ];
    for semantics in kinds {
        // The plug-in never reports that it is done with the host's memory.
        let library = Library::new(81, &["NEVER"]);
        let (client, device) = client(&library);
        let target = Target::Device(&device);
        let buffer = client.put_owned(&array, data(), semantics, target).unwrap();
        assert_eq!(buffer.read().unwrap(), data());
        drop(buffer);
        assert_eq!(library.kept_byte(), 77);
    }
    // The plug-in reports it at once, with an error that the host must destroy.
    let library = Library::new(81, &["HANDED_ERROR"]);
    let (client, device) = client(&library);
    for semantics in kinds {
        let target = Target::Device(&device);
        drop(client.put_owned(&array, data(), semantics, target).unwrap());
    }
    drop((client, device));
    assert_eq!(library.live_objects(), 0);
    // The mutable kind exists since 0.48.
    let old = Library::new(47, &[]);
    let (client, device) = self::client(&old);
    let found = client.put_owned(&array, data(), kinds[2], Target::Device(&device));
    assert!(found.unwrap_err().to_string().contains("0.48"));
}

#[test]
fn parts_are_read_inside_the_buffer_alone() {
    let library = Library::new(81, &[]);
    let (client, device) = client(&library);
    let array = HostArray::new(ElementType::U8, &[10]);
    let data: Vec<u8> = (0..10).collect();
    let buffer = client.put(&array, &data, Target::Device(&device)).unwrap();
    let mut part = [0; 4];
    buffer.read_raw(6, &mut part).unwrap();
    assert_eq!(part, [6, 7, 8, 9]);
    for offset in [7, 10, usize::MAX] {
        let error = buffer.read_raw(offset, &mut part).unwrap_err();
        assert!(matches!(error, PjrtError::OutOfRange { size: 10, .. }), "{error}");
    }
    let mut short = [0; 9];
    assert!(buffer.read_into(&mut short).unwrap_err().to_string().contains("10"));
    // Deletes it twice.
    buffer.delete().unwrap();
    buffer.delete().unwrap();
    assert!(buffer.is_deleted().unwrap());
    assert!(buffer.read().unwrap_err().to_string().contains("the buffer was deleted"));
}

#[test]
fn objects_of_another_client_are_refused() {
    let library = Library::new(81, &[]);
    let ((one, _), (_, other)) = (client(&library), client(&library));
    let array = HostArray::new(ElementType::U8, &[1]);
    let error = one.put(&array, &[1], Target::Device(&other)).unwrap_err();
    assert!(matches!(error, PjrtError::OtherClient { what: "device" }), "{error}");
}

#[test]
fn a_client_that_cannot_be_created_says_why() {
    let library = Library::new(81, &[]);
    let plugin = library.load().unwrap();
    let none = [("none".to_owned(), Value::Bool(true))];
    let error = plugin.create_client(&none).unwrap_err().to_string();
    assert!(error.contains("there is no device") && error.contains("NOT_FOUND"), "{error}");
    // Real plug-ins end the process for this option.
    let wrong = [("cpu_device_count".to_owned(), Value::Text("four".to_owned()))];
    let error = plugin.create_client(&wrong).unwrap_err();
    assert!(matches!(error, PjrtError::InvalidArgument { .. }), "{error}");
    assert_eq!(library.live_objects(), 0);
}

#[test]
fn many_threads_use_one_client() {
    let library = Library::new(81, &[]);
    let (client, device) = client(&library);
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let (client, device) = (&client, &device);
            scope.spawn(move || {
                let array = HostArray::new(ElementType::U8, &[100]);
                for _ in 0..100 {
                    let data = vec![thread; 100];
                    let buffer = client.put(&array, &data, Target::Device(device)).unwrap();
                    assert_eq!(buffer.read().unwrap(), data);
                    buffer.ready().unwrap().unwrap().wait().unwrap();
                }
            });
        }
    });
    drop((client, device));
    assert_eq!(library.live_objects(), 0);
}
