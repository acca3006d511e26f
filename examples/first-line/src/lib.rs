//! Snapshots of a trainer, which its builds of other days can read.

use serdes::{
    codec::{DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, ToProto},
    version::Version,
};

serdes::lines!();

/// The state of a training run.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The number of steps done.
    pub step: u64,
}

/// [`Snapshot`] on the wire.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SnapshotProto {
    /// The number of the format.
    #[prost(int32, tag = "1")]
    pub version_number: i32,
    /// See [`Snapshot::step`].
    #[prost(uint64, tag = "2")]
    pub step: u64,
}

const FORMATS: Formats<Snapshots> = Formats::of(Snapshot::NAME);

impl ToProto<Snapshots> for Snapshot {
    type Proto = SnapshotProto;

    fn to_proto(&self, version: Version<Snapshots>) -> Result<SnapshotProto, EncodeError> {
        Ok(SnapshotProto { version_number: FORMATS.for_request(version)?, step: self.step })
    }
}

impl FromProto for Snapshot {
    type Proto = SnapshotProto;

    const NAME: &'static str = "Snapshot";

    fn from_proto(proto: &SnapshotProto, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        FORMATS.check_recorded(proto.version_number)?;
        Ok(Self { step: proto.step })
    }
}
