//! States between two builds of this library: one whose registry has a younger container format,
//! and one that does not know it.
//!
//! A small crate outside of the workspace depends on both and runs the cross. Once is enough,
//! whatever the default version is: they are built as others build them.

#![cfg(not(ifrt_testing_bad_default_serdes_version))]

mod copies;

use std::{fs, path::Path};

use copies::{cargo, copy_directory, root, workplace};

/// The day of the younger build, and the entry that it has more.
const YOUNGER_DAY: &str = "2026-12-20";
const YOUNGER_ENTRY: &str = r#"
[[line.entry]]
number = 1
introduced = 2026-12-20
summary = "a container that older builds must not read"
formats = ["Container"]
min_consumer = 1
"#;

const MANIFEST: &str = r#"
[package]
name = "cross"
version = "0.0.0"
edition = "2024"
publish = false

[dependencies]
older = { package = "serdes", path = "older", default-features = false, features = ["device"] }
younger = { package = "serdes", path = "younger", default-features = false, features = ["device"] }

[workspace]
exclude = ["older", "younger"]
"#;

const MAIN: &str = r#"
macro_rules! build {
    ($name:ident) => {
        mod $name {
            use std::{io::Read, path::Path};
            use $name::{
                device_state::{Error, Part, Reader, SaveId, Versions, Watch, WriteOptions, merge},
                ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding},
            };

            fn options(current: bool) -> WriteOptions {
                WriteOptions::new(if current { Versions::current() } else { Versions::week_4_old() })
            }

            fn spec() -> ArraySpec {
                let sharding = SingleDeviceSharding::new(DeviceId(0));
                ArraySpec::new(DType::U8, Shape::new([3]).unwrap(), sharding)
            }

            pub fn save(path: &Path, current: bool) -> i32 {
                let mut writer = options(current).create(path).unwrap();
                writer.add_bytes("w", &spec(), &[1, 2, 3]).unwrap();
                writer.finish().unwrap();
                Reader::open(path).unwrap().format()
            }

            pub fn save_in_parts(path: &Path, current: bool) {
                let save = SaveId::random();
                for number in 0..2 {
                    let part = Part::new(save, number, 2).unwrap();
                    let mut writer = options(current).create_part(path, part).unwrap();
                    let name = if number == 0 { "w" } else { "x" };
                    writer.add_bytes(name, &spec(), &[1, 2, 3]).unwrap();
                    writer.finish().unwrap();
                }
                merge(path, save, &options(current)).unwrap();
            }

            /// The data of `w`, or what the state is refused for.
            pub fn read(path: &Path) -> Result<Vec<u8>, String> {
                let state = Reader::open(path).map_err(|error| match error {
                    Error::TooNew { found, supported, .. } => format!("too new: {found} > {supported}"),
                    other => other.to_string(),
                })?;
                assert!(state.verify(&Watch::new()).unwrap().is_empty());
                let mut data = Vec::new();
                state.tensor("w").unwrap().read().unwrap().read_to_end(&mut data).unwrap();
                Ok(data)
            }
        }
    };
}

build!(older);
build!(younger);

