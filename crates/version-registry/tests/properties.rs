//! Tests properties of every line of versions, on every day.

use proptest::{collection::vec, prelude::*};
use serdes_version_registry::{
    Date, Dated, Defect, ReleaseKind, ReleaseNumber,
    edit::{NewEntry, add_entry, move_as_of},
    lock::{LineFormats, Lock},
    newest_of_age, parse, select,
};

fn first_day() -> Date {
    Date::from_ymd(2026, 1, 1).unwrap()
}

/// Generates entries with rising numbers and days that never decrease, some of them withdrawn.
fn entries() -> impl Strategy<Value = Vec<Dated>> {
    vec((1i32..4, 0i64..40, prop::bool::weighted(0.2)), 1..8).prop_map(|steps| {
        let (mut number, mut day) = (-1, first_day());
        let entry = |(step, days, withdrawn): (i32, i64, bool)| {
            number += step;
            day = day.plus_days(days).unwrap();
            Dated { number, introduced: day, withdrawn }
        };
        steps.into_iter().map(entry).collect()
    })
}

/// Returns a registry with these entries in one line, and an `as_of` that is `behind` days after
/// the last of them.
fn text(entries: &[Dated], behind: i64) -> String {
    let as_of = entries.last().unwrap().introduced.plus_days(behind).unwrap();
    let mut text = format!(
        "as_of = {as_of} # moved by the release\n\n[[line]]\nname = \"ours\"\ntype = \"Ours\"\ntitle = \"ours\"\nsummary = \"x\"\nminimum = {}\n",
        entries[0].number
    );
    for entry in entries {
        text.push_str(&format!(
            "\n# {0}\n[[line.entry]]\nnumber = {0}\nintroduced = {1}\nsummary = \"entry {0}\"\n{2}",
            entry.number,
            entry.introduced,
            if entry.withdrawn { "withdrawn = true\n" } else { "" }
        ));
    }
    text
}

fn without_withdrawn(entries: Vec<Dated>) -> Vec<Dated> {
    entries.into_iter().map(|entry| Dated { withdrawn: false, ..entry }).collect()
}

const RELEASED: ReleaseNumber = ReleaseNumber::new(1, 4, 2);

/// A line at a release; its bounds are among the entries in use.
#[derive(Clone, Debug)]
struct Released {
    entries: Vec<Dated>,
    minimum: i32,
    min_producer: i32,
}

impl Released {
    fn of(entries: Vec<Dated>, minimum: usize, min_producer: i32) -> Option<Self> {
        let used: Vec<i32> =
            entries.iter().filter(|entry| !entry.withdrawn).map(|entry| entry.number).collect();
        let minimum = *used.get(minimum % used.len().max(1))?;
        let min_producer = min_producer.min(*used.last()?);
        Some(Self { entries, minimum, min_producer })
    }

    fn lines(&self, release: ReleaseNumber) -> Vec<LineFormats> {
        let bounds = format!(
            "minimum = {}\nmin_producer = {}\nrelease = \"{release}\"\n",
            self.minimum, self.min_producer
        );
        let text = text(&self.entries, 400);
        let text = text.replacen(&format!("minimum = {}\n", self.entries[0].number), &bounds, 1);
        LineFormats::of_declarations(&parse("versions.toml", &text).unwrap())
    }

    /// Returns the smallest kind of release in which this line may follow `before`; `None` if it
    /// never may.
    fn needs(&self, before: &Self) -> Option<ReleaseKind> {
        let mut needs = ReleaseKind::Patch;
        let newest = before.entries.last().unwrap().number;
        for old in &before.entries {
            let new = self.entries.iter().find(|entry| entry.number == old.number)?;
            if new.introduced != old.introduced {
                return None;
            }
            if new.withdrawn != old.withdrawn {
                needs = needs.max(ReleaseKind::Minor);
            }
        }
        if self.entries.last().unwrap().number != newest || self.minimum < before.minimum {
            needs = needs.max(ReleaseKind::Minor);
        }
        if self.minimum > before.minimum || self.min_producer > before.min_producer {
            needs = ReleaseKind::Major;
        }
        Some(needs)
    }
}

