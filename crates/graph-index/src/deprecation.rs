//! Deprecated operations of TensorFlow, with the GraphDef version from which graphs may not use
//! them.
//!
//! Depends on the list and the rule for one operation. The graph reader decides which nodes are
//! checked, and in which order.

use std::{collections::HashMap, sync::LazyLock};

use serdes_abi::ErrorKind;

/// An operation that graphs of newer producers may not use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeprecatedOperation {
    /// The operation's type, as in `NodeDef.op`.
    pub name: String,
    /// Graphs whose producer is this GraphDef version or newer are refused.
    pub version: i32,
    /// The operation to use instead, if one does the same.
    pub replacement: Option<String>,
}

/// A list of deprecated operations: TensorFlow's, or a custom one.
///
/// ```
/// use serdes_graph_index::{DeprecatedOperation, DeprecatedOperations};
///
/// let known = DeprecatedOperations::tensorflow();
/// assert_eq!(known.get("TopK").map(|operation| operation.version), Some(7));
///
/// let ours = known.clone().with([DeprecatedOperation { name: "OurFusedOp".into(), version: 2000, replacement: None }]);
/// assert!(ours.get("OurFusedOp").is_some());
/// ```
#[derive(Clone, Debug, Default)]
pub struct DeprecatedOperations {
    entries: Vec<DeprecatedOperation>,
    positions: HashMap<String, usize>,
    /// A bit set of the lengths that occur, by the first byte of a name (lengths above 63 count as
    /// 63): it rejects most operations of a graph without a look-up.
    lengths: Vec<u64>,
}

/// The error of a list that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeprecationListError {
    /// The text is not a list of deprecated operations.
    #[error(
        "the list of deprecated operations cannot be read ({0}); it must be JSON: {{\"deprecated\": [{{\"name\": …, \"version\": …, \"replacement\": …}}]}}"
    )]
    Syntax(#[from] serde_json::Error),
    /// An entry has no name, or its version is not a 32-bit number.
    #[error(
        "entry {0} of the list of deprecated operations is not {{\"name\": text, \"version\": number, \"replacement\": text or null}}"
    )]
    Entry(usize),
    /// The JSON has no list.
    #[error(
        "the list of deprecated operations must be JSON with a field \"deprecated\" that is an array"
    )]
    NoList,
}

impl DeprecationListError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Syntax(_) | Self::Entry(_) | Self::NoList => ErrorKind::InvalidInput,
        }
    }
}

static TENSORFLOW: LazyLock<DeprecatedOperations> = LazyLock::new(|| {
    // A test reads the file, so that the fallback is never taken.
    DeprecatedOperations::from_json(include_str!("deprecated_ops.json")).unwrap_or_default()
});

fn operation(entry: &serde_json::Value) -> Option<DeprecatedOperation> {
    let replacement = match entry.get("replacement") {
        None | Some(serde_json::Value::Null) => None,
        Some(replacement) => Some(replacement.as_str()?.to_owned()),
    };
    Some(DeprecatedOperation {
        name: entry.get("name")?.as_str()?.to_owned(),
        version: i32::try_from(entry.get("version")?.as_i64()?).ok()?,
        replacement,
    })
}

impl DeprecatedOperations {
    /// Returns the 63 operations that TensorFlow 2.12 to 2.21 refuse, each measured.
    #[must_use]
    pub fn tensorflow() -> &'static Self {
        &TENSORFLOW
    }

    /// Parses a list from JSON: `{"deprecated": [{"name": "TopK", "version": 7, "replacement":
    /// "TopKV2"}]}`; other fields are ignored.
    ///
    /// # Errors
    /// [`DeprecationListError`] if the text is malformed.
    pub fn from_json(text: &str) -> Result<Self, DeprecationListError> {
        let file: serde_json::Value = serde_json::from_str(text)?;
        let list = file
            .get("deprecated")
            .and_then(|list| list.as_array())
            .ok_or(DeprecationListError::NoList)?;
        let operations: Result<Vec<_>, _> = list
            .iter()
            .enumerate()
            .map(|(position, entry)| operation(entry).ok_or(DeprecationListError::Entry(position)))
            .collect();
        Ok(Self::default().with(operations?))
    }

    /// Adds operations to the list; they replace those of the same name.
    #[must_use]
    pub fn with(mut self, operations: impl IntoIterator<Item = DeprecatedOperation>) -> Self {
        self.lengths.resize(256, 0);
        for operation in operations {
            let name = operation.name.as_bytes();
            let first = usize::from(name.first().copied().unwrap_or_default());
            if let Some(lengths) = self.lengths.get_mut(first) {
                *lengths |= 1 << name.len().min(63);
            }
            match self.positions.get(&operation.name) {
                Some(position) => {
                    if let Some(entry) = self.entries.get_mut(*position) {
                        *entry = operation;
                    }
                }
                None => {
                    self.positions.insert(operation.name.clone(), self.entries.len());
                    self.entries.push(operation);
                }
            }
        }
        self
    }

    /// Returns the operation with this name, if it is on the list.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&DeprecatedOperation> {
        self.entries.get(self.position(name.as_bytes())?)
    }

    /// Returns the whole list.
    #[must_use]
    pub fn entries(&self) -> &[DeprecatedOperation] {
        &self.entries
    }

    /// Returns the operation with this name, and its position in the list.
    pub fn find_entry(&self, name: &[u8]) -> Option<(u32, &DeprecatedOperation)> {
        let position = self.position(name)?;
        Some((u32::try_from(position).ok()?, self.entries.get(position)?))
    }

    #[inline]
    pub fn position(&self, name: &[u8]) -> Option<usize> {
        let first = usize::from(*name.first()?);
        if self.lengths.get(first)? & (1 << name.len().min(63)) == 0 {
            return None;
        }
        self.find(name)
    }

    #[inline(never)]
    fn find(&self, name: &[u8]) -> Option<usize> {
        self.positions.get(std::str::from_utf8(name).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensorflows_list_has_its_63_operations() {
        let list = DeprecatedOperations::tensorflow();
        assert_eq!(list.entries().len(), 63);
        assert_eq!(list.entries().iter().map(|operation| operation.version).max(), Some(29));
        let top_k = list.get("TopK").unwrap();
        assert_eq!((top_k.version, top_k.replacement.as_deref()), (7, Some("TopKV2")));
        assert!(list.get("TopKV2").is_none());
        assert!(list.get("").is_none());
        assert_eq!(list.get("Old").unwrap().replacement, None);
    }

    #[test]
    fn an_operation_of_the_users_own_replaces_one_of_the_same_name() {
        let list = DeprecatedOperations::tensorflow().clone().with([DeprecatedOperation {
            name: "TopK".into(),
            version: 100,
            replacement: None,
        }]);
        assert_eq!(list.entries().len(), 63);
        assert_eq!(list.get("TopK").unwrap().version, 100);
    }

    #[test]
    fn a_list_that_is_no_list_is_an_error_that_shows_the_form() {
        let error = DeprecatedOperations::from_json("[]").unwrap_err();
        assert!(error.to_string().contains("\"deprecated\""), "{error}");
        let error =
            DeprecatedOperations::from_json(r#"{"deprecated": [{"name": "A", "version": 3e9}]}"#)
                .unwrap_err();
        assert!(error.to_string().contains("entry 0"), "{error}");
    }
}
