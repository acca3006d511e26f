//! Remedies for reasons, as data, so that a program can name its own options in them.
//!
//! The texts here are for programs without options of their own. This file does not depend on the
//! command.

use std::fmt;

use super::Rule;

/// The change by which an artifact is accepted, or can be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// The general remedy of the rule; the message of the reason has the details.
    General(Rule),
    /// The path leads elsewhere than the caller thinks.
    CheckPath,
    /// The directory has no artifact by name or content, though one of its files may be one.
    CheckPathOrNameFile,
    /// The system cannot read the file.
    MakeReadable,
    /// The storage at an address cannot be read.
    GiveAccess,
    /// The file is still being written.
    CheckOnceWritten,
    /// The file is larger than any of its kind.
    CheckOrigin,
    /// The bytes are damaged, or of another kind than the name says.
    FetchAgainOrNameKind,
    /// Nothing was fetched, or nothing was written.
    FetchOrWriteAgain,
    /// The file holds Python objects.
    SaveWithoutObjects,
    /// Files that belong together are not all there, or not of one revision.
    FetchSetAgain,
    /// The file `checkpoint` does not lead to the newest checkpoint, so the caller must pass its
    /// prefix.
    NamePrefix {
        /// The prefix, if known.
        prefix: Option<String>,
    },
    /// The model is in an unsupported form.
    SaveUnchunked,
    /// Files of a SavedModel are missing or damaged.
    CopyWholeModel,
    /// The caller must select a meta graph of the SavedModel by its tags.
    ChooseTags,
    /// No release loads the graph.
    ExportAgain,
    /// The graph uses an operation that is not allowed.
    ReplaceOperation {
        /// The operation to use instead, if there is one.
        replacement: Option<String>,
    },
    /// The release has an older operation: the same name without the version suffix.
    UseOlderOperation {
        /// The older operation.
        operation: String,
        /// The first release that has the newer one, if known.
        release: Option<String>,
    },
    /// No known release has the operation, so a library of the consumer may have it.
    NameOperation {
        /// The operation.
        operation: String,
    },
    /// Another release loads the artifact.
    UseRelease {
        /// The release, `MAJOR.MINOR`.
        release: String,
        /// True if every newer known release loads it as well.
        or_newer: bool,
    },
    /// The VersionDef rule refuses the artifact; the text says which side must change.
    Versions(String),
    /// The state must be saved at a version that the consumer reads.
    SaveOlder,
    /// The value must be written at a version that the consumer reads.
    WriteOlder,
    /// The checkpoint's meta graph was never written.
    WriteCheckpointAgain,
    /// A library can be read from a file only.
    SaveToFile,
    /// The library is for another machine.
    UseLibraryForThisMachine,
    /// The library is not a shared library.
    BuildShared,
    /// The library is not a plug-in.
    NamePlugin,
    /// The directories are nested too deep for a walk.
    CheckBelow,
    /// The file is a git-lfs pointer.
    FetchFromGitLfs,
    /// The text may be a graph.
    NameKindOfText,
    /// The bytes do not identify the message type.
    NameMessage,
    /// A page was saved in place of the file.
    LookAtPage,
    /// The file is compressed.
    Unpack,
    /// The file belongs to a SavedModel.
    CheckModelOfFingerprint,
    /// A text may have been saved in place of the file.
    CheckThatFileIsMeant,
    /// A checkpoint was started but not finished.
    UseFinishedCheckpoint,
    /// Another program judges files of this kind.
    UseItsOwnProgram,
    /// Another jaxlib, or another way to export; the text says which.
    Jax(String),
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::General(rule) => rule.explain().remedy,
            Self::CheckPath => "check the path",
            Self::CheckPathOrNameFile => {
                "check the path; a file of any name can be checked by naming it"
            }
            Self::MakeReadable => "make the file readable, and check that the disk is sound",
            Self::GiveAccess => {
                "check the address, and that the credentials of the environment may read it"
            }
            Self::CheckOnceWritten => "check it again once it is written",
            Self::CheckOrigin => "check where the file comes from",
            Self::FetchAgainOrNameKind => {
                "fetch the file again from where it came from, or name its kind if it is not what its name says"
            }
            Self::FetchOrWriteAgain => "fetch or write the file again",
            Self::SaveWithoutObjects => {
                "save arrays of numbers or strings in its place; allow_pickle=True would load it, and run whatever is in it"
            }
            Self::FetchSetAgain => {
                "fetch what is missing again, or the index and its files anew, all of one revision"
            }
            Self::NamePrefix { prefix: Some(prefix) } => {
                return write!(
                    f,
                    "name the checkpoint by its prefix, {prefix}, or write its name into the file"
                );
            }
            Self::NamePrefix { prefix: None } => {
                "name a checkpoint of the folder by its prefix, the name of its index without .index"
            }
            Self::SaveUnchunked => "save it again without chunks",
            Self::CopyWholeModel => "copy the model again, with all of its files",
            Self::ChooseTags => "name the tags of the meta graph to load",
            Self::ExportAgain => "export the graph again; no release loads it",
            Self::ReplaceOperation { replacement: Some(replacement) } => {
                return write!(f, "use {replacement} instead, and export the graph again");
            }
            Self::ReplaceOperation { replacement: None } => {
                "remove the operation, and export the graph again"
            }
            Self::UseOlderOperation { operation, release } => {
                return use_older_operation(f, operation, release.as_deref());
            }
            Self::NameOperation { operation } => return name_operation(f, operation),
            Self::UseRelease { release, or_newer } => return use_release(f, release, *or_newer),
            Self::Versions(words) | Self::Jax(words) => words,
            Self::SaveOlder => "upgrade the consumer, or save the state at an older version",
            Self::WriteOlder => {
                "upgrade the consumer, or have the value written at an older version"
            }
            Self::WriteCheckpointAgain => "write the checkpoint again",
            Self::SaveToFile => "save it to a file and check that",
            Self::UseLibraryForThisMachine => "use a plug-in that is built for this machine",
            Self::BuildShared => "build it as a shared library (-shared)",
            Self::NamePlugin => "name a StreamExecutor plug-in, or export the function",
            Self::CheckBelow => "check what is below on its own",
            Self::FetchFromGitLfs => "fetch it with `git lfs pull`, and check that",
            Self::NameKindOfText => "name it .pbtxt, or name its kind: graph_def_text",
            Self::NameMessage => {
                "name the type of the message as its kind, such as ArraySpec; if it is a graph, graph_def"
            }
            Self::LookAtPage => {
                "look at the page: it may ask to log in; then fetch the file itself"
            }
            Self::Unpack => "unpack it, and check what is in it",
            Self::CheckModelOfFingerprint => {
                "check the directory of the SavedModel that it belongs to"
            }
            Self::CheckThatFileIsMeant => {
                "check that it is the file that was meant; a page or a message may have been saved in its place"
            }
            Self::UseFinishedCheckpoint => {
                "take the last checkpoint that was finished, or wait until this one is"
            }
            Self::UseItsOwnProgram => "check it with the program that it was made for",
        })
    }
}

fn use_older_operation(
    f: &mut fmt::Formatter<'_>,
    operation: &str,
    release: Option<&str>,
) -> fmt::Result {
    write!(f, "use {operation} instead, and export the model again")?;
    match release {
        Some(release) => write!(f, "; or load it with TensorFlow {release} or newer"),
        None => Ok(()),
    }
}

fn name_operation(f: &mut fmt::Formatter<'_>, operation: &str) -> fmt::Result {
    write!(
        f,
        "if the consumer loads a library that has {operation}, name it as one of the consumer's own; else replace it, and \
         export the model again"
    )
}

fn use_release(f: &mut fmt::Formatter<'_>, release: &str, or_newer: bool) -> fmt::Result {
    let newer = if or_newer { " or newer" } else { "" };
    write!(
        f,
        "load it with TensorFlow {release}{newer}, or export the model with the consumer's release"
    )
}
