//! Tests of plug-ins found by the names of their platforms and devices.

use std::fs;

use serdes_stream_executor::{Error, Plugin, PluginOptions, PluginRegistry};

use super::plugins::{Stub, unused_name};

#[test]
fn devices_are_found_by_type_and_number_over_several_plugins() {
    let kind = unused_name();
    let stubs = [
        Stub::newest(&format!("type={kind}\ndevices=2")),
        Stub::newest("type=OTHER\ndevices=1"),
        Stub::newest(&format!("type={kind}\ndevices=3")),
        Stub::newest(&format!("type={kind}\ndevices=0")),
    ];
    let mut plugins = PluginRegistry::new();
    for stub in &stubs {
        plugins.add(stub.open().unwrap()).unwrap();
    }
    let names: Vec<String> = (0..2).chain(2..5).map(|n| format!("{kind}:{n}")).collect();
    let mut expected = names.clone();
    expected.insert(2, "OTHER:0".to_owned());
    assert_eq!(plugins.device_names(), expected);
    for (name, ordinal) in names.iter().zip([0, 1, 0, 1, 2]) {
        assert_eq!(plugins.device(name).unwrap().ordinal(), ordinal, "{name}");
        assert_eq!(plugins.device(&format!("/device:{name}")).unwrap().ordinal(), ordinal);
    }
    assert_eq!(plugins.device("OTHER").unwrap().ordinal(), 0);
    for name in ["", ":", "OTHER:1", "OTHER:-1", "OTHER:x", "XPU:0", "OTHER:0:0"] {
        let error = plugins.device(name).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{name}: {error}");
        assert!(error.to_string().contains("OTHER:0"), "{name}: {error}");
    }
    assert_eq!(plugins.platform(stubs[1].name()).unwrap().device_count(), 1);
    assert!(plugins.platform("NOBODY").is_none());
    drop(plugins);
    for stub in &stubs {
        stub.assert_balanced();
    }
}

#[test]
fn a_platform_is_registered_once() {
    let mut plugins = PluginRegistry::new();
    plugins.add(Plugin::host()).unwrap();
    let error = plugins.add(Plugin::host()).unwrap_err();
    assert!(matches!(error, Error::AlreadyRegistered { what: "the platform", .. }), "{error}");
    assert_eq!(plugins.plugins().len(), 1);
}

#[test]
fn directory_gives_its_plugins_and_lists_skipped_libraries() {
    let stubs = [Stub::newest(""), Stub::newest("null=create_stream"), Stub::newest("")];
    let folder = tempfile::tempdir().unwrap();
    for (stub, name) in stubs.iter().zip(["b.so", "c.so", "d.so"]) {
        // Copies the file of fault switches beside it as well.
        fs::copy(stub.path(), folder.path().join(name)).unwrap();
        let switches = fs::read(stub.path().with_extension("so.switches")).unwrap();
        fs::write(folder.path().join(format!("{name}.switches")), switches).unwrap();
    }
    fs::write(folder.path().join("a.so"), "no library").unwrap();
    fs::write(folder.path().join("readme.txt"), "no library either").unwrap();
    fs::create_dir(folder.path().join("e.so")).unwrap();
    let mut plugins = PluginRegistry::new();
    let skipped = plugins.load_directory(folder.path(), PluginOptions::new()).unwrap();
    let names: Vec<&str> =
        skipped.iter().map(|skipped| skipped.path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["a.so", "c.so", "e.so"]);
    assert!(matches!(skipped[0].error, Error::NotLoadable { .. }), "{skipped:?}");
    let refused = skipped[1].error.to_string();
    assert!(refused.contains("create_stream"), "{refused}");
    let loaded: Vec<String> =
        plugins.plugins().iter().map(|plugin| plugin.platform().name().to_owned()).collect();
    assert_eq!(loaded, [stubs[0].name(), stubs[2].name()]);
    let missing = folder.path().join("nowhere");
    assert!(PluginRegistry::new().load_directory(missing, PluginOptions::new()).is_err());
}
