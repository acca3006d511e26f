//! Options of a compilation: the number of devices that a program runs on, and their assignment.

use serdes_wire::{Dialect, FieldValue, Malformed, WireReader};

use crate::{Result, Status};

/// The options of a compilation. Hosts write them as the message `xla.CompileOptionsProto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    bytes: Vec<u8>,
    replicas: usize,
    partitions: usize,
    /// The devices of the first replica, then those of the second, and so on.
    devices: Vec<usize>,
}

// Field numbers of `xla.CompileOptionsProto`, of `ExecutableBuildOptionsProto` in it, and of
// `DeviceAssignmentProto` with its `ComputationDevice`.
const BUILD_OPTIONS: u32 = 3;
const DEVICE_ORDINAL: u32 = 1;
const NUM_REPLICAS: u32 = 4;
const NUM_PARTITIONS: u32 = 5;
const DEVICE_ASSIGNMENT: u32 = 9;
const COMPUTATION_DEVICES: u32 = 3;
const REPLICA_DEVICE_IDS: u32 = 1;

/// XLA parses like TensorFlow.
const PARSER: Dialect = Dialect::Tensorflow;

/// The fields that are read.
#[derive(Debug, Default)]
struct Fields {
    ordinal: Option<usize>,
    replicas: usize,
    partitions: usize,
    /// The devices of each partition, as lists of replicas.
    assignment: Vec<Vec<u64>>,
}

impl CompileOptions {
    /// Reads options for a client with `client_devices` devices. Empty options select the first
    /// device.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if they are not such a message, or name devices that do not exist.
    pub(super) fn read(bytes: &[u8], client_devices: usize) -> Result<Self> {
        let fields = Fields::read(bytes).map_err(|malformed| {
            Status::invalid_argument(format!("the compile options: {malformed}"))
        })?;
        let (replicas, partitions) = (fields.replicas.max(1), fields.partitions.max(1));
        let count = replicas.checked_mul(partitions).filter(|count| *count <= client_devices);
        let count = count.ok_or_else(|| {
            Status::invalid_argument(format!(
                "{replicas} replicas of {partitions} partitions; there are {client_devices} devices"
            ))
        })?;
        let devices = match fields.assignment.as_slice() {
            [] => {
                let first = fields.ordinal.unwrap_or(0);
                (first..first.saturating_add(count)).collect()
            }
            assignment => in_order(assignment, replicas, partitions)?,
        };
        match devices.iter().find(|device| **device >= client_devices) {
            Some(device) => Err(Status::invalid_argument(format!("there is no device {device}"))),
            None => Ok(Self { bytes: bytes.to_vec(), replicas, partitions, devices }),
        }
    }

    /// Returns the whole message, as the host wrote it.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of copies of the program, which run on different data.
    #[must_use]
    pub fn replicas(&self) -> usize {
        self.replicas
    }

    /// Returns the number of parts of one copy.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// Returns the devices that the program runs on, as indexes in the client: those of the
    /// partitions of the first replica, then of the second.
    #[must_use]
    pub fn devices(&self) -> &[usize] {
        &self.devices
    }

    /// Returns replica and partition of an index in [`Self::devices`].
    pub(super) fn logical(&self, place: usize) -> (usize, usize) {
        (place / self.partitions, place % self.partitions)
    }

    /// Returns the devices as a message `xla.DeviceAssignmentProto`.
    pub(super) fn device_assignment(&self) -> Vec<u8> {
        let mut out = Vec::new();
        number(&mut out, 1, self.replicas);
        number(&mut out, 2, self.partitions);
        for partition in 0..self.partitions {
            let mut of_partition = Vec::new();
            for device in self.devices.iter().skip(partition).step_by(self.partitions) {
                number(&mut of_partition, REPLICA_DEVICE_IDS, *device);
            }
            tag(&mut out, COMPUTATION_DEVICES, 2);
            serdes_wire::varint::push(&mut out, of_partition.len() as u64);
            out.extend(of_partition);
        }
        out
    }
}

fn tag(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    serdes_wire::varint::push(out, u64::from(field << 3 | wire_type));
}

fn number(out: &mut Vec<u8>, field: u32, value: usize) {
    tag(out, field, 0);
    serdes_wire::varint::push(out, value as u64);
}

/// Returns the devices of an assignment, replica by replica.
fn in_order(assignment: &[Vec<u64>], replicas: usize, partitions: usize) -> Result<Vec<usize>> {
    let is_whole = assignment.len() == partitions
        && assignment.iter().all(|of_partition| of_partition.len() == replicas);
    if !is_whole {
        return Err(Status::invalid_argument(format!(
            "the compile options assign no device to each of {replicas} replicas of {partitions} \
             partitions"
        )));
    }
    let ids = (0..replicas).flat_map(|replica| {
        assignment.iter().filter_map(move |of_partition| of_partition.get(replica))
    });
    Ok(ids.map(|id| usize::try_from(*id).unwrap_or(usize::MAX)).collect())
}

