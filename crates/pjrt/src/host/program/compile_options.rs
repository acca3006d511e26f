//! The few options that every compilation needs, as the message `xla.CompileOptionsProto` that
//! plug-ins accept.

use prost::Message;

use super::device_assignment::{ComputationDevice, DeviceAssignmentProto};
use crate::PjrtError;

/// Options of a compilation.
///
/// Plug-ins end the process on options without replicas or partitions, so these cannot be expressed
/// here.
#[derive(Clone, Debug)]
pub struct CompileOptions(Form);

#[derive(Clone, Debug)]
enum Form {
    /// Created from numbers of replicas, partitions and devices.
    Made(Made),
    /// A message that another program has written, which was checked.
    Serialized(Vec<u8>),
}

#[derive(Clone, Debug)]
struct Made {
    replicas: u32,
    partitions: u32,
    /// The ids of devices, partition by partition for each replica.
    devices: Option<Vec<i32>>,
    is_portable: bool,
    uses_spmd: bool,
}

/// The maximum number of devices of a program.
const MOST_DEVICES: i64 = 1 << 20;

impl CompileOptions {
    /// Creates options for a program with `replicas` copies, each divided into `partitions`. It
    /// runs on `replicas * partitions` devices.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] if either is 0, or both together more than a million.
    pub fn new(replicas: u32, partitions: u32) -> Result<Self, PjrtError> {
        check_counts(replicas.into(), partitions.into())?;
        let uses_spmd = partitions > 1;
        let made = Made { replicas, partitions, devices: None, is_portable: false, uses_spmd };
        Ok(Self(Form::Made(made)))
    }

    /// Creates options for a program that runs on one device, which is chosen for each run.
    #[must_use]
    pub fn portable() -> Self {
        Self(Form::Made(Made {
            replicas: 1,
            partitions: 1,
            devices: None,
            is_portable: true,
            uses_spmd: false,
        }))
    }

    /// Sets the ids of the devices, partition by partition for each replica, instead of those that
    /// the client chooses. Only options of [`Self::new`] accept them.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for options of another constructor, or another number of
    /// devices than there are replicas and partitions.
    pub fn with_devices(mut self, devices: Vec<i32>) -> Result<Self, PjrtError> {
        let Form::Made(made) = &mut self.0 else {
            return Err(refuse("the devices of compile options", "those of a message", "none"));
        };
        let expected = made.replicas as usize * made.partitions as usize;
        if made.is_portable || devices.len() != expected {
            let found = format!("{devices:?}");
            let expected = format!("{expected} of them, for a program that is not portable");
            return Err(refuse("the devices of compile options", &found, &expected));
        }
        made.devices = Some(devices);
        Ok(self)
    }

    /// Creates options from the bytes that a framework has serialized (`xla.CompileOptionsProto`),
    /// unchanged.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for bytes that are not such a message, and for one on which
    /// plug-ins end the process: without replicas or partitions, or with more than a million.
    pub fn of_bytes(serialized: Vec<u8>) -> Result<Self, PjrtError> {
        let message = CompileOptionsMessage::decode(&*serialized).map_err(|error| {
            let what = "the serialized compile options";
            refuse(what, &error.to_string(), "a message xla.CompileOptionsProto")
        })?;
        let build = message.build.unwrap_or_default();
        check_counts(build.num_replicas, build.num_partitions)?;
        if let Some(assignment) = &build.device_assignment {
            let per_partition = |devices: &ComputationDevice| {
                i64::try_from(devices.replica_device_ids.len()) == Ok(build.num_replicas)
            };
            let partitions = i64::try_from(assignment.computation_devices.len());
            let is_whole = partitions == Ok(build.num_partitions)
                && assignment.computation_devices.iter().all(per_partition)
                && i64::from(assignment.replica_count) == build.num_replicas
                && i64::from(assignment.computation_count) == build.num_partitions;
            if !is_whole {
                let found = format!("{assignment:?}");
                let expected = "a device for each replica and partition";
                return Err(refuse("the devices of compile options", &found, expected));
            }
        }
        Ok(Self(Form::Serialized(serialized)))
    }

    /// Returns the message for a plug-in; `choose` returns the devices for the replicas and
    /// partitions if none were set.
    pub(super) fn serialize(
        &self,
        choose: impl FnOnce(u32, u32) -> Result<Vec<i32>, PjrtError>,
    ) -> Result<Vec<u8>, PjrtError> {
        let made = match &self.0 {
            Form::Serialized(bytes) => return Ok(bytes.clone()),
            Form::Made(made) => made,
        };
        let chosen = match &made.devices {
            Some(devices) => Some(devices.clone()),
            None if made.is_portable => None,
            None => Some(choose(made.replicas, made.partitions)?),
        };
        let device_assignment = chosen.map(|devices| assignment(made, &devices));
        let build = BuildOptionsMessage {
            // No specific device.
            device_ordinal: -1,
            num_replicas: made.replicas.into(),
            num_partitions: made.partitions.into(),
            use_spmd_partitioning: made.uses_spmd,
            device_assignment,
        };
        let message = CompileOptionsMessage {
            build: Some(build),
            compile_portable_executable: made.is_portable,
        };
        Ok(message.encode_to_vec())
    }
}

