//! Describes values of a pickle for messages.

use super::{
    super::error::cut,
    globals::Known,
    value::{Value, ValueId, Values},
};

/// Limit on the nested calls that are followed to the name of a class.
const MOST_WRAPPERS: usize = 8;

/// Returns the description of a value, for people.
pub(super) fn describe(values: &Values, id: ValueId) -> String {
    match values.get(id) {
        Value::Global(_) => format!("the name {}", name_of(values, id)),
        Value::Call { function, .. } => match values.known(function) {
            Some(Known::Encode) => "bytes".to_owned(),
            _ => format!("an object of {}", name_of(values, function)),
        },
        other => other.type_name().to_owned(),
    }
}

/// Maximum number of characters of a module or a class that are shown.
const SHOWN: usize = 256;

/// Returns the name of a class or a function, truncated for messages.
pub(super) fn name_of(values: &Values, id: ValueId) -> String {
    let mut id = id;
    // A called object has the name of the call that created it.
    for _ in 0..MOST_WRAPPERS {
        match values.get(id) {
            Value::Global(global) => {
                let (module, name) = values.names(&global);
                let head = |text: &str| text.chars().take(SHOWN).collect::<String>();
                return cut(&format!("{}.{}", head(module), head(name)));
            }
            Value::Call { function, .. } => id = function,
            Value::Persistent(outside) => {
                match values.items(outside).and_then(|mut id| id.nth(1)) {
                    Some(class) => id = class,
                    None => break,
                }
            }
            _ => break,
        }
    }
    "a class without a name".to_owned()
}
