//! Turns the rows of the table into the rules, what explains them, and the messages about them.
//!
//! Knows the form of a row. It must never know a rule.

/// The text of `serdes explain` about a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The meaning of the rule.
    pub meaning: &'static str,
    /// A case in which it refuses.
    pub example: &'static str,
    /// The remedy.
    pub remedy: &'static str,
    /// The messages about artifacts, with `{}` around the parts that vary. Diagnostics that the
    /// reader of a format finds have the reader's own messages.
    pub messages: &'static [&'static str],
}

/// Defines the rules, one row each:
///
/// ```text
/// /// What the variant stands for.
/// Variant = "id", Outcome {
///     meaning: "…",
///     example: "…",
///     remedy: "…",
///     messages {
///         name(number, limit): "the number is {number}, and at most {limit} is read";
///     }
/// }
/// ```
///
/// Each message becomes a function `messages::name`, which takes what stands between the braces.
macro_rules! rules {
    ($(
        $(#[$doc:meta])*
        $variant:ident = $id:literal, $outcome:ident {
            meaning: $meaning:literal,
            example: $example:literal,
            remedy: $remedy:literal,
            messages { $($message:ident($($value:ident),*): $template:literal;)* }
        }
    )*) => {
        /// Why an artifact is refused or warned about; its id is what programs compare.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Rule { $($(#[$doc])* $variant,)* }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the id, for programs.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// Returns the verdict on an artifact for which this is a reason: unacceptable, or
            /// unreadable.
            #[must_use]
            pub const fn outcome(self) -> Outcome {
                match self { $(Self::$variant => Outcome::$outcome,)* }
            }

            /// Returns the meaning of the rule, an example and the remedy.
            #[must_use]
            pub const fn explain(self) -> Explanation {
                match self {
                    $(Self::$variant => Explanation {
                        meaning: $meaning,
                        example: $example,
                        remedy: $remedy,
                        messages: &[$($template),*],
                    },)*
                }
            }
        }

        /// A sentence about an artifact, and the rule that it is about.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) struct Message {
            pub(crate) rule: Rule,
            pub(crate) text: String,
        }

        /// The messages of the rows, by name.
        pub(crate) mod messages {
            use std::fmt::Display;

            use $crate::rule::{Message, Rule};

            $($(
                pub(crate) fn $message($($value: impl Display),*) -> Message {
                    let text = std::fmt::format(format_args!($template));
                    Message { rule: Rule::$variant, text }
                }
            )*)*
        }
    };
}

pub(super) use rules;
