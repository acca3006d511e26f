//! Tests of a line whose data holds values of other lines: the caller requests one version, which
//! determines the versions of the values inside.

use std::{collections::BTreeSet, path::Path};

use serdes::{
    codec::{EncodeError, FromProto, ToProto, testing},
    ifrt::{AnyDevice, ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding, with_devices},
    version::{AnyVersionAccessor, Ifrt, SerDesVersion, Version, VersionRange},
};
use trainer_snapshots::{Run, RunProto, Runs, Snapshot, Snapshots};

fn version(number: i32) -> Version<Runs> {
    AnyVersionAccessor::get(number).unwrap()
}

/// Returns a run with every field that the version has, and weights of the element type.
fn run(number: i32, dtype: DType) -> Run {
    let shape = Shape::new([512, 128]).unwrap();
    let spec = ArraySpec::new(dtype, shape, SingleDeviceSharding::new(DeviceId(0)));
    Run {
        name: "run-7".to_owned(),
        snapshot: Snapshot {
            step: 1000,
            weights: "step-1000.sds".to_owned(),
            learning_rate: Some(0.5),
            seeds: if number >= 2 { vec![7, 8] } else { Vec::new() },
        },
        specs: if number >= 1 { vec![spec] } else { Vec::new() },
    }
}

#[test]
fn golden_bytes_of_every_version_are_written_and_read() {
    let (root, options) = (env!("CARGO_MANIFEST_DIR"), with_devices(AnyDevice));
    testing::golden::<Runs, _>(root, &options, |version| run(version.number(), DType::BF16))
        .unwrap_or_else(|error| panic!("{error}"));
    // Version 2 introduced no format of its own, only other versions of the values inside.
    let frozen = std::fs::read(Path::new(root).join("tests/golden/runs/Run/v2.bin")).unwrap();
    let run = run(2, DType::BF16);
    assert_eq!(run.to_bytes(version(2)).unwrap(), frozen);
    assert_eq!(Run::from_bytes(frozen.into(), &options).unwrap(), run);
}

#[test]
fn embedded_versions_follow_versions_toml() {
    let run = run(1, DType::BF16);
    let requests = testing::check_propagation::<Runs, _>(&run).unwrap();
    assert_eq!(testing::unwritten::<Runs>(&requests), []);
    let inside = |number| {
        let (written, requests) = testing::record(|| run.to_bytes(version(number)));
        assert!(written.is_ok());
        let others = requests.iter().filter(|request| request.line != "runs");
        others.map(|request| (request.line, request.requested)).collect::<BTreeSet<_>>()
    };
    assert_eq!(inside(1), [("ifrt_serdes", 4), ("snapshots", 2)].into());
    assert_eq!(inside(2), [("ifrt_serdes", 6), ("snapshots", 3)].into());
}

#[test]
fn peers_that_agree_on_a_run_have_agreed_on_what_is_inside() {
    let last_week = VersionRange::<Runs>::new(0, 1).unwrap();
    let agreed = AnyVersionAccessor::negotiate(VersionRange::supported(), last_week).unwrap();
    assert_eq!(agreed.embedded::<Ifrt>().unwrap().number(), 4);
    assert_eq!(agreed.embedded::<Snapshots>().unwrap().number(), 2);
    // A value inside that the peer cannot read is refused with the error of its own type.
    let error = run(2, DType::BF16).to_bytes(agreed).unwrap_err().to_string();
    assert!(error.contains("Snapshot: snapshot version 2 cannot express seeds"), "{error}");
    // Version 4 of IFRT introduced six-bit floats.
    assert!(run(1, DType::F6E2M3FN).to_bytes(agreed).is_ok());
}

#[test]
fn version_without_embedded_values_names_the_first_with_them() {
    let error = version(0).embedded::<Ifrt>().unwrap_err().to_string();
    assert!(error.contains("run version 0 holds no IFRT SerDes data"), "{error}");
    assert!(error.contains("version 1 is the first that does"), "{error}");
    let error = run(1, DType::BF16).to_bytes(version(0)).unwrap_err().to_string();
    assert!(error.contains("the specs of the weights") && error.contains("request 1"), "{error}");
}

/// Encodes its array specs in another version of IFRT than versions.toml says.
struct Forgetful(Run);

impl ToProto<Runs> for Forgetful {
    type Proto = RunProto;

    fn to_proto(&self, version: Version<Runs>) -> Result<RunProto, EncodeError> {
        let newest = SerDesVersion::current();
        let specs = self.0.specs.iter().map(|spec| spec.to_proto(newest));
        Ok(RunProto { specs: specs.collect::<Result<_, _>>()?, ..self.0.to_proto(version)? })
    }
}

#[test]
fn a_version_that_gets_lost_on_the_way_is_found() {
    let forgetful = Forgetful(run(1, DType::BF16));
    let lost = testing::check_propagation::<Runs, _>(&forgetful).unwrap_err();
    assert_eq!((lost.line, lost.at, lost.expected, lost.requested), ("ifrt_serdes", 1, 4, 6));
}
