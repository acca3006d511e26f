//! Creates arrays from shards of several arrays, following a plan.

use std::sync::Arc;

use serdes::{
    codec::Status,
    ifrt::{ArrayCopySemantics, RemapPlan},
    proto::xla::ifrt::proxy::{RemapArraysRequest, RemapArraysResponse, ifrt_response::Response},
};

use super::rearrangement::{Inputs, Rearrange, Rearrangement, handles};
use crate::{server::arrays::Array, status::status};

impl Rearrange for RemapArraysRequest {
    handles!(array_handles[], result_handles[] => RemapArraysResponse);

    fn rearrange(&self, inputs: &Inputs<'_>) -> Result<Rearrangement, Status> {
        let plan: RemapPlan = inputs.session.decode(self.plan.as_ref())?;
        let sources = sources(&plan, inputs.arrays, inputs.semantics)?;
        let mut result = Rearrangement::default();
        for (spec, sources) in plan.output_specs().iter().cloned().zip(sources) {
            let spaces = inputs.context.devices.spaces(spec.sharding())?;
            let mut shards = Vec::with_capacity(spaces.len());
            for (space, (input, index)) in spaces.into_iter().zip(sources) {
                let shard = inputs.arrays.get(input).and_then(|array| array.shards.get(index));
                let shard =
                    shard.ok_or_else(|| status!(Internal, "input {input} has no shard {index}"))?;
                shards.push(result.shard(shard, space, shard.shape.clone(), inputs.semantics));
            }
            result.arrays.push(Array { spec, shards });
        }
        Ok(result)
    }
}

/// Returns the sources of each output's shards, in the order of its devices: the index of an input
/// and of a shard in it.
///
/// # Errors
/// INVALID_ARGUMENT if the plan is invalid, or does not fit these arrays.
fn sources(
    plan: &RemapPlan,
    inputs: &[Arc<Array>],
    semantics: ArrayCopySemantics,
) -> Result<Vec<Vec<(usize, usize)>>, Status> {
    if plan.input_specs().len() != inputs.len() {
        return Err(status!(
            InvalidArgument,
            "found {} arrays; expected {}, one for each input of the plan",
            inputs.len(),
            plan.input_specs().len(),
        ));
    }
    for (index, (array, spec)) in inputs.iter().zip(plan.input_specs()).enumerate() {
        if array.dtype() != spec.dtype()
            || array.shape() != spec.shape()
            || array.sharding().devices() != spec.sharding().devices()
        {
            return Err(status!(
                InvalidArgument,
                "array {index} is {}; the plan is for {spec}",
                array.spec
            ));
        }
    }
    plan.validate().map_err(|error| error.to_status())?;
    plan.check_copy_semantics(semantics).map_err(|error| error.to_status())?;
    let devices = plan.input_devices().map_err(|error| error.to_status())?;
    let mut outputs = Vec::with_capacity(plan.output_specs().len());
    for (number, spec) in plan.output_specs().iter().enumerate() {
        let number = i32::try_from(number).unwrap_or(i32::MAX);
        let from = devices.get(&number).map(Vec::as_slice).unwrap_or_default();
        let mut sources = Vec::new();
        for device in spec.sharding().devices().ids() {
            let input = from.iter().find(|input| input.devices.ids().contains(device));
            let source = input.and_then(|input| {
                let array = usize::try_from(input.in_array).ok()?;
                let ids = inputs.get(array)?.sharding().devices();
                let shard = ids.ids().iter().position(|id| id == device)?;
                Some((array, shard))
            });
            sources.push(source.ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "no input gives output {number} a shard on device {device}"
                )
            })?);
        }
        outputs.push(sources);
    }
    Ok(outputs)
}
