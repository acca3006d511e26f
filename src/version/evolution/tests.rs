use super::*;
use crate::version::registry;

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

/// A line as in a user's crate: a withdrawn number at its end, a ban, a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Graphs;

impl Line for Graphs {
    const NAME: &'static str = "graphs";
    const TITLE: &'static str = "graphs";
    const MINIMUM: i32 = 0;
    const AS_OF: Date = Date::from_ymd(2026, 6, 1).unwrap();
    const MIN_PRODUCER: i32 = 1;
    const BAD_CONSUMERS: &'static [i32] = &[1];
    const BAD_CONSUMERS_WITH: &'static [(&'static str, &'static [i32])] = &[("TopK", &[2])];
    const ENTRIES: &'static [Entry] = &[
        Entry::new(0, Date::from_ymd(2026, 1, 1).unwrap()),
        Entry::new(1, Date::from_ymd(2026, 2, 1).unwrap()),
        Entry::new(2, Date::from_ymd(2026, 3, 1).unwrap()),
        Entry::new(3, Date::from_ymd(2026, 4, 1).unwrap()).for_consumers_from(2),
        Entry::new(4, Date::from_ymd(2026, 5, 1).unwrap()).withdrawn(),
    ];
}

fn graphs() -> BuildVersions {
    BuildVersions::of::<Graphs>(day("2026-06-01")).unwrap()
}

#[test]
fn bounds_of_a_build_only_go_up_and_never_above_its_version() {
    let build = BuildVersions::new(41, 30, 30).unwrap();
    assert!(matches!(
        build.clone().rule_out_consumers_before(42),
        Err(EvolutionError::BoundAboveVersion { .. })
    ));
    assert!(matches!(
        build.clone().rule_out_consumers_before(29),
        Err(EvolutionError::BoundGoesBack { .. })
    ));
    assert!(matches!(build.ban_consumer(42), Err(EvolutionError::ConsumerNotOut { .. })));
    assert!(BuildVersions::new(5, 6, 0).is_err());
    let last = BuildVersions::new(i32::MAX, 0, 0).unwrap();
    assert!(matches!(last.switch_to_operation(), Err(EvolutionError::OutOfNumbers { .. })));
}

#[test]
fn steps_start_from_what_a_line_has() {
    let build = graphs();
    let stamped = build.producer().stamp_with([]);
    assert_eq!((stamped.producer, stamped.min_consumer), (3, 2));
    assert_eq!(stamped.bad_consumers, [1]);
    assert_eq!(build.producer().stamp_with(["TopK"]).bad_consumers, [1, 2]);
    assert_eq!(build.consumer("graphs").min_producer, 1);
    assert!(build.changes().is_empty());
    assert_eq!(build.changes().to_string(), "# line graphs: nothing to write\n");
    // A withdrawn number is not reused.
    assert_eq!(build.switch_to_operation().unwrap().version(), 5);
    assert!(matches!(
        BuildVersions::of::<Graphs>(day("2026-04-30")),
        Err(EvolutionError::DayGoesBack { .. })
    ));
    assert!(matches!(
        BuildVersions::of::<Graphs>(day("2025-12-31")),
        Err(EvolutionError::NoVersionYet { .. })
    ));
    let known = BuildVersions::new(41, 30, 30).unwrap().with_bad_consumers([40, 7]).unwrap();
    assert_eq!(known.producer().stamp().bad_consumers, [7, 40]);
    assert!(known.changes().is_empty());
    assert!(matches!(
        known.with_bad_consumers([41]),
        Err(EvolutionError::BansItself { version: 41 })
    ));
}

#[test]
fn producers_switch_after_the_forward_compatibility_window() {
    let addition = OperationAddition::new("Swish", day("2026-06-01"));
    for (on, allowed) in [("2026-06-01", false), ("2026-06-21", false), ("2026-06-22", true)] {
        assert_eq!(addition.may_emit(day(on)).is_ok(), allowed, "{on}");
        assert_eq!(graphs().switch_to(&addition, day(on)).is_ok(), allowed, "{on}");
    }
    let error = addition.may_emit(day("2026-06-21")).unwrap_err().to_string();
    for part in ["Swish", "2026-06-21", "2026-06-01", "21 days", "2026-06-22"] {
        assert!(error.contains(part), "{error}");
    }
    // Forward compatibility is optional; without it there is no waiting time.
    let at_once = addition.clone().with_window(0);
    assert_eq!(graphs().switch_to(&at_once, day("2026-06-01")).unwrap().version(), 5);
    assert!(matches!(
        graphs().on(day("2026-07-01")).unwrap().switch_to(&at_once, day("2026-06-30")),
        Err(EvolutionError::DayGoesBack { .. })
    ));
    assert!(addition.with_window(u32::MAX).may_emit(day("2026-12-01")).is_err());
}

