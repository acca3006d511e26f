//! Converts each form of a plan into the other.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use super::{DevicesByOutput, InputDevices, Interval, Mapping, RemapPlan, mappings::Mappings};
use crate::ifrt::{ArraySpec, DeviceId, DeviceList, IfrtError};

/// A shard of an input, and the shard of an output that it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    out_array: i32,
    out_shard: i64,
    in_array: i32,
    in_shard: i64,
}

/// For each output, the inputs and their shards, in the order of the mappings.
type Taken = BTreeMap<i32, Vec<(i32, Vec<i64>)>>;

impl RemapPlan {
    /// Returns the devices whose shards each output takes, by output: the devices that the plan was
    /// made with, or those derived from its mappings. Messages since version 6 contain them.
    ///
    /// Devices derived from mappings come in the order of the intervals. If all shards of the input
    /// are taken, or all of the output are filled by it, the list is the device list of that array,
    /// as in upstream. Intervals count all shards of an array, addressable or not.
    ///
    /// # Errors
    /// [`IfrtError`] if a mapping names an array or a shard that does not exist, takes or fills a
    /// shard twice, or maps shards in a way that device lists cannot express: to another device, or
    /// in another order among the shards of one device. Also if the plan was made with mappings and
    /// devices that contradict each other, or with devices for an output that no mapping fills.
    pub fn input_devices(&self) -> Result<Cow<'_, BTreeMap<i32, Vec<InputDevices>>>, IfrtError> {
        if self.mappings.len() == 0 {
            return Ok(Cow::Borrowed(&self.input_devices));
        }
        let mapped = self.pairs()?;
        let outputs = 0..i32::try_from(self.output_specs.len()).unwrap_or(i32::MAX);
        let complete = outputs.clone().all(|output| self.input_devices.contains_key(&output));
        let devices = if complete && !self.input_devices.is_empty() {
            Cow::Borrowed(&self.input_devices)
        } else {
            Cow::Owned(self.devices_of(&mapped)?)
        };
        // Device lists cannot name one of several shards on the same device, so they may not
        // describe the mappings.
        if !self.input_devices.is_empty() || self.has_several_shards_on_a_device() {
            self.check_devices_say(&devices, mapped)?;
        }
        Ok(devices)
    }

    /// Returns the devices that the plan was made with; for outputs without devices, those of the
    /// pairs.
    fn devices_of(&self, pairs: &[Pair]) -> Result<DevicesByOutput, IfrtError> {
        let mut taken = Taken::new();
        let mut places: HashMap<(i32, i32), usize> = HashMap::new();
        for Pair { out_array, in_array, in_shard, .. } in pairs {
            let inputs = taken.entry(*out_array).or_default();
            let place = *places.entry((*out_array, *in_array)).or_insert_with(|| {
                inputs.push((*in_array, Vec::new()));
                inputs.len() - 1
            });
            if let Some((_, shards)) = inputs.get_mut(place) {
                shards.push(*in_shard);
            }
        }
        let mut found = self.input_devices.clone();
        for (output, spec) in (0_i32..).zip(&self.output_specs) {
            // An output without shards takes none, and has an entry like the others.
            if !found.contains_key(&output) && spec.sharding().devices().is_empty() {
                found.insert(output, Vec::new());
            }
        }
        for (out_array, inputs) in taken {
            if found.contains_key(&out_array) {
                continue;
            }
            let out_devices = self.output(out_array)?.sharding().devices();
            let mut lists = Vec::with_capacity(inputs.len());
            for (in_array, shards) in inputs {
                let in_devices = self.input(in_array)?.sharding().devices();
                let devices = devices_of_shards(&shards, &in_devices, &out_devices);
                lists.push(InputDevices { in_array, devices });
            }
            found.insert(out_array, lists);
        }
        Ok(found)
    }

    fn has_several_shards_on_a_device(&self) -> bool {
        self.input_specs.iter().chain(&self.output_specs).any(|spec| {
            let mut ids = spec.sharding().devices().ids().to_vec();
            ids.sort_unstable();
            ids.windows(2).any(|pair| pair.first() == pair.last())
        })
    }

    /// Fails unless the devices describe the same pairs of shards as the mappings.
    fn check_devices_say(
        &self,
        devices: &DevicesByOutput,
        mut mapped: Vec<Pair>,
    ) -> Result<(), IfrtError> {
        let of_devices = Self { mappings: self.mappings_of(devices)?, ..self.clone() };
        let mut said = of_devices.pairs()?;
        said.sort_unstable();
        mapped.sort_unstable();
        if said == mapped {
            return Ok(());
        }
        let differs = said.iter().zip(&mapped).position(|(said, mapped)| said != mapped);
        let at = differs.unwrap_or(said.len().min(mapped.len()));
        let text = |pair: Option<&Pair>| match pair {
            Some(Pair { out_array, out_shard, in_array, in_shard }) => format!(
                "that shard {in_shard} of input {in_array} becomes shard {out_shard} of output {out_array}"
            ),
            None => "nothing more".to_owned(),
        };
        Err(IfrtError::Invalid(format!(
            "the mappings say {}, the input devices {}; expected the same of both",
            text(mapped.get(at)),
            text(said.get(at))
        )))
    }

    /// Returns the pairs of shards that the mappings describe, in their order. Every shard exists,
    /// stays on its device, and is in one pair.
    fn pairs(&self) -> Result<Vec<Pair>, IfrtError> {
        let free = |specs: &[ArraySpec]| -> Vec<Vec<bool>> {
            specs.iter().map(|spec| vec![true; spec.sharding().devices().len()]).collect()
        };
        let (mut free_in, mut free_out) = (free(&self.input_specs), free(&self.output_specs));
        let mut pairs = Vec::new();
        for (index, mapping) in self.mappings.iter().enumerate() {
            self.pairs_of(index, mapping, &mut free_in, &mut free_out, &mut pairs)?;
        }
        Ok(pairs)
    }

    fn pairs_of(
        &self,
        index: usize,
        mapping: Mapping<'_>,
        free_in: &mut [Vec<bool>],
        free_out: &mut [Vec<bool>],
        pairs: &mut Vec<Pair>,
    ) -> Result<(), IfrtError> {
        let Mapping { in_array, out_array, .. } = mapping;
        let in_devices = self.input(in_array)?.sharding().devices();
        let out_devices = self.output(out_array)?.sharding().devices();
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
            let count = |interval: &Interval| interval.shard_count().unwrap_or_default();
            let (taken, filled) = (count(from), count(to));
            if taken != filled {
                return Err(IfrtError::Invalid(format!(
                    "mappings[{index}] takes {taken} shards by {from} and fills {filled} by {to}; expected as many"
                )));
            }
            for (in_shard, out_shard) in from_shards.zip(to_shards) {
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
                        "mappings[{index}] takes shard {in_shard} of input {in_array} on device {in_device} to shard {out_shard} of output {out_array} on device {out_device}; expected the same device"
                    )));
                }
                if !take(free_in, in_array, in_shard) {
                    return Err(IfrtError::Invalid(format!(
                        "mappings[{index}] takes shard {in_shard} of input {in_array}, which is used twice; expected each at most once"
                    )));
                }
                if !take(free_out, out_array, out_shard) {
                    return Err(IfrtError::Invalid(format!(
                        "mappings[{index}] fills shard {out_shard} of output {out_array}, which is filled twice; expected each once"
                    )));
                }
                pairs.push(Pair { out_array, out_shard, in_array, in_shard });
            }
        }
        Ok(())
    }

    /// Converts the plan into mappings only: those it was made with, or those derived from its
    /// input devices, in the order of the input's shards and as few as possible with steps of 1.
    ///
    /// # Errors
    /// [`IfrtError`] if an array does not exist, or a device has no shard in the input or in the
    /// output.
    pub fn in_mapping_form(&self) -> Result<Self, IfrtError> {
        let mappings = self.mappings_or_converted()?.into_owned();
        Ok(Self { mappings, input_devices: BTreeMap::new(), ..self.clone() })
    }

    /// Converts the plan into input devices only.
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
        self.mappings_of(&self.input_devices).map(Cow::Owned)
    }

    fn mappings_of(&self, input_devices: &DevicesByOutput) -> Result<Mappings, IfrtError> {
        let mut mappings = Mappings::default();
        let mut input_places: HashMap<i32, Places> = HashMap::new();
        for (out_array, inputs) in input_devices {
            let out_devices = self.output(*out_array)?.sharding().devices();
            let mut out_places = Places::of(&out_devices);
            for InputDevices { in_array, devices } in inputs {
                let in_devices = self.input(*in_array)?.sharding().devices();
                let in_places =
                    input_places.entry(*in_array).or_insert_with(|| Places::of(&in_devices));
                let mut pairs = Vec::with_capacity(devices.len());
                for device in devices.ids() {
                    let in_shard = in_places.take(*device, "input", *in_array)?;
                    let out_shard = out_places.take(*device, "output", *out_array)?;
                    pairs.push((in_shard, out_shard));
                }
                // Upstream iterates over the shards of the input, independently of the order of the
                // devices.
                pairs.sort_unstable();
                let (mut from, mut to) = (Vec::new(), Vec::new());
                for (in_shard, out_shard) in pairs {
                    append(&mut from, &mut to, in_shard, out_shard);
                }
                let (in_array, out_array) = (*in_array, *out_array);
                mappings.push(Mapping { in_array, out_array, from: &from, to: &to })?;
            }
        }
        Ok(mappings)
    }
}

