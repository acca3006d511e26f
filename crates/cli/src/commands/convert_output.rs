//! Output of `serdes convert` for a single message or program instead of tensors.

use std::{io::Write as _, path::Path};

use serdes_tensors::storage::Storage;

use crate::{
    arguments::ConvertArguments,
    commands::{locations, save, streams},
    failure::Failure,
    terminal::{Terminal, shown_path},
};

/// Writes bytes to standard output, or to a file that appears completely or not at all.
pub(super) fn write(
    arguments: &ConvertArguments,
    storage: &Storage,
    to: &Path,
    bytes: &[u8],
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if streams::is_output(to) {
        let failed = |error| Failure::new(format_args!("cannot write standard output: {error}"));
        let mut stream = terminal.take_stream()?;
        return stream.write_all(bytes).and_then(|()| stream.flush()).map_err(failed);
    }
    locations::refuse_served(to)?;
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(format_args!("cannot write {}: {error}", shown_path(to)))
    };
    let durability = save::durability(arguments.sync);
    let mut file = storage.put(to, durability).map_err(|error| failed(&error))?;
    file.sink.write_all(bytes).and_then(|()| file.sink.flush()).map_err(|error| failed(&error))?;
    drop(file.sink);
    file.commit.commit(durability).map_err(|error| failed(&error))?;
    Ok(())
}
