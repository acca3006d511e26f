//! Tests of changes of layouts, and of the part of the version that the strategy demands for each.

use std::path::Path;

use super::*;

const LAYOUTS: &str = include_str!("../../layouts.json");

fn published(old: &str, new: &str) -> Diff {
    let read =
        |section| LayoutDocument::parse(LAYOUTS, section, Path::new("layouts.json")).unwrap();
    diff(&read(old), &read(new))
}

/// Returns the layout of one struct `Toy`, as in the strategy: field name, kind, offset, more keys.
fn toy(struct_size: u64, fields: &[(&str, &str, u64, &str)]) -> LayoutDocument {
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, kind, offset, more)| {
            let size = if *kind == "int32_t" { 4 } else { 8 };
            format!(r#"{{"name":"{name}","kind":"{kind}","offset":{offset},"size":{size}{more}}}"#)
        })
        .collect();
    let text =
        format!(r#"{{"Toy":{{"struct_size":{struct_size},"fields":[{}]}}}}"#, fields.join(","));
    LayoutDocument::parse(&text, "", Path::new("toy.json")).unwrap()
}

const OLD: [(&str, &str, u64, &str); 3] =
    [("struct_size", "size_t", 0, ""), ("ext", "void*", 8, ""), ("old_field", "int32_t", 16, "")];

