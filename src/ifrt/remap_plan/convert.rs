//! Each form of a plan from the other.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use super::{InputDevices, Interval, Mapping, RemapPlan, mappings::Mappings};
use crate::ifrt::{DeviceId, DeviceList, IfrtError};

/// The shards that one input gives to one output.
#[derive(Default)]
struct Taken {
    intervals: Vec<Interval>,
    count: i128,
}

impl RemapPlan {
    /// The devices whose shards each output takes, by output: those that the plan was made with, or those that its mappings give.
    ///
    /// Devices come in the order of the intervals; where all shards of the input are taken, or all of the output are filled by it, the list
    /// is that of the array, as upstream has it.
    ///
    /// # Errors
    /// [`IfrtError`] if a mapping names an array or a shard that is not there, maps more shards than there are, or maps a shard to
    /// a shard on another device, which device lists cannot say.
    pub fn input_devices(&self) -> Result<Cow<'_, BTreeMap<i32, Vec<InputDevices>>>, IfrtError> {
        if !self.input_devices.is_empty() || self.mappings.len() == 0 {
            return Ok(Cow::Borrowed(&self.input_devices));
        }
        // Inputs of an output in the order of their first mapping.
        let mut outputs: BTreeMap<i32, Vec<(i32, Taken)>> = BTreeMap::new();
        let mut places: HashMap<(i32, i32), usize> = HashMap::new();
        let mut taken_of_input: HashMap<i32, i128> = HashMap::new();
        for (index, mapping) in self.mappings.iter().enumerate() {
            // Counted before the shards are followed, so that the work is bounded by the shards there are.
            let counts = mapping.from.iter().map(|interval| interval.shard_count().unwrap_or(0));
            let taken = taken_of_input.entry(mapping.in_array).or_default();
            *taken += counts.map(i128::from).sum::<i128>();
            let available = self.input(mapping.in_array)?.sharding().devices().len();
            if *taken > available as i128 {
                return Err(IfrtError::Invalid(format!(
                    "{taken} shards of input {} are mapped, which has {available}; expected each at most once",
                    mapping.in_array
                )));
            }
            self.check_same_devices(index, mapping)?;
            let inputs = outputs.entry(mapping.out_array).or_default();
            let place = *places.entry((mapping.out_array, mapping.in_array)).or_insert_with(|| {
                inputs.push((mapping.in_array, Taken::default()));
                inputs.len() - 1
            });
            if let Some((_, taken)) = inputs.get_mut(place) {
                taken.intervals.extend_from_slice(mapping.from);
                let counts = mapping.from.iter().filter_map(|interval| interval.shard_count());
                taken.count += counts.map(i128::from).sum::<i128>();
            }
        }
        let mut found = BTreeMap::new();
        for (out_array, inputs) in outputs {
            let out_devices = self.output(out_array)?.sharding().devices();
            let mut lists = Vec::with_capacity(inputs.len());
            for (in_array, taken) in inputs {
                let in_devices = self.input(in_array)?.sharding().devices();
                let devices = taken.devices(in_array, out_array, &in_devices, &out_devices)?;
                lists.push(InputDevices { in_array, devices });
            }
            found.insert(out_array, lists);
        }
        Ok(Cow::Owned(found))
    }

    /// Fails unless every shard of the mapping exists and stays on its device.
    fn check_same_devices(&self, index: usize, mapping: Mapping<'_>) -> Result<(), IfrtError> {
        let in_devices = self.input(mapping.in_array)?.sharding().devices();
        let out_devices = self.output(mapping.out_array)?.sharding().devices();
        for (from, to) in mapping.from.iter().zip(mapping.to) {
            let shards = |interval: &Interval, devices: &DeviceList| {
                interval.shards(devices.len()).ok_or_else(|| {
                    IfrtError::Invalid(format!(
                        "mappings[{index}] has the interval {interval}; expected a positive step and at most {} shards",
                        devices.len()
                    ))
                })
            };
            let (from_shards, to_shards) = (shards(from, &in_devices)?, shards(to, &out_devices)?);
            let (mut taken, mut filled) = (0_u64, 0_u64);
            let mut to_shards = to_shards.inspect(|_| filled += 1);
            for in_shard in from_shards {
                taken += 1;
                let Some(out_shard) = to_shards.next() else { break };
                let device = |devices: &DeviceList, shard: i64| {
                    let at = usize::try_from(shard).ok();
                    at.and_then(|at| devices.ids().get(at)).copied().ok_or_else(|| {
                        IfrtError::Invalid(format!(
                            "mappings[{index}] names shard {shard}; expected 0 to {}",
                            devices.len().saturating_sub(1)
                        ))
                    })
                };
                let (in_device, out_device) =
                    (device(&in_devices, in_shard)?, device(&out_devices, out_shard)?);
                if in_device != out_device {
                    return Err(IfrtError::Invalid(format!(
                        "mappings[{index}] takes shard {in_shard} of input {} on device {in_device} to shard {out_shard} of output {} on device {out_device}; expected the same device",
                        mapping.in_array, mapping.out_array
                    )));
                }
            }
            to_shards.for_each(drop);
            if taken != filled {
                return Err(IfrtError::Invalid(format!(
                    "mappings[{index}] takes {taken} shards by {from} and fills {filled} by {to}; expected as many"
                )));
            }
        }
        Ok(())
    }

    /// The same plan as mappings alone: those it was made with, or those that its input devices give, as few as possible with steps of 1.
    ///
    /// # Errors
    /// [`IfrtError`] if an array is not there, or a device has no shard in the input or in the output.
    pub fn in_mapping_form(&self) -> Result<Self, IfrtError> {
        let mappings = self.mappings_or_converted()?.into_owned();
        Ok(Self { mappings, input_devices: BTreeMap::new(), ..self.clone() })
    }

    /// The same plan as input devices alone.
    ///
    /// # Errors
    /// As [`input_devices`](Self::input_devices).
    pub fn in_device_form(&self) -> Result<Self, IfrtError> {
        let input_devices = self.input_devices()?.into_owned();
        Ok(Self { mappings: Mappings::default(), input_devices, ..self.clone() })
    }

    pub(super) fn mappings_or_converted(&self) -> Result<Cow<'_, Mappings>, IfrtError> {
        if self.mappings.len() != 0 || self.input_devices.is_empty() {
            return Ok(Cow::Borrowed(&self.mappings));
        }
        let mut mappings = Mappings::default();
        let mut input_places: HashMap<i32, Places> = HashMap::new();
        for (out_array, inputs) in &self.input_devices {
            let out_devices = self.output(*out_array)?.sharding().devices();
            let mut out_places = Places::of(&out_devices);
            for InputDevices { in_array, devices } in inputs {
                let in_devices = self.input(*in_array)?.sharding().devices();
                let in_places =
                    input_places.entry(*in_array).or_insert_with(|| Places::of(&in_devices));
                let (mut from, mut to) = (Vec::new(), Vec::new());
                for device in devices.ids() {
                    let in_shard = in_places.take(*device, "input", *in_array)?;
                    let out_shard = out_places.take(*device, "output", *out_array)?;
                    append(&mut from, &mut to, in_shard, out_shard);
                }
                let (in_array, out_array) = (*in_array, *out_array);
                mappings.push(Mapping { in_array, out_array, from: &from, to: &to })?;
            }
        }
        Ok(Cow::Owned(mappings))
    }
}

