//! Properties of every pair of layouts that are compared.

use std::path::Path;

use proptest::{collection::vec, prelude::*, sample::Index};
use serdes_abi::diff::{Bump, Diff, LayoutDocument, diff};

/// A member: its type, and what zero means for it in the layout.
#[derive(Clone, Debug)]
struct Member {
    kind: (&'static str, u64),
    zero: Option<&'static str>,
    deprecated: Option<&'static str>,
}

/// Generates members that are laid out one after the other.
fn members() -> impl Strategy<Value = Vec<Member>> {
    let kind =
        prop::sample::select(vec![("void*", 8), ("int32_t", 4), ("uint64_t", 8), ("uint8_t", 1)]);
    let zero = prop::sample::select(vec![None, Some("no-op"), Some("meaningful")]);
    vec((kind, zero), 1..8).prop_map(|members| {
        members.into_iter().map(|(kind, zero)| Member { kind, zero, deprecated: None }).collect()
    })
}

/// Returns the layout of one struct with these members behind its head. Member `skip` is left out,
/// but its place stays.
fn layout(members: &[Member], skip: Option<usize>) -> LayoutDocument {
    let mut fields = vec![
        r#"{"name":"struct_size","kind":"size_t","offset":0,"size":8,"required":true}"#.to_owned(),
        r#"{"name":"ext","kind":"void*","offset":8,"size":8,"zero":"no-op"}"#.to_owned(),
    ];
    let mut end = 16u64;
    for (at, Member { kind: (kind, size), zero, deprecated }) in members.iter().enumerate() {
        let offset = end.next_multiple_of(*size);
        end = offset + size;
        if skip == Some(at) {
            continue;
        }
        let zero = zero.map(|zero| format!(r#","zero":"{zero}""#)).unwrap_or_default();
        let deprecated =
            deprecated.map(|word| format!(r#","deprecated":{word}"#)).unwrap_or_default();
        fields.push(format!(
            r#"{{"name":"m{at}","kind":"{kind}","offset":{offset},"size":{size}{zero}{deprecated}}}"#
        ));
    }
    let text = format!(
        r#"{{"SP_Thing":{{"struct_size":{end},"alignof":8,"fields":[{}]}},"SE_State":{{"values":{{"A":0,"B":1}}}}}}"#,
        fields.join(",")
    );
    LayoutDocument::parse(&text, "", Path::new("x.json")).unwrap()
}

fn required(old: &LayoutDocument, new: &LayoutDocument) -> Bump {
    let found: Diff = diff(old, new);
    let most = found.changes.iter().map(|change| change.requires).max().unwrap_or(Bump::None);
    assert_eq!(found.required, most);
    found.required
}

proptest! {
    #[test]
    fn diff_of_a_layout_with_itself_is_none(members in members()) {
        prop_assert_eq!(required(&layout(&members, None), &layout(&members, None)), Bump::None);
    }

    #[test]
    fn diff_of_what_is_appended_is_minor_and_major_the_other_way(
        members in members(), count in any::<Index>(),
    ) {
        let fewer = &members[..count.index(members.len())];
        let (old, new) = (layout(fewer, None), layout(&members, None));
        prop_assert_eq!(required(&old, &new), Bump::Minor);
        prop_assert_eq!(required(&new, &old), Bump::Major);
    }

    #[test]
    fn diff_of_what_is_removed_is_major(members in members(), at in any::<Index>()) {
        let at = at.index(members.len());
        prop_assert_eq!(required(&layout(&members, None), &layout(&members, Some(at))), Bump::Major);
    }

    #[test]
    fn diff_of_another_type_is_major(members in members(), at in any::<Index>()) {
        let at = at.index(members.len());
        let mut other = members.clone();
        other[at].kind = ("double", 8);
        let found = diff(&layout(&members, None), &layout(&other, None));
        prop_assert_eq!(found.required, Bump::Major);
    }

    #[test]
    fn diff_of_an_announcement_is_minor_for_every_member(members in members(), at in any::<Index>()) {
        let at = at.index(members.len());
        let mut announced = members.clone();
        announced[at].deprecated = Some("\"announced\"");
        let (old, new) = (layout(&members, None), layout(&announced, None));
        prop_assert_eq!(required(&old, &new), Bump::Minor);
        // A member that is left zero later needs the same as one that is left zero at once.
        let mut gone = members.clone();
        gone[at].deprecated = Some("true");
        let by_zero = layout(&gone, None);
        let expected = if members[at].zero == Some("no-op") { Bump::Minor } else { Bump::Major };
        prop_assert_eq!(required(&old, &by_zero), expected);
        prop_assert_eq!(required(&new, &by_zero), expected);
    }

    #[test]
    fn diff_is_none_both_ways_or_neither(one in members(), other in members()) {
        let (one, other) = (layout(&one, None), layout(&other, None));
        let (there, back) = (required(&one, &other), required(&other, &one));
        prop_assert_eq!(there == Bump::None, back == Bump::None);
    }

    #[test]
    fn diff_stays_major_whatever_is_appended(
        members in members(), more in members(), at in any::<Index>(),
    ) {
        let at = at.index(members.len());
        let all: Vec<Member> = members.iter().chain(&more).cloned().collect();
        let (old, new) = (layout(&members, None), layout(&all, Some(at)));
        prop_assert_eq!(required(&old, &new), Bump::Major);
    }
}
