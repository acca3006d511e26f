//! Validation of plans. Upstream validates a plan when it is used, not when it is read.

use std::collections::{BTreeMap, HashMap};

use super::{Interval, Mapping, RemapPlan};
use crate::ifrt::{ArraySpec, DeviceId, IfrtError, Shape, error::invalid};

/// Permission for an operation to reuse the buffers of its inputs
/// (`xla.ifrt.proto.ArrayCopySemantics`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ArrayCopySemantics {
    /// The outputs get their own buffers.
    AlwaysCopy,
    /// The outputs may share buffers with the inputs.
    ReuseInput,
    /// The inputs are donated.
    DonateInput,
}

impl ArrayCopySemantics {
    /// Returns the number on the wire.
    pub const fn number(self) -> i32 {
        match self {
            Self::AlwaysCopy => 1,
            Self::ReuseInput => 2,
            Self::DonateInput => 3,
        }
    }

    /// Returns the semantics with this number in messages; `None` for 0, which has no meaning, and
    /// for unknown numbers.
    pub const fn from_number(number: i32) -> Option<Self> {
        match number {
            1 => Some(Self::AlwaysCopy),
            2 => Some(Self::ReuseInput),
            3 => Some(Self::DonateInput),
            _ => None,
        }
    }
}

/// Shard shapes of an array: one shape for all shards, or one for each.
enum ShardShapes {
    Same(Shape),
    Each(Vec<Shape>),
}

impl ShardShapes {
    fn of(spec: &ArraySpec) -> Result<Self, IfrtError> {
        if let Ok(shape) = spec.sharding().shard_shape(spec.shape()) {
            return Ok(Self::Same(shape));
        }
        let shards = spec.sharding().disassemble(spec.shape())?;
        Ok(Self::Each(shards.into_iter().map(|(shape, _)| shape).collect()))
    }

    fn get(&self, shard: usize) -> Option<&Shape> {
        match self {
            Self::Same(shape) => Some(shape),
            Self::Each(shapes) => shapes.get(shard),
        }
    }
}

/// The state of one array while mappings are followed.
struct Shards {
    devices: Vec<DeviceId>,
    shapes: Option<ShardShapes>,
    /// Per shard: for an input, if it was taken; for an output, the device it was taken from.
    used: Vec<Option<DeviceId>>,
}

impl Shards {
    fn of(spec: &ArraySpec) -> Self {
        let devices = spec.sharding().devices().ids().to_vec();
        let used = vec![None; devices.len()];
        Self { devices, shapes: None, used }
    }

    fn shape(&mut self, spec: &ArraySpec, shard: usize) -> Result<Option<Shape>, IfrtError> {
        let shapes = match self.shapes.take() {
            Some(shapes) => shapes,
            None => ShardShapes::of(spec)?,
        };
        let shape = shapes.get(shard).cloned();
        self.shapes = Some(shapes);
        Ok(shape)
    }
}

fn at(shards: &mut [Shards], index: i32) -> Option<&mut Shards> {
    usize::try_from(index).ok().and_then(|index| shards.get_mut(index))
}

impl RemapPlan {
    /// Fails unless the plan can be executed.
    ///
    /// # Errors
    /// [`IfrtError`], which is INVALID_ARGUMENT, that names the array, the shard or the mapping: no
    /// inputs or outputs; neither mappings nor input devices; an array that does not exist; arrays
    /// of different element type, memory kind, layout or shard shape; an interval outside the
    /// array; a shard that is taken or filled twice, or not filled; a shard that would change its
    /// device; mappings and input devices that contradict each other; input devices without an
    /// entry for an output.
    pub fn validate(&self) -> Result<(), IfrtError> {
        for (specs, what) in [(&self.input_specs, "input"), (&self.output_specs, "output")] {
            if specs.is_empty() {
                return invalid(format!("the plan has no {what}; expected at least one"));
            }
        }
        if self.mappings.len() == 0 && self.input_devices.is_empty() {
            return invalid(
                "the plan has neither mappings nor input devices; expected at least one of them"
                    .to_owned(),
            );
        }
        self.validate_input_devices()?;
        let mappings = self.mappings_or_converted()?;
        let mut inputs: Vec<_> = self.input_specs.iter().map(Shards::of).collect();
        let mut outputs: Vec<_> = self.output_specs.iter().map(Shards::of).collect();
        for (index, mapping) in mappings.iter().enumerate() {
            self.follow(index, mapping, &mut inputs, &mut outputs)?;
        }
        for (array, output) in outputs.iter().enumerate() {
            for (shard, (taken, device)) in output.used.iter().zip(&output.devices).enumerate() {
                match taken {
                    None => {
                        return invalid(format!("shard {shard} of output {array} is not filled"));
                    }
                    Some(from) if from != device => {
                        return invalid(format!(
                            "shard {shard} of output {array} is on device {device}, but is filled from device {from}; expected the devices of the mapped inputs, in order"
                        ));
                    }
                    Some(_) => {}
                }
            }
        }
        self.validate_both_forms()
    }

