//! The notation of IFRT IR: `2x1 to [0,1] on 2x3 unreduced [0,1]`.

use std::{fmt, str::FromStr};

use super::ShardingParam;
use crate::{
    codec::Validation,
    ifrt::{
        IfrtError,
        list_notation::{not_in_notation, parse_list, write_list},
    },
};

const NOTATION: &str = "a notation such as `2x1 to [0,1] on 2x3`";

/// Numbers separated by `x`; empty if there are none.
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

/// Formats as `2x1 to [0,1] on 2x3`, followed by ` unreduced [0,1]` if there are such axes.
impl fmt::Display for ShardingParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, f)
    }
}

impl FromStr for ShardingParam {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let param = parse(text)?;
        param.verify(Validation::Strict)?;
        Ok(param)
    }
}

fn write(param: &ShardingParam, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{} to ", Crossed(&param.dim_shards))?;
    write_list(f, &param.permutation)?;
    write!(f, " on {}", Crossed(&param.axis_sizes))?;
    if !param.unreduced_axes.is_empty() {
        f.write_str(" unreduced ")?;
        write_list(f, &param.unreduced_axes)?;
    }
    Ok(())
}

/// Parses numbers separated by `x`. The error is the rest of the text, from the first invalid byte.
fn parse_crossed<T: FromStr>(text: &str) -> Result<Vec<T>, &str> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let numbers = text.split('x').map(str::trim);
    numbers.map(|number| number.parse().map_err(|_| number)).collect()
}

/// Parses the notation, without verifying the parameters.
pub(super) fn parse(text: &str) -> Result<ShardingParam, IfrtError> {
    // A text without dimensions begins with the blank before `to`.
    let (dim_shards, rest) = match text.split_once(" to ") {
        Some(parts) => parts,
        None => text.split_at(0),
    };
    let rest = if dim_shards.is_empty() { rest.strip_prefix("to ").unwrap_or(rest) } else { rest };
    let (_, end) = rest.split_at(rest.len());
    let wrong = |rest: &str| not_in_notation("ShardingParam", text, rest, NOTATION);
    let (permutation, rest) = rest.split_once(" on ").ok_or_else(|| wrong(end))?;
    let (axis_sizes, unreduced) = match rest.split_once(" unreduced ") {
        Some((sizes, axes)) => (sizes, Some(axes)),
        None => (rest, None),
    };
    let parts = || {
        Ok(ShardingParam {
            dim_shards: parse_crossed(dim_shards)?,
            permutation: parse_list(permutation)?,
            axis_sizes: parse_crossed(axis_sizes)?,
            unreduced_axes: unreduced.map_or(Ok(Vec::new()), parse_list)?,
        })
    };
    parts().map_err(wrong)
}
