use std::path::Path;

use super::*;
use crate::{Defect, ReleaseNumber, generate};

const OURS: &str = include_str!("../../../../versions.toml");
/// A registry of one line, whose last number is 3.
const TRAINER: &str = include_str!("trainer.toml");

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

fn entry(line: &str, introduced: &str) -> NewEntry {
    NewEntry::new(line, day(introduced)).with_formats(["Snapshot"]).with_summary("what is new")
}

/// Returns the rows that are only in `after`; asserts that nothing else differs.
fn added<'t>(before: &str, after: &'t str) -> Vec<&'t str> {
    let mut old = before.lines().peekable();
    let mut added = Vec::new();
    for row in after.lines() {
        if old.peek() == Some(&row) {
            old.next();
        } else {
            added.push(row);
        }
    }
    assert_eq!(old.next(), None, "a row is gone");
    added
}

#[test]
fn entry_is_added_at_the_end_of_its_line_and_no_other_moves() {
    let file = Path::new("versions.toml").display().to_string();
    let as_of = crate::parse(&file, OURS).unwrap().as_of;
    for line in crate::parse(&file, OURS).unwrap().lines {
        let edited = add_entry(&file, OURS, &entry(&line.name, &as_of.to_string())).unwrap();
        let after = edited.declarations().line(&line.name).unwrap();
        let number = edited.number().unwrap();
        assert_eq!(after.entries.len(), line.entries.len() + 1, "{}", line.name);
        assert_eq!(after.entries.last().unwrap().number, number);
        assert_eq!(after.entries[..line.entries.len()], line.entries);
        let others = |declarations: &Declarations| {
            let lines = declarations.lines.iter().filter(|other| other.name != line.name);
            lines.cloned().collect::<Vec<_>>()
        };
        assert_eq!(others(edited.declarations()), others(&crate::parse(&file, OURS).unwrap()));
        assert_eq!(edited.declarations().products, crate::parse(&file, OURS).unwrap().products);
        let rows = added(OURS, edited.text());
        assert_eq!(rows.iter().filter(|row| row.starts_with("[[")).count(), 1, "{rows:#?}");
        assert_eq!(rows.iter().filter(|row| !row.is_empty()).count(), 5, "{rows:#?}");
    }
}

#[test]
fn an_entry_of_a_later_day_takes_the_registrys_day_along() {
    let edited = add_entry("v", TRAINER, &entry("snapshots", "2026-12-24")).unwrap();
    assert_eq!((edited.as_of_before(), edited.number()), (day("2026-11-20"), Some(4)));
    assert_eq!(edited.declarations().as_of, day("2026-12-24"));
    let changes = edited.selections();
    let changes: Vec<_> =
        changes.iter().map(|change| (change.selector, change.before, change.after)).collect();
    assert_eq!(
        changes,
        [("current", Some(3), Some(4)), ("week_4_old", Some(2), Some(3))],
        "number 3 is of 2026-11-10"
    );
    let same_day = add_entry("v", TRAINER, &entry("snapshots", "2026-11-15")).unwrap();
    assert_eq!(same_day.declarations().as_of, day("2026-11-20"));
}

#[test]
fn the_number_follows_the_line() {
    // A withdrawn number is not reused, and a line that counts days uses the day's number.
    let taken_back = TRAINER.replace("number = 3\n", "number = 3\nwithdrawn = true\n");
    let edited = add_entry("v", &taken_back, &entry("snapshots", "2026-11-15")).unwrap();
    assert_eq!(edited.number(), Some(4));
    let edited = add_entry("v", OURS, &entry("graph_def", "2026-11-20")).unwrap();
    let since_2474 = day("2026-11-20").days_since(day("2026-01-16"));
    assert_eq!(i64::from(edited.number().unwrap()), 2474 + since_2474);
    let chosen = entry("snapshots", "2026-11-15").with_number(9);
    assert_eq!(add_entry("v", TRAINER, &chosen).unwrap().number(), Some(9));
    let full = TRAINER.replace("number = 3\n", "number = 2147483647\n");
    let refused = add_entry("v", &full, &entry("snapshots", "2026-11-15")).unwrap_err();
    assert!(matches!(refused, EditError::OutOfNumbers { last: i32::MAX, .. }), "{refused}");
}

