//! Tests of layouts that C headers declare.

use std::path::Path;

use super::parse;
use crate::diff::{Bump, Diff, LayoutDocument, LayoutFileError, VersionStep, diff};

const HEADER: &str = include_str!("../../../../../include/serdes_stream_executor.h");

fn read(text: &str) -> LayoutDocument {
    parse(text, "", Path::new("api.h")).unwrap_or_else(|error| panic!("{error}"))
}

fn found(diff: &Diff) -> Vec<(&str, &'static str, Bump)> {
    let changes = diff.changes.iter();
    changes.map(|change| (change.field.as_str(), change.change, change.requires)).collect()
}

/// The offsets in our header, as a compiler computes them, equal those of the built-in layouts.
#[test]
fn our_own_header_has_the_layouts_that_are_built_in() {
    for (name, number) in [
        ("tensorflow-2.14", 21400),
        ("tensorflow-2.8", 20800),
        ("tensorflow-2.5", 20500),
        ("tensorflow-2.4", 20400),
        ("rfc-257", 257),
    ] {
        let definitions = format!("SERDES_SE_LAYOUT={number}");
        let header = parse(HEADER, &definitions, Path::new("serdes_stream_executor.h")).unwrap();
        let built_in = LayoutDocument::read(name).unwrap();
        // Only the header has the enumerations, and the notes of both directions say that they are
        // left out.
        let there = diff(&built_in, &header);
        let back = diff(&header, &built_in);
        for found in [&there, &back] {
            assert_eq!((found.required, found.changes.as_slice()), (Bump::None, &[][..]), "{name}");
            assert!(found.notes().concat().contains("enumerations are not compared"), "{name}");
        }
        assert_eq!(there.versions, (Some([0, 0, 1]), Some([0, 0, 1])));
    }
    let other = parse(HEADER, "SERDES_SE_LAYOUT=7", Path::new("x.h")).unwrap_err().to_string();
    assert!(other.contains("#error") && other.contains("none of the known"), "{other}");
}

/// The strategy's example, in the form in which it prints it.
#[test]
fn the_example_of_the_strategy_is_read_with_its_comments() {
    let toy = |minor: u32, more: &str, last: &str| {
        read(&format!(
            "#define SE_MAJOR 1\n#define SE_MINOR {minor}  // Increment minor version.\n#define SE_PATCH 0\n\
             #define TF_OFFSET_OF_END(TYPE, MEMBER) \\\n  (offsetof(TYPE, MEMBER) + sizeof(((TYPE *)0)->MEMBER))\n\
             typedef struct Toy {{\n  size_t struct_size;\n  void* ext;          // Free-form data set by plugin.\n  \
             int32_t old_field;  // Device index.\n{more}}} Toy;\n\
             #define TOY_STRUCT_SIZE TF_OFFSET_OF_END(Toy, {last})\n"
        ))
    };
    let old = toy(0, "", "old_field");
    let fields = "  void* new_field1;   // NULL is no-op.\n  int new_field2;     // 0 is no-op.\n";
    let extended = toy(1, fields, "new_field2");
    let step = diff(&old, &extended);
    assert_eq!(
        found(&step),
        [("new_field1", "appended", Bump::Minor), ("new_field2", "appended", Bump::Minor)]
    );
    assert_eq!(step.version_step(), VersionStep::AsRequired);
    let deprecated = toy(2, &fields.replace("// NULL", "// Deprecated.  // NULL"), "new_field2");
    let step = diff(&extended, &deprecated);
    assert_eq!(found(&step), [("new_field1", "deprecated", Bump::Minor)]);
    // A size macro that omits the new field is detected.
    let forgotten = toy(1, fields, "old_field");
    assert_eq!(diff(&old, &forgotten).required, Bump::Major);
}

