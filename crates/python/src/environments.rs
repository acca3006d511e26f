//! Checks if the packages of an environment are compatible, and returns the report like the
//! command.

use std::path::PathBuf;

use pyo3::{
    exceptions::{PyOSError, PyValueError},
    prelude::*,
};
use serdes_cli::EnvironmentQuestion;

/// Returns the answers about the environments at a path, or of an interpreter, which is not run: a
/// list of objects, each with the text for people.
#[pyfunction]
pub(crate) fn doctor(
    py: Python<'_>,
    path: PathBuf,
    is_interpreter: bool,
    artifacts: Vec<PathBuf>,
    strict: bool,
    verify_files: bool,
) -> PyResult<String> {
    let question = EnvironmentQuestion { artifacts, strict, verify_files };
    let answers =
        py.detach(
            || {
                if is_interpreter { question.ask_of_python(&path) } else { question.ask(&path) }
            },
        );
    let answers = answers.map_err(|error| match error {
        error @ serdes_cli::ReadError::System { .. } => PyOSError::new_err(error.to_string()),
        error => PyValueError::new_err(error.to_string()),
    })?;
    let objects: Vec<_> = answers
        .iter()
        .map(|answer| serde_json::json!({"object": answer.to_json(), "text": answer.to_string()}))
        .collect();
    Ok(serde_json::Value::from(objects).to_string())
}
