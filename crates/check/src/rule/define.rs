//! Generates the rules, their explanations and their messages from the rows of the table.
//!
//! Depends on the form of a row, but not on any rule.

/// The text of `serdes explain` about a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The meaning of the rule.
    pub meaning: &'static str,
    /// A case in which the rule refuses an artifact.
    pub example: &'static str,
    /// The remedy.
    pub remedy: &'static str,
    /// The messages about artifacts, with `{}` around the parts that vary. Diagnostics of the
    /// reader of a format have the reader's own messages.
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
        /// The reason why an artifact is refused or warned about; programs compare its id.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Rule { $($(#[$doc])* $variant,)* }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the id of the rule, for programs.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// Returns the outcome for an artifact that breaks the rule: unacceptable or
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

        /// A message about an artifact, with its rule.
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