fn main() {
    let directory = std::env::temp_dir().join(format!("serdes-cross-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("a.sds");
    // What the younger one writes for builds of four weeks ago, the older one reads.
    assert_eq!(younger::save(&path, false), 0);
    assert_eq!(older::read(&path), Ok(vec![1, 2, 3]));
    younger::save_in_parts(&path, false);
    assert_eq!(older::read(&path), Ok(vec![1, 2, 3]));
    // What the older one writes, the younger one reads.
    for current in [false, true] {
        assert_eq!(older::save(&path, current), 0);
        assert_eq!(younger::read(&path), Ok(vec![1, 2, 3]));
        older::save_in_parts(&path, current);
        assert_eq!(younger::read(&path), Ok(vec![1, 2, 3]));
    }
    // What the younger one writes for its like, the older one refuses as too new.
    assert_eq!(younger::save(&path, true), 1);
    assert_eq!(younger::read(&path), Ok(vec![1, 2, 3]));
    assert_eq!(older::read(&path), Err("too new: 1 > 0".to_owned()));
    younger::save_in_parts(&path, true);
    assert_eq!(younger::read(&path), Ok(vec![1, 2, 3]));
    assert_eq!(older::read(&path), Err("too new: 1 > 0".to_owned()));
    std::fs::remove_dir_all(&directory).unwrap();
    println!("the cross holds");
}
"#;

/// The table of a manifest with this head, up to the next one.
fn table<'a>(manifest: &'a str, head: &str) -> &'a str {
    let begin = manifest.find(&format!("\n{head}\n")).unwrap_or_else(|| panic!("{head}"));
    let rest = &manifest[begin + 1..];
    &rest[..rest[1..].find("\n[").map_or(rest.len(), |end| end + 2)]
}

/// The library as it is, with another version and registry, in a directory of its own.
fn copy_library(to: &Path, version: &str, registry: &str) {
    for directory in ["src", "proto", "tests/golden"] {
        if root().join(directory).exists() {
            copy_directory(&root().join(directory), &to.join(directory));
        }
    }
    for file in ["build.rs", "README.md", "versions.lock"] {
        fs::copy(root().join(file), to.join(file)).unwrap();
    }
    fs::write(to.join("versions.toml"), registry).unwrap();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let crates = root().join("crates").display().to_string();
    let dependencies =
        table(&manifest, "[workspace.dependencies]").replace("\"crates/", &format!("\"{crates}/"));
    let dependencies = dependencies.lines().filter(|line| !line.starts_with("serdes = "));
    let parts = [
        table(&manifest, "[workspace.package]")
            .replace("version = \"0.1.0\"", &format!("version = \"{version}\"")),
        dependencies.collect::<Vec<_>>().join("\n"),
        "[package]\nname = \"serdes\"\nversion.workspace = true\nedition.workspace = true\n"
            .to_owned(),
        table(&manifest, "[features]").to_owned(),
        table(&manifest, "[dependencies]").to_owned(),
        table(&manifest, "[build-dependencies]").to_owned(),
        table(&manifest, "[target.'cfg(target_os = \"linux\")'.dependencies]").to_owned(),
        table(&manifest, "[target.'cfg(unix)'.dependencies]").to_owned(),
    ];
    let text = format!("[workspace]\n\n{}\n", parts.join("\n"));
    fs::write(to.join("Cargo.toml"), text).unwrap();
}

#[test]
fn states_pass_between_a_build_with_a_younger_format_and_one_without() {
    let directory = workplace("two-builds");
    let registry = fs::read_to_string(root().join("versions.toml")).unwrap();
    let day = registry.lines().find(|line| line.starts_with("as_of")).unwrap();
    let (head, tail) = registry.split_once("[[line]]\nname = \"device_state\"").unwrap();
    let next = tail.find("\n[[line]]").unwrap();
    let younger = format!(
        "{head}[[line]]\nname = \"device_state\"{}{YOUNGER_ENTRY}{}",
        &tail[..next],
        &tail[next..]
    );
    let younger = younger.replace(day, &format!("as_of = {YOUNGER_DAY}"));
    copy_library(&directory.join("older"), "0.1.0", &registry);
    copy_library(&directory.join("younger"), "0.2.0", &younger);
    fs::create_dir(directory.join("src")).unwrap();
    fs::write(directory.join("src/main.rs"), MAIN).unwrap();
    fs::write(directory.join("Cargo.toml"), MANIFEST).unwrap();
    fs::copy(root().join("Cargo.lock"), directory.join("Cargo.lock")).unwrap();
    let output = cargo()
        .args(["run", "--manifest-path"])
        .arg(directory.join("Cargo.toml"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("the cross holds"), "{text}");
}
