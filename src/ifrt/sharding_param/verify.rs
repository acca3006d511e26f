//! Verification of sharding parameters.

use std::collections::HashSet;

use super::{ShardingParam, text};
use crate::{codec::Validation, ifrt::IfrtError};

impl ShardingParam {
    /// Checks that the parameters are consistent, in the order of upstream.
    ///
    /// Strict mode also checks that all sizes are positive and that their products fit 32 bits, as
    /// newer builds do.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`], which names the values found.
    pub fn verify(&self, validation: Validation) -> Result<(), IfrtError> {
        let axes = self.axis_sizes.len();
        if self.permutation.len() != axes || axes == 0 {
            return Err(IfrtError::Invalid(format!(
                "the permutation has {} axes and the mesh has {axes}; expected the same number, at least 1",
                self.permutation.len()
            )));
        }
        let mut seen = HashSet::new();
        if !self.permutation.iter().all(|axis| seen.insert(*axis)) {
            return Err(IfrtError::Invalid(format!(
                "the permutation {:?} names an axis twice; expected each axis once",
                self.permutation
            )));
        }
        for axis in &self.permutation {
            if self.axis_size(*axis).is_none() {
                return Err(IfrtError::Invalid(format!(
                    "the permutation names the axis {axis}, which a mesh of {} does not have; expected 0 to {}",
                    text::Crossed(&self.axis_sizes),
                    axes - 1
                )));
            }
        }
        let mut seen = HashSet::new();
        for axis in &self.unreduced_axes {
            if !seen.insert(*axis) {
                return Err(IfrtError::Invalid(format!(
                    "the unreduced axis {axis} is listed twice; expected each of the {axes} axes at most once"
                )));
            }
            if self.axis_size(*axis).is_none() {
                return Err(IfrtError::Invalid(format!(
                    "the unreduced axis {axis} is not an axis of the mesh; expected 0 to {}",
                    axes - 1
                )));
            }
        }
        if validation == Validation::Strict {
            self.verify_sizes()?;
        }
        self.verify_assignment()
    }

    /// Makes the additional checks of newer builds.
    fn verify_sizes(&self) -> Result<(), IfrtError> {
        if let Some(shards) = self.dim_shards.iter().find(|shards| **shards < 1) {
            return Err(IfrtError::Invalid(format!(
                "a dimension has {shards} shards; expected 1 or more"
            )));
        }
        if let Some(size) = self.axis_sizes.iter().find(|size| **size < 1) {
            return Err(IfrtError::Invalid(format!(
                "an axis of the mesh has {size} devices; expected 1 or more"
            )));
        }
        self.device_count()?;
        self.shard_count()?;
        Ok(())
    }

    /// Assigns the dimensions to the axes: each takes as many whole axes, or parts of one, as it
    /// has shards.
    fn verify_assignment(&self) -> Result<(), IfrtError> {
        let shards = |dimension: usize| self.dim_shards.get(dimension).copied();
        let failure = || {
            IfrtError::Invalid(format!(
                "the shards {} do not fit a mesh of {}; expected shards whose products divide those of the axes, in \
                 the order of the permutation {:?}",
                text::Crossed(&self.dim_shards),
                text::Crossed(&self.axis_sizes),
                self.permutation
            ))
        };
        let mut dimension = 0;
        let mut cumulated: i64 = 1;
        for axis in &self.permutation {
            while shards(dimension) == Some(1) {
                dimension += 1;
            }
            if dimension == self.dim_shards.len() {
                break;
            }
            let size = self.axis_size(*axis).map_or(0, i64::from);
            cumulated = cumulated.checked_mul(size).ok_or_else(failure)?;
            while let Some(shards) = shards(dimension) {
                // A remainder by zero or a quotient that overflows does not fit either.
                if cumulated.checked_rem(shards).ok_or_else(failure)? != 0 {
                    break;
                }
                cumulated = cumulated.checked_div(shards).ok_or_else(failure)?;
                dimension += 1;
            }
        }
        while shards(dimension) == Some(1) {
            dimension += 1;
        }
        if dimension == self.dim_shards.len() { Ok(()) } else { Err(failure()) }
    }

    fn axis_size(&self, axis: i32) -> Option<i32> {
        usize::try_from(axis).ok().and_then(|axis| self.axis_sizes.get(axis)).copied()
    }
}
