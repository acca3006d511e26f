use std::fs;

use prost::Message;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

use super::*;
use crate::{Date, Entry, LineRecord, Registry};

const fn day(day: u32) -> Date {
    Date::from_ymd(2026, 1, day).unwrap()
}

static ONE: Registry = Registry::new(
    day(31),
    &[LineRecord::new("ours", "ours", &[Entry::new(0, day(1)).describing("first", &["Shape"])])
        .in_packages(&["ours.wire"])],
    &[],
    &[],
);
/// A registry with an entry that names Shape.
static TWO: Registry = Registry::new(
    day(31),
    &[LineRecord::new(
        "ours",
        "ours",
        &[
            Entry::new(0, day(1)).describing("first", &["Shape"]),
            Entry::new(1, day(2)).describing("second", &["Shape"]),
        ],
    )
    .in_packages(&["ours.wire"])],
    &[],
    &[],
);
/// A registry with an entry that names another type.
static TWO_OTHER: Registry = Registry::new(
    day(31),
    &[LineRecord::new(
        "ours",
        "ours",
        &[
            Entry::new(0, day(1)).describing("first", &["Shape"]),
            Entry::new(1, day(2)).describing("second", &["Index"]),
        ],
    )
    .in_packages(&["ours.wire"])],
    &[],
    &[],
);

fn package(root: &tempfile::TempDir, registry: &Registry) -> Package {
    Package::of_registry(root.path(), registry)
}

fn write(root: &tempfile::TempDir, path: &str, bytes: &[u8]) {
    let path = root.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn write_descriptors(root: &tempfile::TempDir, field: &str) {
    let field = FieldDescriptorProto { name: Some(field.to_owned()), ..Default::default() };
    let message = DescriptorProto {
        name: Some("ShapeProto".to_owned()),
        field: vec![field],
        ..Default::default()
    };
    let file = |package: &str| FileDescriptorProto {
        package: Some(package.to_owned()),
        message_type: vec![message.clone()],
        ..Default::default()
    };
    let set = FileDescriptorSet { file: vec![file("ours.wire"), file("theirs.wire")] };
    write(root, "proto/descriptors.binpb", &set.encode_to_vec());
}

/// Creates a package with golden bytes and a descriptor, frozen.
fn frozen() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(&root, "tests/golden/ours/Shape/v0.bin", b"shape");
    write_descriptors(&root, "dims");
    package(&root, &ONE).rewrite().unwrap();
    package(&root, &ONE).check().unwrap();
    root
}

fn only(package: &Package) -> Difference {
    let differences = package.differences().unwrap();
    assert_eq!(differences.len(), 1, "{differences:#?}");
    differences[0].clone()
}

#[test]
fn the_text_of_a_lock_is_read_back() {
    let root = frozen();
    let lock = package(&root, &ONE).frozen().unwrap();
    assert_eq!(lock.len(), 2); // the message of another package is not ours
    let text = lock.render();
    assert_eq!(Lock::parse("versions.lock", &text), Ok(lock));
    assert!(text.contains("descriptor\tours\tours.wire.ShapeProto\t0\t"), "{text}");
}

#[test]
fn changed_golden_bytes_fail_and_say_what_to_do() {
    let root = frozen();
    write(&root, "tests/golden/ours/Shape/v0.bin", b"shapf");
    let message = package(&root, &ONE).check().unwrap_err().to_string();
    for part in ["Shape of ours version 0", "v0.bin", "versions.toml", "serdes versions lock"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!only(&package(&root, &ONE)).is_addition());
}

#[test]
fn golden_bytes_are_kept_for_ever() {
    let root = frozen();
    fs::remove_file(root.path().join("tests/golden/ours/Shape/v0.bin")).unwrap();
    let difference = only(&package(&root, &ONE));
    assert!(matches!(difference, Difference::Gone { .. }), "{difference}");
}

#[test]
fn new_golden_bytes_are_to_be_frozen() {
    let root = frozen();
    write(&root, "tests/golden/ours/Shape/v0-empty.bin", b"");
    let difference = only(&package(&root, &ONE));
    assert!(difference.is_addition());
    assert!(difference.to_string().contains("serdes versions lock"));
    package(&root, &ONE).rewrite().unwrap();
    package(&root, &ONE).check().unwrap();
}

#[test]
fn a_page_beside_golden_bytes_is_not_frozen() {
    let root = frozen();
    write(&root, "tests/golden/ours/README.md", b"what these are");
    package(&root, &ONE).check().unwrap();
}

#[test]
fn a_message_changes_only_with_an_entry_that_names_it() {
    let root = frozen();
    write_descriptors(&root, "dimensions");
    assert!(matches!(only(&package(&root, &ONE)), Difference::Changed { .. }));

    let other = package(&root, &TWO_OTHER);
    assert!(matches!(only(&other), Difference::NotNamed { .. }));
    assert!(other.rewrite().is_err());

    write(&root, "tests/golden/ours/Shape/v1.bin", b"shape of two");
    let named = package(&root, &TWO);
    assert!(named.differences().unwrap().iter().all(Difference::is_addition));
    named.rewrite().unwrap();
    named.check().unwrap();
    let text = named.frozen().unwrap().render();
    assert!(text.contains("ShapeProto\t0\t") && text.contains("ShapeProto\t1\t"), "{text}");
}

