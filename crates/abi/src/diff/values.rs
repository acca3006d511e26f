//! Compares the values of an enumeration.

use std::collections::HashMap;

use super::{changes::Changes, layout::Structure, outcome::Bump};

/// Checks that each number of an enumeration keeps its name and its meaning.
pub(super) fn compare_values(before: &Structure, after: &Structure, changes: &mut Changes) {
    let numbers = |structure: &'_ Structure| -> HashMap<String, i64> {
        structure.values.iter().cloned().collect()
    };
    let (known, found) = (numbers(before), numbers(after));
    for (value, number) in &before.values {
        let (change, why) = match found.get(value) {
            Some(same) if same == number => continue,
            Some(other) => ("repurposed", format!("its number was {number} and is {other}")),
            None => ("removed", "older builds still send it".to_owned()),
        };
        changes.add(&before.name, value, change, Bump::Major, why);
    }
    let meant: HashMap<i64, &str> =
        before.values.iter().map(|(value, number)| (*number, value.as_str())).collect();
    for (value, number) in &after.values {
        if known.contains_key(value) {
            continue;
        }
        match meant.get(number) {
            Some(old) if found.get(*old) != Some(number) => {
                let why = format!("its number {number} meant {old}");
                changes.add(&before.name, value, "repurposed", Bump::Major, why);
            }
            _ => {
                let why = "a new value is a backwards compatible addition".to_owned();
                changes.add(&before.name, value, "added", Bump::Minor, why);
            }
        }
    }
}
