//! Tests of plug-ins with other minors.

use serdes_pjrt::{ElementType, HostArray, Minor, Target, Value};

use super::plugins::Library;

/// Every break of sizes and slots since the oldest minor lies between two of these.
const MINORS: [u32; 13] = [29, 30, 35, 40, 45, 54, 56, 57, 62, 71, 81, 108, 114];

#[test]
fn a_plug_in_of_any_day_is_called_with_the_sizes_of_that_day() {
    for minor in MINORS {
        // The plug-in accepts only its own sizes, including those of wrong macros.
        let library = Library::new(minor, &["EQUAL_SIZES"]);
        let plugin = library.load().unwrap_or_else(|error| panic!("0.{minor}: {error}"));
        assert_eq!(plugin.minor(), Minor::new(minor));
        assert_eq!(plugin.warnings(), [""; 0], "0.{minor}");
        assert_eq!(plugin.attributes()[0], ("xla_version".to_owned(), Value::Integer(2)));
        let client = plugin.create_client(&[]).unwrap();
        assert_eq!(client.platform_name(), "double");
        let devices = client.addressable_devices().unwrap();
        let device = &devices[0];
        let (memories, kind) = (device.memories().unwrap(), device.kind().unwrap());
        assert_eq!((memories.len(), kind.as_str()), (2, "test"));
        assert_eq!(memories[1].kind().unwrap(), "pinned_host");
        let data: Vec<u8> = (0..24).collect();
        let array = HostArray::new(ElementType::F32, &[2, 3]);
        let buffer = client.put(&array, &data, Target::Device(device)).unwrap();
        assert_eq!(buffer.read().unwrap(), data, "0.{minor}");
        let copy = buffer.copy_to(Target::Memory(&memories[1]));
        assert_eq!(copy.is_err_and(|error| error.is_unsupported()), minor < 32, "0.{minor}");
        let mut part = [0; 5];
        let raw = buffer.read_raw(3, &mut part);
        assert_eq!(raw.is_err_and(|error| error.is_unsupported()), minor < 57, "0.{minor}");
        assert!(minor < 57 || part == [3, 4, 5, 6, 7]);
        drop((buffer, client, devices, memories));
        assert_eq!(library.live_objects(), 0, "0.{minor}");
    }
}

#[test]
fn newer_plugin_gets_room_behind_each_struct() {
    let library = Library::new(114, &["MINOR_SAID=200"]);
    let client = library.load().unwrap().create_client(&[]).unwrap();
    let device = &client.devices().unwrap()[1];
    assert_eq!(device.local_hardware_id().unwrap(), 1);
    // A plug-in that accepts only its own sizes, which are not known here, says so.
    let strict = Library::new(114, &["MINOR_SAID=200", "EQUAL_SIZES"]);
    let error = strict.load().unwrap_err().to_string();
    assert!(error.contains("another size than mine"), "{error}");
}

#[test]
fn a_table_that_its_macro_cuts_short_is_read_by_its_minor() {
    let library = Library::new(54, &[]);
    let plugin = library.load().unwrap();
    assert_eq!(plugin.struct_size(), 808);
    // Only later functions are missing, and functions beyond the declared length of the table.
    let missing: Vec<_> = plugin.missing_functions().collect();
    assert!(missing.contains(&"PJRT_Buffer_CopyRawToHost"), "{missing:?}");
    for name in missing {
        assert!(serdes_abi::pjrt::function(name).unwrap().since() > Minor::new(54), "{name}");
    }
    assert!(plugin.has_function("PJRT_Memory_Kind_Id"));
}

#[test]
fn a_plug_in_of_another_numbering_is_never_called() {
    for (switch, part) in [
        ("MINOR_SAID=28", "0.28"),
        ("MINOR_SAID=-1", "0.-1"),
        ("MAJOR_SAID=1", "1.114"),
        ("TABLE_SAID=39", "39"),
        ("NULL_TABLE", "NULL"),
        ("ODD_TABLE", "a multiple of 8"),
    ] {
        let error = Library::new(114, &[switch]).load().unwrap_err().to_string();
        assert!(error.contains(part), "{switch}: {error}");
    }
}

#[test]
fn library_is_initialised_once_for_all_its_loaders() {
    let library = Library::new(81, &[]);
    let first = library.load().unwrap();
    let link = library.path().with_file_name("link.so");
    std::os::unix::fs::symlink(library.path(), &link).unwrap();
    let second = serdes_pjrt::PjrtPlugin::load(&link).unwrap();
    assert_eq!(first.extensions(), second.extensions());
    assert_eq!(first.extensions()[0].name, Some("Profiler"));
    assert_eq!((first.extensions()[1].number, first.extensions()[1].name), (1000, None));
    assert_eq!(first.extensions()[1].struct_size, 40);
}

#[test]
fn a_file_that_is_no_plug_in_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.so");
    std::fs::write(&path, "text").unwrap();
    assert!(serdes_pjrt::PjrtPlugin::load(&path).unwrap_err().to_string().contains("ELF"));
    assert!(serdes_pjrt::PjrtPlugin::load(folder.path().join("nothing")).is_err());
}
