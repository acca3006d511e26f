//! The releases of lines in a lock, and the changes that a release does not allow.

use super::{Difference, LineFormats, LineRelease, Lock, ReleaseState, release::change::changes};
use crate::ReleaseKind;

impl Lock {
    /// Returns the lines with a release, each in the state of its last one.
    pub fn releases(&self) -> impl Iterator<Item = (&str, &ReleaseState)> {
        self.releases.iter().map(|(line, state)| (line.as_str(), state))
    }

    /// Returns this lock with these lines as released, the result of `serdes versions release`.
    #[must_use]
    pub fn with_releases(mut self, lines: &[LineFormats]) -> Lock {
        for line in lines {
            if let Some(state) = &line.release {
                let state = state.after(self.releases.get(&line.name));
                self.releases.insert(line.name.clone(), state);
            }
        }
        self
    }

    /// Returns the lines whose release differs from this lock, in their order.
    pub fn moved_releases(&self, lines: &[LineFormats]) -> Vec<LineRelease> {
        let moved = lines.iter().filter_map(|line| {
            let release = line.release.as_ref()?.release;
            let previous = self.releases.get(&line.name).map(|state| state.release);
            let line = line.name.clone();
            (previous != Some(release)).then_some(LineRelease { line, previous, release })
        });
        moved.collect()
    }

    /// Returns the changes of these lines that the kinds of their releases do not allow.
    pub fn broken_releases(&self, lines: &[LineFormats]) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (name, released) in &self.releases {
            let line = lines.iter().find(|line| line.name == *name);
            let Some(state) = line.and_then(|line| line.release.as_ref()) else {
                let (line, released) = (name.clone(), released.release);
                differences.push(Difference::NoRelease { line, released });
                continue;
            };
            differences.extend(broken(name, released, state));
        }
        differences
    }
}

/// Returns the changes of a line that the kind of its release does not allow.
fn broken(line: &str, released: &ReleaseState, found: &ReleaseState) -> Vec<Difference> {
    let (line, previous, release) = (line.to_owned(), released.release, found.release);
    if release < previous {
        return vec![Difference::ReleaseGoesBack { line, found: release, released: previous }];
    }
    // A release that was published allows no change, so it has no kind.
    let kind = ReleaseKind::of_step(previous, release).ok();
    let changes = changes(released, found).into_iter();
    changes
        .filter(|change| change.needs().is_none_or(|needs| Some(needs) > kind))
        .map(|change| Difference::NotInRelease {
            line: line.clone(),
            change,
            released: previous,
            release,
        })
        .collect()
}
