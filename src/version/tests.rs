use super::*;

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

#[test]
fn four_weeks_old_is_computed_from_the_days() {
    // as_of, current, four weeks old.
    let table = [
        ("2026-03-18", 1, 0),
        ("2026-03-19", 2, 1),
        ("2026-04-15", 2, 1),
        ("2026-04-16", 2, 2),
        ("2026-06-14", 3, 2),
        ("2026-06-15", 3, 3),
        ("2026-06-17", 3, 3),
        ("2026-08-12", 4, 3),
        ("2026-08-13", 4, 4),
        ("2026-10-15", 6, 6),
        ("2026-11-20", 6, 6),
    ];
    for (as_of, current, week_4_old) in table {
        let as_of = day(as_of);
        let line = registry().line("ifrt_serdes").unwrap();
        assert_eq!(line.current(as_of), Some(current), "{as_of}");
        assert_eq!(line.week_4_old(as_of), Some(week_4_old), "{as_of}");
        let got = DefaultVersionAccessor::<Ifrt>::get_on(as_of).unwrap();
        assert_eq!(got.number(), current, "{as_of}");
        let got = SerDesWeek4OldVersionAccessor::get_on(as_of).unwrap();
        assert_eq!(got.number(), week_4_old, "{as_of}");
        assert_eq!(SerDesWeeksOldVersionAccessor::get_on(4, as_of).unwrap(), got);
        for status in line.on(as_of) {
            assert_eq!(status.current, status.number == current, "{as_of}");
            assert_eq!(status.week_4_old, status.number == week_4_old, "{as_of}");
            assert_eq!(status.minimum, status.number == 0, "{as_of}");
        }
    }
}

#[test]
fn the_selection_of_this_build_is_that_of_its_own_day() {
    let as_of = <Ifrt as Line>::AS_OF;
    assert_eq!(registry().as_of, as_of);
    assert_eq!(
        SerDesWeek4OldVersionAccessor::get(),
        SerDesWeek4OldVersionAccessor::get_on(as_of).unwrap()
    );
    assert_eq!(SerDesVersion::current(), DefaultVersionAccessor::<Ifrt>::get_on(as_of).unwrap());
    assert_eq!(SerDesWeeksOldVersionAccessor::get(u32::MAX), SerDesAnyVersionAccessor::minimum());
}

#[test]
fn a_line_without_entry_on_a_day_has_no_flags_and_no_version() {
    let before = day("2026-11-19");
    let line = registry().line("device_state").unwrap();
    for status in line.on(before) {
        assert!(!status.current && !status.week_4_old && !status.minimum, "{status:?}");
        assert_eq!(status.age_days, -1);
    }
    let error = Week4OldVersionAccessor::<DeviceState>::get_on(before).unwrap_err();
    assert_eq!(error.first, day("2026-11-20"));
    assert_eq!(
        error.to_string(),
        "device_state has no version yet on 2026-11-19; ask for 2026-11-20 or later"
    );
}

#[test]
fn a_selection_that_is_younger_than_its_name_says_so() {
    let on = |text| Week4OldVersionAccessor::<DeviceState>::select_on(day(text)).unwrap();
    let young = on("2026-12-17");
    assert_eq!((young.version().number(), young.age_days(), young.asked_days()), (0, 27, 28));
    assert!(young.is_younger_than_asked());
    let text = young.to_string();
    for part in ["device state version 0", "27 days old", "not 28", "before 2026-11-20"] {
        assert!(text.contains(part), "{text}");
    }
    let old = on("2026-12-18");
    assert!(!old.is_younger_than_asked());
    assert_eq!(old.to_string(), "device state version 0 is 28 days old on 2026-12-18");
    assert!(on("2026-11-21").to_string().contains("is 1 day old"));
    // A young line is still written, because a build must write something.
    assert_eq!(Week4OldVersionAccessor::<DeviceState>::get(), young.version());
    let selection = Week4OldVersionAccessor::<DeviceState>::select().unwrap();
    assert_eq!(selection.version(), Week4OldVersionAccessor::<DeviceState>::get());
    // The same holds for a line whose older versions are no longer written.
    let years = SerDesWeeksOldVersionAccessor::select_on(1000, day("2026-11-20")).unwrap();
    assert!(
        years.is_younger_than_asked() && years.version() == SerDesAnyVersionAccessor::minimum()
    );
    let status = |text| registry().line("device_state").unwrap().on(day(text))[0];
    assert!(status("2026-12-17").week_4_old && status("2026-12-17").younger_than_window);
    assert!(status("2026-12-18").week_4_old && !status("2026-12-18").younger_than_window);
    assert!(!status("2026-11-19").younger_than_window);
}