    /// Fails if messages since version 6 would mean something else than older messages, or would
    /// lack an output.
    fn validate_both_forms(&self) -> Result<(), IfrtError> {
        if self.input_devices.is_empty() {
            return Ok(());
        }
        let devices = self.input_devices()?;
        for output in 0..i32::try_from(self.output_specs.len()).unwrap_or(i32::MAX) {
            if !devices.contains_key(&output) {
                return invalid(format!(
                    "output {output} has no entry of input devices; expected one for each output"
                ));
            }
        }
        Ok(())
    }

    fn validate_input_devices(&self) -> Result<(), IfrtError> {
        let mut devices_of_input: HashMap<i32, HashMap<DeviceId, bool>> = HashMap::new();
        for (out_array, inputs) in &self.input_devices {
            self.output(*out_array)?;
            for input in inputs {
                let in_devices = self.input(input.in_array)?.sharding().devices();
                let known = devices_of_input.entry(input.in_array).or_insert_with(|| {
                    let ids = in_devices.ids().iter().copied().enumerate();
                    ids.map(|(at, id)| (id, in_devices.is_addressable(at))).collect()
                });
                for (at, device) in input.devices.ids().iter().enumerate() {
                    let local = known.get(device).copied();
                    if local.is_none() || local == Some(false) && input.devices.is_addressable(at) {
                        return invalid(format!(
                            "output {out_array} takes a shard of input {} from device {device}, which is none of {}",
                            input.in_array,
                            match local {
                                None => format!("its devices {in_devices}"),
                                Some(_) =>
                                    format!("its addressable devices {}", in_devices.addressable()),
                            }
                        ));
                    }
                }
                self.same_kind(input.in_array, *out_array)?;
            }
        }
        Ok(())
    }

    /// Fails unless both arrays agree in everything but shape and devices.
    fn same_kind(&self, in_array: i32, out_array: i32) -> Result<(), IfrtError> {
        let (input, output) = (self.input(in_array)?, self.output(out_array)?);
        let differ = |what: &str, input: &dyn std::fmt::Display, output: &dyn std::fmt::Display| {
            invalid(format!(
                "the {what} of input {in_array} is {input}, that of output {out_array} is {output}; expected the same"
            ))
        };
        if input.dtype() != output.dtype() {
            return differ("element type", &input.dtype(), &output.dtype());
        }
        let (from, to) = (input.sharding().memory_kind(), output.sharding().memory_kind());
        if from != to {
            return differ("memory kind", from, to);
        }
        if input.layout() != output.layout() {
            let text = |spec: &ArraySpec| {
                spec.layout().map_or_else(|| "(default)".to_owned(), ToString::to_string)
            };
            return differ("layout", &text(input), &text(output));
        }
        Ok(())
    }

