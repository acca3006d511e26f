use serdes::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
    },
    ifrt::ArraySpec,
    proto::xla::ifrt::ArraySpecProto,
    version::{Ifrt, Version},
};

use crate::{Runs, Snapshot, SnapshotProto, Snapshots};

/// The record of a training run. It holds values of two other lines of versions: a snapshot, of
/// another line of this crate, and array specs, of the IFRT line.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The name of the run.
    pub name: String,
    /// Latest snapshot of the run.
    pub snapshot: Snapshot,
    /// Specs of the weights' arrays; from version 1 on.
    pub specs: Vec<ArraySpec>,
}

/// [`Run`] on the wire.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RunProto {
    /// The number of the format.
    #[prost(int32, tag = "1")]
    pub version_number: i32,
    /// See [`Run::name`].
    #[prost(string, tag = "2")]
    pub name: String,
    /// See [`Run::snapshot`].
    #[prost(message, optional, tag = "3")]
    pub snapshot: Option<SnapshotProto>,
    /// See [`Run::specs`].
    #[prost(message, repeated, tag = "4")]
    pub specs: Vec<ArraySpecProto>,
}

const FORMATS: Formats<Runs> = Formats::of(Run::NAME);
const WITH_SPECS: i32 = FORMATS.number(1);

impl ToProto<Runs> for Run {
    type Proto = RunProto;

    /// Encodes values of other lines in the versions that `embeds` in versions.toml gives for the
    /// requested version.
    fn to_proto(&self, version: Version<Runs>) -> Result<RunProto, EncodeError> {
        let version_number = FORMATS.for_request(version)?;
        if version_number < WITH_SPECS && !self.specs.is_empty() {
            let feature = "the specs of the weights";
            return Err(EncodeError::unsupported_at_version(
                Self::NAME,
                feature,
                version,
                WITH_SPECS,
            ));
        }
        let specs = self.specs.iter().map(|spec| spec.to_proto(version.embedded::<Ifrt>()?));
        Ok(RunProto {
            version_number,
            name: self.name.clone(),
            snapshot: Some(self.snapshot.to_proto(version.embedded::<Snapshots>()?)?),
            specs: specs.collect::<Result<_, EncodeError>>()?,
        })
    }
}

/// Each value inside records its own version. Decoding needs the options of an array spec, which
/// say where devices are looked up.
impl FromProto for Run {
    type Proto = RunProto;

    const NAME: &'static str = "Run";

    fn from_proto(proto: &RunProto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        FORMATS.check_recorded(proto.version_number)?;
        let specs = proto.specs.iter().map(|spec| ArraySpec::from_proto(spec, options));
        Ok(Self {
            name: proto.name.clone(),
            snapshot: Snapshot::from_proto(&proto.snapshot.clone().unwrap_or_default(), options)?,
            specs: specs.collect::<Result<_, _>>()?,
        })
    }
}

impl Registered for Run {
    const TYPE_NAME: &'static str = "trainer::Run";
}