/// Appends a pair of shards to the last intervals if it continues both of them.
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

/// Marks a shard as used; returns `true` if it was free.
fn take(free: &mut [Vec<bool>], array: i32, shard: i64) -> bool {
    let array = usize::try_from(array).ok().and_then(|array| free.get_mut(array));
    let shard = usize::try_from(shard).ok();
    array.zip(shard).and_then(|(free, shard)| free.get_mut(shard)).is_some_and(std::mem::take)
}

/// Returns the devices of these shards of an input.
fn devices_of_shards(
    shards: &[i64],
    in_devices: &DeviceList,
    out_devices: &DeviceList,
) -> DeviceList {
    if shards.len() == in_devices.len() {
        return in_devices.clone();
    }
    if shards.len() == out_devices.len() {
        return out_devices.clone();
    }
    let devices = shards.iter().filter_map(|shard| {
        let at = usize::try_from(*shard).ok()?;
        Some((*in_devices.ids().get(at)?, in_devices.is_addressable(at)))
    });
    let devices: Vec<_> = devices.collect();
    let local: HashMap<DeviceId, bool> = devices.iter().copied().collect();
    DeviceList::with_addressable(devices.iter().map(|(id, _)| *id), |id| {
        local.get(&id).copied().unwrap_or(true)
    })
}

/// Indices of each device's shards, in order.
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
