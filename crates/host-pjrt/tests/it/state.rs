//! Tests of states saved from and restored to the arrays of a PJRT client, also between plug-ins of
//! both interfaces.

/// Loading is supported only there.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod loaded {
    use std::path::{Path, PathBuf};

    use serdes::ifrt::{
        ArraySpec, DType, DeviceId, DeviceList, HloSharding, MemoryKind, Shape,
        SingleDeviceSharding,
        xla::{OpSharding, TileAssignment},
    };
    use serdes_device_state::{
        Error, HostedDevice, ProgressMonitor, Reader, Shard, ShardTarget, Versions, WriteOptions,
        Writer, files::Durability,
    };
    use serdes_pjrt::{
        Array, ElementType, HostArray, IncomingArray, MemorySpace, PjrtError, PjrtPlugin, Value,
    };
    use serdes_stream_executor::{Device, LayoutChoice, Plugin};

    /// Returns the library of this package, which cargo builds before its tests.
    fn library() -> PathBuf {
        let test = std::env::current_exe().unwrap();
        let found = test.ancestors().skip(1).map(|folder| folder.join("libserdes_host_pjrt.so"));
        found.into_iter().find(|path| path.exists()).unwrap()
    }

    fn spaces(options: &[(&str, i64)]) -> Vec<MemorySpace> {
        let options = options.iter();
        let options: Vec<_> =
            options.map(|(name, value)| ((*name).to_owned(), Value::Integer(*value))).collect();
        let plugin = PjrtPlugin::load(library()).unwrap();
        plugin.create_client(&options).unwrap().memory_spaces().unwrap()
    }

    fn devices(count: usize) -> Vec<Device> {
        let plugin = Plugin::open(&format!("host:devices={count}"), LayoutChoice::Detect).unwrap();
        (0..count).map(|ordinal| plugin.device(ordinal).unwrap()).collect()
    }

    /// Returns bytes of which neighbours are unlikely to be equal.
    fn noise(bytes: usize, seed: u32) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
        let next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 8) as u8
        };
        std::iter::repeat_with(next).take(bytes).collect()
    }

    /// Returns arrays of all kinds: long, short, empty, a scalar, narrow elements in whole bytes.
    fn arrays() -> Vec<(String, ArraySpec, Vec<u8>)> {
        let shapes: [(DType, &[i64]); 10] = [
            (DType::F32, &[300, 1000]),
            (DType::BF16, &[(3 << 20) + 7]),
            (DType::Pred, &[5]),
            (DType::S4, &[2, 7]),
            (DType::U2, &[2 << 20]),
            (DType::C128, &[]),
            (DType::F8E4M3FN, &[3, 0, 2]),
            (DType::S64, &[1 << 17]),
            (DType::U8, &[(1 << 20) - 1]),
            (DType::F16, &[1, 9]),
        ];
        let described = shapes.into_iter().zip(0..).map(|((dtype, dims), number)| {
            let sharding = SingleDeviceSharding::new(DeviceId(0));
            let spec = ArraySpec::new(dtype, Shape::new(dims).unwrap(), sharding);
            let bytes = spec.byte_size().unwrap().unwrap() as usize;
            let mut data = noise(bytes, number);
            // Values that elements of less than a byte can have.
            match dtype {
                DType::S4 | DType::U2 | DType::Pred => data.iter_mut().for_each(|byte| *byte &= 1),
                _ => {}
            }
            (format!("array-{number}"), spec, data)
        });
        described.collect()
    }

    fn writer(path: &Path) -> Writer {
        let options = WriteOptions::new(Versions::current()).with_durability(Durability::None);
        options.create(path).unwrap()
    }

    /// Saves all arrays.
    fn save_arrays(path: &Path) {
        let mut state = writer(path);
        for (name, spec, data) in arrays() {
            state.add_bytes(&name, &spec, &data).unwrap();
        }
        state.finish().unwrap();
    }

    /// Restores a state onto the device, and saves it from there into another state.
    fn by_way_of<D: HostedDevice>(device: &D, from: &Path, to: &Path) {
        let state = Reader::open(from).unwrap();
        let tensors = state.tensors_in_file_order().unwrap();
        let (memories, restored) =
            state.restore(&tensors, device, &ProgressMonitor::new()).unwrap();
        assert_eq!(restored.tensors as usize, tensors.len());
        let mut writer = writer(to);
        for (tensor, memory) in tensors.iter().zip(&memories) {
            writer.add(tensor.name(), tensor.spec(), memory).unwrap();
        }
        writer.finish().unwrap();
    }

    #[test]
    fn state_round_trips_between_both_interfaces_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        save_arrays(&path("first.sds"));
        let expected = std::fs::read(path("first.sds")).unwrap();
        let space = &spaces(&[("devices", 2)])[1];
        by_way_of(space, &path("first.sds"), &path("pjrt.sds"));
        by_way_of(&devices(1)[0], &path("pjrt.sds"), &path("stream_executor.sds"));
        by_way_of(space, &path("stream_executor.sds"), &path("back.sds"));
        for name in ["pjrt.sds", "stream_executor.sds", "back.sds"] {
            assert!(std::fs::read(path(name)).unwrap() == expected, "{name}");
        }
    }

    #[test]
    fn other_memories_of_a_device_are_read_and_written_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        save_arrays(&path("first.sds"));
        let device = spaces(&[])[0].device().clone();
        for kind in ["device", "pinned_host", "unpinned_host"] {
            let space = MemorySpace::of_kind(&device, kind).unwrap();
            by_way_of(&space, &path("first.sds"), &path("back.sds"));
            let [first, back] = ["first.sds", "back.sds"].map(|name| std::fs::read(path(name)));
            assert!(first.unwrap() == back.unwrap(), "{kind}");
        }
        let error = MemorySpace::of_kind(&device, "elsewhere").unwrap_err().to_string();
        assert!(error.contains("elsewhere") && error.contains("unpinned_host"), "{error}");
    }

    #[test]
    fn long_arrays_go_in_pieces_and_short_or_narrow_ones_as_a_whole() {
        let space = &spaces(&[])[0];
        let cases = [
            (ElementType::F32, &[1 << 20][..], true),
            (ElementType::U8, &[1 << 20], true),
            (ElementType::U8, &[(1 << 20) - 1], false),
            (ElementType::S4, &[4 << 20], false),
        ];
        for (element_type, dims, in_pieces) in cases {
            let mut incoming = IncomingArray::new(space, element_type, dims).unwrap();
            assert_eq!(incoming.takes_pieces(), in_pieces, "{element_type}{dims:?}");
            let mut data = noise(incoming.bytes(), 5);
            data.iter_mut().for_each(|byte| *byte &= 1);
            let (front, back) = data.split_at(data.len() / 3);
            incoming.write(0, front).unwrap();
            let again = incoming.write(0, front).unwrap_err();
            assert!(matches!(again, PjrtError::OutOfRange { .. }), "{again}");
            incoming.write(front.len() as u64, back).unwrap();
            let over = incoming.write(data.len() as u64, &[1]).unwrap_err();
            assert!(matches!(over, PjrtError::OutOfRange { .. }), "{over}");
            let array = incoming.finish().unwrap();
            assert_eq!(array.is_read_whole(), !in_pieces, "{element_type}{dims:?}");
            assert_eq!((array.element_type(), array.dims()), (element_type, dims));
            let mut found = vec![0; data.len()];
            array.read(0, &mut found).unwrap();
            assert!(found == data);
            let mut part = vec![0; 1000];
            let read = array.read(500_000, &mut part);
            match in_pieces {
                true => assert!(read.is_ok() && part == data[500_000..501_000]),
                false => assert!(matches!(read, Err(PjrtError::OutOfRange { .. }))),
            }
            let beyond = array.read(data.len() as u64 - 999, &mut part).unwrap_err();
            assert!(matches!(beyond, PjrtError::OutOfRange { .. }), "{beyond}");
        }
    }

    #[test]
    fn an_array_that_is_given_up_half_way_is_an_error_and_no_array() {
        let space = &spaces(&[])[0];
        for dims in [&[2 << 20][..], &[10]] {
            let mut incoming = IncomingArray::new(space, ElementType::U8, dims).unwrap();
            incoming.write(0, &[1; 9]).unwrap();
            let error = incoming.finish().unwrap_err();
            assert!(matches!(error, PjrtError::InvalidArgument { .. }), "{error}");
            drop(IncomingArray::new(space, ElementType::U8, dims).unwrap());
        }
        let empty = IncomingArray::new(space, ElementType::F32, &[3, 0]).unwrap();
        assert_eq!(empty.finish().unwrap().bytes(), 0);
    }

    /// Returns the sharding of a matrix in `tiles` rows and columns over devices.
    fn tiled(tiles: [i64; 2]) -> HloSharding {
        let count = tiles.iter().product::<i64>();
        let assignment = TileAssignment::iota(tiles, [count], [0]).unwrap();
        let ids: Vec<i32> = (0..count as i32).collect();
        let devices = DeviceList::from_iter(ids.into_iter().map(DeviceId));
        HloSharding::new(devices, MemoryKind::unset(), OpSharding::tiled(assignment)).unwrap()
    }

    const ROWS: usize = 8;
    const COLUMNS: usize = 3 << 16;

    /// Returns the elements of a tile of the matrix, row by row; two bytes each.
    fn tile(matrix: &[u8], tiles: [usize; 2], number: usize) -> Vec<u8> {
        let [rows, columns] = [ROWS / tiles[0], COLUMNS / tiles[1]];
        let [top, left] = [number / tiles[1] * rows, number % tiles[1] * columns];
        let row = |row: usize| &matrix[2 * (row * COLUMNS + left)..][..2 * columns];
        (top..top + rows).flat_map(|at| row(at).to_vec()).collect()
    }

    #[test]
    fn shards_go_to_other_shardings_of_devices_of_both_interfaces() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let matrix = noise(2 * ROWS * COLUMNS, 3);
        let shape = Shape::new([ROWS as i64, COLUMNS as i64]).unwrap();
        let spec = |tiles: [i64; 2]| ArraySpec::new(DType::BF16, shape.clone(), tiled(tiles));

        // Saved from four devices of a PJRT client, half of the rows and half of the columns each.
        let all = spaces(&[("devices", 4)]);
        let arrays: Vec<Array> = (0..4)
            .map(|number| {
                let data = tile(&matrix, [2, 2], number);
                let dims = [ROWS as i64 / 2, COLUMNS as i64 / 2];
                let array = HostArray::new(ElementType::BF16, &dims);
                let put = all[number].client().put(&array, &data, all[number].target());
                Array::new(put.unwrap()).unwrap()
            })
            .collect();
        assert!(arrays.iter().zip(&all).all(|(array, space)| array.space() == space));
        let ids = (0..).map(DeviceId);
        let shards: Vec<_> = ids.zip(&arrays).map(|(id, array)| Shard::new(id, array)).collect();
        let mut state = writer(&path("pjrt.sds"));
        state.add_sharded("w", &spec([2, 2]), &shards).unwrap();
        state.finish().unwrap();

        // Restored onto three devices of a StreamExecutor plug-in, a third of the columns each.
        let three = devices(3);
        let targets: Vec<_> =
            three.iter().zip(0..).map(|(on, id)| ShardTarget::new(DeviceId(id), on)).collect();
        let tensor = Reader::open(path("pjrt.sds")).unwrap().tensor("w").unwrap();
        let restored = tensor
            .restore_sharded(&tiled([1, 3]).into(), &targets, &ProgressMonitor::new())
            .unwrap();
        for (number, (device, memory)) in three.iter().zip(&restored.memories).enumerate() {
            assert!(device.download(memory).unwrap() == tile(&matrix, [1, 3], number), "{number}");
        }
        let ids = (0..).map(DeviceId);
        let shards: Vec<_> =
            ids.zip(&restored.memories).map(|(id, memory)| Shard::new(id, memory)).collect();
        let mut state = writer(&path("stream_executor.sds"));
        state.add_sharded("w", &spec([1, 3]), &shards).unwrap();
        state.finish().unwrap();

        // Restored back onto PJRT devices: two rows each, and all of it on one.
        let tensor = Reader::open(path("stream_executor.sds")).unwrap().tensor("w").unwrap();
        let targets: Vec<_> =
            all.iter().zip(0..).map(|(on, id)| ShardTarget::new(DeviceId(id), on)).collect();
        let restored = tensor
            .restore_sharded(&tiled([4, 1]).into(), &targets, &ProgressMonitor::new())
            .unwrap();
        for (number, array) in restored.memories.iter().enumerate() {
            assert_eq!(array.dims(), [2, COLUMNS as i64]);
            assert!(array.buffer().read().unwrap() == tile(&matrix, [4, 1], number), "{number}");
        }
        let whole = tensor.restore(&all[3]).unwrap();
        assert!(whole.into_buffer().read().unwrap() == matrix);
    }

    #[test]
    fn a_device_without_room_ends_a_restore_with_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sds");
        let shape = Shape::new([4 << 20]).unwrap();
        let spec = ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)));
        let mut state = writer(&path);
        state.add_bytes("large", &spec, &noise(4 << 20, 1)).unwrap();
        state.finish().unwrap();
        let space = &spaces(&[("memory", 1 << 20)])[0];
        let error = Reader::open(&path).unwrap().tensor("large").unwrap().restore(space);
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Pjrt { .. }), "{error:?}");
        let said = error.to_string();
        assert!(said.contains("large") && said.contains("RESOURCE_EXHAUSTED"), "{said}");
    }

    #[test]
    fn a_spec_of_another_array_is_refused_and_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sds");
        let space = &spaces(&[])[0];
        let array = HostArray::new(ElementType::F32, &[2, 3]);
        let buffer = space.client().put(&array, &[0; 24], space.target()).unwrap();
        let array = Array::new(buffer).unwrap();
        for (dtype, dims) in [(DType::S32, &[2, 3]), (DType::F32, &[3, 2])] {
            let shape = Shape::new(dims).unwrap();
            let spec = ArraySpec::new(dtype, shape, SingleDeviceSharding::new(DeviceId(0)));
            let error = writer(&path).add("w", &spec, &array).unwrap_err();
            assert!(matches!(error, Error::OtherArray { .. }), "{error}");
            let said = error.to_string();
            assert!(said.contains("F32[2, 3]") && said.contains(dtype.name()), "{said}");
        }
        assert!(!path.exists());
    }

    #[test]
    fn deleted_array_ends_a_save_with_the_plugins_message() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sds");
        let space = &spaces(&[])[0];
        for count in [10, 3 << 20] {
            let dims = [count];
            let array = HostArray::new(ElementType::U8, &dims);
            let data = noise(count as usize, 1);
            let buffer = space.client().put(&array, &data, space.target()).unwrap();
            let array = Array::new(buffer).unwrap();
            array.buffer().delete().unwrap();
            let shape = Shape::new([count]).unwrap();
            let spec = ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)));
            let error = writer(&path).add("w", &spec, &array).unwrap_err();
            assert!(matches!(error, Error::Pjrt { .. }), "{error}");
        }
        assert!(!path.exists());
    }
}
