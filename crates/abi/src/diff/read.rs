//! Resolves an argument to a layout: a built-in one, or a file.

use std::path::PathBuf;

use super::{built_in, error::LayoutFileError, header, layout::LayoutDocument};

impl LayoutDocument {
    /// Returns the built-in layout with this name (`tensorflow-2.14`, `rfc-257`, `pjrt-0.54`), the
    /// content of `FILE` or `FILE#SECTION`, or the layout that the C header `FILE.h` declares (with
    /// macros defined before it: `FILE.h#NAME=NUMBER`). A file whose name is that of a built-in
    /// layout is given as `./tensorflow-2.14`.
    ///
    /// # Errors
    /// [`LayoutFileError`], by the kind of problem.
    pub fn read(argument: &str) -> Result<Self, LayoutFileError> {
        if let Some(layout) = crate::layout_named(argument) {
            return Ok(Self::of(layout));
        }
        if let Some(minor) = built_in::pjrt_minor(argument) {
            return Ok(Self::of_pjrt(minor));
        }
        let (file, section) = match argument.rsplit_once('#') {
            Some((file, section)) => (file, section),
            None => (argument, ""),
        };
        let path = PathBuf::from(file);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| LayoutFileError::Unreadable { path: path.clone(), error })?;
        if path.extension().is_some_and(|extension| extension == "h") {
            return header::parse(&text, section, &path);
        }
        Self::parse(&text, section, &path)
    }
}
