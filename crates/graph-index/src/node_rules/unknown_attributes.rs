//! Attributes that a release does not know and ignores, although their values matter.

use super::diagnostic::cut;
use crate::{
    attributes::{AttributeValue, Attributes},
    ops::{Operation, Registry},
};

/// An attribute of a node that the definition of its operation does not have, and whose value is
/// not the default of the newest release that knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownAttribute {
    /// Its name.
    pub attribute: &'static str,
    /// Its value as displayed, cut to 256 bytes.
    pub value: String,
    /// The first release that knows it, `MAJOR.MINOR`.
    pub since: Option<&'static str>,
    /// The last release that knows it, `MAJOR.MINOR`.
    pub until: Option<&'static str>,
}

/// Attributes that affect only messages: releases before them compute the same.
const WITHOUT_EFFECT: [&str; 1] = ["debug_name"];

/// Returns the attributes that a consumer ignores because its definition of the operation lacks
/// them. Attributes that no release knows are left out, as their meaning is unknown. So are all of
/// an operation known only by name.
pub fn unknown_attributes(
    operation: Operation<'_>,
    attributes: &Attributes,
) -> Vec<UnknownAttribute> {
    if operation.is_name_alone() {
        return Vec::new();
    }
    // No release knows a name with this prefix, and exporters add such attributes to most nodes.
    let is_kept = |(name, _): (&[u8], _)| {
        let is_known = |name| operation.attribute(name).is_some();
        name.starts_with(b"_") || std::str::from_utf8(name).is_ok_and(is_known)
    };
    if attributes.iter().all(is_kept) {
        return Vec::new();
    }
    let Some(history) = Registry::operation_of_any_release(operation.name()) else {
        return Vec::new();
    };
    let unknown = history.attributes_of_any_release();
    let unknown = unknown.into_iter().filter(|other| {
        operation.attribute(other.name()).is_none() && !WITHOUT_EFFECT.contains(&other.name())
    });
    unknown
        .filter_map(|other| {
            let value = attributes.get(other.name())?;
            let is_said = !matches!(value, AttributeValue::None)
                && !other.default().is_some_and(|default| value.equals(default));
            let releases = history.attribute_releases(other.name());
            is_said.then(|| UnknownAttribute {
                attribute: other.name(),
                value: cut(&value.to_string()),
                since: releases.map(|(first, _)| first),
                until: releases.map(|(_, last)| last),
            })
        })
        .collect()
}