fn check_counts(replicas: i64, partitions: i64) -> Result<(), PjrtError> {
    let total = replicas.checked_mul(partitions).filter(|_| replicas > 0 && partitions > 0);
    if total.is_some_and(|total| total <= MOST_DEVICES) {
        return Ok(());
    }
    let found = format!("{replicas} and {partitions}");
    let expected = "1 and more, and a million together at most: plug-ins end the process on others";
    Err(refuse("the number of replicas and partitions", &found, expected))
}

fn refuse(what: &'static str, found: &str, expected: &str) -> PjrtError {
    PjrtError::InvalidArgument { what, found: found.to_owned(), expected: expected.to_owned() }
}

/// Returns the devices of each partition, by replica.
fn assignment(made: &Made, devices: &[i32]) -> DeviceAssignmentProto {
    let partitions = made.partitions as usize;
    let of_partition = |partition: usize| {
        let devices = devices.iter().skip(partition).step_by(partitions);
        ComputationDevice { replica_device_ids: devices.copied().map(i64::from).collect() }
    };
    DeviceAssignmentProto {
        replica_count: made.replicas.cast_signed(),
        computation_count: made.partitions.cast_signed(),
        computation_devices: (0..partitions).map(of_partition).collect(),
    }
}

/// The fields of `xla.CompileOptionsProto` that are used here.
#[derive(Clone, PartialEq, Message)]
struct CompileOptionsMessage {
    #[prost(message, optional, tag = "3")]
    build: Option<BuildOptionsMessage>,
    #[prost(bool, tag = "4")]
    compile_portable_executable: bool,
}

/// The fields of `xla.ExecutableBuildOptionsProto` that are used here.
#[derive(Clone, PartialEq, Message)]
struct BuildOptionsMessage {
    #[prost(int64, tag = "1")]
    device_ordinal: i64,
    #[prost(int64, tag = "4")]
    num_replicas: i64,
    #[prost(int64, tag = "5")]
    num_partitions: i64,
    #[prost(bool, tag = "6")]
    use_spmd_partitioning: bool,
    #[prost(message, optional, tag = "9")]
    device_assignment: Option<DeviceAssignmentProto>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(num_replicas: i64, num_partitions: i64, devices: Option<&[&[i64]]>) -> Vec<u8> {
        let device_assignment = devices.map(|devices| DeviceAssignmentProto {
            replica_count: num_replicas as i32,
            computation_count: num_partitions as i32,
            computation_devices: devices
                .iter()
                .map(|ids| ComputationDevice { replica_device_ids: ids.to_vec() })
                .collect(),
        });
        let build = BuildOptionsMessage {
            device_ordinal: -1,
            num_replicas,
            num_partitions,
            use_spmd_partitioning: false,
            device_assignment,
        };
        let message =
            CompileOptionsMessage { build: Some(build), compile_portable_executable: false };
        message.encode_to_vec()
    }

    #[test]
    fn options_that_plug_ins_end_the_process_on_are_refused() {
        let is_refused = |bytes: Vec<u8>| CompileOptions::of_bytes(bytes).is_err();
        // The empty message, and garbage.
        assert!(is_refused(Vec::new()));
        assert!(is_refused(vec![0xff; 7]));
        for (replicas, partitions) in [(0, 1), (1, 0), (-1, -1), (i64::MAX, 2), (1 << 20, 2)] {
            assert!(is_refused(bytes(replicas, partitions, None)), "{replicas} {partitions}");
        }
        assert!(is_refused(bytes(2, 1, Some(&[&[0]]))));
        assert!(is_refused(bytes(2, 1, Some(&[&[0, 1], &[2, 3]]))));
        assert!(!is_refused(bytes(2, 1, Some(&[&[0, 1]]))));
        assert!(!is_refused(bytes(1, 4, None)));
        assert!(CompileOptions::new(0, 1).is_err() && CompileOptions::new(1, 0).is_err());
        assert!(CompileOptions::new(1, 2).unwrap().with_devices(vec![1]).is_err());
        assert!(CompileOptions::portable().with_devices(vec![1]).is_err());
    }

    #[test]
    fn devices_are_given_partition_by_partition_and_sent_by_replica() {
        let made =
            Made { replicas: 2, partitions: 3, devices: None, is_portable: false, uses_spmd: true };
        let found = assignment(&made, &[10, 11, 12, 20, 21, 22]);
        let ids: Vec<_> =
            found.computation_devices.iter().map(|ids| ids.replica_device_ids.clone()).collect();
        assert_eq!(ids, [[10, 20], [11, 21], [12, 22]]);
    }
}
