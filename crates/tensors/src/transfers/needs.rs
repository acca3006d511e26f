//! Needs of a state on devices: the types of its arrays, and the bytes per device.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serdes::ifrt::{DType, DeviceId};
use serdes_device_state::Tensor;

/// Maximum memory in bytes for the shards of one array while they are counted.
const ANSWER_BYTES: u64 = 64 << 20;

/// Resources that saved tensors need on devices.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Number of tensors.
    pub tensors: u64,
    /// Bytes of all arrays, each counted once.
    pub bytes: u64,
    /// Bytes of strings, which stay on the host.
    pub host_bytes: u64,
    /// Names of the arrays' element types.
    pub types: BTreeSet<&'static str>,
    /// Bytes on each device from which the state was saved, by its id; replicated arrays count for
    /// each device.
    pub devices: BTreeMap<i32, u64>,
}

impl Needs {
    /// Returns the needs of these tensors, as they were saved.
    #[must_use]
    pub fn of(tensors: &[Tensor]) -> Self {
        let mut needs = Self::default();
        let mut known = HashMap::new();
        for tensor in tensors {
            needs.tensors += 1;
            let dtype = tensor.spec().dtype();
            if dtype == DType::String {
                needs.host_bytes = needs.host_bytes.saturating_add(tensor.bytes());
                continue;
            }
            needs.bytes = needs.bytes.saturating_add(tensor.bytes());
            needs.types.insert(dtype.name());
            let (number, _) = tensor.spec_bytes();
            let shards = known.entry(number).or_insert_with(|| shards(tensor));
            match shards {
                Some(shards) => needs.add(shards.iter().copied()),
                None => needs
                    .add(tensor.piece_devices().map(|piece| (DeviceId(piece.device), piece.bytes))),
            }
        }
        needs
    }

    fn add(&mut self, shards: impl Iterator<Item = (DeviceId, u64)>) {
        for (device, bytes) in shards {
            let all = self.devices.entry(device.0).or_default();
            *all = all.saturating_add(bytes);
        }
    }
}

/// Returns the device and the bytes of each shard; `None` if the sharding does not define them.
fn shards(tensor: &Tensor) -> Option<Vec<(DeviceId, u64)>> {
    let spec = tensor.spec();
    let element = u64::from(spec.dtype().unpacked_byte_size()?);
    let shards = spec.sharding().disassemble_within(spec.shape(), ANSWER_BYTES).ok()?;
    let bytes = shards.iter().map(|(shape, sharding)| {
        let elements = u64::try_from(shape.element_count().ok()?).ok()?;
        Some((sharding.device(), elements.checked_mul(element)?))
    });
    bytes.collect()
}