/// Generates a line at a release, and the line some time later.
fn releases() -> impl Strategy<Value = (Released, Released)> {
    let bounds = || (0usize..3, 0i32..3);
    let changes = (
        0usize..3,
        prop::option::weighted(0.3, any::<prop::sample::Index>()),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
    );
    let later = (entries(), bounds(), bounds(), prop::bool::ANY, changes);
    later.prop_filter_map("a line has an entry in use", |(all, before, after, same, changes)| {
        let (added, toggled, dropped, moved) = changes;
        let old = all.get(..all.len().saturating_sub(added).max(1))?.to_vec();
        let mut new = all;
        if let Some(at) = toggled {
            let at = at.index(new.len());
            new[at].withdrawn = !new[at].withdrawn;
        }
        if moved {
            let last = new.last_mut()?;
            last.introduced = last.introduced.plus_days(1)?;
        }
        if dropped {
            new.remove(0);
        }
        let before = Released::of(old, before.0, before.1)?;
        let mut after = Released::of(new, after.0, after.1)?;
        let is_used = |number| after.entries.iter().any(|e| e.number == number && !e.withdrawn);
        if same && is_used(before.minimum) {
            (after.minimum, after.min_producer) =
                (before.minimum, before.min_producer.min(after.min_producer));
        }
        Some((before, after))
    })
}

