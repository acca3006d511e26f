//! A file that is written beside its target and takes its name at the end.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    Durability, Error,
    attributes::Attributes,
    partial::{self, Partial},
    place::TargetPlace,
    previous, sync_directory,
};

/// A file that is being written under a partial name and replaces its target at the end.
#[derive(Debug)]
pub struct Replacement {
    partial: Partial,
    place: TargetPlace,
    /// The target's path as the caller gave it, for messages.
    target: PathBuf,
    /// Treatment of a link at the target's place.
    links: Links,
    /// Attributes for the file if it replaces none at the end.
    if_new: Option<Attributes>,
    /// Number of earlier versions that are kept.
    previous: u32,
    finished: bool,
}

/// Treatment of a link at the target's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Links {
    /// The link is followed, and its target replaced.
    Followed,
    /// The link itself is replaced.
    Replaced,
}

impl Links {
    fn are_replaced(self) -> bool {
        match self {
            Self::Followed => false,
            Self::Replaced => true,
        }
    }
}

impl Replacement {
    /// Removes leftovers of dead savers of `target`, then opens a partial file for it.
    ///
    /// If `target` is a link, the file that it points to is replaced. The working directory may
    /// change afterwards.
    pub fn create(target: &Path) -> Result<Self, Error> {
        let place = TargetPlace::of(target)?;
        check_kind(&place, target, Links::Followed)?;
        partial::remove_leftovers(&place);
        Self::begin(target, place, Links::Followed)
    }

    /// Creates a replacement for one of several files that belong together by their names: a link
    /// at its place is itself replaced.
    pub fn create_beside(target: &Path) -> Result<Self, Error> {
        let place = TargetPlace::beside(target)?;
        check_kind(&place, target, Links::Replaced)?;
        partial::remove_leftovers(&place);
        Self::begin(target, place, Links::Replaced)
    }

    /// Like [`create_beside`](Self::create_beside), but keeps the leftovers of dead savers, which
    /// the caller [examines](super::dead_partials) before they are removed.
    pub fn create_beside_leftovers(target: &Path) -> Result<Self, Error> {
        let place = TargetPlace::beside(target)?;
        check_kind(&place, target, Links::Replaced)?;
        Self::begin(target, place, Links::Replaced)
    }

    fn begin(target: &Path, place: TargetPlace, links: Links) -> Result<Self, Error> {
        let if_new = attributes_if_new(&place, target)?;
        let partial = Partial::create(&place, target)?;
        Ok(Self {
            partial,
            place,
            target: target.to_owned(),
            links,
            if_new,
            previous: 0,
            finished: false,
        })
    }

    /// Creates another partial file for the same target, for files that belong together.
    pub fn another(&self) -> Result<Self, Error> {
        Ok(Self {
            partial: Partial::create(&self.place, &self.target)?,
            place: self.place.clone(),
            target: self.target.clone(),
            links: self.links,
            if_new: self.if_new.clone(),
            previous: 0,
            finished: false,
        })
    }

    /// Sets the file whose attributes a new target gets at the end, if the file exists.
    pub fn modelled_on(mut self, model: &Path) -> Result<Self, Error> {
        let attributes =
            Attributes::of(model).map_err(|error| Error::new("look at", model, error))?;
        self.if_new = attributes.or(self.if_new.take());
        Ok(self)
    }

    /// Keeps the replaced file as `TARGET.1` and the one before as `TARGET.2`, up to `files` of
    /// them.
    pub fn keeping(mut self, files: u32) -> Self {
        self.previous = files;
        self
    }

    /// Returns the open file.
    pub fn file(&self) -> &File {
        &self.partial.file
    }

    /// Returns the path of the open file until it is renamed.
    pub fn partial(&self) -> &Path {
        &self.partial.path
    }

    /// Returns the directory in which the target appears: absolute, without links.
    pub fn directory(&self) -> &Path {
        &self.place.directory
    }

