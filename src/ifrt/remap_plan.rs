//! Plans that make arrays from the shards of other arrays without copying.

mod convert;
mod mappings;
mod validate;
mod wire;

use std::{collections::BTreeMap, fmt};

use mappings::Mappings;
pub use mappings::{Interval, Mapping};
pub use validate::ArrayCopySemantics;

use super::{ArraySpec, DeviceList, IfrtError};

/// The shards that one input contributes to an output: the shards on these devices, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct InputDevices {
    /// The position of the input.
    pub in_array: i32,
    /// The devices whose shards are taken.
    pub devices: DeviceList,
}

/// For each output, the inputs and devices whose shards it takes.
type DevicesByOutput = BTreeMap<i32, Vec<InputDevices>>;

/// A plan that makes output arrays from shards of input arrays (`xla::ifrt::RemapPlan`).
///
/// A plan has one of two forms, or both: mappings between intervals of shards, which messages below
/// version 6 carry, or the devices whose shards each output takes, which messages since version 6
/// carry. Each form is converted to the other where necessary.
///
/// ```
/// use serdes::ifrt::{ArraySpec, DType, DeviceId, DeviceList, HloSharding, Interval, MemoryKind, RemapPlan, Shape};
/// use serdes::ifrt::xla::{OpSharding, TileAssignment};
///
/// let halves = |devices: [i32; 2]| {
///     let tiles = OpSharding::tiled(TileAssignment::iota([2], [2], [0])?);
///     let sharding = HloSharding::new(DeviceList::from(devices), MemoryKind::unset(), tiles)?;
///     Ok::<_, serdes::ifrt::IfrtError>(ArraySpec::new(DType::F32, Shape::new([8])?, sharding))
/// };
/// // The halves change places.
/// let plan = RemapPlan::new([halves([0, 1])?], [halves([1, 0])?]).with_mapping(
///     0,
///     0,
///     &[Interval::new(0, 1, 1), Interval::new(1, 2, 1)],
///     &[Interval::new(1, 2, 1), Interval::new(0, 1, 1)],
/// )?;
/// plan.validate()?;
/// assert_eq!(plan.input_devices()?[&0][0].devices, DeviceList::from([0, 1]));
/// # Ok::<(), serdes::ifrt::IfrtError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RemapPlan {
    input_specs: Vec<ArraySpec>,
    output_specs: Vec<ArraySpec>,
    mappings: Mappings,
    input_devices: DevicesByOutput,
}

impl RemapPlan {
    /// Creates a plan between these arrays, without any shards yet.
    pub fn new(
        input_specs: impl Into<Vec<ArraySpec>>,
        output_specs: impl Into<Vec<ArraySpec>>,
    ) -> Self {
        Self {
            input_specs: input_specs.into(),
            output_specs: output_specs.into(),
            ..Self::default()
        }
    }

    /// Adds a mapping: shards of an input that become shards of an output.
    ///
    /// # Errors
    /// [`IfrtError::CountMismatch`] if the numbers of intervals differ.
    pub fn with_mapping(
        mut self,
        in_array: i32,
        out_array: i32,
        from: &[Interval],
        to: &[Interval],
    ) -> Result<Self, IfrtError> {
        self.mappings.push(Mapping { in_array, out_array, from, to })?;
        Ok(self)
    }

    /// Adds the devices of inputs whose shards an output takes.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`] if the plan already has the devices of the output.
    pub fn with_input_devices(
        mut self,
        out_array: i32,
        input_devices: impl Into<Vec<InputDevices>>,
    ) -> Result<Self, IfrtError> {
        match self.input_devices.insert(out_array, input_devices.into()) {
            None => Ok(self),
            Some(_) => Err(IfrtError::Invalid(format!(
                "the input devices of output {out_array} are given twice; expected one entry for each output"
            ))),
        }
    }

    /// Returns the specs of the input arrays.
    pub fn input_specs(&self) -> &[ArraySpec] {
        &self.input_specs
    }

    /// Returns the specs of the output arrays.
    pub fn output_specs(&self) -> &[ArraySpec] {
        &self.output_specs
    }

    /// Returns the mappings that the plan was made with; see
    /// [`in_mapping_form`](Self::in_mapping_form).
    pub fn mappings(&self) -> impl DoubleEndedIterator<Item = Mapping<'_>> + ExactSizeIterator {
        self.mappings.iter()
    }

    /// Returns the input devices that the plan was made with, by output; see
    /// [`input_devices`](Self::input_devices).
    pub const fn explicit_input_devices(&self) -> &BTreeMap<i32, Vec<InputDevices>> {
        &self.input_devices
    }

    fn spec<'a>(
        specs: &'a [ArraySpec],
        what: &'static str,
        index: i32,
    ) -> Result<&'a ArraySpec, IfrtError> {
        usize::try_from(index).ok().and_then(|index| specs.get(index)).ok_or_else(|| {
            IfrtError::Invalid(format!(
                "{what} is {index}; there are {} such arrays, expected 0 to {}",
                specs.len(),
                specs.len().saturating_sub(1)
            ))
        })
    }

    fn input(&self, index: i32) -> Result<&ArraySpec, IfrtError> {
        Self::spec(&self.input_specs, "in_array", index)
    }

    fn output(&self, index: i32) -> Result<&ArraySpec, IfrtError> {
        Self::spec(&self.output_specs, "out_array", index)
    }
}

/// Formats as `RemapPlan(2 inputs, 1 outputs, Mapping(...), ...)`.
impl fmt::Display for RemapPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (inputs, outputs) = (self.input_specs.len(), self.output_specs.len());
        write!(f, "RemapPlan({inputs} inputs, {outputs} outputs")?;
        for mapping in self.mappings() {
            write!(f, ", {mapping}")?;
        }
        for (out_array, inputs) in &self.input_devices {
            for InputDevices { in_array, devices } in inputs {
                write!(f, ", output {out_array} from input {in_array} on {devices}")?;
            }
        }
        f.write_str(")")
    }
}

#[cfg(feature = "serde")]
mod serde_form {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    use super::{ArraySpec, InputDevices, Interval, RemapPlan};

    #[derive(Serialize, Deserialize)]
    struct OneMapping {
        in_array: i32,
        out_array: i32,
        from: Vec<Interval>,
        to: Vec<Interval>,
    }

    #[derive(Serialize, Deserialize)]
    struct Plan {
        input_specs: Vec<ArraySpec>,
        output_specs: Vec<ArraySpec>,
        mappings: Vec<OneMapping>,
        input_devices: BTreeMap<i32, Vec<InputDevices>>,
    }

    impl Serialize for RemapPlan {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mappings = self.mappings().map(|mapping| OneMapping {
                in_array: mapping.in_array,
                out_array: mapping.out_array,
                from: mapping.from.to_vec(),
                to: mapping.to.to_vec(),
            });
            Plan {
                input_specs: self.input_specs.clone(),
                output_specs: self.output_specs.clone(),
                mappings: mappings.collect(),
                input_devices: self.input_devices.clone(),
            }
            .serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for RemapPlan {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let form = Plan::deserialize(deserializer)?;
            let mut plan = Self::new(form.input_specs, form.output_specs);
            plan.input_devices = form.input_devices;
            for OneMapping { in_array, out_array, from, to } in form.mappings {
                plan =
                    plan.with_mapping(in_array, out_array, &from, &to).map_err(D::Error::custom)?;
            }
            Ok(plan)
        }
    }
}

#[cfg(test)]
mod tests;
