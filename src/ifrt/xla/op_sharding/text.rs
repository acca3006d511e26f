//! Formats and parses shardings in the notation of HLO.

use std::{fmt, str::FromStr};

use super::{OpSharding, OpShardingType};
use crate::{
    ifrt::{IfrtError, error::invalid, xla::TileAssignment},
    proto::xla,
};

impl fmt::Display for OpSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(named) = self.named_sharding() {
            return write_named(named, f);
        }
        match self.kind() {
            OpShardingType::Tuple => {
                f.write_str("{")?;
                for (index, element) in self.tuple_elements().iter().enumerate() {
                    if index != 0 {
                        f.write_str(", ")?;
                    }
                    if index != 0 && index % 5 == 0 {
                        write!(f, "/*index={index}*/")?;
                    }
                    write!(f, "{element}")?;
                }
                return f.write_str("}");
            }
            OpShardingType::Maximal => {
                let device =
                    self.proto().tile_assignment_devices.first().copied().unwrap_or_default();
                write!(f, "{{maximal device={device}")?;
            }
            OpShardingType::Tiled => {
                f.write_str("{devices=")?;
                if let Some(tiles) = self.tile_assignment() {
                    write!(f, "{tiles}")?;
                }
                if self.replicates_on_last_tile_dimension() {
                    f.write_str(" last_tile_dim_replicate")?;
                }
                if self.subgroup_types().next().is_some() {
                    f.write_str(" last_tile_dims={")?;
                    for (index, kind) in self.subgroup_types().enumerate() {
                        let comma = if index == 0 { "" } else { ", " };
                        write!(f, "{comma}{}", kind.name())?;
                    }
                    f.write_str("}")?;
                }
            }
            kind => write!(f, "{{{}", kind.name())?,
        }
        if let Some(proto) = self.beyond_parts().filter(|proto| proto.is_shard_group) {
            let alike = proto.shard_group_type == xla::op_sharding::ShardGroupType::Like as i32;
            let word = if alike { "shard_like" } else { "shard_as" };
            write!(f, " {word} {}", proto.shard_group_id)?;
        }
        f.write_str("}")
    }
}

/// Longer names of axes are truncated where they are repeated.
const LONGEST_AXIS_NAME: usize = 64;

/// Writes the mesh with its axes, then the axes that split each dimension:
/// `{mesh['x'=2,'y'=4], [{'x'}, {?}]}`.
fn write_named(named: &xla::NamedShardingProto, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let axes = named.mesh.as_ref().map_or(&[][..], |mesh| &mesh.axes);
    let write_axes = |f: &mut fmt::Formatter<'_>, list: &[xla::AxisRefProto]| -> fmt::Result {
        for (index, axis) in list.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let place = usize::try_from(axis.mesh_axis_index).ok();
            let name = place.and_then(|place| axes.get(place)).map_or("?", |axis| &axis.name);
            // A message can repeat a long name at a cost of a few bytes per axis.
            match name.char_indices().nth(LONGEST_AXIS_NAME) {
                None => write!(f, "{comma}'{name}'")?,
                Some((end, _)) => write!(f, "{comma}'{}…'", name.get(..end).unwrap_or_default())?,
            }
            if let Some(part) = &axis.sub_axis_info {
                write!(f, ":({}){}", part.pre_size, part.size)?;
            }
        }
        Ok(())
    };
    f.write_str("{mesh[")?;
    for (index, axis) in axes.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(f, "{comma}'{}'={}", axis.name, axis.size)?;
    }
    f.write_str("], [")?;
    for (index, dimension) in named.dim_shardings.iter().enumerate() {
        f.write_str(if index == 0 { "{" } else { ", {" })?;
        write_axes(f, &dimension.axes)?;
        match (dimension.is_closed, dimension.axes.is_empty()) {
            (true, _) => f.write_str("}")?,
            (false, true) => f.write_str("?}")?,
            (false, false) => f.write_str(",?}")?,
        }
    }
    f.write_str("]")?;
    for (word, list) in [
        ("replicated", &named.replicated_axes),
        ("unreduced", &named.unreduced_axes),
        ("manual", &named.manual_axes),
    ] {
        if !list.is_empty() {
            write!(f, ", {word}={{")?;
            write_axes(f, list)?;
            f.write_str("}")?;
        }
    }
    f.write_str("}")
}