fn with(
    fields: &[(&'static str, &'static str, u64, &'static str)],
) -> Vec<(&'static str, &'static str, u64, &'static str)> {
    OLD.iter().chain(fields).copied().collect()
}

fn found(diff: &Diff) -> Vec<(&str, &'static str, Bump)> {
    diff.changes
        .iter()
        .map(|change| (change.field.as_str(), change.change, change.requires))
        .collect()
}

#[test]
fn tensorflow_broke_its_own_rule_between_2_6_and_2_8() {
    let diff = published("history/2.6.5", "history/2.8.4");
    assert_eq!(diff.required, Bump::Major);
    assert_eq!(diff.moved(), Some(Bump::None));
    assert_eq!(
        found(&diff),
        [
            ("host_callback", "reordered", Bump::Major),
            ("mem_zero", "repurposed", Bump::Major),
            // TensorFlow 2.8 refuses a plug-in without them, and a plug-in of 2.6 has neither.
            ("memset", "appended", Bump::Major),
            ("memset32", "appended", Bump::Major),
        ]
    );
    assert!(diff.changes[1].why.contains("host_callback"));
    assert_eq!(diff.notes().len(), 2);
}

#[test]
fn the_other_steps_of_tensorflow_are_judged_too() {
    assert_eq!(published("history/2.5.3", "history/2.6.5").required, Bump::None);
    assert_eq!(published("history/2.14.1", "released").required, Bump::None);
    let grown = published("history/2.8.4", "history/2.14.1");
    assert_eq!(found(&grown), [("force_memory_growth", "appended", Bump::Minor)]);
    assert_eq!(published("history/2.4.4", "history/2.5.3").required, Bump::Major);
    assert_eq!(published("rfc", "released").required, Bump::Major);
}

#[test]
fn the_example_of_the_strategy_needs_minor() {
    let new = toy(36, &with(&[("new_field1", "void*", 24, ""), ("new_field2", "int32_t", 32, "")]));
    let diff = diff(&toy(20, &OLD), &new);
    assert_eq!(diff.required, Bump::Minor);
    assert_eq!(
        found(&diff),
        [("new_field1", "appended", Bump::Minor), ("new_field2", "appended", Bump::Minor)]
    );
}

#[test]
fn every_way_to_break_a_layout_needs_major() {
    let old = toy(20, &OLD);
    for (new, field, change) in [
        (toy(16, &OLD[..2]), "old_field", "removed"),
        (toy(20, &[OLD[0], OLD[1], ("new_name", "int32_t", 16, "")]), "old_field", "renamed"),
        (toy(24, &[OLD[0], OLD[1], ("old_field", "int64_t", 16, "")]), "old_field", "retyped"),
        (
            toy(
                28,
                &[OLD[0], OLD[1], ("first", "void*", 16, ""), ("old_field", "int32_t", 24, "")],
            ),
            "old_field",
            "reordered",
        ),
        (toy(20, &with(&[("new_field", "void*", 24, "")])), "", "struct_size"),
    ] {
        let diff = diff(&old, &new);
        assert_eq!(diff.required, Bump::Major, "{change}");
        let is_there = diff.changes.iter().any(|found| {
            found.field == field && found.change == change && found.requires == Bump::Major
        });
        assert!(is_there, "{change}: {:?}", diff.changes);
    }
}

#[test]
fn a_member_in_the_padding_is_no_appended_one() {
    let old = toy(32, &with(&[("last", "void*", 24, "")]));
    let new = toy(32, &with(&[("squeezed", "int32_t", 20, ""), ("last", "void*", 24, "")]));
    assert_eq!(found(&diff(&old, &new)), [("squeezed", "inserted", Bump::Major)]);
}

/// The strategy's own example of what can be deprecated by leaving it zero.
fn example(marks: [&str; 6], more: &str) -> LayoutDocument {
    let names = [
        ("cannot_be_zero", "int32_t", 0, 4),
        ("cannot_be_null", "void*", 8, 8),
        ("can_be_zero", "int32_t", 16, 4),
        ("can_be_null", "void*", 24, 8),
        ("optional_zero_default", "int32_t", 32, 4),
        ("optional_null_default", "void*", 40, 8),
    ];
    let fields: Vec<String> = names
        .iter()
        .zip(marks)
        .map(|((name, kind, offset, size), mark)| {
            format!(
                r#"{{"name":"{name}","kind":"{kind}","offset":{offset},"size":{size}{mark}{more}}}"#
            )
        })
        .collect();
    let text = format!(r#"{{"Example":{{"fields":[{}]}}}}"#, fields.join(","));
    LayoutDocument::parse(&text, "", Path::new("example.json")).unwrap()
}

const DEPRECATED: &str = r#","deprecated":true"#;

#[test]
fn marked_fields_of_the_strategy_are_deprecated_at_minor() {
    let (no_op, optional) = (r#","zero":"no-op""#, r#","zero":"meaningful""#);
    let marks = [no_op, no_op, "", "", optional, optional];
    let diff = diff(&example(marks, ""), &example(marks, DEPRECATED));
    assert_eq!(
        found(&diff),
        [
            ("cannot_be_zero", "deprecated", Bump::Minor),
            ("cannot_be_null", "deprecated", Bump::Minor),
            ("can_be_zero", "deprecated", Bump::Major),
            ("can_be_null", "deprecated", Bump::Major),
            ("optional_zero_default", "deprecated", Bump::Major),
            ("optional_null_default", "deprecated", Bump::Major),
        ]
    );
    assert_eq!(diff.required, Bump::Major);
    // The reason for an unmarked field says how to mark it.
    assert!(diff.changes[2].why.contains(r#""zero": "no-op""#), "{}", diff.changes[2].why);
    assert!(!diff.changes[4].why.contains("no-op"), "{}", diff.changes[4].why);
}

#[test]
fn a_mark_that_comes_with_the_deprecation_comes_too_late() {
    let late = format!(r#","zero":"no-op"{DEPRECATED}"#);
    let diff = diff(&example([""; 6], ""), &example([""; 6], &late));
    assert!(diff.changes.iter().all(|change| change.requires == Bump::Major), "{diff:?}");
}

#[test]
fn meaning_of_zero_is_one_of_two_words() {
    for zero in [r#""noop""#, r#""no_op""#, r#""optional""#, r#""""#, "null", "true", "0", "[]"] {
        let text = format!(
            r#"{{"A":{{"fields":[{{"name":"x","kind":"int","offset":0,"size":4,"zero":{zero}}}]}}}}"#
        );
        let error = LayoutDocument::parse(&text, "", Path::new("x.json")).unwrap_err().to_string();
        assert!(error.contains("no-op") && error.contains("meaningful"), "{zero}: {error}");
    }
}

#[test]
fn keys_that_say_something_else_than_they_can_are_refused() {
    let field = |more: &str| {
        format!(
            r#"{{"A":{{"fields":[{{"name":"x","kind":"int","offset":0,"size":4,{more}}},{{"name":"y","kind":"int","offset":4,"size":4}}]}}}}"#
        )
    };
    let structure = |more: &str| format!(r#"{{"A":{{"fields":[],{more}}},"B":{{"fields":[]}}}}"#);
    for (text, part) in [
        (field(r#""deprecated":"yes""#), "true or false"),
        (field(r#""required":1"#), "true or false"),
        (field(r#""signature":[]"#), "text"),
        (field(r#""replaced_by":"y""#), r#""deprecated": true"#),
        (field(r#""deprecated":true,"replaced_by":7"#), "a name"),
        (field(r#""deprecated":true,"replaced_by":"z""#), "replaced_by `z`"),
        (field(r#""deprecated":true,"replaced_by":"x""#), "replaced_by `x`"),
        (field(r#""deprecated":true,"replaced_by":"B.y""#), "replaced_by `B.y`"),
        (structure(r#""deprecated":true,"replaced_by":"C""#), "replaced_by `C`"),
        (structure(r#""deprecated":true,"replaced_by":"A""#), "replaced_by `A`"),
        (structure(r#""deprecated":1"#), "true or false"),
        (structure(r#""alignof":"8""#), "number of bytes"),
        (r#"{"A":{"fields":[]},"version":{"SE_MAJOR":1,"SE_MINOR":"2"}}"#.to_owned(), "SE_MINOR"),
        (
            r#"{"A":{"fields":[]},"version":{"MAJOR":1,"MINOR":2,"PATCH":-1}}"#.to_owned(),
            "SE_PATCH",
        ),
    ] {
        let error = LayoutDocument::parse(&text, "", Path::new("x.json")).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let both = |other: &str| field(&format!(r#""deprecated":true,"replaced_by":"{other}""#));
    for other in ["y", "A.y"] {
        LayoutDocument::parse(&both(other), "", Path::new("x.json")).unwrap();
    }
}

/// Case 1 of the strategy: a new name for an attribute; and case 2, for a struct.
#[test]
fn renaming_by_a_successor_needs_minor_and_names_it() {
    let (ext, name) =
        (r#","zero":"no-op""#, r#","zero":"no-op","deprecated":true,"replaced_by":"better_name""#);
    let old = toy(
        28,
        &[
            OLD[0],
            ("ext", "void*", 8, ext),
            ("name", "void*", 16, ext),
            ("last", "int32_t", 24, ""),
        ],
    );
    let new = toy(
        40,
        &[
            OLD[0],
            ("ext", "void*", 8, ext),
            ("name", "void*", 16, name),
            ("last", "int32_t", 24, ""),
            ("better_name", "void*", 32, ext),
        ],
    );
    let renamed = diff(&old, &new);
    assert_eq!(
        found(&renamed),
        [("name", "deprecated", Bump::Minor), ("better_name", "appended", Bump::Minor)]
    );
    assert_eq!(renamed.changes[0].replaced_by.as_deref(), Some("better_name"));
    assert!(renamed.changes[0].why.contains("better_name replaces it"), "{renamed:?}");

    let parse = |text: &str| LayoutDocument::parse(text, "", Path::new("x.json")).unwrap();
    let old = parse(r#"{"Device":{"fields":[]}}"#);
    let new = parse(
        r#"{"Device":{"fields":[],"deprecated":true,"replaced_by":"BetterDevice"},"BetterDevice":{"fields":[]}}"#,
    );
    let replaced = diff(&old, &new);
    assert_eq!(replaced.required, Bump::Minor);
    assert_eq!(replaced.changes[0].replaced_by.as_deref(), Some("BetterDevice"));
}

#[test]
fn a_new_member_that_is_required_needs_major() {
    let required = r#","required":true"#;
    let new = toy(32, &with(&[("new_field", "void*", 24, required)]));
    assert_eq!(found(&diff(&toy(20, &OLD), &new)), [("new_field", "appended", Bump::Major)]);
    // A new struct has no older callers that could miss the member.
    let empty = LayoutDocument::parse(r#"{"A":{"fields":[]}}"#, "", Path::new("x.json")).unwrap();
    let added: Vec<Bump> =
        diff(&empty, &new).changes.iter().map(|change| change.requires).collect();
    assert_eq!(added, [Bump::Major, Bump::Minor], "the removal of A, and the new struct");
    // Nor can a field become or cease to be required later.
    let before = toy(32, &with(&[("new_field", "void*", 24, "")]));
    for (old, new) in [(&before, &new), (&new, &before)] {
        assert_eq!(found(&diff(old, new)), [("new_field", "repurposed", Bump::Major)]);
    }
}

#[test]
fn alignment_counts_in_new_structs_and_new_members_too() {
    let parse = |text: &str| LayoutDocument::parse(text, "", Path::new("x.json")).unwrap();
    let old = parse(r#"{"Old":{"fields":[{"name":"packed","kind":"void*","offset":4,"size":8}]}}"#);
    let with = |name: &str, more: &str| {
        let text = format!(
            r#"{{"Old":{{"fields":[{{"name":"packed","kind":"void*","offset":4,"size":8}}]}},"{name}":{{{more}}}}}"#
        );
        diff(&old, &parse(&text))
    };
    let field = |kind: &str, offset: u64, size: u64| {
        format!(r#""fields":[{{"name":"f","kind":"{kind}","offset":{offset},"size":{size}}}]"#)
    };
    let major = |diff: &Diff| {
        diff.changes
            .iter()
            .any(|change| change.change == "alignment" && change.requires == Bump::Major)
    };
    for more in [
        r#""alignof":16,"fields":[]"#.to_owned(),
        field("void*", 4, 8),
        field("int32_t", 2, 4),
        field("int16_t", 1, 2),
        field("long double", 16, 16),
        field("__int128", 0, 16),
        field("double[3]", 4, 24),
        field("Old", 4, 8),
    ] {
        let diff = with("New", &more);
        assert!(major(&diff), "{more}: {:?}", diff.changes);
        assert_eq!(diff.required, Bump::Major);
    }
    for more in [
        r#""alignof":8,"fields":[]"#.to_owned(),
        field("void*", 8, 8),
        field("char[16]", 3, 16),
        field("uint8_t[2][3]", 5, 6),
        field("SomeUnion", 4, 24),
    ] {
        let diff = with("New", &more);
        assert_eq!(diff.required, Bump::Minor, "{more}: {:?}", diff.changes);
    }
    // An appended member counts as well; a member that was misaligned before is not a change.
    let text = r#"{"Old":{"fields":[{"name":"packed","kind":"void*","offset":4,"size":8},{"name":"f","kind":"void*","offset":12,"size":8}]}}"#;
    let diff = diff(&old, &parse(text));
    assert_eq!(found(&diff), [("f", "appended", Bump::Minor), ("f", "alignment", Bump::Major)]);
}

#[test]
fn the_number_that_moved_is_compared_with_the_one_that_had_to() {
    let at = |version: &str, more: &str| {
        let numbers: Vec<&str> = version.split('.').collect();
        let text = format!(
            r#"{{"version":{{"SE_MAJOR":{},"SE_MINOR":{},"SE_PATCH":{}}},"A":{{"fields":[]}}{more}}}"#,
            numbers[0], numbers[1], numbers[2]
        );
        LayoutDocument::parse(&text, "", Path::new("x.json")).unwrap()
    };
    let added = r#","B":{"fields":[]}"#;
    for (old, new, more, step) in [
        ("1.0.0", "1.0.0", "", VersionStep::AsRequired),
        ("1.0.0", "1.1.0", "", VersionStep::AsRequired),
        ("1.0.0", "1.1.0", added, VersionStep::AsRequired),
        ("1.2.3", "2.0.0", added, VersionStep::AsRequired),
        ("1.0.0", "1.0.1", added, VersionStep::TooSmall),
        ("1.0.0", "1.0.0", added, VersionStep::TooSmall),
        ("1.1.0", "1.0.0", added, VersionStep::Backwards),
        ("2.0.0", "1.9.0", added, VersionStep::Backwards),
        ("5.0.0", "6.3.7", "", VersionStep::LowerNumbersKept),
        ("5.1.2", "5.2.2", added, VersionStep::LowerNumbersKept),
        ("5.1.2", "6.1.2", added, VersionStep::LowerNumbersKept),
    ] {
        let diff = diff(&at(old, ""), &at(new, more));
        assert_eq!(diff.version_step(), step, "{old} to {new}");
        assert_eq!(diff.notes().len(), usize::from(step != VersionStep::AsRequired), "{old} {new}");
    }
    let kept = diff(&at("5.0.0", ""), &at("6.3.7", "")).notes();
    assert!(kept[0].contains("6.0.0"), "{kept:?}");
    let kept = diff(&at("5.1.2", ""), &at("5.2.2", "")).notes();
    assert!(kept[0].contains("5.2.0"), "{kept:?}");
    let unknown = LayoutDocument::parse(r#"{"A":{"fields":[]}}"#, "", Path::new("x")).unwrap();
    assert_eq!(diff(&unknown, &unknown).version_step(), VersionStep::Unknown);
}

#[test]
fn layouts_that_are_built_in_are_those_of_the_published_file() {
    for (name, section) in [
        ("tensorflow-2.14", "released"),
        ("tensorflow-2.8", "history/2.8.4"),
        ("tensorflow-2.5", "history/2.6.5"),
        ("tensorflow-2.4", "history/2.4.4"),
        ("rfc-257", "rfc"),
    ] {
        let built_in = LayoutDocument::read(name).unwrap();
        let published = LayoutDocument::parse(LAYOUTS, section, Path::new("layouts.json")).unwrap();
        for (old, new) in [(&built_in, &published), (&published, &built_in)] {
            let diff = diff(old, new);
            assert_eq!(diff.changes, [], "{name}");
            assert_eq!(diff.version_step(), VersionStep::AsRequired, "{name}");
        }
    }
    let error = LayoutDocument::read("tensorflow-2.9").unwrap_err().to_string();
    assert!(error.contains("tensorflow-2.14") && error.contains("rfc-257"), "{error}");
}

#[test]
fn a_struct_size_that_covers_what_was_there_is_a_fix() {
    let old = toy(16, &OLD);
    assert_eq!(found(&diff(&old, &toy(20, &OLD))), [("", "struct_size", Bump::Patch)]);
    assert_eq!(diff(&old, &toy(40, &OLD)).required, Bump::Major);
    assert_eq!(diff(&old, &old).required, Bump::None);
    // The same beside an appended member.
    let longer = toy(40, &with(&[("new_field", "void*", 24, "")]));
    assert_eq!(
        found(&diff(&toy(20, &OLD), &longer)),
        [("new_field", "appended", Bump::Minor), ("", "struct_size", Bump::Major)]
    );
}

#[test]
fn files_of_another_form_say_what_is_wrong() {
    let path = Path::new("x.json");
    for (text, section, part) in [
        ("{", "", "not JSON"),
        ("{}", "", "no layout"),
        (LAYOUTS, "", "`history/2.6.5`"),
        (LAYOUTS, "history/1.0", "`released`"),
        (r#"{"A":{"fields":[{"name":"x"}]}}"#, "", "offset"),
        (r#"{"A":{"same_as":"B"}}"#, "", "same_as `B`"),
        (r#"{"s":{"A":{"same_as":"s"}}}"#, "s", "same_as `s`"),
        (r#"{"A":{"fields":[{"name":"x","kind":"y","offset":99999999999,"size":8}]}}"#, "", "2^32"),
    ] {
        let error = LayoutDocument::parse(text, section, path).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert!(LayoutDocument::read("/nowhere.json#x").is_err());
}

#[test]
fn meaning_of_zero_cannot_change() {
    let marked = |zero: &str| {
        let field = format!(r#"{{"name":"f","kind":"int","offset":0,"size":4{zero}}}"#);
        let text = format!(r#"{{"Toy":{{"fields":[{field}]}}}}"#);
        LayoutDocument::parse(&text, "", Path::new("x.json")).unwrap()
    };
    let (unmarked, meaningful, no_op) =
        (marked(""), marked(r#","zero":"meaningful""#), marked(r#","zero":"no-op""#));
    for (old, new) in
        [(&no_op, &meaningful), (&meaningful, &no_op), (&no_op, &unmarked), (&unmarked, &no_op)]
    {
        assert_eq!(found(&diff(old, new)), [("f", "repurposed", Bump::Major)]);
    }
    // For an unmarked field zero counts as meaningful.
    for (old, new) in [(&unmarked, &meaningful), (&meaningful, &unmarked)] {
        assert_eq!(diff(old, new).required, Bump::None);
    }
}

#[test]
fn major_step_removes_deprecated_members_and_deprecates_structs() {
    let parse = |text: &str| LayoutDocument::parse(text, "", Path::new("x.json")).unwrap();
    let fields = r#""fields":[{"name":"a","kind":"int32_t","offset":0,"size":4}]"#;
    let old = parse(&format!(r#"{{"SP_Conversion":{{{fields}}}}}"#));
    let new = parse(&format!(r#"{{"SP_Conversion":{{"deprecated":true,{fields}}}}}"#));
    assert_eq!(found(&diff(&old, &new)), [("", "deprecated", Bump::Minor)]);
    assert_eq!(diff(&new, &new).required, Bump::None);
    let deprecated = [OLD[0], OLD[1], ("old_field", "int32_t", 16, r#","deprecated":true"#)];
    let gone = diff(&toy(20, &deprecated), &toy(16, &OLD[..2]));
    assert_eq!(gone.required, Bump::Major);
    assert!(gone.changes[0].why.contains("was deprecated"), "{gone:?}");
}

#[test]
fn blanks_in_c_are_no_change() {
    let one = toy(
        28,
        &with(&[("f", "const  char *", 20, r#","signature":"void (const SP_Device *, int)""#)]),
    );
    let other =
        toy(28, &with(&[("f", "const char*", 20, r#","signature":"void(const SP_Device*,int)""#)]));
    assert_eq!(diff(&one, &other).changes, []);
    let joined = toy(28, &with(&[("f", "constchar*", 20, "")]));
    assert_eq!(diff(&one, &joined).required, Bump::Major);
}

#[test]
fn a_number_of_an_enumeration_keeps_its_meaning() {
    let parse = |values: &str| {
        let text = format!(r#"{{"SE_State":{{"values":{{{values}}}}}}}"#);
        LayoutDocument::parse(&text, "", Path::new("x.json")).unwrap()
    };
    let old = parse(r#""A":0,"B":1"#);
    assert_eq!(
        found(&diff(&old, &parse(r#""A":0,"C":1"#))),
        [("B", "removed", Bump::Major), ("C", "repurposed", Bump::Major)]
    );
    // Two names for one number.
    assert_eq!(found(&diff(&old, &parse(r#""A":0,"B":1,"C":1"#))), [("C", "added", Bump::Minor)]);
}

#[test]
fn a_version_that_goes_back_is_said() {
    let at = |minor: u32| {
        let text = format!(
            r#"{{"version":{{"SE_MAJOR":1,"SE_MINOR":{minor},"SE_PATCH":0}},"A":{{"fields":[]}}}}"#
        );
        LayoutDocument::parse(&text, "", Path::new("x.json")).unwrap()
    };
    assert!(diff(&at(2), &at(1)).notes()[0].contains("went back from 1.2.0 to 1.1.0"));
    assert_eq!(diff(&at(1), &at(2)).notes(), [""; 0]);
}

/// Looking each field up among all others took hours for a file of this size.
#[test]
fn files_of_many_fields_and_values_are_compared() {
    let parse = |prefix: &str, count: u64| {
        let fields: Vec<String> = (0..count)
            .map(|n| {
                format!(r#"{{"name":"{prefix}{n}","kind":"int","offset":{},"size":4}}"#, n * 4)
            })
            .collect();
        let values: Vec<String> = (0..count).map(|n| format!(r#""{prefix}{n}":{n}"#)).collect();
        let text = format!(
            r#"{{"A":{{"fields":[{}]}},"E":{{"values":{{{}}}}}}}"#,
            fields.join(","),
            values.join(",")
        );
        LayoutDocument::parse(&text, "", Path::new("x.json")).unwrap()
    };
    let count = 20_000;
    let renamed = diff(&parse("old", count), &parse("new", count));
    assert_eq!(renamed.changes.len() as u64, 3 * count);
    assert!(renamed.changes[..count as usize].iter().all(|change| change.change == "renamed"));
    let same = diff(&parse("a", count), &parse("a", 2 * count));
    assert_eq!(same.changes.iter().filter(|change| change.change == "appended").count(), 20_000);
}

#[test]
fn a_name_twice_in_a_struct_is_no_layout() {
    let text = r#"{"A":{"fields":[{"name":"x","kind":"int","offset":0,"size":4},{"name":"x","kind":"int","offset":4,"size":4}]}}"#;
    let error = LayoutDocument::parse(text, "", Path::new("x.json")).unwrap_err();
    assert!(error.to_string().contains("two fields `x`"), "{error}");
}