    fn follow(
        &self,
        index: usize,
        mapping: Mapping<'_>,
        inputs: &mut [Shards],
        outputs: &mut [Shards],
    ) -> Result<(), IfrtError> {
        let Mapping { in_array, out_array, .. } = mapping;
        let name = |error: IfrtError| IfrtError::Invalid(format!("mappings[{index}]: {error}"));
        let (in_spec, out_spec) =
            (self.input(in_array).map_err(name)?, self.output(out_array).map_err(name)?);
        self.same_kind(in_array, out_array)?;
        let (Some(input), Some(output)) = (at(inputs, in_array), at(outputs, out_array)) else {
            return Ok(());
        };
        for (from, to) in mapping.from.iter().zip(mapping.to) {
            let taken = check_interval(index, "from", *from, input.devices.len())?;
            let filled = check_interval(index, "to", *to, output.devices.len())?;
            if taken != filled {
                return invalid(format!(
                    "mappings[{index}] takes {taken} shards by {from} and fills {filled} by {to}; expected as many"
                ));
            }
            let shards = from.shards(input.devices.len()).zip(to.shards(output.devices.len()));
            for (in_shard, out_shard) in shards.into_iter().flat_map(|(from, to)| from.zip(to)) {
                let place = |shard: i64| usize::try_from(shard).unwrap_or(usize::MAX);
                let (in_place, out_place) = (place(in_shard), place(out_shard));
                let (in_shape, out_shape) =
                    (input.shape(in_spec, in_place)?, output.shape(out_spec, out_place)?);
                if let (Some(in_shape), Some(out_shape)) = (in_shape, out_shape)
                    && in_shape != out_shape
                {
                    return invalid(format!(
                        "shard {in_shard} of input {in_array} has the shape {in_shape}, shard {out_shard} of output {out_array} has {out_shape}; expected the same"
                    ));
                }
                let device = input.devices.get(in_place).copied();
                match input.used.get_mut(in_place) {
                    Some(used @ None) => *used = device,
                    _ => {
                        return invalid(format!(
                            "shard {in_shard} of input {in_array} is used twice"
                        ));
                    }
                }
                match output.used.get_mut(out_place) {
                    Some(used @ None) => *used = device,
                    _ => {
                        return invalid(format!(
                            "shard {out_shard} of output {out_array} is filled twice"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Fails if the semantics do not allow the plan: if several inputs become one output, the
    /// inputs must be donated.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`], which names the output.
    pub fn check_copy_semantics(&self, semantics: ArrayCopySemantics) -> Result<(), IfrtError> {
        if semantics == ArrayCopySemantics::DonateInput {
            return Ok(());
        }
        let mut first: BTreeMap<i32, i32> = BTreeMap::new();
        let mapped = self.mappings.iter().map(|mapping| (mapping.out_array, mapping.in_array));
        let listed = self.input_devices.iter().flat_map(|(out_array, inputs)| {
            inputs.iter().map(move |input| (*out_array, input.in_array))
        });
        for (out_array, in_array) in mapped.chain(listed) {
            let known = *first.entry(out_array).or_insert(in_array);
            if known != in_array {
                return invalid(format!(
                    "output {out_array} is made of inputs {known} and {in_array}; several inputs of one output must be donated"
                ));
            }
        }
        Ok(())
    }
}

/// Returns the number of shards of an interval, which must be inside an array of `shards` shards.
fn check_interval(
    index: usize,
    side: &str,
    interval: Interval,
    shards: usize,
) -> Result<i64, IfrtError> {
    let Interval { start, end, step } = interval;
    let count = i64::try_from(shards).unwrap_or(i64::MAX);
    let wrong = |what: &str, found: i64, expected: String| {
        invalid(format!(
            "mappings[{index}].{side}: the {what} of {interval} is {found}; expected {expected}"
        ))
    };
    if !(0..=count).contains(&start) {
        return wrong("start", start, format!("0 to {count}"));
    }
    if step <= 0 {
        return wrong("step", step, "at least 1".to_owned());
    }
    let last = count.saturating_add(step - 1);
    if !(0..=last).contains(&end) {
        return wrong("end", end, format!("0 to {last}"));
    }
    let steps = interval.shard_count().unwrap_or_default();
    let touched = start.saturating_add((steps - 1).saturating_mul(step));
    if steps > 0 && touched >= count {
        return wrong("last shard", touched, format!("below {count}"));
    }
    Ok(steps)
}