proptest! {
    #[test]
    fn release_allows_what_its_kind_allows((before, after) in releases()) {
        let lock = Lock::new().with_releases(&before.lines(RELEASED));
        prop_assert_eq!(lock.broken_releases(&before.lines(RELEASED)), []);
        let needs = after.needs(&before);
        for kind in [ReleaseKind::Patch, ReleaseKind::Minor, ReleaseKind::Major] {
            let release = RELEASED.next(kind).unwrap();
            let broken = lock.broken_releases(&after.lines(release));
            let is_allowed = needs.is_some_and(|needs| kind >= needs);
            prop_assert_eq!(broken.is_empty(), is_allowed, "{}: {:?}", kind, broken);
            let text = lock.clone().with_releases(&after.lines(release)).render();
            let read = Lock::parse("versions.lock", &text).unwrap();
            prop_assert_eq!(read.broken_releases(&after.lines(release)), []);
        }
    }

    #[test]
    fn release_numbers_are_ordered_as_their_kinds(
        one in (0u64..4, 0u64..4, 0u64..4), other in (0u64..4, 0u64..4, 0u64..4),
    ) {
        let (one, other) =
            (ReleaseNumber::new(one.0, one.1, one.2), ReleaseNumber::new(other.0, other.1, other.2));
        prop_assert_eq!(one.to_string().parse(), Ok(one));
        match ReleaseKind::of_step(one, other) {
            Ok(kind) => {
                prop_assert!(one < other && one.next(kind).unwrap() <= other);
                prop_assert_eq!(kind == ReleaseKind::Patch, one.is_of_minor_of(other));
            }
            Err(_) => prop_assert!(other <= one),
        }
    }

    #[test]
    fn selection_of_a_line_lies_between_its_bounds(
        entries in entries(), minimum in 0usize..3, day in 0i64..400, days in 0i64..100,
    ) {
        let line = Released::of(entries, minimum, 0);
        prop_assume!(line.is_some());
        let Released { entries, minimum, .. } = line.unwrap();
        let day = first_day().plus_days(day).unwrap();
        let of_age = |days| newest_of_age(entries.iter().copied(), minimum, day, days);
        prop_assert_eq!(of_age(0).is_some(), of_age(days).is_some());
        if let Some((old, current)) = of_age(days).zip(of_age(0)) {
            prop_assert!(minimum <= old && old <= current);
            prop_assert!(entries.iter().any(|entry| entry.number == old && !entry.withdrawn));
        }
    }

    #[test]
    fn selection_is_the_newest_of_its_age(
        entries in entries(), minimum in 0i32..12, day in 0i64..400, days in 0i64..100,
    ) {
        let day = first_day().plus_days(day).unwrap();
        let usable = |entry: &&Dated| {
            !entry.withdrawn && entry.number >= minimum && entry.introduced <= day
        };
        let old_enough = |entry: &&Dated| day.days_since(entry.introduced) >= days;
        let expected = entries
            .iter()
            .filter(usable)
            .rfind(old_enough)
            .or_else(|| entries.iter().find(usable));
        let found = select(entries.iter().copied(), minimum, day, days);
        prop_assert_eq!(found.map(|found| found.number), expected.map(|entry| entry.number));
        if let (Some(found), Some(expected)) = (found, expected) {
            prop_assert_eq!(found.age_days, day.days_since(expected.introduced));
            prop_assert_eq!(found.is_younger_than_asked(), found.age_days < days);
        }
    }

    #[test]
    fn selection_never_goes_back_with_the_days(
        entries in entries(), day in 0i64..400, later in 0i64..100, days in 0i64..100, more in 0i64..100,
    ) {
        let select = |day: i64, days| {
            let day = first_day().plus_days(day).unwrap();
            newest_of_age(entries.iter().copied(), 0, day, days)
        };
        prop_assert!(select(day, days) <= select(day + later, days));
        // A longer window never selects a newer version.
        prop_assert!(select(day, days + more) <= select(day, days));
    }

    #[test]
    fn date_is_that_of_chrono(days in -719_528i64..=2_932_896, text in ".{0,12}") {
        let epoch = Date::from_ymd(1970, 1, 1).unwrap();
        let date = epoch.plus_days(days).unwrap();
        prop_assert_eq!(date.days_since(epoch), days);
        prop_assert_eq!(Date::from_unix_seconds(days * 86_400), Some(date));
        prop_assert_eq!(date.to_string().parse::<Date>(), Ok(date));
        let naive = chrono::NaiveDate::from(date);
        prop_assert_eq!(naive.to_string(), date.to_string());
        if let Ok(date) = text.parse::<Date>() {
            prop_assert_eq!(date.to_string(), text);
        }
    }

    #[test]
    fn registry_of_rising_numbers_and_days_keeps_the_rules(entries in entries(), behind in 0i64..60) {
        let entries = without_withdrawn(entries);
        let declared = parse("versions.toml", &text(&entries, behind)).unwrap();
        let found: Vec<i32> = declared.lines[0].entries.iter().map(|entry| entry.number).collect();
        prop_assert_eq!(found, entries.iter().map(|entry| entry.number).collect::<Vec<_>>());
    }

    #[test]
    fn registry_with_two_entries_exchanged_is_refused(entries in entries(), at in any::<prop::sample::Index>()) {
        let entries = without_withdrawn(entries);
        prop_assume!(entries.len() > 1);
        let at = at.index(entries.len() - 1);
        let mut numbers = entries.clone();
        (numbers[at].number, numbers[at + 1].number) = (entries[at + 1].number, entries[at].number);
        let mut errors = parse("versions.toml", &text(&numbers, 0)).unwrap_err().to_string();
        prop_assert!(errors.contains("numbers only go up"), "{errors}");
        if entries[at].introduced != entries[at + 1].introduced {
            let mut days = entries.clone();
            (days[at].introduced, days[at + 1].introduced) =
                (entries[at + 1].introduced, entries[at].introduced);
            errors = parse("versions.toml", &text(&days, 60)).unwrap_err().to_string();
            prop_assert!(errors.contains("days never go back"), "{errors}");
        }
    }

    #[test]
    fn registry_of_any_text_is_read_or_refused_with_a_line_in_it(
        entries in entries(), cut in any::<prop::sample::Index>(), noise in "[\\[\\]a-z=\"0-9\n#{}.-]{0,20}",
    ) {
        let whole = text(&entries, 3);
        let cut = cut.index(whole.len());
        let broken = format!("{}{noise}{}", &whole[..cut], &whole[cut..]);
        if let Err(errors) = parse("versions.toml", &broken) {
            let rows = broken.lines().count();
            for error in errors.iter() {
                prop_assert!((1..=rows.max(1) + 1).contains(&error.row), "{error}");
                prop_assert!(!matches!(error.defect, Defect::Unreadable(_)), "{error}");
            }
        }
    }

    #[test]
    fn entry_that_is_added_changes_nothing_else(entries in entries(), behind in 0i64..60, after in 0i64..60) {
        let entries = without_withdrawn(entries);
        let before = text(&entries, behind);
        let last = entries.last().unwrap();
        let day = last.introduced.plus_days(after).unwrap();
        let entry = NewEntry::new("ours", day).with_formats(["Thing"]).with_summary("more");
        let edited = add_entry("versions.toml", &before, &entry).unwrap();
        prop_assert_eq!(edited.number(), Some(last.number + 1));
        let (old, new) = (parse("versions.toml", &before).unwrap(), edited.declarations());
        let lines = (&old.lines[0].entries, &new.lines[0].entries);
        prop_assert_eq!(lines.0.as_slice(), &lines.1[..lines.0.len()]);
        prop_assert_eq!(lines.1.len(), lines.0.len() + 1);
        let rest = |text: &str| text.split_once('\n').unwrap().1.to_owned();
        prop_assert!(rest(edited.text()).starts_with(&rest(&before)));
        // The day of a registry only moves forward.
        let moved = move_as_of("versions.toml", edited.text(), old.as_of);
        prop_assert_eq!(moved.is_ok(), old.as_of >= new.as_of);
    }
}
