//! What a person sees of long work, and how they stop it.

use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;
use serdes::device_state::{Phase, Progress, Watch};

use crate::terminal::{Failure, Terminal};

/// Makes the bar of a phase, over a number of bytes.
type MakeBar = Box<dyn Fn(&str, u64) -> ProgressBar + Send + Sync>;

/// Shows each phase of the work as a bar.
struct Bars {
    make: MakeBar,
    current: Mutex<ProgressBar>,
}

impl Bars {
    fn current(&self) -> ProgressBar {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Progress for Bars {
    fn begin(&self, phase: Phase, bytes: u64) {
        let label = match phase {
            Phase::Upload => "to device",
            Phase::Save => "saving",
            Phase::Restore => "restoring",
            Phase::ReadBack => "read back",
            Phase::Verify => "verifying",
            _ => "working",
        };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.finish_and_clear();
        *current = (self.make)(label, bytes);
    }

    fn advance(&self, bytes: u64) {
        self.current().inc(bytes);
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.current().finish_and_clear();
    }
}

/// A watch with progress bars, which Ctrl-C and a request to terminate stop.
///
/// The library then takes back what it has begun and fails; the process is not killed in its middle.
pub(crate) fn watch(terminal: &Terminal) -> Result<Watch, Failure> {
    let bars =
        Bars { make: Box::new(terminal.progress()), current: Mutex::new(ProgressBar::hidden()) };
    let watch = Watch::new().with_progress(Arc::new(bars));
    let stop = watch.clone();
    ctrlc::set_handler(move || stop.cancel())
        .map_err(|error| Failure::new(format_args!("cannot listen for Ctrl-C: {error}")))?;
    Ok(watch)
}
