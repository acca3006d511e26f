//! Writes a file completely, or not at all.
//!
//! The module knows a path and a text. It does not depend on the content of the text.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// Replaces the file at `path` by `text`, with the same name and permissions; on failure, the
/// previous content stays. A link stays a link, and its target is replaced.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    match fs::metadata(&target) {
        Ok(metadata) => file.as_file().set_permissions(metadata.permissions())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => readable(&file)?,
        Err(error) => return Err(error),
    }
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// Creates a file at `path` with `text`; an existing file is an error and stays unchanged.
#[cfg(feature = "edit")]
pub(crate) fn create(path: &Path, text: &str) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    readable(&file)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
}

/// Makes a file readable for everybody, like other source files; a temporary file is private to its
/// owner.
#[cfg(unix)]
fn readable(file: &NamedTempFile) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_: &NamedTempFile) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_whole_and_keeps_permissions_and_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("versions.toml");
        replace(&path, "one").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o644);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            let link = folder.path().join("link.toml");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            replace(&link, "two").unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("two", 0o640));
        }
        assert!(replace(&folder.path().join("absent/versions.toml"), "three").is_err());
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, if cfg!(unix) { 2 } else { 1 });
    }
}