/// Parses the notation of HLO from left to right.
struct Notation<'a> {
    whole: &'a str,
    rest: &'a str,
}

impl<'a> Notation<'a> {
    fn new(whole: &'a str) -> Self {
        Self { whole, rest: whole }
    }

    #[cold]
    fn error<T>(&self, expected: &str) -> Result<T, IfrtError> {
        let at = self.whole.len() - self.rest.len();
        let text: String = self.whole.chars().take(200).collect();
        invalid(format!(
            "`{}` is no sharding: expected {expected} at byte {at}",
            text.escape_debug()
        ))
    }

    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            let Some((_, rest)) =
                self.rest.strip_prefix("/*").and_then(|comment| comment.split_once("*/"))
            else {
                return;
            };
            self.rest = rest;
        }
    }

    /// Takes `token` if it comes next.
    fn take(&mut self, token: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), IfrtError> {
        if self.take(token) { Ok(()) } else { self.error(&format!("`{token}`")) }
    }

    /// Takes letters and underscores.
    fn word(&mut self) -> &'a str {
        self.skip();
        let is_word = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
        let end = self.rest.find(|letter| !is_word(letter)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number<T: FromStr>(&mut self) -> Result<T, IfrtError> {
        self.skip();
        let digits = self.rest.strip_prefix('-').unwrap_or(self.rest);
        let count = digits.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(digits.len());
        let (number, rest) = self.rest.split_at(self.rest.len() - digits.len() + count);
        match number.parse() {
            Ok(number) => {
                self.rest = rest;
                Ok(number)
            }
            Err(_) => self.error("a number"),
        }
    }

    /// Parses numbers separated by commas, up to and including `end`.
    fn numbers<T: FromStr>(&mut self, end: &str) -> Result<Vec<T>, IfrtError> {
        let mut numbers = Vec::new();
        loop {
            numbers.push(self.number()?);
            if self.take(end) {
                return Ok(numbers);
            }
            self.expect(",")?;
        }
    }

    /// Parses `[2,2]<=[4]`, `[2,2]<=[2,2]T(1,0)` or `[2,1]1,0`.
    fn tiles(&mut self) -> Result<TileAssignment, IfrtError> {
        self.expect("[")?;
        let dimensions: Vec<i64> = self.numbers("]")?;
        if self.take("<=") {
            self.expect("[")?;
            let reshape: Vec<i64> = self.numbers("]")?;
            let transpose = if self.take("T(") {
                self.numbers(")")?
            } else {
                (0..).take(reshape.len()).collect()
            };
            return TileAssignment::iota(dimensions, reshape, transpose);
        }
        let mut devices = vec![self.number()?];
        while self.take(",") {
            devices.push(self.number()?);
        }
        TileAssignment::listed(dimensions, devices)
    }

    /// Parses one sharding; with `may_be_tuple`, elements may follow instead of a kind.
    fn sharding(&mut self, may_be_tuple: bool) -> Result<OpSharding, IfrtError> {
        self.expect("{")?;
        self.skip();
        if self.rest.starts_with('{') || (may_be_tuple && self.rest.starts_with('}')) {
            if !may_be_tuple {
                return self.error("a kind of sharding: tuples are flat");
            }
            return self.tuple();
        }
        let mut proto = self.kind()?.proto().clone();
        while !self.take("}") {
            match self.word() {
                "last_tile_dim_replicate" => proto.replicate_on_last_tile_dim = true,
                "last_tile_dims" => {
                    self.expect("=")?;
                    self.subgroups(&mut proto.last_tile_dims)?;
                }
                word @ ("shard_as" | "shard_like") => {
                    proto.is_shard_group = true;
                    proto.shard_group_id = self.number()?;
                    let alike = word == "shard_like";
                    proto.shard_group_type = i32::from(alike);
                }
                _ => {
                    return self.error(
                        "last_tile_dim_replicate, last_tile_dims, shard_as, shard_like or `}`",
                    );
                }
            }
        }
        OpSharding::new(proto)
    }

    /// Parses the elements of a tuple, and its end.
    fn tuple(&mut self) -> Result<OpSharding, IfrtError> {
        let mut elements = Vec::new();
        while !self.take("}") {
            if !elements.is_empty() {
                self.expect(",")?;
            }
            elements.push(self.sharding(false)?);
        }
        OpSharding::tuple(elements)
    }

    /// Parses the first word of a sharding and the fields that belong to it.
    fn kind(&mut self) -> Result<OpSharding, IfrtError> {
        match self.word() {
            "replicated" => Ok(OpSharding::replicated()),
            "manual" => Ok(OpSharding::manual()),
            "unreduced" => Ok(OpSharding::unreduced()),
            "unknown" => Ok(OpSharding::unknown()),
            "maximal" => {
                self.expect("device")?;
                self.expect("=")?;
                Ok(OpSharding::maximal(self.number()?))
            }
            "devices" => {
                self.expect("=")?;
                Ok(OpSharding::tiled(self.tiles()?))
            }
            _ => self.error(
                "replicated, manual, unreduced, unknown, maximal device=, devices= or, for a tuple, a sharding",
            ),
        }
    }

    /// Parses the kinds of subgroups in braces.
    fn subgroups(&mut self, kinds: &mut Vec<i32>) -> Result<(), IfrtError> {
        self.expect("{")?;
        loop {
            let word = self.word();
            let Some(kind) = OpShardingType::from_name(word) else {
                return self.error("a kind of subgroup, such as manual");
            };
            kinds.push(kind.number());
            if self.take("}") {
                return Ok(());
            }
            self.expect(",")?;
        }
    }
}