#[test]
fn deprecation_comments_mark_members_of_the_strategys_example() {
    let example = |deprecated: &str| {
        read(&format!(
            "struct Example {{\n  int32_t cannot_be_zero;         // {deprecated}0 is no-op.\n  void* cannot_be_null;           // {deprecated}NULL is no-op.\n  int32_t can_be_zero; // {deprecated}\n  void* can_be_null; // {deprecated}\n  int32_t optional_zero_default;  // {deprecated}Optional. 0 by default.\n  void* optional_null_default;    // {deprecated}Optional. NULL by default.\n}};\n"
        ))
    };
    let requires: Vec<Bump> = diff(&example(""), &example("Deprecated. "))
        .changes
        .iter()
        .map(|change| change.requires)
        .collect();
    let (minor, major) = (Bump::Minor, Bump::Major);
    assert_eq!(requires, [minor, minor, major, major, major, major]);
}

/// The strategy's cases of deprecation with extension.
#[test]
fn successors_are_read_where_they_are_there() {
    let old = read(
        "typedef struct Device {\n  const char* name;  // NULL is no-op\n  void* device_handle;\n} Device;",
    );
    let new = read(
        "typedef struct Device {\n  const char* name;  // Deprecating soon. Use `better_name`. NULL is no-op\n  void* device_handle;\n  const char* better_name;  // Replaces `name`.\n} Device;",
    );
    let renamed = diff(&old, &new);
    assert_eq!(
        found(&renamed),
        [("name", "deprecated", Bump::Minor), ("better_name", "appended", Bump::Minor)]
    );
    assert_eq!(renamed.changes[0].replaced_by.as_deref(), Some("better_name"));
    let nowhere = "struct A { int a; // Deprecated. Use `b`.\n};";
    let error = parse(nowhere, "", Path::new("api.h")).unwrap_err().to_string();
    assert!(error.contains("api.h:1") && error.contains("`b`"), "{error}");
    let whole = read(
        "// `Device` struct will be deprecated soon. Use `Better`.\ntypedef struct Device {\n  const char* name;  // NULL is no-op\n  void* device_handle;\n} Device;\ntypedef struct Better { int x; } Better;",
    );
    let changes = diff(&old, &whole).changes;
    assert_eq!(
        (changes[0].change, changes[0].replaced_by.as_deref()),
        ("deprecated", Some("Better"))
    );
}

#[test]
fn members_lie_where_compilers_put_them() {
    let text = "
        typedef unsigned char Flag;
        typedef struct Pair { int a, *unused_is_refused; } Ignored;
    ";
    assert!(parse(text, "", Path::new("x.h")).is_err(), "two members in one declaration");
    let text = r#"
        #include <stddef.h>
        #define COUNT 3
        typedef unsigned char Flag;
        typedef enum { A, B = 5, C } Kind;
        typedef union { double number; char text[12]; } Either;
        typedef struct Inner { char c; short s; } Inner;
        typedef struct Opaque_st* Opaque;
        extern "C" {
        typedef struct Outer {
          Flag flag;            /* 0 */
          Inner inner;          /* 2 */
          Kind kind;            /* 8 */
          Either either;        /* 16 */
          unsigned long long n; /* 32 */
          uint16_t words[COUNT][2]; /* 40 */
          Opaque opaque;        /* 56 */
          const struct Inner *pointer;  /* 64 */
          void (*const call)(const Inner* inner, unsigned int, size_t count); /* 72 */
          long double wide;     /* 80 */
        } Outer;
        void function(Outer* outer, int a);
        static inline int body(void) { return 1; }
        }
    "#;
    let outer = read(text).structs.into_iter().find(|found| found.name == "Outer").unwrap();
    let offsets: Vec<u64> = outer.fields.iter().map(|field| field.offset).collect();
    assert_eq!(offsets, [0, 2, 8, 16, 32, 40, 56, 64, 72, 80]);
    assert_eq!(outer.alignment, Some(16));
    let call = &outer.fields[8];
    assert_eq!((call.name.as_str(), call.kind.as_str()), ("call", "fn"));
    assert_eq!(call.signature.as_deref(), Some("void(const Inner*,unsigned int,size_t)"));
    assert_eq!(outer.fields[5].kind, "uint16_t[3][2]");
    let kinds = read(text).structs.into_iter().find(|found| found.name == "Kind").unwrap();
    let values: Vec<i64> = kinds.values.iter().map(|(_, number)| *number).collect();
    assert_eq!(values, [0, 5, 6]);
}

