use serdes::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
    },
    version::Version,
};

use crate::Snapshots;

/// The state of a training run.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The number of steps done.
    pub step: u64,
    /// The name of the device-state file with the weights.
    pub weights: String,
    /// The learning rate; from version 2 on.
    pub learning_rate: Option<f64>,
    /// The seed of each shard's random numbers; from version 3 on.
    pub seeds: Vec<u64>,
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
    /// See [`Snapshot::weights`].
    #[prost(string, tag = "3")]
    pub weights: String,
    /// See [`Snapshot::learning_rate`].
    #[prost(double, optional, tag = "4")]
    pub learning_rate: Option<f64>,
    /// See [`Snapshot::seeds`].
    #[prost(fixed64, repeated, tag = "5")]
    pub seeds: Vec<u64>,
}

/// Formats of the type in versions.toml.
const FORMATS: Formats<Snapshots> = Formats::of(Snapshot::NAME);
const WITH_LEARNING_RATE: i32 = FORMATS.number(2);
const WITH_SEEDS: i32 = FORMATS.number(3);

impl ToProto<Snapshots> for Snapshot {
    type Proto = SnapshotProto;

    fn to_proto(&self, version: Version<Snapshots>) -> Result<SnapshotProto, EncodeError> {
        let too_old = |feature, first| {
            EncodeError::unsupported_at_version(Self::NAME, feature, version, first)
        };
        let format = FORMATS.for_request(version)?;
        if format < WITH_LEARNING_RATE && self.learning_rate.is_some() {
            return Err(too_old("a learning rate", WITH_LEARNING_RATE));
        }
        if format < WITH_SEEDS && !self.seeds.is_empty() {
            return Err(too_old("seeds", WITH_SEEDS));
        }
        Ok(SnapshotProto {
            version_number: format,
            step: self.step,
            weights: self.weights.clone(),
            learning_rate: self.learning_rate,
            seeds: self.seeds.clone(),
        })
    }
}

impl FromProto for Snapshot {
    type Proto = SnapshotProto;

    const NAME: &'static str = "Snapshot";

    fn from_proto(proto: &SnapshotProto, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        FORMATS.check_recorded(proto.version_number)?;
        Ok(Self {
            step: proto.step,
            weights: proto.weights.clone(),
            learning_rate: proto.learning_rate,
            seeds: proto.seeds.clone(),
        })
    }
}

impl Registered for Snapshot {
    const TYPE_NAME: &'static str = "trainer::Snapshot";
}