/// A line with a window of three months.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Quarterly;

impl Line for Quarterly {
    const NAME: &'static str = "quarterly";
    const TITLE: &'static str = "quarterly";
    const MINIMUM: i32 = 0;
    const AS_OF: Date = Date::from_ymd(2026, 6, 1).unwrap();
    const WINDOW_DAYS: i64 = 90;
    const BAD_CONSUMERS: &'static [i32] = &[1];
    const BAD_CONSUMERS_WITH: &'static [(&'static str, &'static [i32])] = &[("TopK", &[0, 1])];
    const ENTRIES: &'static [Entry] = &[
        Entry::new(0, Date::from_ymd(2026, 1, 1).unwrap()),
        Entry::new(1, Date::from_ymd(2026, 3, 4).unwrap()),
        Entry::new(2, Date::from_ymd(2026, 5, 1).unwrap()).for_consumers_from(1),
    ];
}

#[test]
fn the_window_of_a_line_is_what_is_selected_for_older_builds() {
    // Number 1 is 89 days old, and one day later 90.
    assert_eq!(Week4OldVersionAccessor::<Quarterly>::get().number(), 0);
    let later = Week4OldVersionAccessor::<Quarterly>::select_on(day("2026-06-02")).unwrap();
    assert_eq!((later.version().number(), later.age_days(), later.asked_days()), (1, 90, 90));
    // If weeks are requested, the window does not count.
    assert_eq!(WeeksOldVersionAccessor::<Quarterly>::get(4).number(), 2);
    let record = LineRecord::new("quarterly", "quarterly", Quarterly::ENTRIES).with_window(90);
    assert_eq!(record.week_4_old(day("2026-06-01")), Some(0));
    assert!(record.on(day("2026-06-02"))[1].week_4_old);
}

#[test]
fn conditional_bad_consumers_are_listed_if_content_may_occur() {
    let version = AnyVersionAccessor::<Quarterly>::get(2).unwrap();
    let bad = |contents: &[&str]| version.stamp_with(contents.iter().copied()).bad_consumers;
    assert_eq!(bad(&["MatMul"]), [1]);
    assert_eq!(bad(&["MatMul", "TopK", "TopK"]), [0, 1]);
    assert_eq!(version.stamp().bad_consumers, [0, 1]);
    let stamped = version.stamp_with([]);
    assert_eq!((stamped.producer, stamped.min_consumer), (2, 1));
    assert_eq!(stamped.to_string(), "producer 2, min_consumer 1, bad_consumers [1]");
}

#[test]
fn versions_of_a_line_are_ordered() {
    let version = |number| SerDesAnyVersionAccessor::get(number).unwrap();
    assert!(version(2) < version(3) && version(3) >= version(3));
    assert_eq!(SerDesVersion::current().max(version(0)), SerDesVersion::current());
}

fn range(minimum: i32, maximum: i32) -> VersionRange {
    VersionRange::new(minimum, maximum).unwrap()
}

#[test]
fn negotiation_takes_the_highest_common_version() {
    let compatible =
        [((1, 1), (1, 1), 1), ((1, 2), (2, 2), 2), ((2, 2), (1, 2), 2), ((1, 3), (3, 4), 3)];
    // The lowest number of the other line is 16.
    let protocol = |range: (i32, i32)| VersionRange::new(range.0 + 15, range.1 + 15).unwrap();
    for (ours, theirs, expected) in compatible {
        let got =
            SerDesAnyVersionAccessor::negotiate(range(ours.0, ours.1), range(theirs.0, theirs.1));
        assert_eq!(got.unwrap().number(), expected, "{ours:?} {theirs:?}");
        let got = AnyVersionAccessor::<ProxyProtocol>::negotiate(protocol(ours), protocol(theirs));
        assert_eq!(got.unwrap().number(), expected + 15, "{ours:?} {theirs:?}");
    }
    let with_a_later_peer =
        SerDesAnyVersionAccessor::negotiate(VersionRange::supported(), range(2, 99));
    assert_eq!(with_a_later_peer.unwrap(), SerDesVersion::current());
}

