//! The rules that reasons and warnings follow from: one table of what each means and says.
//!
//! A rule is one row of [`table`]: id, verdict, meaning, example, remedy, and the messages that are
//! about it. What `serdes explain` prints, `docs/rules.md` and the messages of verdicts come from
//! the row. It must never know an artifact, nor an option of the command.

mod define;
mod lookup;
mod table;
mod warnings;

use define::rules;

pub(super) use self::table::{Message, messages};
pub use self::{define::Explanation, lookup::UnknownRule, table::Rule};