/// Adds a pair of shards to the last intervals if it continues both of them.
fn append(from: &mut Vec<Interval>, to: &mut Vec<Interval>, in_shard: i64, out_shard: i64) {
    if let (Some(last_from), Some(last_to)) = (from.last_mut(), to.last_mut())
        && last_from.end == in_shard
        && last_to.end == out_shard
    {
        last_from.end += 1;
        last_to.end += 1;
        return;
    }
    from.push(Interval::new(in_shard, in_shard + 1, 1));
    to.push(Interval::new(out_shard, out_shard + 1, 1));
}

impl Taken {
    fn devices(
        self,
        in_array: i32,
        out_array: i32,
        in_devices: &DeviceList,
        out_devices: &DeviceList,
    ) -> Result<DeviceList, IfrtError> {
        let limit = in_devices.len().min(out_devices.len());
        if self.count > limit as i128 {
            return Err(IfrtError::Invalid(format!(
                "{} shards of input {in_array} are mapped to output {out_array}; the arrays have {} and {}",
                self.count,
                in_devices.len(),
                out_devices.len()
            )));
        }
        if self.count == in_devices.len() as i128 {
            return Ok(in_devices.clone());
        }
        if self.count == out_devices.len() as i128 {
            return Ok(out_devices.clone());
        }
        let shards = self.intervals.iter().filter_map(|interval| interval.shards(limit)).flatten();
        let devices = shards.filter_map(|shard| {
            let at = usize::try_from(shard).ok()?;
            Some((*in_devices.ids().get(at)?, in_devices.is_addressable(at)))
        });
        let devices: Vec<_> = devices.collect();
        let local: HashMap<DeviceId, bool> = devices.iter().copied().collect();
        Ok(DeviceList::with_addressable(devices.iter().map(|(id, _)| *id), |id| {
            local.get(&id).copied().unwrap_or(true)
        }))
    }
}

/// Where each device has its shards; a device that has several gives them in order.
struct Places(HashMap<DeviceId, std::vec::IntoIter<i64>>);

impl Places {
    fn of(devices: &DeviceList) -> Self {
        let mut places: HashMap<DeviceId, Vec<i64>> = HashMap::with_capacity(devices.len());
        for (shard, device) in (0_i64..).zip(devices.ids()) {
            places.entry(*device).or_default().push(shard);
        }
        Self(places.into_iter().map(|(device, shards)| (device, shards.into_iter())).collect())
    }

    fn take(&mut self, device: DeviceId, side: &str, array: i32) -> Result<i64, IfrtError> {
        self.0.get_mut(&device).and_then(Iterator::next).ok_or_else(|| {
            IfrtError::Invalid(format!(
                "{side} {array} has no shard left on device {device}; expected the devices of its sharding, each as often as there"
            ))
        })
    }
}
