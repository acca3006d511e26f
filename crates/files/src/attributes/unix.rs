//! Unix: attributes of a file that a replacement preserves.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::Path,
};

/// Mode, owner, group and extended attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attributes {
    mode: u32,
    /// User and group; `None` to leave the file with the user and group that created it.
    owner: Option<(u32, u32)>,
    extended: extended::Attributes,
}

impl Attributes {
    /// Creates the attributes of a new file with this mode.
    pub(crate) fn new(mode: u32) -> Self {
        Self { mode, owner: None, extended: extended::Attributes::default() }
    }

    /// Returns the attributes of the file at `path`; `None` if there is no file.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Self {
            // Data files need no set-user-id, set-group-id or sticky bit.
            mode: metadata.permissions().mode() & 0o777,
            owner: Some((metadata.uid(), metadata.gid())),
            extended: extended::Attributes::of(path),
        }))
    }

    /// Applies the attributes to a file that only its owner can read: as many of them as the system
    /// allows this process to set, and never more rights for anybody than the old file granted.
    pub(crate) fn give_to(&self, file: &File) -> io::Result<()> {
        let mut mode = self.mode;
        let is_of_group = self.owner.is_none_or(|(user, group)| give_away(file, user, group));
        // With an access list, the group bits of the mode are its upper bound.
        if !self.extended.give_to(file) || !is_of_group {
            mode = mode & 0o707 | mode << 3 & 0o070;
        }
        match file.set_permissions(Permissions::from_mode(mode)) {
            // The file system has no modes.
            Err(error) if is_impossible(&error) => Ok(()),
            given => given,
        }
    }
}

/// Gives a file to a user and group, or to the group alone. Returns true if the file has the group.
fn give_away(file: &File, user: u32, group: u32) -> bool {
    let Ok(now) = file.metadata() else { return false };
    if (now.uid(), now.gid()) == (user, group) || fchown(file, Some(user), Some(group)).is_ok() {
        return true;
    }
    // An unprivileged process may give a file to the groups that it belongs to.
    fchown(file, None, Some(group)).is_ok()
}

fn is_impossible(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
}

#[cfg(target_os = "linux")]
mod extended {
    use std::{ffi::CString, fs::File, path::Path};

    use rustix::fs::{
        XattrFlags, fremovexattr, fsetxattr, lgetxattr, lgetxattr_query, llistxattr,
        llistxattr_query,
    };

    const ACCESS_LIST: &[u8] = b"system.posix_acl_access";

    /// The access list and user attributes. The system sets the others (labels, capabilities) by
    /// its own rules.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Attributes(Vec<(CString, Vec<u8>)>);

    impl Attributes {
        pub(crate) fn of(path: &Path) -> Self {
            let names = list(path).unwrap_or_default();
            let kept = names.split(|byte| *byte == 0).filter(|name| is_kept(name));
            let attributes = kept.filter_map(|name| {
                let name = CString::new(name).ok()?;
                let mut value = vec![0; lgetxattr_query(path, &name).ok()?];
                let length = lgetxattr(path, &name, &mut value[..]).ok()?;
                value.truncate(length);
                Some((name, value))
            });
            Self(attributes.collect())
        }

        /// Applies the attributes. Returns true if the file permits no more than the old one did.
        pub(crate) fn give_to(&self, file: &File) -> bool {
            let mut is_listed = true;
            if !self.0.iter().any(|(name, _)| name.as_bytes() == ACCESS_LIST) {
                // Remove a default access list of the directory, which the old file did not have.
                // Mostly there is none.
                let _ = fremovexattr(file, ACCESS_LIST);
            }
            for (name, value) in &self.0 {
                let given = fsetxattr(file, name, value, XattrFlags::empty()).is_ok();
                is_listed &= given || name.as_bytes() != ACCESS_LIST;
            }
            is_listed
        }
    }

    fn list(path: &Path) -> Option<Vec<u8>> {
        let mut names = vec![0; llistxattr_query(path).ok()?];
        let length = llistxattr(path, &mut names[..]).ok()?;
        names.truncate(length);
        Some(names)
    }

    fn is_kept(name: &[u8]) -> bool {
        name == ACCESS_LIST || name.starts_with(b"user.")
    }
}

#[cfg(not(target_os = "linux"))]
mod extended {
    use std::{fs::File, path::Path};

    /// No attributes: only Linux's are preserved.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Attributes;

    impl Attributes {
        pub(crate) fn of(_: &Path) -> Self {
            Self
        }

        pub(crate) fn give_to(&self, _: &File) -> bool {
            true
        }
    }
}
