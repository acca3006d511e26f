//! The answers of `serdes doctor`, for a program that has another way to ask.

use std::path::PathBuf;

use serdes_doctor::{Diagnosis, Environment, ReadError, diagnose, judge_safetensors};

use crate::commands::PluginFiles;

/// A question about environments.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentQuestion {
    /// Artifacts that the environments are to load.
    pub artifacts: Vec<PathBuf>,
    /// Tells whether warnings count as problems.
    pub strict: bool,
    /// Tells whether the contents of files are compared with the records of their packages.
    pub verify_files: bool,
}

impl EnvironmentQuestion {
    /// Returns the answers about the environments at a path, a folder or a lock file.
    ///
    /// # Errors
    /// [`ReadError`] for what is no environment, cannot be read, or is damaged.
    pub fn ask(&self, path: &std::path::Path) -> Result<Vec<Diagnosis>, ReadError> {
        Ok(self.judge(Environment::read(path)?))
    }

    /// Returns the answers about the environment of an interpreter, which is not run.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn ask_of_python(&self, executable: &std::path::Path) -> Result<Vec<Diagnosis>, ReadError> {
        Ok(self.judge(Environment::of_python(executable)?))
    }

    /// Returns the answers about environments that were read.
    pub(crate) fn judge(&self, environments: Vec<Environment>) -> Vec<Diagnosis> {
        let answer = |mut environment: Environment| {
            if self.verify_files {
                environment.verify_files();
            }
            let mut diagnosis = diagnose(&environment, &PluginFiles);
            diagnosis.strict = self.strict;
            for artifact in &self.artifacts {
                let found = judge_safetensors(&environment, artifact, &PluginFiles);
                diagnosis.problems.extend(found);
            }
            diagnosis
        };
        environments.into_iter().map(answer).collect()
    }
}