#[test]
fn edit_refused_by_a_rule_writes_nothing() {
    let refused = |entry: &NewEntry| match add_entry("v", TRAINER, entry).unwrap_err() {
        EditError::Refused(errors) => errors.iter().next().unwrap().defect.clone(),
        other => panic!("{other}"),
    };
    let defect = refused(&entry("snapshots", "2026-11-09"));
    assert!(matches!(defect, Defect::DateGoesBackwards { .. }));
    let defect = refused(&entry("snapshots", "2026-11-20").with_number(3));
    assert!(matches!(defect, Defect::NumberGoesBackwards { .. }));
    let defect = refused(&entry("snapshots", "2026-11-20").with_min_consumer(5));
    assert!(matches!(defect, Defect::MinConsumerAboveNumber { .. }));
    let defect = refused(&entry("snapshots", "2026-11-20").with_formats(["Snapshot", "Snapshot"]));
    assert!(matches!(defect, Defect::Duplicate { .. }));
    let defect = refused(&entry("snapshots", "2026-11-20").with_summary(" "));
    assert!(matches!(defect, Defect::Empty { .. }));

    let error = add_entry("v", TRAINER, &entry("snapshot", "2026-11-20")).unwrap_err();
    assert!(error.to_string().contains("the lines are snapshots"), "{error}");
    let nothing = NewEntry::new("snapshots", day("2026-11-20"));
    assert!(matches!(add_entry("v", TRAINER, &nothing), Err(EditError::NothingSaid)));
    let broken = TRAINER.replace("minimum = 0", "minimum = 7");
    let error = add_entry("v", &broken, &entry("snapshots", "2026-11-20")).unwrap_err();
    assert!(matches!(error, EditError::Invalid(_)), "{error}");
}

#[test]
fn words_are_quoted_and_long_lists_broken() {
    let formats: Vec<String> = (0..20).map(|number| format!("Format{number}")).collect();
    let entry = entry("snapshots", "2026-11-20")
        .with_formats(formats.clone())
        .with_summary("a \"name\", a \\ and\na \u{7} bell")
        .with_released_in("trainer 2.0")
        .with_date_source("the changelog")
        .with_min_consumer(3);
    let edited = add_entry("v", TRAINER, &entry).unwrap();
    let last = edited.declarations().lines[0].entries.last().unwrap();
    assert_eq!(last.formats, formats);
    assert_eq!(last.summary, "a \"name\", a \\ and\na \u{7} bell");
    assert_eq!(
        (last.released_in.as_deref(), last.date_source.as_deref(), last.min_consumer),
        (Some("trainer 2.0"), Some("the changelog"), 3)
    );
    assert!(edited.text().lines().all(|row| row.len() <= 100));
}

#[test]
fn the_form_of_the_file_is_kept() {
    // A comment at the end of the last row, no newline at the end, line ends of Windows, leading
    // spaces.
    let remark = TRAINER.trim_end().to_owned() + " # the last one";
    let edited = add_entry("v", &remark, &entry("snapshots", "2026-11-20")).unwrap();
    assert!(
        edited.text().contains("min_consumer = 2 # the last one\n\n[[line.entry]]\nnumber = 4\n")
    );
    let windows = TRAINER.replace('\n', "\r\n");
    let edited = add_entry("v", &windows, &entry("snapshots", "2026-11-20")).unwrap();
    assert_eq!(edited.text().matches('\n').count(), edited.text().matches("\r\n").count());
    let indented = TRAINER.replace("[[line.entry]]", "  [[line.entry]]");
    let edited = add_entry("v", &indented, &entry("snapshots", "2026-11-20")).unwrap();
    assert!(edited.text().contains("\n  [[line.entry]]\n  number = 4\n"));
    let multiline = TRAINER.replace(
        "formats = [\"Snapshot\"]\nmin_consumer = 2\n",
        "min_consumer = 2\nformats = [\n    \"Snapshot\", # the only one\n]\n",
    );
    let edited = add_entry("v", &multiline, &entry("snapshots", "2026-11-20")).unwrap();
    assert!(edited.text().contains("# the only one\n]\n\n[[line.entry]]\nnumber = 4\n"));
    let inline = "as_of = 2026-11-20\n[[line]]\nname = \"a\"\ntitle = \"a\"\nsummary = \"a\"\nminimum = 0\n\
                  entry = [{ number = 0, introduced = 2026-11-20, summary = \"a\" }]\n";
    let error = add_entry("v", inline, &entry("a", "2026-11-20")).unwrap_err();
    assert!(error.to_string().starts_with("v:7: the entries of a"), "{error}");
}

#[test]
fn the_registrys_day_only_goes_forward() {
    let edited = move_as_of("v", TRAINER, day("2026-12-08")).unwrap();
    assert_eq!(edited.text(), TRAINER.replace("as_of = 2026-11-20", "as_of = 2026-12-08"));
    assert_eq!(edited.number(), None);
    let changes = edited.selections();
    assert_eq!(changes.len(), 1);
    assert_eq!(
        (changes[0].line.as_str(), changes[0].selector, changes[0].after),
        ("snapshots", "week_4_old", Some(3))
    );
    let same = move_as_of("v", TRAINER, day("2026-11-20")).unwrap();
    assert!(!same.is_change() && same.text() == TRAINER && same.selections().is_empty());
    let back = move_as_of("v", TRAINER, day("2026-11-19")).unwrap_err();
    assert!(matches!(back, EditError::AsOfGoesBack { .. }), "{back}");
}

