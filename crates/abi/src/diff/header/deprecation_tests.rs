//! Tests of the version strategy's examples of deprecation, as it prints them.

use std::path::Path;

use super::parse;
use crate::diff::{Bump, Deprecation, Diff, LayoutDocument, VersionStep, diff};

fn read(text: &str) -> LayoutDocument {
    parse(text, "", Path::new("api.h")).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns for each change `STRUCT.FIELD`, its kind, the part of the version that must move, and
/// the successor.
fn found(diff: &Diff) -> Vec<(String, &'static str, Bump, Option<&str>)> {
    let changes = diff.changes.iter();
    changes
        .map(|change| {
            let place = format!("{}.{}", change.structure, change.field);
            (place, change.change, change.requires, change.replaced_by.as_deref())
        })
        .collect()
}

const OLD: &str = "#define SE_MAJOR 5
#define SE_MINOR 0
#define SE_PATCH 0
typedef struct Device {
  size_t struct_size;
  void* ext;
  int32_t ordinal;

  const char* name;
  void* device_handle;
} Device;
typedef struct ExportFunctions {
  size_t struct_size;
  void* ext;
  void (*create_device)(Device* device);
} ExportFunctions;
";

#[test]
fn header_announces_a_renamed_member_at_minor() {
    let new = OLD
        .replace("#define SE_MINOR 0", "#define SE_MINOR 1  // Increment minor version")
        .replace("name;", "name;  // Deprecating soon. Use `better_name`.")
        .replace(
            "device_handle;",
            "device_handle;\n  const char* better_name;  // Replaces `name`.",
        );
    let step = diff(&read(OLD), &read(&new));
    assert_eq!(
        found(&step),
        [
            ("Device.name".to_owned(), "deprecated", Bump::Minor, Some("better_name")),
            ("Device.better_name".to_owned(), "appended", Bump::Minor, None),
        ]
    );
    assert_eq!(step.changes[0].deprecation, Some(Deprecation::Announced));
    assert_eq!(step.version_step(), VersionStep::AsRequired);
}

#[test]
fn header_announces_a_renamed_function_at_minor() {
    let new = OLD.replace("SE_MINOR 0", "SE_MINOR 1").replace(
        "  void (*create_device)(Device* device);\n",
        "  // create_device will be deprecated soon.
  void (*create_device)(Device* device);

  // Replaces `create_device`.
  void (*create_better_device)(BetterDevice* device);
",
    );
    let step = diff(&read(OLD), &read(&new));
    assert_eq!(
        found(&step)[0],
        (
            "ExportFunctions.create_device".to_owned(),
            "deprecated",
            Bump::Minor,
            Some("create_better_device")
        )
    );
    assert_eq!((step.required, step.version_step()), (Bump::Minor, VersionStep::AsRequired));
}

#[test]
fn header_announces_a_struct_with_and_without_a_successor() {
    let announced = OLD.replace(
        "typedef struct Device {",
        "// `Device` struct will be deprecated soon.\ntypedef struct Device {",
    );
    let step = diff(&read(OLD), &read(&announced));
    assert_eq!(found(&step), [("Device.".to_owned(), "deprecated", Bump::Minor, None)]);

    let body = "{\n  size_t struct_size;\n  void* ext;\n}";
    // The second one is as the strategy prints it, with a mistake in the name behind the bracket.
    for name in ["BetterDevice", "Device"] {
        let better = format!(
            "{announced}// Replaces `Device`.\ntypedef struct BetterDevice {body} {name};\n"
        );
        let better = read(&better);
        let step = diff(&read(OLD), &better);
        assert_eq!(
            found(&step),
            [
                ("Device.".to_owned(), "deprecated", Bump::Minor, Some("BetterDevice")),
                ("BetterDevice.".to_owned(), "added", Bump::Minor, None),
            ]
        );
        let notes = step.notes();
        assert_eq!(notes.concat().contains("two types"), name == "Device", "{notes:?}");
    }
}

#[test]
fn header_deprecates_by_zero_after_the_announcement() {
    let at = |comment: &str| {
        read(&format!(
            "#define SE_MAJOR 1\n#define SE_MINOR 0\nstruct S {{ size_t struct_size; void* ext;\n int a;\n int b; // {comment}\n int c;\n}};"
        ))
    };
    for (old, new, requires) in [
        ("0 is no-op.", "Will be deprecated. 0 is no-op.", Some(Bump::Minor)),
        ("Will be deprecated. 0 is no-op.", "Deprecated. 0 is no-op.", Some(Bump::Minor)),
        ("0 is no-op.", "Deprecated. 0 is no-op.", Some(Bump::Minor)),
        ("An index.", "An index. Deprecating soon.", Some(Bump::Minor)),
        ("An index.", "An index. It will be\n        // deprecated soon.", Some(Bump::Minor)),
        ("Optional. 0 by default.", "Deprecating soon. Optional. 0 by default.", Some(Bump::Minor)),
        ("An index. Deprecating soon.", "Deprecated. An index.", Some(Bump::Major)),
        ("An index.", "Deprecated. An index.", Some(Bump::Major)),
        ("An index.", "An index\n        // Deprecated", Some(Bump::Major)),
        ("Optional. 0 by default.", "Deprecated. Optional.", Some(Bump::Major)),
        // An announcement does not hide that a mark was changed.
        ("0 is no-op.", "Deprecating soon. An index.", Some(Bump::Major)),
        ("An index. Deprecating soon.", "An index.", None),
        ("Deprecated. 0 is no-op.", "0 is no-op.", Some(Bump::Minor)),
        ("Deprecated. An index.", "An index.", Some(Bump::Major)),
    ] {
        let step = diff(&at(old), &at(new));
        let found = step.changes.iter().map(|change| change.requires).max();
        assert_eq!(found, requires, "{old} to {new}: {:?}", step.changes);
    }
}

/// The first draft of the strategy, which had neither versions nor marks.
#[test]
fn header_without_marks_and_versions_deprecates_at_minor() {
    let old = "typedef struct SE_Device {
  size_t struct_size;
  void* next;

  const char* name;
  size_t name_len;
  void* device_handle;
  void* data;          // Added in v3
} SE_Device;
#define SE_DEVICE_STRUCT_SIZE TF_OFFSET_OF_END(SE_Device, data)
";
    for comment in ["Deprecated", "Deprecated in v4"] {
        let new = old.replace("Added in v3", comment);
        let step = diff(&read(old), &read(&new));
        assert_eq!(found(&step), [("SE_Device.data".to_owned(), "deprecated", Bump::Minor, None)]);
        assert!(step.changes[0].why.contains("goes on setting it"), "{step:?}");
        let strict = format!("#define SE_MAJOR 1\n#define SE_MINOR 0\n{new}");
        let before = format!("#define SE_MAJOR 1\n#define SE_MINOR 0\n{old}");
        assert_eq!(diff(&read(&before), &read(&strict)).required, Bump::Major);
    }
}

