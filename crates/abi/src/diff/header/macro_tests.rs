//! Tests of macros for types, sizes and conventions.

use std::path::Path;

use super::parse;
use crate::diff::{Bump, LayoutDocument, diff};

const HEADER: &str = include_str!("../../../../../include/serdes_stream_executor.h");

/// Returns our header in the form of RFC #257's: no field is marked, and `TF_Bool` is a macro.
fn as_the_rfc() -> String {
    let mut text = HEADER.replace(
        "typedef unsigned char TF_Bool;",
        "#ifndef TF_Bool\n#define TF_Bool unsigned char\n#endif",
    );
    while let Some((before, rest)) = text.split_once("/*") {
        text = format!("{before}{}", rest.split_once("*/").unwrap().1);
    }
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

fn read(text: &str) -> LayoutDocument {
    parse(text, "", Path::new("api.h")).unwrap_or_else(|error| panic!("{error}"))
}

fn size_of(document: &LayoutDocument, name: &str) -> u64 {
    document.structs.iter().find(|found| found.name == name).unwrap().struct_size
}

#[test]
fn header_of_the_rfc_is_the_layout_that_is_built_in() {
    let text = as_the_rfc();
    assert!(text.contains("#define TF_Bool unsigned char"));
    let header = parse(&text, "SERDES_SE_LAYOUT=257", Path::new("api.h")).unwrap();
    let built_in = LayoutDocument::read("rfc-257").unwrap();
    for found in [diff(&header, &built_in), diff(&built_in, &header)] {
        assert_eq!((found.required, found.changes.as_slice()), (Bump::None, &[][..]));
        assert_eq!(found.notes().len(), 2, "enumerations and marks: {:?}", found.notes());
    }
}

#[test]
fn header_types_may_be_macros() {
    let text = "
        #define TF_Bool unsigned char
        #define HANDLE void *
        #define SE_ALIGNED
        #define WORD int
        #define LONG_WORD long WORD
        #define Self Self
        typedef int Self;
        #define Alias TF_Bool
        typedef Alias Flag;
        struct S {
          TF_Bool a;
          SE_ALIGNED unsigned WORD b;
          HANDLE c;
          const Alias d[3];
          Self e;
          LONG_WORD f;
          Flag g;
        };
    ";
    let fields = &read(text).structs[0].fields;
    let places: Vec<(u64, u64)> = fields.iter().map(|field| (field.offset, field.size)).collect();
    assert_eq!(places, [(0, 1), (4, 4), (8, 8), (16, 3), (20, 4), (24, 8), (32, 1)]);
    // A type keeps its written name, so a macro and a typedef of that name are the same.
    let (by_macro, by_name) = (
        read("#define TF_Bool unsigned char\nstruct S { TF_Bool a; };"),
        read("typedef unsigned char TF_Bool;\nstruct S { TF_Bool a; };"),
    );
    assert_eq!(diff(&by_macro, &by_name).changes, []);
    for text in [
        "#define A B\n#define B A\nstruct S { A a; };",
        "#define A A A\nstruct S { A a; };",
        "#define F(x) int\nstruct S { F a; };",
    ] {
        let error = parse(text, "", Path::new("api.h")).unwrap_err().to_string();
        assert!(error.contains(" a`"), "{error}");
    }
}

#[test]
fn header_size_of_a_member_that_is_not_there_is_refused() {
    for macro_text in [
        "#define B_STRUCT_SIZE TF_OFFSET_OF_END(B, nope)",
        "#define B_STRUCT_SIZE (TF_OFFSET_OF_END(B, nope))",
        "#define OTHER_SIZE TF_OFFSET_OF_END(B, nope)",
        "DEFINE_STRUCT_TRAITS(B, nope);",
    ] {
        let text = format!("struct B {{ size_t struct_size; void* ext; }};\n{macro_text}\n");
        let error = parse(&text, "", Path::new("api.h")).unwrap_err().to_string();
        assert!(error.contains("nope") && error.contains('B'), "{error}");
    }
}

#[test]
fn header_size_belongs_to_the_struct_of_the_macros_name() {
    let structs = "struct SP_Toy { size_t struct_size; void* ext; int a; };\n\
                   struct SE_Device { size_t struct_size; void* ext; int a; int b; };\n";
    // A mistake in the strategy's own example: the struct does not exist.
    let text = format!("{structs}#define SP_TOY_STRUCT_SIZE TF_OFFSET_OF_END(SE_Gone, a)\n");
    let document = read(&text);
    assert_eq!((size_of(&document, "SP_Toy"), size_of(&document, "SE_Device")), (20, 24));
    let notes = diff(&document, &document).notes();
    assert!(notes[0].contains("SP_TOY_STRUCT_SIZE") && notes[0].contains("SE_Gone"), "{notes:?}");
    // Another struct that exists: the size is the one that a compiler computes, for the struct in
    // the macro's name.
    let text = format!(
        "{structs}#define SP_TOY_STRUCT_SIZE TF_OFFSET_OF_END(SE_Device, ext)\n\
         #define SE_DEVICE_STRUCT_SIZE TF_OFFSET_OF_END(SE_Device, b)\n"
    );
    let slipped = read(&text);
    assert_eq!((size_of(&slipped, "SP_Toy"), size_of(&slipped, "SE_Device")), (16, 24));
    let found = diff(&read(structs), &slipped);
    assert_eq!(found.changes[0].structure, "SP_Toy");
    assert!(found.notes()[0].contains("SP_Toy"), "{:?}", found.notes());
    // The macro with the struct's name decides, whatever its position among other macros.
    for other in ["A_SIZE", "Z_SIZE"] {
        let text = format!(
            "{structs}#define {other} TF_OFFSET_OF_END(SE_Device, a)\n\
             #define SE_DEVICE_STRUCT_SIZE TF_OFFSET_OF_END(SE_Device, b)\n"
        );
        assert_eq!(size_of(&read(&text), "SE_Device"), 24, "{other}");
    }
    // A number that is not the size of a struct.
    let text = format!("{structs}#define CACHE_SIZE MAX(a, b)\n#define PAGE_SIZE 4096\n");
    assert_eq!(diff(&read(&text), &read(&text)).notes(), [""; 0]);
}

#[test]
fn header_with_a_new_struct_without_a_size_is_noted() {
    let old = "struct SP_Old { size_t struct_size; void* ext; int a; };\n";
    for (added, expected) in [
        ("struct SP_New { size_t struct_size; void* ext; int a; };", &[][..]),
        ("struct SE_New { size_t struct_size; void* next; };", &[]),
        ("struct SP_NoHeader { int a; };", &["struct_size"]),
        ("struct SP_NoExt { size_t struct_size; int a; };", &["void* ext"]),
        ("struct SP_Late { void* ext; size_t struct_size; };", &["struct_size"]),
        ("struct New { size_t struct_size; void* ext; };", &["SE_ "]),
        ("struct New { int a; };", &["struct_size", "SP_"]),
        ("typedef enum SE_State { A } SE_State;", &[]),
        ("typedef enum SP_State { A } SP_State;", &["enumerations"]),
        ("typedef enum State { A } State;", &["enumerations"]),
    ] {
        let found = diff(&read(old), &read(&format!("{old}{added}")));
        assert_eq!(found.required, Bump::Minor, "{added}");
        let notes = found.notes();
        assert_eq!(notes.len(), expected.len(), "{added}: {notes:?}");
        for (note, part) in notes.iter().zip(expected) {
            assert!(note.contains(part), "{added}: {note}");
        }
        // The notes on an API with other names do not mention these macros.
        let other = "struct Old { size_t struct_size; void* ext; int a; };\n";
        let found = diff(&read(other), &read(&format!("{other}{added}")));
        assert!(!found.notes().concat().contains("SE_ "), "{added}: {:?}", found.notes());
    }
}