#[test]
fn a_file_that_cannot_be_written_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("versions.toml");
    std::fs::write(&path, TRAINER).unwrap();
    let text = read_text(&path).unwrap();
    let edited = add_entry("v", &text, &entry("snapshots", "2026-11-20")).unwrap();
    edited.write(&path).unwrap();
    assert_eq!(crate::read(&path).unwrap(), *edited.declarations());
    let error = edited.write(&folder.path().join("absent/versions.toml")).unwrap_err();
    assert!(matches!(error, EditError::Write { .. }));
    assert!(matches!(read_text(&folder.path().join("absent")), Err(EditError::Read { .. })));
}

#[test]
fn first_line_has_the_documented_form_and_overwrites_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("versions.toml");
    let line = |name: &str, format: &str| FirstLine::new(name, format, day("2026-11-20"));
    for (name, format) in [
        ("Snapshots", "Snapshot"),
        ("snap shots", "Snapshot"),
        ("", "Snapshot"),
        ("snapshots", ""),
        ("1", "Snapshot"),
        ("snapshots\"\nminimum = 7 #", "Snapshot"),
    ] {
        let error = line(name, format).write(&path).unwrap_err();
        assert!(matches!(error, EditError::Refused(_)), "{name:?} {format:?}: {error}");
        assert!(!path.exists());
    }
    let declared = line("training_runs", "Run").write(&path).unwrap();
    assert_eq!(declared.lines[0].rust_type.as_deref(), Some("TrainingRuns"));
    assert_eq!(declared.lines[0].current(declared.as_of), Some(0));
    let text = read_text(&path).unwrap();
    assert!(matches!(line("others", "Other").write(&path), Err(EditError::Exists { .. })));
    assert_eq!(read_text(&path).unwrap(), text);
    // The new line can be edited further.
    let entry = NewEntry::new("training_runs", day("2026-12-01")).with_formats(["Run"]);
    assert_eq!(add_entry("versions.toml", &text, &entry).unwrap().number(), Some(1));
    let missing = read_text(&folder.path().join("nothing.toml")).unwrap_err().to_string();
    assert!(missing.contains("serdes versions init"), "{missing}");
}

#[test]
fn release_of_a_line_moves_with_an_entry() {
    let day = "2026-12-01".parse().unwrap();
    let release = ReleaseNumber::new(1, 5, 0);
    let entry = NewEntry::new("ours", day).with_summary("more").with_release(release);
    let line = "as_of = 2026-11-20\n[[line]]\nname = \"ours\"\ntitle = \"o\"\nsummary = \"x\"\n  minimum = 0 # the oldest\n";
    let rest = "[[line.entry]]\nnumber = 0\nintroduced = 2026-01-01\nsummary = \"first\"\n";
    for (keys, moved) in [
        ("", "  minimum = 0 # the oldest\n  release = \"1.5.0\"\n[[line.entry]]"),
        (
            "release = '1.4.2' # of the crate\n",
            "\nrelease = \"1.5.0\" # of the crate\n[[line.entry]]",
        ),
    ] {
        let text = format!("{line}{keys}{rest}");
        for text in [text.clone(), text.replace('\n', "\r\n")] {
            let edited = add_entry("versions.toml", &text, &entry).unwrap();
            assert!(edited.text().replace("\r\n", "\n").contains(moved), "{}", edited.text());
            assert_eq!(edited.declarations().lines[0].release, Some(release));
            assert_eq!(
                edited.text().matches("\r\n").count(),
                match text.contains('\r') {
                    true => edited.text().matches('\n').count(),
                    false => 0,
                }
            );
        }
    }
}

#[test]
fn release_of_a_first_line_reaches_its_record() {
    let first = FirstLine::new("snapshots", "Snapshot", "2026-11-20".parse().unwrap());
    let (text, declared) = first.render("versions.toml").unwrap();
    assert_eq!(declared.lines[0].release, None);
    assert!(!text.contains("release =") && !generate(&declared, "x").contains("of_release"));
    let first = first.with_release(ReleaseNumber::new(0, 3, 1));
    let (text, declared) = first.render("versions.toml").unwrap();
    assert!(text.contains("\nminimum = 0\n# The release"), "{text}");
    assert!(generate(&declared, "x").contains(".of_release(x::ReleaseNumber::new(0, 3, 1))"));
    let refused = parse("versions.toml", &text.replace("0.3.1", "0.3")).unwrap_err().to_string();
    assert!(refused.contains("`release` is \"0.3\"; it must be MAJOR.MINOR.PATCH"), "{refused}");
}