#[test]
fn a_failed_negotiation_names_both_ranges_and_the_old_side() {
    let incompatible = [
        ((1, 2), (3, 3), Side::Ours),
        ((1, 3), (4, 6), Side::Ours),
        ((1, 1), (2, 2), Side::Ours),
        ((3, 3), (1, 2), Side::Theirs),
        ((0, 6), (-3, -1), Side::Theirs),
    ];
    for (ours, theirs, upgrade) in incompatible {
        let error =
            SerDesAnyVersionAccessor::negotiate(range(ours.0, ours.1), range(theirs.0, theirs.1))
                .unwrap_err();
        assert_eq!(error.upgrade(), upgrade, "{ours:?} {theirs:?}");
        let protocol = AnyVersionAccessor::<ProxyProtocol>::negotiate(
            VersionRange::new(ours.0 + 15, ours.1 + 15).unwrap(),
            VersionRange::new(theirs.0 + 15, theirs.1 + 15).unwrap(),
        );
        assert_eq!(protocol.unwrap_err().upgrade(), upgrade, "{ours:?} {theirs:?}");
        for range in [ours, theirs] {
            let text = format!("{}..{}", range.0, range.1);
            assert!(error.to_string().contains(&text), "{error}");
        }
    }
    // The case of users with an old client image.
    let error = AnyVersionAccessor::<ProxyProtocol>::negotiate(
        VersionRange::supported(),
        VersionRange::new(1, 1).unwrap(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("upgrade the peer"), "{error}");
}

#[test]
fn any_version_accessor_refuses_unknown_numbers() {
    for number in 0..=6 {
        assert_eq!(SerDesAnyVersionAccessor::get(number).unwrap().number(), number);
    }
    for number in [-1, 7, i32::MIN, i32::MAX] {
        let error = SerDesAnyVersionAccessor::get(number).unwrap_err();
        assert!(error.to_string().contains("0..6"), "{error}");
        assert!(!error.withdrawn);
    }
}

/// A line with a missing number (2), a withdrawn current number (4) and a withdrawn number inside
/// (1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holed;

impl Line for Holed {
    const NAME: &'static str = "holed";
    const TITLE: &'static str = "holed";
    const MINIMUM: i32 = 0;
    const AS_OF: Date = Date::from_ymd(2026, 6, 1).unwrap();
    const ENTRIES: &'static [Entry] = &[
        Entry::new(0, Date::from_ymd(2026, 1, 1).unwrap()),
        Entry::new(1, Date::from_ymd(2026, 2, 1).unwrap()).withdrawn(),
        Entry::new(3, Date::from_ymd(2026, 3, 1).unwrap()),
        Entry::new(4, Date::from_ymd(2026, 4, 1).unwrap()).withdrawn(),
    ];
}

#[test]
fn withdrawn_numbers_and_holes_are_never_selected() {
    assert_eq!(Version::<Holed>::current().number(), 3);
    assert_eq!(VersionRange::<Holed>::supported().maximum(), 3);
    assert_eq!(Week4OldVersionAccessor::<Holed>::get().number(), 3);
    let on = |day| Week4OldVersionAccessor::<Holed>::get_on(day).unwrap().number();
    assert_eq!(on(day("2026-03-28")), 0);
    let refused = |number| AnyVersionAccessor::<Holed>::get(number).unwrap_err();
    assert!(refused(1).withdrawn && refused(4).withdrawn && !refused(2).withdrawn);
    assert!(refused(4).to_string().contains("withdrawn"));
    let negotiate = |minimum, maximum| {
        let theirs = VersionRange::new(minimum, maximum).unwrap();
        let ours = VersionRange::new(0, 4).unwrap();
        AnyVersionAccessor::<Holed>::negotiate(ours, theirs).map(Version::number)
    };
    assert_eq!(negotiate(0, 9), Ok(3));
    assert_eq!(negotiate(0, 2), Ok(0));
    let error = negotiate(1, 2).unwrap_err();
    assert_eq!(error.upgrade(), Side::Theirs);
}

#[test]
fn default_is_the_current_version_without_the_testing_switch() {
    let default = std::panic::catch_unwind(SerDesDefaultVersionAccessor::get);
    if is_default_refused() {
        let said = default.unwrap_err();
        assert!(said.downcast::<String>().unwrap().contains("IFRT SerDes"));
    } else {
        assert_eq!(default.unwrap(), SerDesVersion::current());
    }
}

