//! The extent of a check, and its consumer.

use std::borrow::Cow;

use serdes::ifrt::MessageType;
use serdes_checkpoints::tensor_bundle::VerifyOptions;
use serdes_files::ProgressMonitor;
use serdes_graphs::graph::DeprecatedOperations;

use super::{Consumer, Loader};

/// Options of checks.
///
/// ```
/// use serdes_check::{Consumer, Options};
///
/// let options = Options::for_consumer(Consumer::tensorflow("2.16")?)
///     .with_tags(["serve".to_owned()])
///     .with_verify_data(true);
/// # let _ = options;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    consumer: Consumer,
    loader: Loader,
    tags: Option<Vec<String>>,
    verify_data: bool,
    strict: bool,
    deprecated: DeprecatedOperations,
    has_own_deprecated: bool,
    threads: usize,
    monitor: ProgressMonitor,
    jax: serdes_jax_artifacts::Options,
    message: Option<MessageType>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            consumer: Consumer::default(),
            loader: Loader::LoadV1,
            tags: None,
            verify_data: false,
            strict: false,
            deprecated: DeprecatedOperations::tensorflow().clone(),
            has_own_deprecated: false,
            threads: 0,
            monitor: ProgressMonitor::new(),
            jax: serdes_jax_artifacts::Options::new(),
            message: None,
        }
    }
}

impl Options {
    /// Returns the defaults, for another consumer than the newest release.
    #[must_use]
    pub fn for_consumer(consumer: Consumer) -> Self {
        Self { consumer, ..Self::default() }
    }

    /// Returns the same for another consumer.
    #[must_use]
    pub fn with_consumer(self, consumer: Consumer) -> Self {
        Self { consumer, ..self }
    }

    /// Returns the same with another loader that decides about a SavedModel than
    /// [`LoadV1`](Loader::LoadV1), which takes it into a graph. What the others say is in
    /// [`Verdict::loaders`](super::Verdict::loaders).
    ///
    /// ```
    /// use serdes_check::{Loader, Options};
    ///
    /// let options = Options::default().with_loader(Loader::Load);
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn with_loader(self, loader: Loader) -> Self {
        Self { loader, ..self }
    }

    /// Returns the same for the meta graph of a SavedModel with these tags, in any order; without
    /// this `serve`, or the only one.
    #[must_use]
    pub fn with_tags(self, tags: impl IntoIterator<Item = String>) -> Self {
        Self { tags: Some(tags.into_iter().collect()), ..self }
    }

    /// Returns the same, reading and checking every byte of every tensor if `verify_data`.
    #[must_use]
    pub fn with_verify_data(self, verify_data: bool) -> Self {
        Self { verify_data, ..self }
    }

    /// Returns the same, where warnings count as reasons if `strict`.
    #[must_use]
    pub fn with_strict(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    /// Returns the same with another list of operations that graphs may not use than TensorFlow's.
    #[must_use]
    pub fn with_deprecated(self, deprecated: DeprecatedOperations) -> Self {
        Self { deprecated, has_own_deprecated: true, ..self }
    }

    /// Returns the same with a number of threads that verify data; 0 for as many as the machine
    /// has.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Returns the same with a monitor, which hears how far verifying data has come and may stop
    /// it: the check then ends with [`Cancelled`](super::Cancelled).
    #[must_use]
    pub fn with_monitor(self, monitor: ProgressMonitor) -> Self {
        Self { monitor, ..self }
    }

    /// Returns the same for a program that registers these types of nodes of pytrees before it
    /// loads a file of `jax.export`, by the names under which they are serialized.
    #[must_use]
    pub fn with_custom_nodes(self, names: impl IntoIterator<Item = String>) -> Self {
        Self { jax: self.jax.with_custom_nodes(names), ..self }
    }

    /// Returns the same for a program that calls functions of `jax.export` on this platform: `cpu`,
    /// `cuda`, `rocm` or `tpu`. A function for other platforms is warned about.
    #[must_use]
    pub fn with_platform(self, platform: impl Into<String>) -> Self {
        Self { jax: self.jax.with_platform(platform), ..self }
    }

    /// Returns the same, where bare messages of IFRT
    /// ([`Kind::IfrtMessage`](super::Kind::IfrtMessage)) are judged as messages of this type, which
    /// nothing in their bytes says.
    ///
    /// ```
    /// use serdes_check::{self as check, Kind, Options};
    /// use serdes::ifrt::MessageType;
    ///
    /// let shape = check::reader(&b"\x0a\x02\x02\x03"[..], Some(Kind::IfrtMessage))?;
    /// let options = Options::default().with_message(MessageType::Shape);
    /// assert!(shape.check(&options)?.is_acceptable());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_message(self, message: MessageType) -> Self {
        Self { message: Some(message), ..self }
    }

    pub(super) fn message(&self) -> Option<MessageType> {
        self.message
    }

    /// The settings and types of the program that loads files of JAX.
    pub(super) fn jax(&self) -> &serdes_jax_artifacts::Options {
        &self.jax
    }

    pub(super) fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    pub(super) fn loader(&self) -> Loader {
        self.loader
    }

    pub(super) fn tags(&self) -> Option<&[String]> {
        self.tags.as_deref()
    }

    pub(super) fn verifies_data(&self) -> bool {
        self.verify_data
    }

    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }

    pub(super) fn monitor(&self) -> &ProgressMonitor {
        &self.monitor
    }

    /// Returns a consumer with the operations that graphs may not use: what is refused of newer
    /// producers is there for older ones.
    pub(super) fn completed(&self, consumer: &Consumer) -> Consumer {
        let consumer = consumer.clone();
        if !self.has_own_deprecated {
            return consumer;
        }
        consumer.having(self.deprecated.entries().iter().map(|entry| entry.name.as_str()))
    }

    /// Returns the operations that graphs of this consumer may not use, those that it bans among
    /// them.
    pub(super) fn banned(&self, consumer: &Consumer) -> Cow<'_, DeprecatedOperations> {
        consumer.bans_on(&self.deprecated)
    }

    /// Verifies a checkpoint as these options say, and lets the monitor hear of it.
    pub(super) fn verify<T>(&self, run: impl FnOnce(&VerifyOptions<'_>) -> T) -> T {
        run(&VerifyOptions::default()
            .with_data(self.verify_data)
            .with_threads(self.threads)
            .with_monitor(&self.monitor))
    }
}
