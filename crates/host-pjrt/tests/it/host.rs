//! Tests of the shared library with this project's own host of PJRT plug-ins.

/// Loading is supported only there.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod loaded {
    use std::{path::PathBuf, thread};

    use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
    use serdes_device_state::{Reader, Versions, Writer};
    use serdes_pjrt::{
        Client, Device, ElementType, Framework, HostArray, HostBufferSemantics, IncomingArray,
        Memory, PjrtError, PjrtPlugin, Target, Value,
    };
    use serdes_stream_executor::Plugin;

    /// Loads the library of this package, which cargo builds before its tests.
    fn plugin() -> PjrtPlugin {
        let test = std::env::current_exe().unwrap();
        let name = "libserdes_host_pjrt.so";
        let library: Option<PathBuf> =
            test.ancestors().skip(1).map(|folder| folder.join(name)).find(|path| path.exists());
        PjrtPlugin::load(library.unwrap()).unwrap()
    }

    fn client(devices: i64) -> (Client, Vec<Device>) {
        let options = [("devices".to_owned(), Value::Integer(devices))];
        let client = plugin().create_client(&options).unwrap();
        let devices = client.addressable_devices().unwrap();
        (client, devices)
    }

    fn memory(device: &Device, kind: &str) -> Memory {
        let memories = device.memories().unwrap();
        memories.into_iter().find(|memory| memory.kind().unwrap() == kind).unwrap()
    }

    #[test]
    fn table_is_valid_and_fits_every_framework_without_a_gate() {
        let plugin = plugin();
        assert_eq!((plugin.minor().number(), plugin.struct_size()), (80, 984));
        assert_eq!(plugin.warnings(), &[] as &[String]);
        assert!(plugin.extensions().iter().any(|extension| extension.number == 4));
        let older = |name: &&str| since(name) <= plugin.minor().number();
        assert_eq!(plugin.missing_functions().find(older), None);
        for release in ["0.4.33", "0.5.3", "0.7.0", "0.8.0", "0.9.0", "0.10.2", "0.12.0.1"] {
            let framework = Framework::named(&format!("jaxlib-{release}")).unwrap();
            let fit = framework.fit(&plugin.version());
            assert!(fit.fits(), "{release}: {:?}", fit.reasons());
        }
    }

    /// Returns the minor that introduced a function.
    fn since(name: &str) -> u32 {
        serdes_plugin::abi::pjrt::function(name).unwrap().since().number()
    }

    #[test]
    fn client_has_the_asked_devices_with_three_memories_each() {
        let (client, devices) = client(4);
        assert_eq!(client.platform_name(), "serdes_host");
        assert_eq!((devices.len(), client.devices().unwrap().len()), (4, 4));
        for (index, device) in (0..).zip(&devices) {
            assert_eq!(device.id().unwrap(), index);
            assert_eq!(device.local_hardware_id().unwrap(), index);
            assert_eq!(device.kind().unwrap(), "cpu");
            assert_eq!(device.debug_string().unwrap(), format!("serdes_host:{index}"));
            let memories = device.memories().unwrap();
            let kinds: Vec<String> = memories.iter().map(|memory| memory.kind().unwrap()).collect();
            assert_eq!(kinds, ["device", "pinned_host", "unpinned_host"]);
            let default = device.default_memory().unwrap().unwrap();
            assert_eq!(default.id().unwrap(), index * 3);
        }
    }

    #[test]
    fn an_option_that_is_not_known_or_cannot_be_is_refused_in_words() {
        for (name, value, part) in [
            ("device", Value::Integer(1), "expected one of"),
            ("devices", Value::Text("4".to_owned()), "a text, expected a whole number"),
            ("memory", Value::Integer(-4), "expected 0 or more"),
        ] {
            let error = plugin().create_client(&[(name.to_owned(), value)]).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
        let framework = ("ml_framework_name".to_owned(), Value::Text("JAX".to_owned()));
        assert!(plugin().create_client(&[framework]).is_ok());
    }

    #[test]
    fn arrays_of_every_type_round_trip_through_every_memory() {
        let (client, devices) = client(2);
        let minor = client.minor();
        let known = ElementType::ALL.iter().filter(|known| known.number_in(minor).is_some());
        for &element_type in known {
            // Zeros and ones are values of every type.
            let bytes = 7 * element_type.host_bytes();
            let data: Vec<u8> = (0..bytes).map(|at| u8::from(at % 3 == 0)).collect();
            let array = HostArray::new(element_type, &[7]);
            for kind in ["device", "pinned_host", "unpinned_host"] {
                let memory = memory(&devices[0], kind);
                let buffer = client.put(&array, &data, Target::Memory(&memory)).unwrap();
                assert_eq!(buffer.read().unwrap(), data, "{element_type} in {kind}");
                let copy = buffer.copy_to(Target::Device(&devices[1])).unwrap();
                assert_eq!(copy.read().unwrap(), data, "{element_type} from {kind}");
                let mut raw = vec![0; copy.device_bytes().unwrap()];
                copy.read_raw(0, &mut raw).unwrap();
                assert!(raw.len() < bytes || raw == data, "{element_type}");
            }
        }
    }

    #[test]
    fn large_arrays_go_every_way_at_once_and_come_back() {
        let (client, devices) = client(3);
        thread::scope(|scope| {
            for seed in 0..6_usize {
                let (client, devices) = (&client, &devices);
                scope.spawn(move || {
                    let data: Vec<u8> = (0..600_000).map(|at| (at * 7 + seed) as u8).collect();
                    let array = HostArray::new(ElementType::U16, &[300, 1000]);
                    for round in 0..4 {
                        let target = Target::Device(&devices[(seed + round) % 3]);
                        let semantics = [
                            HostBufferSemantics::ImmutableUntilTransferCompletes,
                            HostBufferSemantics::ImmutableZeroCopy,
                            HostBufferSemantics::MutableZeroCopy,
                        ][round % 3];
                        let buffer =
                            client.put_owned(&array, data.clone(), semantics, target).unwrap();
                        let other = Target::Device(&devices[(seed + round + 1) % 3]);
                        let copy = buffer.copy_to(other).unwrap();
                        drop(buffer);
                        assert!(copy.read().unwrap() == data);
                        let mut part = vec![0; 1000];
                        copy.read_raw(599_000, &mut part).unwrap();
                        assert_eq!(part, data[599_000..]);
                    }
                });
            }
        });
    }

    #[test]
    fn a_transposed_array_is_put_in_order() {
        let (client, devices) = client(1);
        let array = HostArray::new(ElementType::U8, &[3, 2]).with_byte_strides(&[1, 3]);
        let data: Vec<u8> = (0..6).collect();
        let buffer = client.put(&array, &data, Target::Device(&devices[0])).unwrap();
        assert_eq!(buffer.read().unwrap(), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn a_deleted_array_has_no_bytes_and_its_memory_is_there_again() {
        let options = [("memory".to_owned(), Value::Integer(1000))];
        let client = plugin().create_client(&options).unwrap();
        let device = client.addressable_devices().unwrap().swap_remove(0);
        let array = HostArray::new(ElementType::U8, &[600]);
        let put = || client.put(&array, &[1; 600], Target::Device(&device));
        let buffer = put().unwrap();
        let error = put().unwrap_err();
        assert!(matches!(error, PjrtError::Status { .. }), "{error}");
        assert!(error.to_string().contains("600 bytes left"), "{error}");
        buffer.delete().unwrap();
        assert!(buffer.is_deleted().unwrap());
        assert!(buffer.read().is_err());
        assert!(put().is_ok());
    }

    /// Returns an array of `bytes` bytes that was sent to the plug-in in pieces, and its bytes.
    fn in_pieces(client: &Client, bytes: usize) -> (serdes_pjrt::Array, Vec<u8>) {
        let space = client.memory_spaces().unwrap().swap_remove(0);
        let data: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        let dims = [i64::try_from(bytes).unwrap()];
        let mut incoming = IncomingArray::new(&space, ElementType::U8, &dims).unwrap();
        for (index, piece) in data.chunks(700_000).enumerate() {
            incoming.write(index as u64 * 700_000, piece).unwrap();
        }
        (incoming.finish().unwrap(), data)
    }

    #[test]
    fn an_array_comes_in_pieces_and_is_read_in_pieces() {
        let (client, _) = client(1);
        let (array, data) = in_pieces(&client, 3 << 20);
        assert!(!array.is_read_whole());
        let mut part = vec![0; 1 << 20];
        array.read(1_000_001, &mut part).unwrap();
        assert!(part == data[1_000_001..][..1 << 20]);
    }

    #[test]
    fn state_moves_to_another_client_and_to_stream_executor() {
        let folder = std::env::temp_dir().join(format!("serdes-host-pjrt-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("state.sds");
        let (one, _) = client(1);
        let (array, data) = in_pieces(&one, 3 << 20);
        let shape = Shape::new([3 << 20]).unwrap();
        let spec = ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)));
        let mut state = Writer::create(&path, Versions::week_4_old()).unwrap();
        state.add("x", &spec, &array).unwrap();
        state.finish().unwrap();
        drop((array, one));

        let state = Reader::open(&path).unwrap();
        let (three, _) = client(3);
        let space = three.memory_spaces().unwrap().swap_remove(2);
        let restored = state.tensor("x").unwrap().restore(&space).unwrap();
        assert_eq!(restored.buffer().device().unwrap().id().unwrap(), 2);
        assert!(restored.buffer().read().unwrap() == data);

        let device = Plugin::host().device(0).unwrap();
        let restored = state.tensor("x").unwrap().restore(&device).unwrap();
        assert!(device.download(&restored).unwrap() == data);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