#[test]
fn patch_release_keeps_data_readable_by_the_patch_before() {
    let patch = graphs().in_release(ReleaseKind::Patch);
    let addition = OperationAddition::new("Swish", day("2026-01-01"));
    let refused = [
        patch.clone().switch_to_operation().unwrap_err(),
        patch.clone().switch_to(&addition, day("2026-06-02")).unwrap_err(),
        patch.clone().ban_operation("TopK", "TopKV2").unwrap_err(),
        patch.clone().rule_out_consumers_before(3).unwrap_err(),
        patch.clone().ban_consumer(3).unwrap_err(),
        patch.clone().ban_consumer_of("TopK", 3).unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, EvolutionError::NotInAPatchRelease { .. }), "{error}");
        assert!(error.to_string().contains("next minor release"), "{error}");
    }
    assert_eq!(patch.clone().add_operation(), patch);
    // A build of an older minor release, to whose patches nothing is promised.
    let first = patch.ban_consumer(0).unwrap();
    assert_eq!(first.version(), 5);
    // The second patch belongs to the same release as the first one.
    let second = first.clone().in_release(ReleaseKind::Patch).ban_consumer(3);
    assert!(matches!(second, Err(EvolutionError::NotInAPatchRelease { .. })));
    assert!(first.in_release(ReleaseKind::Minor).ban_consumer(3).is_ok());
    let ban = OperationBan::new("TopK", 3, "TopKV2");
    for kind in [ReleaseKind::Patch, ReleaseKind::Minor] {
        let error = graphs().remove_operation(&ban, kind).unwrap_err();
        assert!(matches!(error, EvolutionError::NotAMajorRelease { .. }), "{kind}: {error}");
    }
    assert!(graphs().remove_operation(&ban, ReleaseKind::Major).is_ok());
}

#[test]
fn changes_of_the_steps_are_accepted_by_versions_toml() {
    let (build, ban) = graphs().ban_operation("Top \"K\"", "TopKV2").unwrap();
    let build = build.on(day("2026-07-01")).unwrap().ban_consumer(3).unwrap();
    let build = build.ban_consumer_of("TopKV2", 2).unwrap().ban_consumer_of("TopKV2", 0).unwrap();
    let build = build.remove_operation(&ban, ReleaseKind::Major).unwrap();
    let build = build.rule_out_consumers_before(5).unwrap();
    let changes = build.changes();
    assert_eq!(changes.min_producer, Some(5));
    let text = changes.to_string();
    let (keys, entries) = text.split_once("# line graphs: at its end\n").unwrap();
    // The file of the line, with the rows in the places that they name.
    let mut file = format!(
        "as_of = 2026-07-01\n[[line]]\nname = \"graphs\"\ntitle = \"graphs\"\nsummary = \"a\"\nminimum = 0\n{keys}"
    );
    for entry in Graphs::ENTRIES {
        file += &format!(
            "[[line.entry]]\nnumber = {}\nintroduced = {}\nsummary = \"a\"\nwithdrawn = {}\n",
            entry.number, entry.introduced, entry.withdrawn
        );
    }
    file += entries;
    let declarations = serdes_version_registry::parse("versions.toml", &file).unwrap();
    let line = &declarations.lines[0];
    let producer = build.producer();
    assert_eq!(line.current(declarations.as_of), Some(build.version()));
    assert_eq!((line.min_producer, &line.bad_consumers), (5, &producer.bad_consumers));
    assert_eq!(line.bad_consumers_with[0], ("TopK".to_owned(), vec![2]));
    assert_eq!(line.bad_consumers_with[1], ("TopKV2".to_owned(), vec![0, 2]));
    let numbers: Vec<_> =
        line.entries.iter().skip(5).map(|entry| (entry.number, entry.min_consumer)).collect();
    assert_eq!(numbers, [(5, 2), (6, 2), (7, 2), (8, 5)]);
    assert_eq!(
        line.entries[5].summary,
        "Top \"K\" is refused from here on; TopKV2 takes its place"
    );
    assert_eq!(line.entries[5].introduced, day("2026-06-01"));
}

#[test]
fn bound_that_moves_without_an_entry_goes_into_the_last_one() {
    let build = graphs().rule_out_consumers_before(3).unwrap();
    assert_eq!(build.changes().min_consumer, Some((3, 3)));
    let text = build.changes().to_string();
    assert_eq!(text, "# line graphs: in its entry 3\nmin_consumer = 3\n");
}

#[test]
fn a_line_that_counts_days_has_one_number_a_day() {
    let line = registry().line("graph_def").unwrap();
    let build = BuildVersions::of_record(line, day("2026-11-30")).unwrap();
    let switched = build.switch_to_operation().unwrap();
    assert_eq!(switched.version(), 2792);
    let again = switched.clone().switch_to_operation().unwrap_err();
    assert!(matches!(again, EvolutionError::NumberOfDayTaken { number: 2792, last: 2792, .. }));
    let next = switched.on(day("2026-12-01")).unwrap().switch_to_operation().unwrap();
    assert_eq!(next.version(), 2793);
    let days: Vec<_> = next.changes().entries.iter().map(|entry| entry.introduced).collect();
    assert_eq!(days, [Some(day("2026-11-30")), Some(day("2026-12-01"))]);
}