    /// Sets the file's attributes and syncs it as `durability` says; only the rename remains.
    pub fn settle(&self, durability: Durability) -> Result<(), Error> {
        let failed = |action| move |error| Error::new(action, &self.target, error);
        let old = Attributes::of(&self.place.path()).map_err(failed("replace"))?;
        if let Some(attributes) = old.as_ref().or(self.if_new.as_ref()) {
            attributes.give_to(self.file()).map_err(failed("give the old mode to"))?;
        }
        if durability == Durability::Data {
            self.file().sync_all().map_err(failed("sync"))?;
        }
        Ok(())
    }

    /// Changes the name of the target, in the same directory.
    pub fn named(mut self, name: &std::ffi::OsStr) -> Self {
        self.place.name = name.to_owned();
        self.target.set_file_name(name);
        self
    }

    /// Renames the file to the target, after [`settle`](Self::settle).
    pub fn appear(&mut self) -> Result<(), Error> {
        // The target may have become something that a rename must not replace.
        check_kind(&self.place, &self.target, self.links)?;
        fs::rename(&self.partial.path, self.place.path())
            .map_err(|error| Error::new("rename", &self.target, error))?;
        self.finished = true;
        Ok(())
    }

    /// Keeps the file under its partial name, for the next save to examine.
    pub fn leave(mut self) {
        self.finished = true;
    }

    /// Syncs the bytes as `durability` says and renames the file to the target; returns how long
    /// that took.
    pub fn finish(mut self, durability: Durability) -> Result<Duration, Error> {
        let begin = Instant::now();
        self.settle(durability)?;
        if let Some(missing) = previous::keep(&self.place, self.previous)? {
            copy(&self.place.path(), &missing, durability)?;
        }
        self.appear()?;
        if durability == Durability::Data {
            sync_directory(&self.place.directory)?;
        }
        Ok(begin.elapsed())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.finished {
            // Errors cannot be reported from here; the next save tries again.
            let _ = fs::remove_file(&self.partial.path);
        }
    }
}

/// Copies a file with its attributes to a path where it appears complete.
pub(super) fn copy(from: &Path, to: &Path, durability: Durability) -> Result<(), Error> {
    let failed = |action| move |error| Error::new(action, from, error);
    let mut source = File::open(from).map_err(failed("open"))?;
    let copy = Replacement::create(to)?.modelled_on(from)?;
    io::copy(&mut source, &mut copy.file()).map_err(failed("copy"))?;
    copy.finish(durability).map(drop)
}

/// Checks that the target can be replaced: renaming over a directory would fail only after all the
/// work; over a device or a pipe it would take it away from all its users.
fn check_kind(place: &TargetPlace, target: &Path, links: Links) -> Result<(), Error> {
    match fs::symlink_metadata(place.path()) {
        Ok(found) if found.is_file() || (found.is_symlink() && links.are_replaced()) => Ok(()),
        Ok(found) if found.is_dir() => {
            Err(Error::new("create", target, io::ErrorKind::IsADirectory.into()))
        }
        Ok(_) => Err(Error::refused(
            "replace",
            target,
            "it is a pipe or a device; expected a file or a new name",
        )),
        // A name that is too long is detected when the file is created.
        Err(_) => Ok(()),
    }
}

/// Returns the attributes of a new file, from the umask and the directory.
#[cfg(unix)]
fn attributes_if_new(place: &TargetPlace, target: &Path) -> Result<Option<Attributes>, Error> {
    let old =
        Attributes::of(&place.path()).map_err(|error| Error::new("replace", target, error))?;
    match old {
        Some(old) => Ok(Some(old)),
        None => Ok(Some(Attributes::new(Partial::default_mode(place, target)?))),
    }
}

#[cfg(not(unix))]
fn attributes_if_new(_: &TargetPlace, _: &Path) -> Result<Option<Attributes>, Error> {
    Ok(None)
}
