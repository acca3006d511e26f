//! The rules of reasons and warnings: one table with the meaning and the messages of each.
//!
//! A rule is one row of [`table`]: id, verdict, meaning, example, remedy, and its messages. The
//! output of `serdes explain`, `docs/rules.md` and the messages of verdicts are generated from the
//! row. Does not depend on artifacts or on options of the command.

mod define;
mod lookup;
mod table;
mod warnings;

use define::rules;

pub(super) use self::table::{Message, messages};
pub use self::{define::Explanation, lookup::UnknownRule, table::Rule};
