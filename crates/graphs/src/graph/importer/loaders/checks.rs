//! The checks of a loader in their order.
//!
//! The first diagnostic counts. Does not depend on the individual loader.

use crate::graph::{ImportDiagnostic, LoaderVerdict, importer::evidence::Evidence};

/// A check of a loader, as the diagnostic of the evidence that it finds.
pub(super) type Check = fn(&Evidence) -> Option<&ImportDiagnostic>;

/// The checks of a loader in its order.
#[derive(Clone, Copy)]
pub(super) struct Checks {
    /// The checks before the check of the graph's versions.
    pub(super) before_versions: &'static [Check],
    pub(super) after_versions: &'static [Check],
}

impl Checks {
    /// Returns the first diagnostic that the loader finds.
    pub(super) fn verdict(self, evidence: &Evidence) -> LoaderVerdict {
        let first = |checks: &[Check]| checks.iter().find_map(|check| check(evidence)).cloned();
        match first(self.before_versions) {
            diagnostic @ Some(_) => LoaderVerdict { diagnostic, is_before_versions: true },
            None => {
                let diagnostic = first(self.after_versions);
                LoaderVerdict { diagnostic, is_before_versions: false }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::ImportDiagnosticKind;

    fn diagnostic(found: &str) -> Option<ImportDiagnostic> {
        Some(ImportDiagnostic {
            kind: ImportDiagnosticKind::Python,
            node: String::new(),
            function: None,
            operation: String::new(),
            found: found.to_owned(),
            expected: String::new(),
        })
    }

    #[test]
    fn checks_find_the_first_diagnostic_of_their_order() {
        let checks = Checks {
            before_versions: &[|found| found.session.as_ref()],
            after_versions: &[|found| found.import.as_ref(), |found| found.saver.as_ref()],
        };
        let mut evidence = Evidence {
            import: diagnostic("import"),
            saver: diagnostic("saver"),
            ..Evidence::default()
        };
        let mut verdict = |session| {
            evidence.session = session;
            let LoaderVerdict { diagnostic, is_before_versions } = checks.verdict(&evidence);
            (diagnostic.map(|diagnostic| diagnostic.found), is_before_versions)
        };
        assert_eq!(verdict(None), (Some("import".to_owned()), false));
        assert_eq!(verdict(diagnostic("session")), (Some("session".to_owned()), true));
        assert!(checks.verdict(&Evidence::default()).diagnostic.is_none());
    }
}
