//! Parser of custom lists of operations, in each of the supported forms.
//!
//! Does not depend on the source of a list.

use serde_json::Value as Json;
use serdes_files::ReadAt;

use super::{ListError, OperationDefinition, Registry, op_list};

/// Reads a list of operations: JSON objects in the form of [`OperationDefinition::to_json`], one
/// after another or in an array; a serialized `OpList`; or names, one per line, with comments after
/// `#`. An operation given by name alone takes any inputs and attributes.
///
/// ```
/// use serdes_operations::{Registry, read_list};
///
/// let ours = read_list(b"# what our library adds\nOurFusedOp\nOurGather\n")?;
/// let registry = Registry::tensorflow("2.16")?.with(ours);
/// assert!(registry.operation("OurFusedOp").unwrap().is_name_alone());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ListError`], with the entry or line that is not an operation.
pub fn read_list(list: &[u8]) -> Result<Vec<OperationDefinition>, ListError> {
    let first = list.iter().find(|byte| !byte.is_ascii_whitespace());
    let operations = match first {
        Some(b'{' | b'[' | b'"') => objects(list)?,
        _ => match serialized(list) {
            Some(operations) => operations?,
            None => names(list)?,
        },
    };
    if operations.is_empty() { Err(ListError::Empty) } else { Ok(operations) }
}

/// Returns the operations of a serialized `OpList`; `None` for text. Either form may begin with an
/// empty line.
fn serialized(list: &[u8]) -> Option<Result<Vec<OperationDefinition>, ListError>> {
    let is_of_text = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
    match op_list::of_bytes(list) {
        Ok(operations) => Some(Ok(operations)),
        Err(error) => {
            (list.first() == Some(&b'\n') && !list.iter().all(is_of_text)).then_some(Err(error))
        }
    }
}

/// Reads the custom operations of a SavedModel (`saved_model.pb`): those of its `stripped_op_list`
/// that no release of TensorFlow has. TensorFlow's own operations are left out, because the model
/// lists them as its producer had them, and the consumer's release decides.
///
/// The list may be empty. Of the model only the bytes around its lists are read.
///
/// # Errors
/// [`ListError`], also if the model lists no operations at all.
pub fn read_saved_model(
    source: &(impl ReadAt + ?Sized),
) -> Result<Vec<OperationDefinition>, ListError> {
    let mut operations = op_list::of_saved_model(source)?.ok_or(ListError::NotListed)?;
    operations.retain(|one| Registry::operation_of_any_release(&one.name).is_none());
    Ok(operations)
}

fn objects(list: &[u8]) -> Result<Vec<OperationDefinition>, ListError> {
    let mut operations = Vec::new();
    for value in serde_json::Deserializer::from_slice(list).into_iter::<Json>() {
        match value.map_err(|error| ListError::Json(error.to_string()))? {
            Json::Array(entries) => {
                for entry in &entries {
                    operations.push(OperationDefinition::from_json(None, entry)?);
                }
            }
            entry => operations.push(OperationDefinition::from_json(None, &entry)?),
        }
    }
    Ok(operations)
}

fn names(list: &[u8]) -> Result<Vec<OperationDefinition>, ListError> {
    let mut operations = Vec::new();
    for (position, line) in list.split(|byte| *byte == b'\n').enumerate() {
        let name = line.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
        if name.is_empty() {
            continue;
        }
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_>.".contains(byte);
        if !name.iter().all(is_name) {
            let found = String::from_utf8_lossy(name).chars().take(80).collect();
            return Err(ListError::Name { line: position + 1, found });
        }
        operations.push(OperationDefinition::of_name(String::from_utf8_lossy(name)));
    }
    Ok(operations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;

    #[test]
    fn printed_release_is_a_list() {
        let registry = Registry::tensorflow("2.12").unwrap();
        let printed: Vec<String> = registry
            .operations()
            .map(|operation| operation.to_definition().to_json().to_string())
            .collect();
        let read = read_list(printed.join("\n").as_bytes()).unwrap();
        assert_eq!(read.len(), printed.len());
        let array = read_list(format!("[{}]", printed.join(",")).as_bytes()).unwrap();
        assert_eq!(read, array);
        let again = registry.operation("MatMul").unwrap().to_definition();
        assert!(read.contains(&again));
    }

    #[test]
    fn names_are_operations_of_which_nothing_else_is_known() {
        let read = read_list(b"  Ours  # the fused one\n\n#Theirs\nScope>Op").unwrap();
        let names: Vec<&str> = read.iter().map(|operation| operation.name.as_str()).collect();
        assert_eq!(names, ["Ours", "Scope>Op"]);
        let json = read_list(br#"["Ours", {"name": "Scope>Op", "is_name_alone": true}]"#).unwrap();
        assert_eq!(read, json);
        let registry = Registry::tensorflow("2.12").unwrap().with(read);
        assert!(registry.operation("Ours").unwrap().is_name_alone());
        assert!(!registry.operation("MatMul").unwrap().is_name_alone());
        assert_eq!(registry.operation("Ours").unwrap().to_definition().to_string(), "Ours");
    }

    #[test]
    fn invalid_list_is_refused_with_line_and_expected_form() {
        for (list, named) in [
            (&b""[..], "names no operation"),
            (b"# nothing\n", "names no operation"),
            (b"Ours\nhello world", "line 2"),
            (b"\x00\xff", "line 1"),
            (b"{\"name\": ", "no JSON"),
            (b"[1]", "an object or a name"),
            (b"{\"inputs\": []}", "the operation's name"),
        ] {
            let error = read_list(list).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
