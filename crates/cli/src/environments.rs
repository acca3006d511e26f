//! Diagnoses of `serdes doctor`, for programs other than the command.

use std::path::PathBuf;

use serdes_doctor::{Diagnosis, Environment, ReadError, diagnose, judge_safetensors};

use crate::commands::PluginFiles;

/// A request for the diagnosis of environments.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentQuestion {
    /// Artifacts that the environments are to load.
    pub artifacts: Vec<PathBuf>,
    /// True if warnings count as problems.
    pub strict: bool,
    /// True if the contents of files are compared with the records of their packages.
    pub verify_files: bool,
}

impl EnvironmentQuestion {
    /// Diagnoses the environments at a path, which is a folder or a lock file.
    ///
    /// # Errors
    /// [`ReadError`] if the path is not an environment, cannot be read, or is damaged.
    pub fn ask(&self, path: &std::path::Path) -> Result<Vec<Diagnosis>, ReadError> {
        Ok(self.judge(Environment::read(path)?))
    }

    /// Diagnoses the environment of an interpreter, which is not run.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn ask_of_python(&self, executable: &std::path::Path) -> Result<Vec<Diagnosis>, ReadError> {
        Ok(self.judge(Environment::of_python(executable)?))
    }

    /// Diagnoses environments that were read.
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