#[test]
fn a_message_that_is_gone_is_missed() {
    let root = frozen();
    write(&root, "proto/descriptors.binpb", b"");
    assert!(matches!(only(&package(&root, &ONE)), Difference::Gone { .. }));
}

#[test]
fn every_entry_that_names_a_format_has_golden_bytes() {
    let root = frozen();
    package(&root, &TWO_OTHER).rewrite().unwrap();
    let differences = package(&root, &TWO).differences().unwrap();
    assert!(
        differences
            .iter()
            .any(|difference| matches!(difference, Difference::NoGolden { number: 1, .. })),
        "{differences:?}"
    );
    assert!(package(&root, &TWO).rewrite().is_err());
}

#[test]
fn package_without_golden_bytes_of_a_new_format_does_not_hold() {
    let root = frozen();
    let other = package(&root, &TWO_OTHER);
    other.rewrite().unwrap();
    let missing = other.without_golden().unwrap();
    assert!(
        matches!(&missing[..], [Difference::NoGolden { format, number: 1, .. }] if format == "Index"),
        "{missing:?}"
    );
    let message = other.check().unwrap_err().to_string();
    assert!(message.contains("tests/golden/ours/Index/v1.bin"), "{message}");
    write(&root, "tests/golden/ours/Index/v1/first.bin", b"index");
    other.rewrite().unwrap();
    other.check().unwrap();
    // A crate that never had golden bytes.
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(package(&empty, &TWO_OTHER).without_golden().unwrap().len(), 2);
    assert!(package(&empty, &ONE).check().is_err());
}

#[test]
fn package_asks_for_no_golden_bytes_of_what_is_gone() {
    static REMOVED: Registry = Registry::new(
        day(31),
        &[LineRecord::new(
            "ours",
            "ours",
            &[
                Entry::new(0, day(1)).describing("first", &["Shape"]).without(&["Shape"]),
                Entry::new(1, day(2)).describing("second", &["Shape"]).withdrawn(),
                Entry::new(2, day(3)).describing("third", &["Shape"]),
            ],
        )],
        &[],
        &[],
    );
    let root = tempfile::tempdir().unwrap();
    let missing = package(&root, &REMOVED).without_golden().unwrap();
    assert!(matches!(missing[..], [Difference::NoGolden { number: 2, .. }]), "{missing:?}");
    // If a line has one format, its golden files may be in one directory.
    write(&root, "tests/golden/ours/v2/any.sds", b"shape");
    assert_eq!(package(&root, &REMOVED).without_golden().unwrap(), []);
    assert_eq!(package(&root, &TWO_OTHER).without_golden().unwrap().len(), 2);
}

#[test]
fn the_path_of_golden_bytes_names_the_version() {
    for path in [
        "ours/Shape/v12.bin",
        "ours/Shape/v12/case.bin",
        "ours/Shape/v12-case.bin",
        "ours/Shape/v12",
    ] {
        assert_eq!(golden_version(path), Some(("ours", "Shape", 12)), "{path}");
    }
    for path in ["ours/Shape/12.bin", "ours/v1.bin", "ours/Shape/v1a.bin", "ours/Shape/v.bin", "v1"]
    {
        assert_eq!(golden_version(path), None, "{path}");
    }
}

#[test]
fn damaged_files_are_named_with_their_row() {
    let root = frozen();
    let good = package(&root, &ONE).frozen().unwrap().render();
    for row in [
        "golden\tx",
        "golden\tx\tzz 1",
        "golden\tx\t00",
        "descriptor\ta\tb\tc\t00 1",
        "file\tx\t0 1",
    ] {
        let error = Lock::parse("versions.lock", &format!("{good}{row}\n")).unwrap_err();
        assert_eq!(error.row, good.lines().count() + 1, "{error}");
    }
    let twice = format!("{good}{}\n", good.lines().last().unwrap());
    assert!(Lock::parse("versions.lock", &twice).unwrap_err().to_string().contains("twice"));
    write(&root, "proto/descriptors.binpb", b"\xff\xff");
    assert!(matches!(package(&root, &ONE).check(), Err(LockError::Descriptors { .. })));
}

#[test]
fn the_lines_of_a_versions_toml_are_those_of_its_registry() {
    let text = "as_of = 2026-01-31\n[[line]]\nname = \"ours\"\ntitle = \"ours\"\nsummary = \"x\"\nminimum = 0\n\
                packages = [\"ours.wire\"]\n[[line.entry]]\nnumber = 0\nintroduced = 2026-01-01\n\
                summary = \"first\"\nformats = [\"Shape\"]\n";
    let declarations = crate::parse("versions.toml", text).unwrap();
    assert_eq!(LineFormats::of_declarations(&declarations), LineFormats::of_registry(&ONE));
    let root = frozen();
    write(&root, "versions.toml", text.as_bytes());
    Package::open(root.path()).unwrap().check().unwrap();
}
