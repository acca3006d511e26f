use std::path::Path;

use super::*;

const LAYOUTS: &str = include_str!("../../../crates/abi/layouts.json");

fn published(old: &str, new: &str) -> Diff {
    let read =
        |section| LayoutDocument::parse(LAYOUTS, section, Path::new("layouts.json")).unwrap();
    diff(&read(old), &read(new))
}

/// The layout of one struct `Toy`, as in the strategy: field name, kind, offset, more keys.
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
            ("memset", "appended", Bump::Minor),
            ("memset32", "appended", Bump::Minor),
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

#[test]
fn deprecation_needs_minor_unless_zero_is_a_value() {
    let gone = [OLD[0], OLD[1], ("old_field", "int32_t", 16, r#","deprecated":true"#)];
    let old = toy(20, &OLD);
    assert_eq!(found(&diff(&old, &toy(20, &gone))), [("old_field", "deprecated", Bump::Minor)]);
    let meaningful =
        toy(20, &[OLD[0], OLD[1], ("old_field", "int32_t", 16, r#","zero":"meaningful""#)]);
    assert_eq!(
        found(&diff(&meaningful, &toy(20, &gone))),
        [("old_field", "deprecated", Bump::Major)]
    );
}

#[test]
fn a_struct_size_that_covers_what_was_there_is_a_fix() {
    let old = toy(16, &OLD);
    assert_eq!(found(&diff(&old, &toy(20, &OLD))), [("", "struct_size", Bump::Patch)]);
    assert_eq!(diff(&old, &toy(40, &OLD)).required, Bump::Major);
    assert_eq!(diff(&old, &old).required, Bump::None);
    // Also beside a member that was appended.
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
fn what_zero_means_cannot_change() {
    let meaningful =
        toy(20, &[OLD[0], OLD[1], ("old_field", "int32_t", 16, r#","zero":"meaningful""#)]);
    for (old, new) in [(toy(20, &OLD), meaningful.clone()), (meaningful, toy(20, &OLD))] {
        assert_eq!(found(&diff(&old, &new)), [("old_field", "repurposed", Bump::Major)]);
    }
}

#[test]
fn a_struct_can_be_deprecated_and_a_deprecated_member_removed_in_a_major() {
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
    // Two names of one number.
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
