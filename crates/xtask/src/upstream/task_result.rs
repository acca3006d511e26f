//! The result of a step of a task.

use std::error::Error;

/// A value, or any error, which the task prints.
pub(super) type TaskResult<T> = Result<T, Box<dyn Error>>;
