//! Positions and boxes in an array.

use std::{fmt, str::FromStr};

use smallvec::SmallVec;

use super::{
    IfrtError, Shape,
    list_notation::{not_in_notation, parse_list, write_list},
};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, ToProto,
        serde_forms::deserialize_checked,
    },
    proto::xla::ifrt::{IndexDomainProto, IndexProto},
    version::SerDesVersion,
};

const INDEX_FORMATS: Formats = Formats::of("Index");
const DOMAIN_FORMATS: Formats = Formats::of("IndexDomain");

/// A position in an array: one number per dimension, the outermost first. Known to builds since
/// version 4.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "Vec<i64>", into = "Vec<i64>"))]
pub struct Index {
    elements: SmallVec<[i64; 4]>,
}

impl Index {
    /// Creates the position with these numbers.
    pub fn new(elements: impl AsRef<[i64]>) -> Self {
        Self { elements: SmallVec::from_slice(elements.as_ref()) }
    }

    /// Returns the first position of an array of this rank.
    pub fn zeros(rank: usize) -> Self {
        Self { elements: SmallVec::from_elem(0, rank) }
    }

    /// Returns one number per dimension.
    pub fn elements(&self) -> &[i64] {
        &self.elements
    }
}

impl From<Vec<i64>> for Index {
    fn from(elements: Vec<i64>) -> Self {
        Self { elements: elements.into() }
    }
}

impl From<Index> for Vec<i64> {
    fn from(index: Index) -> Self {
        index.elements.into_vec()
    }
}

/// Formats as `[0,256]`.
impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.elements)
    }
}

impl FromStr for Index {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let elements: Vec<i64> = parse_list(text).map_err(|rest| {
            not_in_notation("Index", text, rest, "a number a dimension, such as [0,256]")
        })?;
        Ok(elements.into())
    }
}

/// Writes format 0 at version 4 and above.
impl ToProto for Index {
    type Proto = IndexProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<IndexProto, EncodeError> {
        let version_number = INDEX_FORMATS.for_request(version)?;
        Ok(IndexProto { elements: self.elements.to_vec(), version_number })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        INDEX_FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0.
impl FromProto for Index {
    type Proto = IndexProto;
    const NAME: &'static str = "Index";

    fn from_proto(proto: &IndexProto, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        INDEX_FORMATS.check_recorded(proto.version_number)?;
        Ok(Self::new(&proto.elements))
    }
}

/// A box inside an array, given by its origin and its shape. Known to builds since version 4.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct IndexDomain {
    origin: Index,
    shape: Shape,
}

deserialize_checked!(IndexDomain { origin: Index, shape: Shape });

impl IndexDomain {
    /// Creates the box of `shape` that begins at `origin`.
    ///
    /// # Errors
    /// [`IfrtError::RankMismatch`] if the ranks differ.
    pub fn new(origin: Index, shape: Shape) -> Result<Self, IfrtError> {
        if origin.elements.len() != shape.rank() {
            return Err(IfrtError::RankMismatch {
                what: "the origin",
                found: origin.elements.len(),
                other: "the shape",
                expected: shape.rank(),
            });
        }
        Ok(Self { origin, shape })
    }

    /// Returns the box that covers the whole array of `shape`.
    pub fn whole(shape: Shape) -> Self {
        Self { origin: Index::zeros(shape.rank()), shape }
    }

    /// Returns the position of the box's first element.
    pub const fn origin(&self) -> &Index {
        &self.origin
    }

    /// Returns the extent in each dimension.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the extent in each dimension, without a copy.
    pub fn into_shape(self) -> Shape {
        self.shape
    }
}

/// Formats as `[0,256]+[512,256]`: origin, then shape.
impl fmt::Display for IndexDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.origin, self.shape)
    }
}

/// Parses `[0,256]+[512,256]`.
impl FromStr for IndexDomain {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const NOTATION: &str = "an origin and a shape, such as [0,256]+[512,256]";
        let wrong = |rest: &str| not_in_notation("IndexDomain", text, rest, NOTATION);
        let end = text.find(']').map_or(text.len(), |bracket| bracket + 1);
        let (origin, rest) = text.split_at(end);
        let origin: Vec<i64> = parse_list(origin).map_err(wrong)?;
        let rest = rest.trim_start();
        let shape = rest.strip_prefix('+').ok_or_else(|| wrong(rest))?;
        let dims: Vec<i64> = parse_list(shape).map_err(wrong)?;
        Self::new(origin.into(), Shape::new(dims)?)
    }
}

/// Writes format 0 at version 4 and above.
impl ToProto for IndexDomain {
    type Proto = IndexDomainProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<IndexDomainProto, EncodeError> {
        let version_number = DOMAIN_FORMATS.for_request(version)?;
        Ok(IndexDomainProto {
            origin: Some(self.origin.to_proto(version)?),
            shape: Some(self.shape.to_proto(version)?),
            version_number,
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        DOMAIN_FORMATS.for_request(version)?;
        self.origin.can_serialize_at(version)?;
        self.shape.can_serialize_at(version)
    }
}

/// Accepts format 0. Origin and shape must have the same rank.
impl FromProto for IndexDomain {
    type Proto = IndexDomainProto;
    const NAME: &'static str = "IndexDomain";

    fn from_proto(
        proto: &IndexDomainProto,
        options: &DeserializeOptions,
    ) -> Result<Self, DecodeError> {
        DOMAIN_FORMATS.check_recorded(proto.version_number)?;
        let origin = Index::from_proto(&proto.origin.clone().unwrap_or_default(), options)?;
        let shape = Shape::from_proto(&proto.shape.clone().unwrap_or_default(), options)?;
        Self::new(origin, shape).map_err(|error| error.decoding(Self::NAME))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_and_boxes_print_what_they_are_read_from(
            numbers in prop::collection::vec((any::<i64>(), 0..i64::MAX), 0..6)
        ) {
            let (elements, dims): (Vec<_>, Vec<_>) = numbers.into_iter().unzip();
            let index = Index::new(elements);
            prop_assert_eq!(index.to_string().parse(), Ok(index.clone()));
            let domain = IndexDomain::new(index, Shape::new(dims).unwrap()).unwrap();
            prop_assert_eq!(domain.to_string().parse(), Ok(domain));
        }
    }

    #[test]
    fn an_error_says_where_a_box_stops_being_one() {
        for (text, position) in [
            ("", 0),
            ("[0]", 3),
            ("[0]-[1]", 3),
            ("[0]+", 4),
            ("[0]+[1", 6),
            ("[a]+[1]", 1),
            ("[0]+[b]", 5),
        ] {
            let error = text.parse::<IndexDomain>().unwrap_err().to_string();
            assert!(error.contains(&format!("at byte {position}; expected an origin")), "{error}");
        }
        assert!(matches!("[0]+[1,2]".parse::<IndexDomain>(), Err(IfrtError::RankMismatch { .. })));
        assert!(matches!(
            "[0]+[-1]".parse::<IndexDomain>(),
            Err(IfrtError::NegativeDimension { .. })
        ));
    }

    #[test]
    fn origin_and_shape_have_the_same_rank() {
        let shape = Shape::new([2, 3]).unwrap();
        assert!(IndexDomain::new(Index::new([0]), shape.clone()).is_err());
        let domain = IndexDomain::new(Index::new([4, -1]), shape.clone()).unwrap();
        assert_eq!(domain.to_string(), "[4,-1]+[2,3]");
        assert_eq!(IndexDomain::whole(shape).origin(), &Index::zeros(2));
    }
}
