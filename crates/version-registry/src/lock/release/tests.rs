use std::fs;

use crate::{
    ReleaseKind, ReleaseNumber,
    lock::{Difference, LineFormats, Lock, LockError, Package, ReleaseChange},
    parse,
};

const LINE: &str = "\
as_of = 2026-11-20
[[line]]
name = \"ours\"
title = \"ours\"
summary = \"x\"
minimum = 0
min_producer = 0
release = \"1.4.2\"
[[line.entry]]
number = 0
introduced = 2026-01-01
summary = \"first\"
formats = [\"A\", \"B\"]
[[line.entry]]
number = 1
introduced = 2026-02-01
summary = \"second, taken back\"
formats = [\"A\"]
withdrawn = true
[[line.entry]]
number = 2
introduced = 2026-03-01
summary = \"third\"
formats = [\"A\"]
embeds = { theirs = 3 }
min_consumer = 1
[[line.entry]]
number = 4
introduced = 2026-04-01
summary = \"fourth\"
formats = [\"A\"]
min_consumer = 2
";

const PATCH: Option<ReleaseKind> = Some(ReleaseKind::Patch);
const MINOR: Option<ReleaseKind> = Some(ReleaseKind::Minor);
const MAJOR: Option<ReleaseKind> = Some(ReleaseKind::Major);

fn lines(text: &str) -> Vec<LineFormats> {
    let declared = parse("versions.toml", text).unwrap_or_else(|error| panic!("{error}"));
    LineFormats::of_declarations(&declared)
}

fn entry(number: i32, rest: &str) -> String {
    format!(
        "[[line.entry]]\nnumber = {number}\nintroduced = 2026-05-01\nsummary = \"new\"\n{rest}\n"
    )
}

/// Returns the text with each edit made, each of which applies in one place.
fn edited(text: &str, edits: &[(&str, &str)]) -> String {
    edits.iter().fold(text.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "{from:?}");
        text.replace(from, to)
    })
}

fn of_release(text: &str, release: ReleaseNumber) -> String {
    edited(text, &[("release = \"1.4.2\"", &format!("release = \"{release}\""))])
}

/// Asserts that the change after 1.4.2 is accepted in exactly the kinds of release from the
/// smallest permitted one.
fn assert_needs(before: &str, after: &str, needs: Option<ReleaseKind>) {
    let lock = Lock::new().with_releases(&lines(before));
    let released = ReleaseNumber::new(1, 4, 2);
    assert_eq!(lock.broken_releases(&lines(before)), []);
    assert_ne!(lock.broken_releases(&lines(after)), [], "1.4.2 is out:\n{after}");
    for kind in [ReleaseKind::Patch, ReleaseKind::Minor, ReleaseKind::Major] {
        let release = released.next(kind).unwrap();
        let broken = lock.broken_releases(&lines(&of_release(after, release)));
        let is_allowed = needs.is_some_and(|needs| kind >= needs);
        assert_eq!(broken.is_empty(), is_allowed, "{kind}: {broken:?}\n{after}");
        for difference in broken {
            let text = difference.to_string();
            assert!(!difference.is_addition());
            assert!(text.starts_with("ours: ") && text.contains("1.4.2"), "{text}");
            assert!(text.contains("restore it") || text.contains("`release = \""), "{text}");
        }
    }
}

#[test]
fn removal_is_for_a_major_release() {
    let raised =
        [("minimum = 0", "minimum = 2"), ("[\"A\", \"B\"]", "[\"A\", \"B\"]\nremoved = [\"A\"]")];
    assert_needs(LINE, &edited(LINE, &raised), MAJOR);
    assert_needs(LINE, &edited(LINE, &[("min_producer = 0", "min_producer = 1")]), MAJOR);
    let code = [("withdrawn = true", "removed = [\"A\"]\nwithdrawn = true")];
    assert_needs(LINE, &edited(LINE, &code), MAJOR);
}

#[test]
fn numbers_move_at_a_minor_release() {
    assert_needs(
        LINE,
        &format!("{LINE}{}", entry(5, "formats = [\"A\"]\nmin_consumer = 2")),
        MINOR,
    );
    assert_needs(LINE, &format!("{LINE}{}", entry(5, "")), MINOR);
    let back = edited(LINE, &[("min_consumer = 2", "min_consumer = 2\nwithdrawn = true")]);
    assert_needs(LINE, &back, MINOR);
    assert_needs(&back, LINE, MINOR);
    assert_needs(LINE, &edited(LINE, &[("min_consumer = 2", "min_consumer = 3")]), MINOR);
    let raised =
        [("minimum = 0", "minimum = 2"), ("[\"A\", \"B\"]", "[\"A\", \"B\"]\nremoved = [\"A\"]")];
    assert_needs(&edited(LINE, &raised), LINE, MINOR);
}

#[test]
fn patch_release_bans_consumers_of_earlier_minor_releases_only() {
    let bans =
        |bans: &str| edited(LINE, &[("min_producer = 0", &format!("min_producer = 0\n{bans}"))]);
    assert_needs(LINE, &bans("bad_consumers = [2]"), PATCH);
    assert_needs(LINE, &bans("bad_consumers_with = { A = [0, 2] }"), PATCH);
    assert_needs(&bans("bad_consumers = [2]"), LINE, PATCH);
    // With the number that identifies the fixed build.
    assert_needs(LINE, &(bans("bad_consumers = [2]") + &entry(5, "min_consumer = 2")), PATCH);
    // 4 is the number of 1.4, whose patches read each other's data.
    assert_needs(LINE, &(bans("bad_consumers = [4]") + &entry(5, "min_consumer = 2")), MINOR);
    let more = ["formats = [\"A\"]", "embeds = { theirs = 4 }", "min_consumer = 3"];
    for more in more {
        assert_needs(LINE, &(bans("bad_consumers = [2]") + &entry(5, more)), MINOR);
    }
    assert_needs(LINE, &edited(LINE, &[("min_consumer = 2", "min_consumer = 1")]), PATCH);
}

#[test]
fn patches_are_of_the_minor_release_before_them() {
    let banned = edited(LINE, &[("min_producer = 0", "min_producer = 0\nbad_consumers = [2]")]);
    let banned = banned + &entry(5, "min_consumer = 2");
    let lock = Lock::new().with_releases(&lines(LINE));
    let patched = of_release(&banned, ReleaseNumber::new(1, 4, 3));
    let lock = lock.with_releases(&lines(&patched));
    // 4 is still a consumer of 1.4, though the current number is 5.
    let again = edited(&banned, &[("bad_consumers = [2]", "bad_consumers = [2, 4]")]);
    let patch = lines(&of_release(&again, ReleaseNumber::new(1, 4, 4)));
    assert_eq!(lock.broken_releases(&patch).len(), 1);
    let minor = lines(&of_release(&again, ReleaseNumber::new(1, 5, 0)));
    assert_eq!(lock.broken_releases(&minor), []);
    let (_, state) = lock.with_releases(&minor).releases.into_iter().next().unwrap();
    assert_eq!((state.release, state.minor_from), (ReleaseNumber::new(1, 5, 0), 5));
}

#[test]
fn number_that_is_out_changes_in_no_release() {
    let fourth = LINE.find("[[line.entry]]\nnumber = 4").unwrap();
    assert_needs(LINE, &LINE[..fourth], None);
    for (from, to) in [
        ("introduced = 2026-04-01", "introduced = 2026-04-02"),
        ("formats = [\"A\", \"B\"]", "formats = [\"A\"]"),
        ("embeds = { theirs = 3 }", "embeds = { theirs = 4 }"),
    ] {
        assert_needs(LINE, &edited(LINE, &[(from, to)]), None);
    }
    let inserted = entry(3, "formats = [\"A\"]").replace("2026-05-01", "2026-03-15");
    let inserted = format!("{}{inserted}{}", &LINE[..fourth], &LINE[fourth..]);
    assert_needs(LINE, &inserted, None);
}

#[test]
fn release_never_goes_back_or_away() {
    let lock = Lock::new().with_releases(&lines(LINE));
    let back = lock.broken_releases(&lines(&of_release(LINE, ReleaseNumber::new(1, 4, 1))));
    assert!(matches!(back[..], [Difference::ReleaseGoesBack { .. }]), "{back:?}");
    assert!(back[0].to_string().contains("1.4.1, and 1.4.2 is out"), "{}", back[0]);
    let away = edited(LINE, &[("release = \"1.4.2\"\n", "")]);
    for lines in [lines(&away), Vec::new()] {
        let broken = lock.broken_releases(&lines);
        assert!(matches!(broken[..], [Difference::NoRelease { .. }]), "{broken:?}");
        assert!(broken[0].to_string().contains("`release = \"1.4.2\"`"), "{}", broken[0]);
    }
    assert_eq!(Lock::new().broken_releases(&lines(LINE)), []);
}

#[test]
fn rows_of_releases_are_read_back() {
    let odd = "min_producer = 0\nbad_consumers = [2]\nbad_consumers_with = { \"T\\tK \" = [0], \"é\" = [1] }";
    let odd = edited(LINE, &[("min_producer = 0", odd)]);
    let lock = Lock::new().with_releases(&lines(&odd));
    let text = lock.render();
    assert!(text.contains("release\tours\t1.4.2\t4\t0\t0\t0 T\\tK \t1 \\u{e9}\t2\n"), "{text}");
    assert!(text.contains("released\tours\t2\t2026-03-01\t1\tused\t+A\t@3 theirs\n"), "{text}");
    assert_eq!(Lock::parse("versions.lock", &text), Ok(lock));
    assert!(!Lock::new().render().contains("release"), "a lock without them says nothing of them");
    for row in [
        "release\ttheirs\t1.4\t0\t0\t0",
        "release\ttheirs\t1.4.2\t0\t0",
        "release\ttheirs\t1.4.2\t0\t0\t0\tx",
        "release\tours\t1.4.2\t0\t0\t0",
        "released\ttheirs\t0\t2026-01-01\t0\tused",
        "released\tours\t9\t2026-01-32\t0\tused",
        "released\tours\t9\t2026-01-01\t0\tlost",
        "released\tours\t9\t2026-01-01\t0\tused\tA",
        "released\tours\t4\t2026-01-01\t0\tused",
    ] {
        let error = Lock::parse("versions.lock", &format!("{text}{row}\n")).unwrap_err();
        assert_eq!(error.row, text.lines().count() + 1, "{error}");
    }
}

#[test]
fn lock_takes_a_release_up_when_it_is_released() {
    let root = tempfile::tempdir().unwrap();
    let golden = root.path().join("tests/golden/ours");
    for name in ["A/v0.bin", "A/v2.bin", "A/v4.bin", "B/v0.bin"] {
        let path = golden.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    let open = |text: &str| {
        fs::write(root.path().join("versions.toml"), text).unwrap();
        Package::open(root.path()).unwrap()
    };
    let package = open(LINE);
    package.rewrite().unwrap();
    assert!(package.frozen().unwrap().releases().next().is_none());
    let moved = package.moved_releases().unwrap();
    assert_eq!((moved.len(), moved[0].previous, moved[0].kind()), (1, None, None));
    package.rewrite_released().unwrap();
    package.check().unwrap();
    assert_eq!(package.moved_releases().unwrap(), []);

    let more = format!("{LINE}{}", entry(5, "formats = [\"A\"]\nmin_consumer = 2"));
    fs::write(golden.join("A/v5.bin"), "five").unwrap();
    let package = open(&of_release(&more, ReleaseNumber::new(1, 4, 3)));
    for refused in
        [package.check(), package.rewrite().map(drop), package.rewrite_released().map(drop)]
    {
        let Err(LockError::Differs(differences)) = refused else { panic!("{refused:?}") };
        let new = differences.iter().find_map(|difference| match difference {
            Difference::NotInRelease { change, .. } => Some(change.clone()),
            _ => None,
        });
        assert_eq!(new, Some(ReleaseChange::NewEntry { number: 5 }));
    }
    let text = package.broken_releases().unwrap()[0].to_string();
    assert_eq!(
        text,
        "ours: number 5 is new. Release 1.4.3 is a patch release after 1.4.2, and this is for a \
         minor release: say `release = \"1.5.0\"` for the line in versions.toml, or take it back"
    );
    let package = open(&of_release(&more, ReleaseNumber::new(1, 5, 0)));
    // While a release is being made, the lock has the previous one.
    package.rewrite().unwrap();
    package.check().unwrap();
    let moved = package.moved_releases().unwrap();
    assert_eq!(moved[0].kind(), Some(ReleaseKind::Minor));
    package.rewrite_released().unwrap();
    package.check().unwrap();
}
