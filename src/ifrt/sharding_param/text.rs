//! The notation of IFRT IR: `2x1 to [0,1] on 2x3 unreduced [0,1]`.

use std::{fmt, str::FromStr};

use super::ShardingParam;
use crate::ifrt::{
    IfrtError,
    shape::{parse_list, write_list},
};

const NOTATION: &str = "a notation such as `2x1 to [0,1] on 2x3`";

/// Numbers with an `x` between them; nothing if there are none.
pub(super) struct Crossed<'a, T>(pub(super) &'a [T]);

impl<T: fmt::Display> fmt::Display for Crossed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, number) in self.0.iter().enumerate() {
            let cross = if index == 0 { "" } else { "x" };
            write!(f, "{cross}{number}")?;
        }
        Ok(())
    }
}

pub(super) fn write(param: &ShardingParam, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{} to ", Crossed(&param.dim_shards))?;
    write_list(f, &param.permutation)?;
    write!(f, " on {}", Crossed(&param.axis_sizes))?;
    if !param.unreduced_axes.is_empty() {
        f.write_str(" unreduced ")?;
        write_list(f, &param.unreduced_axes)?;
    }
    Ok(())
}

fn parse_crossed<T: FromStr>(text: &str) -> Option<Vec<T>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split('x').map(|number| number.trim().parse().ok()).collect()
}

/// Reads the notation; what it says is not verified.
pub(super) fn parse(text: &str) -> Result<ShardingParam, IfrtError> {
    let parts = || {
        // Without dimensions the text begins with the blank before `to`.
        let (dim_shards, rest) = match text.split_once(" to ") {
            Some(parts) => parts,
            None => ("", text.strip_prefix("to ")?),
        };
        let (permutation, rest) = rest.split_once(" on ")?;
        let (axis_sizes, unreduced) = match rest.split_once(" unreduced ") {
            Some((sizes, axes)) => (sizes, parse_list(axes)?),
            None => (rest, Vec::new()),
        };
        Some(ShardingParam {
            dim_shards: parse_crossed(dim_shards)?,
            permutation: parse_list(permutation)?,
            axis_sizes: parse_crossed(axis_sizes)?,
            unreduced_axes: unreduced,
        })
    };
    parts().ok_or_else(|| IfrtError::text("ShardingParam", text, NOTATION))
}
