//! `serdes inspect --kind`, such as `--kind ArraySpec`: a bare message of IFRT, which does not
//! record its type.

use std::path::Path;

use serde_json::json;
use serdes::ifrt::{AnyDevice, MessageType, with_devices};
use serdes_tensors::storage::Storage;

use crate::{
    commands::streams,
    failure::Failure,
    status::ExitStatus,
    terminal::{Terminal, shown_path},
};

/// Maximum size of a message in bytes.
pub(super) const LONGEST: u64 = 1 << 30;

/// Shows the message at a path.
pub(super) fn run(
    path: &Path,
    message: MessageType,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let bytes = streams::read_whole(&Storage::anywhere(), path, LONGEST, "a message")?;
    let (size, name) = (bytes.len(), message.name());
    let value = message
        .read(bytes.into(), &with_devices(AnyDevice))
        .map_err(|error| Failure::new(error).about(shown_path(path)))?;
    if terminal.json() {
        terminal.object(&json!({
            "path": path.to_string_lossy(),
            "kind": "ifrt_message",
            "type": name,
            "bytes": size,
            "value": value,
        }))?;
    } else {
        let text = serde_json::to_string_pretty(&value).map_err(Failure::of)?;
        terminal.line(format_args!("{} ({name}, {size} bytes)\n{text}", shown_path(path)))?;
    }
    Ok(ExitStatus::Success)
}