#[test]
fn header_whose_successor_is_not_there_is_refused_by_name() {
    for (text, part) in [
        ("struct A {\n int a; // Deprecated. Use `b`.\n};", "`b`"),
        ("struct A {\n int a; // Deprecating soon. Use `a`.\n};", "`a`"),
        ("struct A {\n int a; // Will be deprecated, use `B.x` instead.\n};", "`B.x`"),
        ("\n// Deprecated. Use `B`.\nstruct A { int a; };", "`B`"),
        ("struct A {\n int a; // Replaces `b`.\n};", "`b`"),
        ("struct A {\n int a;\n};\n// Replaces `B`.\nstruct C { int c; };", "`B`"),
    ] {
        let error = parse(text, "", Path::new("api.h")).unwrap_err().to_string();
        assert!(error.contains("api.h:") && error.contains(part), "{text}: {error}");
    }
    for text in [
        "struct A {\n int a; // Deprecated. Use `b`.\n int b;\n};",
        "struct A {\n int a; // Deprecated, use `B.x` instead.\n};\nstruct B { int x; };",
        "struct A {\n int a; // Deprecated. Use `make_a()`.\n};\nvoid make_a(int a);",
        "// Deprecated. Use\n// `B`.\nstruct A { int a; };\nstruct B { int x; };",
        // Comments about something else.
        "struct A {\n int a; // Use `b` for the other.\n};",
        "struct A {\n int a; // Deprecated. Callers never use `b` with it.\n};",
        "struct A {\n void (*f)(int n); // Replaces `n` bytes.\n};",
        "typedef int old; // Deprecated. Use `new`.\nstruct A { int a; };",
    ] {
        let document = read(text);
        assert_eq!(diff(&document, &document).required, Bump::None, "{text}");
    }
}

#[test]
fn header_comment_behind_a_struct_is_about_that_struct() {
    let old = "typedef struct A { int a; } A;\ntypedef struct B { int b; } B;\n";
    let new = old.replace("} A;", "} A;  // Will be deprecated.");
    assert_eq!(
        found(&diff(&read(old), &read(&new))),
        [("A.".to_owned(), "deprecated", Bump::Minor, None)]
    );
    let new = old.replace("A { int", "A {  // Will be deprecated.\n int");
    assert_eq!(
        found(&diff(&read(old), &read(&new))),
        [("A.".to_owned(), "deprecated", Bump::Minor, None)]
    );
}

#[test]
fn header_that_replaces_what_is_not_deprecated_is_noted() {
    let new = read("struct A { int a; int b; // Replaces `a`.\n};");
    let notes = diff(&new, &new).notes();
    assert!(notes[0].contains("`b`") && notes[0].contains("`a`"), "{notes:?}");
}
