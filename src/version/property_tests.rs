//! Tests properties of selection, negotiation, the VersionDef rule and the recipes of evolution.

use proptest::{collection::vec, prelude::*};

use super::{
    evolution::{BuildVersions, OperationBan, ReleaseKind},
    proxy::Ranges,
    tests::{Holed, Quarterly},
    *,
};

/// Returns the numbers of a line that its build writes, as a list: the model for all selections.
fn usable<L: Line>() -> Vec<i32> {
    let entries = L::ENTRIES.iter().filter(|entry| {
        !entry.withdrawn && entry.number >= L::MINIMUM && entry.introduced <= L::AS_OF
    });
    entries.map(|entry| entry.number).collect()
}

fn range<L: Line>((one, other): (i32, i32)) -> VersionRange<L> {
    VersionRange::new(one.min(other), one.max(other)).unwrap()
}

/// Generates ends of ranges around the numbers of the lines, and sometimes far away.
fn ends() -> impl Strategy<Value = (i32, i32)> {
    let end = || prop_oneof![8 => -3..30, 1 => any::<i32>()];
    (end(), end())
}

fn negotiation_holds<L: Line>(ours: (i32, i32), theirs: (i32, i32)) -> Result<(), TestCaseError> {
    let (ours, theirs) = (range::<L>(ours), range::<L>(theirs));
    let both = |number: &i32| ours.contains(*number) && theirs.contains(*number);
    let expected = usable::<L>().into_iter().filter(both).max();
    let (found, reverse) =
        (AnyVersionAccessor::negotiate(ours, theirs), AnyVersionAccessor::negotiate(theirs, ours));
    match (found, reverse) {
        (Ok(version), Ok(reverse)) => {
            prop_assert_eq!(Some(version.number()), expected);
            prop_assert_eq!(version, reverse);
            prop_assert_eq!(AnyVersionAccessor::get(version.number()), Ok(version));
        }
        (Err(error), Err(reverse)) => {
            prop_assert_eq!(expected, None);
            prop_assert_eq!(error.line(), L::NAME);
            prop_assert_eq!((error.ours(), error.theirs()), (ours.into(), theirs.into()));
            prop_assert_eq!((error.ours(), error.theirs()), (reverse.theirs(), reverse.ours()));
            let is_ours = ours.maximum() <= theirs.maximum();
            prop_assert_eq!(error.upgrade() == Side::Ours, is_ours);
            let is_same = ours.maximum() == theirs.maximum();
            prop_assert_eq!(error.upgrade() == reverse.upgrade(), is_same);
        }
        (found, reverse) => prop_assert!(false, "{found:?}, reversed {reverse:?}"),
    }
    Ok(())
}

/// Asserts that a wider range of a peer never loses a version or gives an older one.
fn wider_range_holds<L: Line>(theirs: (i32, i32), more: (i32, i32)) -> Result<(), TestCaseError> {
    let (ours, theirs) = (VersionRange::<L>::supported(), range::<L>(theirs));
    let wider = VersionRange::new(
        theirs.minimum().saturating_sub(more.0),
        theirs.maximum().saturating_add(more.1),
    );
    let of = |theirs| AnyVersionAccessor::negotiate(ours, theirs).ok();
    prop_assert!(of(theirs) <= of(wider.unwrap()));
    Ok(())
}

fn accessors_hold<L: Line>(day: Date, later: i64, weeks: (u32, u32)) -> Result<(), TestCaseError> {
    let first = L::ENTRIES.iter().find(|entry| !entry.withdrawn && entry.number >= L::MINIMUM);
    let first = first.unwrap().introduced;
    let after = day.plus_days(later).unwrap();
    let current = DefaultVersionAccessor::<L>::get_on(day);
    prop_assert_eq!(current.is_ok(), day >= first);
    let old = Week4OldVersionAccessor::<L>::get_on(day);
    let older = |weeks| WeeksOldVersionAccessor::<L>::get_on(weeks, day);
    let (Ok(current), Ok(old)) = (current, old.clone()) else {
        prop_assert!(old.is_err() && older(weeks.0).is_err());
        return Ok(());
    };
    prop_assert!(L::MINIMUM <= old.number() && old <= current);
    prop_assert!(usable::<L>().contains(&old.number()));
    // Neither decreases over time, and more weeks never give a newer version.
    prop_assert!(current <= DefaultVersionAccessor::get_on(after).unwrap());
    prop_assert!(old <= Week4OldVersionAccessor::get_on(after).unwrap());
    let more = weeks.0.saturating_add(weeks.1);
    prop_assert!(older(more).unwrap() <= older(weeks.0).unwrap());
    prop_assert_eq!(older(0).unwrap(), current);
    let selected = Week4OldVersionAccessor::<L>::select_on(day).unwrap();
    prop_assert_eq!(selected.version(), old);
    prop_assert_eq!(selected.introduced(), old.introduced());
    prop_assert_eq!(selected.age_days(), day.days_since(old.introduced()));
    if selected.is_younger_than_asked() {
        let oldest = usable::<L>().first().copied();
        prop_assert_eq!(oldest, Some(old.number()));
    } else {
        prop_assert!(old.writable_from().unwrap() <= day);
    }
    Ok(())
}

