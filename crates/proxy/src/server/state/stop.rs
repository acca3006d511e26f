//! Saves when the server stops, with a deadline and retries.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};

use super::{LiveArrays, Occasion, State};
use crate::ProxyError;

/// Maximum number of attempts to save; the pause after a failure doubles each time.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Longest wait for the next bytes of a device before the device counts as lost.
const STANDSTILL: Duration = Duration::from_secs(15);

impl State {
    /// Saves, and retries after failures, for at most `limit`. Clients are served meanwhile, and
    /// disk space may be freed.
    ///
    /// # Errors
    /// As [`save`](Self::save); [`ProxyError::System`] if the time is over, or the save was
    /// abandoned.
    pub(crate) async fn save_at_stop(
        self: &Arc<Self>,
        live: &Arc<dyn LiveArrays>,
        limit: Duration,
    ) -> Result<(), ProxyError> {
        let deadline = Instant::now() + limit;
        let mut pause = FIRST_PAUSE;
        let mut tries = 1;
        loop {
            let failed = tokio::select! {
                saved = self.save(live, Occasion::Stop) => match saved {
                    Ok(arrays) => {
                        tracing::info!(arrays, tries, "state saved");
                        return Ok(());
                    }
                    Err(error) => error,
                },
                why = self.no_more_time(deadline) => {
                    // Work that does not check it hangs, and holds nothing that the end of the
                    // process would not free.
                    self.monitor().cancel();
                    return Err(gave_up(why));
                }
            };
            if tries >= TRIES || Instant::now() + pause >= deadline {
                return Err(failed);
            }
            tracing::warn!(error = %failed, "the state was not saved; the server tries again before it stops");
            tokio::select! {
                () = sleep(pause) => {}
                why = self.no_more_time(deadline) => return Err(gave_up(why)),
            }
            pause *= 2;
            tries += 1;
        }
    }

    /// Abandons the current save and all later ones.
    pub(crate) fn abandon(&self) {
        self.abandoned.send_replace(true);
        self.monitor().cancel();
    }

    /// Waits until a save has taken too long; returns the reason.
    async fn no_more_time(&self, deadline: Instant) -> &'static str {
        let mut abandoned = self.abandoned.subscribe();
        let mut seen = self.pulse.read();
        let mut since = Instant::now();
        loop {
            tokio::select! {
                _ = abandoned.wait_for(|abandoned| *abandoned) => return "it was given up",
                () = sleep_until(deadline.min(since + STANDSTILL)) => {}
            }
            let now = Instant::now();
            let found = self.pulse.read();
            if now >= deadline {
                return "it took longer than a save may take when the server stops";
            }
            if found.is_some() && found == seen && now >= since + STANDSTILL {
                return "a device has not answered for too long";
            }
            (seen, since) = (found, now);
        }
    }
}

fn gave_up(why: &'static str) -> ProxyError {
    let error = std::io::Error::new(std::io::ErrorKind::TimedOut, why);
    ProxyError::System { doing: "saving the state", error }
}
