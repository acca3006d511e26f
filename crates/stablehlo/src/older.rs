//! Earlier forms of operations, and the attributes that they lack.
//!
//! Adding an attribute gives an operation a new form. Where the attribute has the value that its
//! absence implies, the earlier form means the same.

use super::{
    StableHloVersion,
    bytecode::{Bytecode, Cursor},
    catalogue::{self, VHLO, attribute_code, type_code},
    properties::attributes_of,
};

/// An earlier form of an operation.
#[derive(Debug)]
pub(super) struct Older {
    name: &'static str,
    pub(super) to: &'static str,
    pub(super) uses: Uses,
    /// Number of attributes in the newer form.
    count: usize,
    /// Indices of the attributes that the earlier form lacks, ascending.
    pub(super) left_out: &'static [usize],
    /// The value of these attributes that the earlier form implies.
    neutral: Neutral,
}

/// The uses of an operation that are possible in its earlier form as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uses {
    Any,
    OfOneOperand,
    WithoutRegions,
}

/// The value of an attribute that its absence implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neutral {
    False,
    EmptyArray,
    EmptyTensor,
    /// The none type.
    NoType,
    /// No tolerances, and the mode `DEFAULT`.
    DefaultAccuracy,
}

const fn older(
    name: &'static str,
    to: &'static str,
    count: usize,
    left_out: &'static [usize],
    neutral: Neutral,
) -> Older {
    Older { name, to, uses: Uses::Any, count, left_out, neutral }
}

/// Returns an operation whose only attribute is the accuracy of its result.
const fn exact(name: &'static str, to: &'static str) -> Older {
    older(name, to, 1, &[0], Neutral::DefaultAccuracy)
}

/// Returns an earlier form that differs only in the permitted uses.
const fn used(name: &'static str, to: &'static str, uses: Uses) -> Older {
    Older { name, to, uses, count: 0, left_out: &[], neutral: Neutral::False }
}

const FORMS: [Older; 24] = [
    used("all_gather_v2", "all_gather_v1", Uses::OfOneOperand),
    used("all_reduce_v2", "all_reduce_v1", Uses::OfOneOperand),
    used("all_to_all_v2", "all_to_all_v1", Uses::OfOneOperand),
    exact("cbrt_v2", "cbrt_v1"),
    Older {
        uses: Uses::OfOneOperand,
        ..older("collective_broadcast_v2", "collective_broadcast_v1", 3, &[1], Neutral::False)
    },
    used("composite_v2", "composite_v1", Uses::WithoutRegions),
    exact("cosine_v2", "cosine_v1"),
    older("custom_call_v2", "custom_call_v1", 9, &[8], Neutral::EmptyArray),
    older("dot_general_v2", "dot_general_v1", 12, &[0, 1, 3, 5, 6, 9, 11], Neutral::NoType),
    older("dynamic_gather_v2", "dynamic_gather_v1", 7, &[4, 6], Neutral::EmptyTensor),
    exact("exponential_minus_one_v2", "exponential_minus_one_v1"),
    exact("exponential_v2", "exponential_v1"),
    older("gather_v2", "gather_v1", 8, &[4, 7], Neutral::EmptyTensor),
    exact("log_plus_one_v2", "log_plus_one_v1"),
    exact("log_v2", "log_v1"),
    exact("logistic_v2", "logistic_v1"),
    older("recv_v2", "recv_v1", 4, &[3], Neutral::EmptyTensor),
    exact("rsqrt_v2", "rsqrt_v1"),
    older("scatter_v2", "scatter_v1", 8, &[2, 5], Neutral::EmptyTensor),
    older("send_v2", "send_v1", 4, &[3], Neutral::EmptyTensor),
    exact("sine_v2", "sine_v1"),
    exact("sqrt_v2", "sqrt_v1"),
    exact("tan_v2", "tan_v1"),
    exact("tanh_v2", "tanh_v1"),
];

/// Returns the earlier form of an operation.
pub(super) fn of(name: &str) -> Option<&'static Older> {
    FORMS.iter().find(|older| older.name == name)
}

impl Older {
    /// Returns the version that introduced the earlier form.
    pub(super) fn since(&self) -> Option<StableHloVersion> {
        catalogue::operation(self.to)
    }

    /// Returns true if the earlier form has no attributes, and so no properties.
    pub(super) fn has_no_properties(&self) -> bool {
        self.count > 0 && self.count == self.left_out.len()
    }

    /// Returns true if these are the properties of the newer form, and the attributes that the
    /// earlier one lacks have their implied values.
    pub(super) fn holds_in(&self, file: &Bytecode<'_>, properties: &[u8]) -> bool {
        if self.left_out.is_empty() {
            return true;
        }
        let Some(attributes) = attributes_of(properties) else { return false };
        let says_nothing = |place: &usize| {
            let attribute = attributes.get(*place).and_then(|left| file.attribute(*left, VHLO));
            attribute.is_some_and(|(code, rest)| self.neutral.is(file, code, rest) == Some(true))
        };
        attributes.len() == self.count && self.left_out.iter().all(says_nothing)
    }
}

impl Neutral {
    /// Returns true if an attribute has this value; `None` if it cannot be read.
    fn is(self, file: &Bytecode<'_>, code: u64, mut rest: Cursor<'_>) -> Option<bool> {
        let is_it = match self {
            Self::False => code == attribute_code::BOOLEAN && rest.varint().ok()? == 0,
            Self::EmptyArray => code == attribute_code::ARRAY && rest.varint().ok()? == 0,
            Self::EmptyTensor => {
                rest.varint().ok()?;
                code == attribute_code::TENSOR && rest.stretch().ok()?.is_empty()
            }
            Self::NoType => {
                let of = usize::try_from(rest.varint().ok()?).ok()?;
                let found = file.types.get(of).and_then(|entry| file.code(entry, VHLO));
                code == attribute_code::TYPE
                    && found.is_some_and(|(code, _)| code == type_code::NONE)
            }
            Self::DefaultAccuracy => {
                for _ in 0..3 {
                    if rest.varint().ok()? != 0 {
                        return Some(false);
                    }
                }
                let (mode, mut value) = file.attribute(rest.varint().ok()?, VHLO)?;
                code == attribute_code::ACCURACY
                    && mode == attribute_code::ACCURACY_MODE
                    && value.varint().ok()? == 0
            }
        };
        Some(is_it && rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_forms_are_older_than_the_later_ones() {
        for form in &FORMS {
            let since = catalogue::operation(form.name).unwrap();
            assert!(form.since().unwrap() < since, "{}", form.name);
            assert!(form.left_out.iter().all(|place| *place < form.count), "{}", form.name);
            assert!(form.left_out.is_sorted(), "{}", form.name);
        }
        assert!(of("add_v1").is_none() && of("tan_v2").is_some());
    }
}