#[test]
fn versions_name_their_line() {
    assert_eq!(Version::<Ifrt>::current().to_string(), "IFRT SerDes version 6");
}

#[test]
fn every_line_of_the_design_is_listed() {
    let names: Vec<_> = registry().lines.iter().map(|line| line.name).collect();
    assert_eq!(
        names,
        [
            "ifrt_serdes",
            "device_state",
            "proxy_protocol",
            "graph_def",
            "checkpoint",
            "tensor_bundle"
        ]
    );
    let protocol: Vec<_> =
        ProxyProtocol::ENTRIES.iter().map(|entry| (entry.number, entry.date_source)).collect();
    assert_eq!(
        protocol.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
        (16..=25).collect::<Vec<_>>()
    );
    assert!(protocol.iter().all(|(_, source)| source.is_some_and(|text| text.contains("jaxlib"))));
}

#[test]
fn layouts_are_named_and_carry_their_sizes() {
    let family = registry().layout_family("stream_executor").unwrap();
    assert_eq!(family.version, "0.0.1");
    let sizes = |layout: &NamedLayout| {
        ["SP_Platform", "SP_PlatformFns", "SP_StreamExecutor"]
            .map(|name| layout.struct_size(name).unwrap())
    };
    let table: Vec<_> = family.layouts.iter().map(|layout| (layout.name, sizes(layout))).collect();
    assert_eq!(
        table,
        [
            ("rfc-257", [40, 64, 264]),
            ("tensorflow-2.4", [41, 80, 264]),
            ("tensorflow-2.5", [34, 88, 264]),
            ("tensorflow-2.8", [34, 88, 288]),
            ("tensorflow-2.14", [35, 88, 288]),
        ]
    );
}

mod releases {
    use super::*;

    #[test]
    fn a_release_has_its_numbers_in_every_line() {
        for (version, number) in
            [("1.15.0", 134), ("2.12.0", 1395), ("2.16.2", 1766), ("2.21.0", 2474)]
        {
            let release = tensorflow::release(version).unwrap();
            assert_eq!(release.number("graph_def"), Some(number));
            assert_eq!(release.number("checkpoint"), Some(1));
            assert_eq!(release.number("tensor_bundle"), Some(1));
            for &line in tensorflow::LINES {
                let consumer = tensorflow::consumer(release, line).unwrap();
                assert_eq!(Some(consumer.version), release.number(line));
                let producer = tensorflow::producer(release, line).unwrap();
                assert_eq!(
                    (Some(producer.version), producer.min_consumer),
                    (release.number(line), 0)
                );
                assert!(consumer.check(&producer.stamp()).is_ok());
            }
        }
        assert!(
            tensorflow::producer(tensorflow::releases().first().unwrap(), "device_state").is_none()
        );
        assert_eq!(tensorflow::newest_release().unwrap().version, "2.21.0");
        assert_eq!(tensorflow::releases().len(), 15);
    }

    #[test]
    fn unlisted_patch_release_takes_the_numbers_of_its_minor() {
        for (asked, got) in
            [("2.16.1", "2.16.2"), ("2.16.9", "2.16.2"), ("2.1", "2.1.4"), ("2.10", "2.10.1")]
        {
            assert_eq!(tensorflow::release(asked).unwrap().version, got);
        }
    }

    #[test]
    fn an_unknown_release_lists_the_known_ones() {
        for asked in [
            "2.11.0", "3.0.0", "2", "", "2.", "2.16.", "2.16.2.1", "v2.16.2", "+2.16", "latest",
            "2.16.2\n",
        ] {
            let message = tensorflow::release(asked).unwrap_err().to_string();
            assert!(message.contains("1.15.0") && message.contains("2.21.0"), "{message}");
        }
        assert!(tensorflow::release(&"9".repeat(1 << 20)).unwrap_err().to_string().len() < 1000);
    }

    #[test]
    fn a_graph_def_number_stands_for_a_day_and_a_release() {
        for release in tensorflow::releases() {
            let number = tensorflow::graph_def(release.number("graph_def").unwrap());
            assert_eq!(number.date, Some(release.date));
            assert_eq!(number.release, Some(release));
        }
        assert_eq!(tensorflow::graph_def(29).date, Some(day("2019-03-25")));
        assert_eq!(tensorflow::graph_def(30).date, Some(day("2019-05-09")));
        assert_eq!(tensorflow::graph_def(2475).first_release_with, None);
        for number in [-1, i32::MIN, i32::MAX] {
            assert_eq!(tensorflow::graph_def(number).date, None);
        }
    }
}