fn version_def() -> impl Strategy<Value = VersionDef> {
    let number = || prop_oneof![4 => -2..12, 1 => any::<i32>()];
    (number(), number(), vec(number(), 0..5)).prop_map(|(producer, min_consumer, bad_consumers)| {
        VersionDef { producer, min_consumer, bad_consumers }
    })
}

fn consumer() -> impl Strategy<Value = Consumer> {
    (-2..12, -2..12)
        .prop_map(|(version, min_producer)| Consumer::new("x", "x", version, min_producer))
}

/// Evaluates the three conditions of TensorFlow's data versioning, and the consumer's own, as one
/// expression.
fn is_accepted(consumer: &Consumer, data: &VersionDef) -> bool {
    consumer.version >= consumer.min_producer
        && data.producer >= consumer.min_producer
        && consumer.version >= data.min_consumer
        && !data.bad_consumers.contains(&consumer.version)
}

/// Performs a step of the recipes; a refused one changes nothing.
fn step(build: &BuildVersions, step: u8, number: i32, kind: ReleaseKind) -> Option<BuildVersions> {
    let build = build.clone();
    match step {
        0 => build.switch_to_operation().ok(),
        1 => build.ban_operation("Old", "New").ok().map(|(build, _)| build),
        2 => build.remove_operation(&OperationBan::new("Old", number, "New"), kind).ok(),
        3 => build.rule_out_consumers_before(number).ok(),
        4 => build.ban_consumer(number).ok(),
        _ => build.ban_consumer_of("Old", number).ok(),
    }
}

fn kind() -> impl Strategy<Value = ReleaseKind> {
    prop_oneof![Just(ReleaseKind::Patch), Just(ReleaseKind::Minor), Just(ReleaseKind::Major)]
}