#[test]
fn names_of_arguments_are_no_part_of_a_signature_and_types_are() {
    let with = |arguments: &str| read(&format!("struct F {{ int (*f)({arguments}); }};"));
    let old = with("const Device* device, int64_t* free");
    assert_eq!(diff(&old, &with("const Device*other,int64_t *total")).changes, []);
    // Nor is the constness of a function's own copy of a pointer.
    let own = "const Device* const device, int64_t* const free";
    assert_eq!(diff(&old, &with(own)).changes, []);
    assert_eq!(
        found(&diff(&old, &with("const Device* device, int32_t* free"))),
        [("f", "repurposed", Bump::Major)]
    );
}

#[test]
fn conditions_choose_what_counts() {
    let text = "
        #ifndef GUARD
        #define GUARD
        #if LEVEL >= 2 && (!defined(OLD) || LEVEL == 7)
        struct New { int a; };
        #elif defined(OLD)
        struct Old { int a; };
        #else
        struct Other { int a; };
        #endif
        #endif
    ";
    let names = |definitions: &str| -> Vec<String> {
        let document = parse(text, definitions, Path::new("x.h")).unwrap();
        document.structs.into_iter().map(|found| found.name).collect()
    };
    assert_eq!(names("LEVEL=2"), ["New"]);
    assert_eq!(names("LEVEL=2,OLD=1"), ["Old"]);
    assert_eq!(names("LEVEL=7,OLD=1"), ["New"]);
    assert_eq!(names(""), ["Other"]);
}

#[test]
fn a_comment_in_front_of_what_is_defined_is_no_part_of_it() {
    for (comment, name) in [("", "SIZE"), ("/*é*/", "ABC"), ("/*(*/", "AB"), ("/**//* */ ", "A")] {
        let header = format!(
            "#define {comment}{name} 4\n#if {name} == 4\nstruct S {{ int32_t field; }};\n#endif\n"
        );
        assert_eq!(read(&header).structs.len(), 1, "{header}");
    }
}

#[test]
fn unreadable_header_is_refused_with_place_and_reason() {
    for (text, definitions, part) in [
        ("", "", "no struct"),
        ("int x;", "", "no struct"),
        ("struct A {\n int bits : 3;\n};", "", "x.h:2"),
        ("struct A {\n Unknown u;\n};", "", "Unknown"),
        ("struct A { int a[]; };", "", "`int a [ ]`"),
        ("struct A { int a[0]; };", "", "int a"),
        ("struct A { int a[99999999999]; };", "", "int a"),
        ("struct A { struct { int b; } c; };", "", "member"),
        ("struct A { int a;", "", "the end of the header"),
        ("enum E { A = B + 1 };", "", "`A`"),
        ("#if 1\nstruct A { int a; };", "", "#endif"),
        ("#endif", "", "#endif without"),
        ("#if (((1)", "", "bracket"),
        ("struct A { int a; };", "LEVEL", "NAME=NUMBER"),
        ("struct A { int a; };", "LEVEL=x", "NAME=NUMBER"),
    ] {
        let error = parse(text, definitions, Path::new("x.h")).unwrap_err();
        assert!(matches!(error, LayoutFileError::Malformed { .. }), "{text}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

/// Reading any file terminates.
#[test]
fn no_cut_and_no_byte_of_a_header_is_too_much() {
    for at in (0..HEADER.len()).step_by(499) {
        let _ = parse(&HEADER[..at], "", Path::new("x.h"));
        let mut broken = HEADER.as_bytes().to_vec();
        broken[at] = b"{}();,*#/\"0x\\"[at % 13];
        let _ = parse(&String::from_utf8_lossy(&broken), "", Path::new("x.h"));
    }
    for text in [
        "#if 1\n".repeat(100_000),
        format!("#if {}1", "(".repeat(100_000)),
        format!("#if {}1", "!".repeat(100_000)),
        "struct A {".repeat(10_000),
        "#define A B\n#define B A\n#if A\n#endif\nstruct S { int x[A]; };".to_owned(),
        "{".repeat(100_000),
    ] {
        assert!(parse(&text, "", Path::new("x.h")).is_err());
    }
}
