//! Tests of the features of serdes that a crate with a line of its own can use.

use serdes::{
    codec::{DeserializeOptions, FromProto, SerDesRegistry, SerializeOptions, ToProto, testing},
    version::{
        AnyVersionAccessor, Consumer, Line as _, Version, VersionRange, Week4OldVersionAccessor,
        WeeksOldVersionAccessor, evolution::BuildVersions,
    },
};
use serdes_version_registry::lock::Package;
use trainer_snapshots::{REGISTRY, Snapshot, Snapshots};

/// Returns a snapshot with every field that the version has.
fn snapshot(number: i32) -> Snapshot {
    Snapshot {
        step: 1000,
        weights: "step-1000.sds".to_owned(),
        learning_rate: (number >= 2).then_some(0.5),
        seeds: if number >= 3 { vec![7, 8] } else { Vec::new() },
    }
}

fn version(number: i32) -> Version<Snapshots> {
    AnyVersionAccessor::get(number).unwrap()
}

#[test]
fn the_versions_are_those_of_our_own_registry() {
    assert_eq!(Version::<Snapshots>::current().number(), 3);
    // Version 3 is ten days old, and version 1 was withdrawn.
    assert_eq!(Week4OldVersionAccessor::<Snapshots>::get().number(), 2);
    assert_eq!(WeeksOldVersionAccessor::<Snapshots>::get(20).number(), 0);
    assert!(AnyVersionAccessor::<Snapshots>::get(1).unwrap_err().withdrawn);
    assert_eq!(REGISTRY.lines[0].title, "snapshot");
}

#[test]
fn peers_of_other_builds_agree_on_a_version() {
    let negotiate = |minimum, maximum| {
        let peer = VersionRange::<Snapshots>::new(minimum, maximum).unwrap();
        AnyVersionAccessor::negotiate(VersionRange::supported(), peer)
    };
    assert_eq!(negotiate(0, 9).unwrap(), Version::current());
    assert_eq!(negotiate(0, 1).unwrap().number(), 0);
    let error = negotiate(4, 6).unwrap_err().to_string();
    assert!(error.contains("0..3") && error.contains("4..6"), "{error}");
}

#[test]
fn golden_bytes_of_every_version_are_written_and_read() {
    let (root, options) = (env!("CARGO_MANIFEST_DIR"), DeserializeOptions::new());
    testing::golden::<Snapshots, _>(root, &options, |version| snapshot(version.number()))
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn feature_that_an_old_version_lacks_is_refused_by_name() {
    let error = snapshot(3).to_proto(version(2)).unwrap_err().to_string();
    assert!(error.contains("seeds") && error.contains('3'), "{error}");
    assert_eq!(snapshot(2).minimum_version().unwrap(), version(2));
}

#[test]
fn a_snapshot_of_a_later_build_is_too_new_and_not_corrupt() {
    let mut proto = snapshot(3).to_proto(version(3)).unwrap();
    proto.version_number = 4;
    let error = Snapshot::from_proto(&proto, &DeserializeOptions::new()).unwrap_err();
    assert_eq!(error.kind(), serdes::codec::ErrorKind::TooNew, "{error}");
    proto.version_number = 1;
    let error = Snapshot::from_proto(&proto, &DeserializeOptions::new()).unwrap_err();
    assert_eq!(error.kind(), serdes::codec::ErrorKind::Corrupt, "{error}");
}

#[test]
fn our_type_joins_a_registry_of_our_line() {
    let registry = SerDesRegistry::<Snapshots>::new();
    registry.register_message::<Snapshot, _>().unwrap();
    assert!(registry.register_message::<Snapshot, _>().is_err());
    let options = SerializeOptions::new(version(2));
    let serialized = registry.serialize(&snapshot(2), &options).unwrap();
    assert_eq!(serialized.type_name(), "trainer::Snapshot");
    let read: Snapshot = registry.deserialize(&serialized, &DeserializeOptions::new()).unwrap();
    assert_eq!(read, snapshot(2));
}

#[test]
fn data_carries_who_may_read_it() {
    let stamped = version(2).stamp();
    assert_eq!((stamped.producer, stamped.min_consumer), (3, 2));
    assert!(Snapshots::consumer().check(&stamped).is_ok());
    let old = Consumer::new("snapshots", "snapshot", 0, 0);
    assert_eq!(old.check(&stamped).unwrap_err().rule.id(), "min_consumer");
}

#[test]
fn a_selection_for_older_builds_tells_its_age() {
    let on =
        |day: &str| Week4OldVersionAccessor::<Snapshots>::select_on(day.parse().unwrap()).unwrap();
    assert!(!on("2026-11-20").is_younger_than_asked());
    // In the first month of this line there was no older version.
    let young = on("2026-02-20");
    assert_eq!((young.version().number(), young.age_days()), (0, 18));
    assert!(young.is_younger_than_asked());
    // Data in version 3 is only for newer builds, until the version is as old as the window.
    assert_eq!(version(3).writable_from().unwrap().to_string(), "2026-12-08");
}

#[test]
fn the_recipes_start_from_our_line_and_end_in_our_file() {
    let build = BuildVersions::of::<Snapshots>("2026-12-01".parse().unwrap()).unwrap();
    // Loaders of version 2 crash on snapshots with seeds, and on no others.
    let mended = build.ban_consumer_of("seeds", 2).unwrap();
    let producer = mended.producer();
    assert_eq!(producer.stamp_with(["seeds"]).bad_consumers, [2]);
    assert!(producer.stamp_with([]).bad_consumers.is_empty());
    assert_eq!(
        mended.changes().to_string(),
        "# line snapshots: in its [[line]] table\nbad_consumers_with = { \"seeds\" = [2] }\n\
         # line snapshots: at its end\n[[line.entry]]\nnumber = 4\nintroduced = 2026-12-01\n\
         summary = \"consumer 2 is banned for data with seeds\"\nmin_consumer = 2\n"
    );
}

#[test]
fn our_formats_are_frozen() {
    let package = Package::of_registry(env!("CARGO_MANIFEST_DIR"), &REGISTRY);
    package.check().unwrap_or_else(|error| panic!("{error}"));
}
