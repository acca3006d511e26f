//! The checks of a loader in their order.
//!
//! Knows that the first fault counts. It must never know which loader it is.

use crate::graph::{ImportFault, LoaderVerdict, importer::evidence::Evidence};

/// A check of a loader, as the fault of the evidence that it finds.
pub(super) type Check = fn(&Evidence) -> Option<&ImportFault>;

/// The checks of a loader in its order.
#[derive(Clone, Copy)]
pub(super) struct Checks {
    /// The checks that come before that of the graph's versions.
    pub(super) before_versions: &'static [Check],
    pub(super) after_versions: &'static [Check],
}

impl Checks {
    /// The first fault that the loader finds.
    pub(super) fn verdict(self, evidence: &Evidence) -> LoaderVerdict {
        let first = |checks: &[Check]| checks.iter().find_map(|check| check(evidence)).cloned();
        match first(self.before_versions) {
            fault @ Some(_) => LoaderVerdict { fault, is_before_versions: true },
            None => {
                let fault = first(self.after_versions);
                LoaderVerdict { fault, is_before_versions: false }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::ImportFaultKind;

    fn fault(found: &str) -> Option<ImportFault> {
        Some(ImportFault {
            kind: ImportFaultKind::Python,
            node: String::new(),
            function: None,
            operation: String::new(),
            found: found.to_owned(),
            expected: String::new(),
        })
    }

    #[test]
    fn checks_find_the_first_fault_of_their_order() {
        let checks = Checks {
            before_versions: &[|found| found.session.as_ref()],
            after_versions: &[|found| found.import.as_ref(), |found| found.saver.as_ref()],
        };
        let mut evidence =
            Evidence { import: fault("import"), saver: fault("saver"), ..Evidence::default() };
        let mut verdict = |session| {
            evidence.session = session;
            let LoaderVerdict { fault, is_before_versions } = checks.verdict(&evidence);
            (fault.map(|fault| fault.found), is_before_versions)
        };
        assert_eq!(verdict(None), (Some("import".to_owned()), false));
        assert_eq!(verdict(fault("session")), (Some("session".to_owned()), true));
        assert!(checks.verdict(&Evidence::default()).fault.is_none());
    }
}