impl Fields {
    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Self::default();
        let mut options = WireReader::new(PARSER, bytes);
        while let Some(field) = options.next_field()? {
            if let (BUILD_OPTIONS, FieldValue::Bytes(build)) = (field.number, field.value) {
                fields.read_build_options(options.nested(build)?)?;
            }
        }
        Ok(fields)
    }

    fn read_build_options(&mut self, mut build: WireReader<'_>) -> Result<(), Malformed> {
        let count = |value| usize::try_from(value).unwrap_or(usize::MAX);
        while let Some(field) = build.next_field()? {
            match (field.number, field.value) {
                // A negative number means none.
                (DEVICE_ORDINAL, FieldValue::Varint(value)) => {
                    self.ordinal = usize::try_from(value.cast_signed()).ok();
                }
                (NUM_REPLICAS, FieldValue::Varint(value)) => self.replicas = count(value),
                (NUM_PARTITIONS, FieldValue::Varint(value)) => self.partitions = count(value),
                (DEVICE_ASSIGNMENT, FieldValue::Bytes(assignment)) => {
                    self.read_assignment(build.nested(assignment)?)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_assignment(&mut self, mut assignment: WireReader<'_>) -> Result<(), Malformed> {
        while let Some(field) = assignment.next_field()? {
            let (COMPUTATION_DEVICES, FieldValue::Bytes(devices)) = (field.number, field.value)
            else {
                continue;
            };
            let mut ids = Vec::new();
            let mut devices = assignment.nested(devices)?;
            while let Some(field) = devices.next_field()? {
                match (field.number, field.value) {
                    (REPLICA_DEVICE_IDS, FieldValue::Varint(id)) => ids.push(id),
                    (REPLICA_DEVICE_IDS, FieldValue::Bytes(mut packed)) => {
                        while !packed.is_empty() {
                            let at = packed.len();
                            let id = PARSER.varint(&mut packed);
                            ids.push(id.ok_or(Malformed { reason: "the id of a device", at })?);
                        }
                    }
                    _ => {}
                }
            }
            self.assignment.push(ids);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a field with a message.
    fn nested(field: u8, content: &[u8]) -> Vec<u8> {
        [&[field << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
    }

    fn assigned(replicas: u8, partitions: u8, computations: &[&[u8]]) -> Vec<u8> {
        let devices: Vec<u8> =
            computations.iter().flat_map(|ids| nested(3, &nested(1, ids))).collect();
        let assignment = [&[8, replicas, 16, partitions], &devices[..]].concat();
        nested(3, &[&[0x20, replicas, 0x28, partitions], &nested(9, &assignment)[..]].concat())
    }

    #[test]
    fn devices_follow_the_assignment_replica_by_replica() {
        let options = CompileOptions::read(&assigned(2, 2, &[&[0, 2], &[1, 3]]), 4).unwrap();
        assert_eq!((options.replicas(), options.partitions()), (2, 2));
        assert_eq!(options.devices(), [0, 1, 2, 3]);
        assert_eq!(options.logical(3), (1, 1));
        let again = nested(
            3,
            &[&[0x20, 2, 0x28, 2][..], &nested(9, &options.device_assignment())].concat(),
        );
        assert_eq!(CompileOptions::read(&again, 4).unwrap().devices(), [0, 1, 2, 3]);
    }

    #[test]
    fn without_an_assignment_the_ordinal_is_the_first_device() {
        assert_eq!(CompileOptions::read(&[], 1).unwrap().devices(), [0]);
        let second = CompileOptions::read(&nested(3, &[8, 1]), 2).unwrap();
        assert_eq!(second.devices(), [1]);
        let minus_one = [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert_eq!(CompileOptions::read(&nested(3, &minus_one), 2).unwrap().devices(), [0]);
    }

    #[test]
    fn devices_that_are_not_there_are_refused() {
        for (bytes, words) in [
            (assigned(1, 1, &[&[7]]), "there is no device 7"),
            (assigned(2, 1, &[&[0]]), "assign no device to each of 2 replicas"),
            (assigned(3, 1, &[&[0, 1, 2]]), "3 replicas of 1 partitions; there are 2 devices"),
            (vec![0x1a, 9], "the compile options"),
        ] {
            let refused = CompileOptions::read(&bytes, 2).unwrap_err();
            assert!(refused.message().contains(words), "{refused}");
        }
    }
}