/// Parses the output of [`Display`](fmt::Display), except for shardings over a named mesh, whose
/// text is incomplete.
impl FromStr for OpSharding {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut notation = Notation::new(text);
        let sharding = notation.sharding(true)?;
        notation.skip();
        if notation.rest.is_empty() { Ok(sharding) } else { notation.error("the end") }
    }
}

/// Parses the output of [`Display`](fmt::Display).
impl FromStr for TileAssignment {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut notation = Notation::new(text);
        let tiles = notation.tiles()?;
        notation.skip();
        if notation.rest.is_empty() { Ok(tiles) } else { notation.error("the end") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_sharding_is_parsed_back() {
        for text in [
            "{replicated}",
            "{maximal device=3}",
            "{manual}",
            "{unknown}",
            "{unreduced}",
            "{devices=[2,1]<=[2]}",
            "{devices=[2,2]<=[2,2]T(1,0)}",
            "{devices=[2,1]1,0}",
            "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
            "{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}",
            "{replicated shard_as 5}",
            "{devices=[2]<=[2] shard_like 0}",
            "{}",
            "{{replicated}, {maximal device=0}, {manual}, {manual}, {manual}, /*index=5*/{devices=[2]<=[2]}}",
        ] {
            let sharding: OpSharding = text.parse().unwrap();
            assert_eq!(sharding.to_string(), text);
            assert_eq!(text.parse(), Ok(sharding.clone()));
            assert_eq!(OpSharding::new(sharding.proto().clone()), Ok(sharding));
        }
        let tiles: TileAssignment = "[2,2]<=[2,2]T(1,0)".parse().unwrap();
        assert_eq!(tiles, TileAssignment::iota([2, 2], [2, 2], [1, 0]).unwrap());
    }

    #[test]
    fn invalid_sharding_text_is_refused_with_its_place() {
        for (text, at) in [
            ("", "`{` at byte 0"),
            ("{red}", "at byte 4"),
            ("{replicated", "at byte 11"),
            ("{replicated} more", "the end at byte 13"),
            ("{devices=[2]}", "a number at byte 12"),
            ("{devices=[99999999999999999999]<=[2]}", "a number at byte 10"),
            ("{{{replicated}}}", "tuples are flat at byte 2"),
            ("{devices=[2]<=[2] last_tile_dims={red}}", "a kind of subgroup"),
        ] {
            let error = text.parse::<OpSharding>().unwrap_err().to_string();
            assert!(error.contains(at), "{error}");
        }
        // Well-formed text of an invalid sharding.
        assert!("{devices=[3]<=[2]}".parse::<OpSharding>().is_err());
        assert!("{mesh['x'=2], [{'x'}]}".parse::<OpSharding>().is_err());
        assert!("{".repeat(1 << 20).parse::<OpSharding>().is_err());
    }
}
