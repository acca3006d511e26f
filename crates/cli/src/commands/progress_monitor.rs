//! Progress display of long work, and its cancellation.

use std::sync::Arc;

use serdes_device_state::{Phase, Progress, ProgressMonitor};

use crate::{
    failure::Failure,
    requests,
    signals::{self, Hangup, Request},
    terminal::{Bars, Terminal},
};

/// Shows a bar for each phase of the work.
struct Phases {
    bars: Arc<Bars>,
}

impl Progress for Phases {
    fn begin(&self, phase: Phase, bytes: u64) {
        put_settings_back();
        self.bars.begin(
            match phase {
                Phase::Upload => "to device",
                Phase::Save => "saving",
                Phase::Restore => "restoring",
                Phase::ReadBack => "read back",
                Phase::Verify => "verifying",
                Phase::Compare => "comparing",
                Phase::Convert => "converting",
                _ => "working",
            },
            bytes,
        );
    }

    fn advance(&self, bytes: u64) {
        put_settings_back();
        self.bars.advance(bytes);
    }
}

fn put_settings_back() {
    #[cfg(target_os = "linux")]
    crate::process_settings::put_back();
}

/// Returns a monitor with progress bars, which Ctrl-C and a request to terminate cancel.
///
/// The library then removes incomplete output and returns an error; only a second request kills the
/// process.
pub(crate) fn monitor(terminal: &Terminal) -> Result<ProgressMonitor, Failure> {
    let monitor = ProgressMonitor::new().with_progress(Arc::new(Phases { bars: terminal.bars() }));
    let stop = monitor.clone();
    requests::listen(Hangup::Stops, move |request| match request {
        Request::Stop(_) | Request::Hangup => stop.cancel(),
        Request::StopNow(signal) => signals::end_by(signal),
    })
    .map_err(|error| Failure::new(format_args!("cannot listen for Ctrl-C: {error}")))?;
    Ok(monitor)
}
