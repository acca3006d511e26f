//! The options of a check, including its consumer.

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
    /// Creates the default options for a consumer other than the newest release.
    #[must_use]
    pub fn for_consumer(consumer: Consumer) -> Self {
        Self { consumer, ..Self::default() }
    }

    /// Sets the consumer.
    #[must_use]
    pub fn with_consumer(self, consumer: Consumer) -> Self {
        Self { consumer, ..self }
    }

    /// Sets the loader that decides about a SavedModel. The default is [`LoadV1`](Loader::LoadV1),
    /// which imports it into a graph. The outcomes of the others are in
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

    /// Selects the meta graph of a SavedModel with these tags, in any order. The default is
    /// `serve`, or the only one.
    #[must_use]
    pub fn with_tags(self, tags: impl IntoIterator<Item = String>) -> Self {
        Self { tags: Some(tags.into_iter().collect()), ..self }
    }

    /// Sets whether every byte of every tensor is read and checked.
    #[must_use]
    pub fn with_verify_data(self, verify_data: bool) -> Self {
        Self { verify_data, ..self }
    }

    /// Sets whether warnings count as reasons.
    #[must_use]
    pub fn with_strict(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    /// Sets the list of operations that graphs may not use. The default is TensorFlow's.
    #[must_use]
    pub fn with_deprecated(self, deprecated: DeprecatedOperations) -> Self {
        Self { deprecated, has_own_deprecated: true, ..self }
    }

    /// Sets the number of threads that verify data; 0 for as many as the machine has.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Sets a monitor, which receives the progress of verifying data and may stop it: the check
    /// then ends with [`Cancelled`](super::Cancelled).
    #[must_use]
    pub fn with_monitor(self, monitor: ProgressMonitor) -> Self {
        Self { monitor, ..self }
    }

    /// Adds pytree node types that the program registers before it loads a file of `jax.export`, by
    /// their serialized names.
    #[must_use]
    pub fn with_custom_nodes(self, names: impl IntoIterator<Item = String>) -> Self {
        Self { jax: self.jax.with_custom_nodes(names), ..self }
    }

    /// Sets the platform on which the program calls functions of `jax.export`: `cpu`, `cuda`,
    /// `rocm` or `tpu`. A function for other platforms gets a warning.
    #[must_use]
    pub fn with_platform(self, platform: impl Into<String>) -> Self {
        Self { jax: self.jax.with_platform(platform), ..self }
    }

    /// Sets the type as which bare messages of IFRT
    /// ([`Kind::IfrtMessage`](super::Kind::IfrtMessage)) are judged, since their bytes do not
    /// identify it.
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

    /// Returns the settings and types of the program that loads files of JAX.
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

    /// Returns a consumer with the operations that graphs may not use added: an operation refused
    /// for newer producers exists for older ones.
    pub(super) fn completed(&self, consumer: &Consumer) -> Consumer {
        let consumer = consumer.clone();
        if !self.has_own_deprecated {
            return consumer;
        }
        consumer.having(self.deprecated.entries().iter().map(|entry| entry.name.as_str()))
    }

    /// Returns the operations that graphs may not use, including those that the consumer bans.
    pub(super) fn banned(&self, consumer: &Consumer) -> Cow<'_, DeprecatedOperations> {
        consumer.bans_on(&self.deprecated)
    }

    /// Verifies a checkpoint with these options, reporting progress to the monitor.
    pub(super) fn verify<T>(&self, run: impl FnOnce(&VerifyOptions<'_>) -> T) -> T {
        run(&VerifyOptions::default()
            .with_data(self.verify_data)
            .with_threads(self.threads)
            .with_monitor(&self.monitor))
    }
}
