//! Writes a value of this crate's own format for a reader of an older build, and reads it back.
//!
//!     cargo run --manifest-path examples/downstream/Cargo.toml --example own_format
//!
//! The line of versions is in `versions.toml`, the type in `src/snapshot.rs`.

use serdes::{
    codec::{DeserializeOptions, FromProto, ToProto},
    version::{AnyVersionAccessor, Version, VersionRange, Week4OldVersionAccessor},
};
use trainer_snapshots::{Snapshot, Snapshots};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut snapshot = Snapshot {
        step: 1000,
        weights: "step-1000.sds".to_owned(),
        learning_rate: Some(0.5),
        seeds: vec![7, 8],
    };

    // Each write names the version for its readers: here, builds up to four weeks old.
    let week_4_old = Week4OldVersionAccessor::<Snapshots>::get();
    println!("this build writes {}, one that is four weeks old reads {week_4_old}", {
        Version::<Snapshots>::current()
    });

    // A field that this version lacks is an error that names the field; no data is dropped.
    if let Err(error) = snapshot.to_bytes(week_4_old) {
        println!("not for everybody yet: {error}");
    }
    snapshot.seeds.clear();
    let bytes = snapshot.to_bytes(week_4_old)?;
    println!("without seeds: {} bytes at {week_4_old}", bytes.len());

    // The reader needs no version: the bytes record theirs.
    let same = Snapshot::from_bytes(bytes, &DeserializeOptions::default())?;
    assert_eq!(same, snapshot);

    // Two builds that exchange values agree on the highest version that both have.
    let theirs = VersionRange::<Snapshots>::new(0, 2).ok_or("an empty range")?;
    let agreed = AnyVersionAccessor::negotiate(VersionRange::supported(), theirs)?;
    println!("a peer of {theirs} and we use {agreed}");
    Ok(())
}