proptest! {
    #[test]
    fn negotiated_version_is_the_highest_in_both_ranges(ours in ends(), theirs in ends()) {
        negotiation_holds::<Ifrt>(ours, theirs)?;
        negotiation_holds::<ProxyProtocol>(ours, theirs)?;
        negotiation_holds::<Holed>(ours, theirs)?;
        negotiation_holds::<Quarterly>(ours, theirs)?;
    }

    #[test]
    fn negotiation_gains_by_a_wider_range(theirs in ends(), more in (0i32..9, 0i32..9)) {
        wider_range_holds::<Ifrt>(theirs, more)?;
        wider_range_holds::<ProxyProtocol>(theirs, more)?;
        wider_range_holds::<Holed>(theirs, more)?;
    }

    #[test]
    fn negotiation_of_two_lines_is_that_of_each(
        ours in (ends(), ends()), theirs in (ends(), ends()),
    ) {
        let pair = |(protocol, serdes)| Ranges::new(range(protocol), range(serdes));
        let (ours, theirs) = (pair(ours), pair(theirs));
        let protocol = AnyVersionAccessor::negotiate(ours.protocol(), theirs.protocol());
        let serdes = AnyVersionAccessor::negotiate(ours.serdes(), theirs.serdes());
        match (ours.negotiate(theirs), protocol, serdes) {
            (Ok(both), Ok(protocol), Ok(serdes)) => {
                prop_assert_eq!((both.protocol(), both.serdes()), (protocol, serdes));
                prop_assert_eq!(theirs.negotiate(ours), Ok(both));
            }
            (Err(found), Err(expected), _) | (Err(found), Ok(_), Err(expected)) => {
                prop_assert_eq!(found, expected);
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn accessors_go_forward_with_the_day(
        day in 0i64..900, later in 0i64..200, weeks in (0u32..40, 0u32..40),
    ) {
        let day = Date::from_ymd(2025, 1, 1).unwrap().plus_days(day).unwrap();
        accessors_hold::<Ifrt>(day, later, weeks)?;
        accessors_hold::<ProxyProtocol>(day, later, weeks)?;
        accessors_hold::<Holed>(day, later, weeks)?;
        accessors_hold::<Quarterly>(day, later, weeks)?;
    }

    #[test]
    fn accessor_for_any_number_gives_what_the_line_has(number in -3i32..40) {
        let found = AnyVersionAccessor::<Holed>::get(number).map(Version::number);
        prop_assert_eq!(found.is_ok(), usable::<Holed>().contains(&number));
        prop_assert_eq!(found.unwrap_or(number), number);
        prop_assert_eq!(
            SerDesAnyVersionAccessor::get(number).is_ok(),
            usable::<Ifrt>().contains(&number)
        );
    }

    #[test]
    fn version_def_is_taken_as_its_three_conditions_say(
        consumer in consumer(), data in version_def(),
    ) {
        let verdict = consumer.check(&data);
        prop_assert_eq!(verdict.is_ok(), is_accepted(&consumer, &data));
        if let Err(rejection) = verdict {
            let holds = match rejection.rule {
                VersionRule::ConsumerBelowMinProducer => consumer.version < consumer.min_producer,
                VersionRule::ProducerTooOld => data.producer < consumer.min_producer,
                VersionRule::MinConsumer => consumer.version < data.min_consumer,
                VersionRule::BadConsumer => data.bad_consumers.contains(&consumer.version),
            };
            prop_assert!(holds, "{rejection:?}");
        }
    }

    #[test]
    fn merged_version_def_is_taken_by_who_takes_both(
        consumer in consumer(), one in version_def(), other in version_def(), third in version_def(),
    ) {
        let merge = |one: &VersionDef, other: &VersionDef| {
            let mut merged = one.clone();
            merged.merge(other);
            merged
        };
        let merged = merge(&one, &other);
        prop_assert_eq!(
            consumer.check(&merged).is_ok(),
            consumer.check(&one).is_ok() && consumer.check(&other).is_ok()
        );
        prop_assert_eq!(&merged, &merge(&other, &one));
        prop_assert_eq!(merge(&merged, &third), merge(&one, &merge(&other, &third)));
        prop_assert_eq!(merge(&merged, &merged), merged);
    }

    #[test]
    fn stamp_bans_no_more_for_known_contents(
        version in 0i32..9, bad in vec(0i32..9, 0..4), with in vec((0u8..3, 0i32..9), 0..4),
        contents in vec(0u8..3, 0..4), consumer in consumer(),
    ) {
        let name = |content: &u8| ["A", "B", "C"][usize::from(*content)];
        let mut producer = Producer::new(version, 0).with_bad_consumers(bad.iter().copied());
        for (content, consumer) in &with {
            producer = producer.with_bad_consumers_of(name(content), [*consumer]);
        }
        let known = producer.stamp_with(contents.iter().map(name));
        let is_banned = bad.contains(&consumer.version)
            || with.iter().any(|(of, bad)| contents.contains(of) && *bad == consumer.version);
        prop_assert_eq!(known.bad_consumers.contains(&consumer.version), is_banned);
        if consumer.check(&producer.stamp()).is_ok() {
            prop_assert!(consumer.check(&known).is_ok());
        }
    }

    #[test]
    fn evolution_keeps_the_promises_of_its_release(
        version in 4i32..40, bounds in (0i32..40, 0i32..40), kind in kind(),
        steps in vec((0u8..6, 0i32..45), 1..8),
    ) {
        let (min_consumer, min_producer) = (bounds.0.min(version), bounds.1.min(version));
        let start = BuildVersions::new(version, min_consumer, min_producer).unwrap();
        let mut build = start.clone().in_release(kind);
        for (name, number) in steps {
            let Some(next) = step(&build, name, number, kind) else { continue };
            prop_assert!(next.version() >= build.version());
            build = next;
        }
        let reads = |reader: &BuildVersions, writer: &BuildVersions| {
            reader.consumer("x").check(&writer.producer().stamp()).is_ok()
        };
        prop_assert!(reads(&build, &build), "a build refuses what it writes: {build:?}");
        if kind < ReleaseKind::Major {
            prop_assert!(reads(&build, &start), "{build:?}");
        }
        if kind == ReleaseKind::Patch {
            prop_assert!(reads(&start, &build), "{build:?}");
        }
    }
}