mod version_rule {
    use super::*;

    fn verdict(
        consumer: (i32, i32),
        producer: i32,
        min_consumer: i32,
        bad: &[i32],
    ) -> &'static str {
        let versions = VersionDef { producer, min_consumer, bad_consumers: bad.to_vec() };
        match super::consumer("graph_def", consumer.0, consumer.1).check(&versions) {
            Ok(()) => "ok",
            Err(rejection) => rejection.rule.id(),
        }
    }

    #[test]
    fn the_three_conditions_are_tried_in_order() {
        assert_eq!(verdict((2474, 0), -1, 2475, &[2474]), "producer_too_old");
        assert_eq!(verdict((2474, 0), 0, 2475, &[2474]), "min_consumer");
        assert_eq!(verdict((2474, 0), 0, 2474, &[1, 2474, 3]), "bad_consumer");
        assert_eq!(verdict((2474, 0), 0, 2474, &[1, 2475]), "ok");
    }

    #[test]
    fn nothing_else_is_looked_at() {
        assert_eq!(verdict((2474, 0), 9999, 0, &[]), "ok");
        assert_eq!(verdict((2474, 0), i32::MAX, 0, &[]), "ok");
        assert_eq!(verdict((2474, 0), 5, 100, &[]), "ok"); // min_consumer above the producer
        assert_eq!(verdict((2474, 0), 0, i32::MIN, &[-1, i32::MIN]), "ok");
        assert_eq!(verdict((2474, 0), i32::MIN, 0, &[]), "producer_too_old");
        assert_eq!(verdict((2474, 0), 0, i32::MAX, &[]), "min_consumer");
    }

    #[test]
    fn a_consumer_that_contradicts_itself_is_the_callers_fault() {
        let rejection = consumer("graph_def", 5, 6).check(&VersionDef::default()).unwrap_err();
        assert_eq!(
            (rejection.rule.id(), rejection.rule.status()),
            ("invalid_consumer", "INTERNAL")
        );
        assert_eq!(verdict((5, 5), 5, 0, &[]), "ok");
    }

    #[test]
    fn a_rejection_says_what_was_found_and_expected_and_what_to_do() {
        let release = tensorflow::release("2.21.0").unwrap();
        let consumer = tensorflow::consumer(release, "graph_def").unwrap();
        let of = |producer, min_consumer, bad_consumers| {
            consumer.check(&VersionDef { producer, min_consumer, bad_consumers }).unwrap_err()
        };
        let rejection = of(-1, 0, vec![]);
        assert_eq!((rejection.found(), rejection.expected()), ("-1".into(), ">= 0".into()));
        let rejection = of(2475, 2475, vec![]);
        assert_eq!((rejection.found(), rejection.expected()), ("2475".into(), "<= 2474".into()));
        let message = rejection.to_string();
        for part in ["graph", "2475", "2474", "TensorFlow 2.21.0", "upgrade"] {
            assert!(message.contains(part), "{message}");
        }
        let message = of(0, 0, vec![2474]).to_string();
        assert!(message.contains("2474") && message.contains("upgrade"), "{message}");
        let bundle = super::consumer("tensor_bundle", 1, 0);
        let versions = VersionDef { producer: 1, min_consumer: 2, bad_consumers: vec![] };
        assert!(bundle.check(&versions).unwrap_err().to_string().contains("checkpoint"));
    }

    #[test]
    fn merging_is_what_an_import_does() {
        let mut graph = VersionDef { producer: 2474, min_consumer: -5, bad_consumers: vec![9, 3] };
        graph.merge(&VersionDef { producer: 100, min_consumer: -9, bad_consumers: vec![3, -1, 3] });
        let expected =
            VersionDef { producer: 100, min_consumer: -5, bad_consumers: vec![-1, 3, 9] };
        assert_eq!(graph, expected);
        graph.merge(&VersionDef::default());
        assert_eq!((graph.producer, graph.min_consumer), (0, 0));
    }

    #[test]
    fn data_of_a_line_is_stamped_with_the_build_and_read_by_it() {
        let stamped = AnyVersionAccessor::<DeviceState>::minimum().stamp();
        assert_eq!(stamped.producer, Version::<DeviceState>::current().number());
        assert!(DeviceState::consumer().check(&stamped).is_ok());
    }
}
