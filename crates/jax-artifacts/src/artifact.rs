//! A file, read once and judged for any number of releases.

use std::fmt::{self, Display, Formatter};

use crate::{
    bytecode::{self, Module},
    exported::{self, Exported, ReaderProfile, Refusal},
    judgement::{Judgement, Options, Reason, Verdict, Warning},
    module_reasons::{Need, needs},
    release::{Deserializer, DeviceField, Release, StableHlo, releases},
    rule::Rule,
};

/// Limit on the nested derivatives of a file that are examined.
const MOST_DERIVATIVES: usize = 8;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A portable artifact of StableHLO, as `stablehlo.serialize_portable_artifact` writes it.
    StableHlo,
    /// A serialized `jax.export.Exported`.
    JaxExport,
}

impl Kind {
    /// Returns the id of the kind, for programs.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::StableHlo => "stablehlo",
            Self::JaxExport => "jax_export",
        }
    }
}

/// Detects the kind of bytes from their content; `None` for anything else.
#[must_use]
pub fn sniff(bytes: &[u8]) -> Option<Kind> {
    if bytecode::is_artifact(bytes) {
        Some(Kind::StableHlo)
    } else {
        exported::is_exported(bytes).then_some(Kind::JaxExport)
    }
}

/// Bytes that are neither a portable artifact nor a file of `jax.export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadError {
    /// Size of the input in bytes.
    pub bytes: usize,
}

impl Display for ReadError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes that are neither a StableHLO portable artifact (MLIR bytecode of a producer StableHLO_v…) nor a \
             serialized jax.export.Exported; a damaged file is read as what it should be by Artifact::with_kind",
            self.bytes
        )
    }
}

impl std::error::Error for ReadError {}

/// A file whose module was read.
#[derive(Clone, Debug)]
pub struct Artifact<'a> {
    pub(crate) kind: Kind,
    pub(crate) bytes: &'a [u8],
    /// The module, followed by the modules of the derivatives.
    pub(crate) modules: Vec<Option<Module>>,
}

/// The findings for one release and a file, without remedies.
#[derive(Debug, Default)]
struct Findings {
    refusal: Option<Refusal>,
    needs: Vec<Need>,
    exported: Option<Exported>,
}

impl Findings {
    fn is_accepted(&self) -> bool {
        self.refusal.is_none() && self.needs.is_empty()
    }
}

impl<'a> Artifact<'a> {
    /// Reads a file of either kind.
    ///
    /// # Errors
    ///
    /// The bytes are of neither kind. A file that is damaged further inside is not an error: it
    /// gets a verdict.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ReadError> {
        let kind = sniff(bytes).ok_or(ReadError { bytes: bytes.len() })?;
        Ok(Self::with_kind(kind, bytes))
    }

    /// Reads a file of a known kind, however damaged it is.
    #[must_use]
    pub fn with_kind(kind: Kind, bytes: &'a [u8]) -> Self {
        let modules = match kind {
            Kind::StableHlo => vec![Some(Module::read(bytes))],
            Kind::JaxExport => {
                let levels = exported::levels(bytes, MOST_DERIVATIVES.saturating_add(1));
                levels.into_iter().map(|module| module.map(Module::read)).collect()
            }
        };
        Self { kind, bytes, modules }
    }

    /// Returns the kind of the file.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the verdict of a release that reads the file, and warnings about later problems.
    ///
    /// A file of `jax.export` must deserialize, and its module be readable by the same jaxlib; a
    /// portable artifact must be readable by `stablehlo.deserialize_portable_artifact`.
    #[must_use]
    pub fn judge(&self, release: &'static Release, options: &Options) -> Judgement {
        let findings = self.findings(release, options, 0);
        let mut reasons = Vec::new();
        let mut warnings = Vec::new();
        if findings.is_accepted() {
            self.warn(release, options, &findings, &mut warnings);
        } else {
            reasons = self.reasons(release, options, findings);
        }
        let verdict = if reasons.is_empty() {
            Verdict::Acceptable
        } else if reasons.iter().all(|reason| reason.rule == Rule::Corrupt) {
            Verdict::Unreadable
        } else {
            Verdict::Unacceptable
        };
        Judgement { release, verdict, reasons, warnings }
    }

    /// Returns the judged releases that read the file, oldest first.
    #[must_use]
    pub fn accepting(&self, options: &Options) -> Vec<&'static Release> {
        let judged = releases().iter().filter(|release| release.is_judged());
        judged.filter(|release| self.findings(release, options, 0).is_accepted()).collect()
    }

    /// Returns the findings for a release and the file, or a derivative in it.
    fn findings(&self, release: &Release, options: &Options, level: usize) -> Findings {
        let mut findings = Findings::default();
        if self.kind == Kind::JaxExport {
            let profile = ReaderProfile {
                deserializer: release.deserializer,
                last_dtype: release.last_dtype,
                custom_nodes: &options.custom_nodes,
                is_lenient: false,
                takes_expired: options.takes_expired,
            };
            match Exported::read_level(self.bytes, level, &profile) {
                Ok(exported) => findings.exported = Some(exported),
                Err(refusal) => {
                    findings.refusal = Some(*refusal);
                    return findings;
                }
            }
        }
        let has_all = self.kind == Kind::StableHlo || release.loads_all_dialects();
        if let Some(Some(module)) = self.modules.get(level) {
            findings.needs = needs(module, release, has_all);
        }
        findings
    }

    fn reasons(
        &self,
        release: &'static Release,
        options: &Options,
        findings: Findings,
    ) -> Vec<Reason> {
        let accepting = self.accepting(options);
        // A module that other releases read is not damaged.
        let rule_of = |rule| match rule {
            Rule::Corrupt if !accepting.is_empty() => Rule::ReleaseRefuses,
            rule => rule,
        };
        let loads = loads_with(release, &accepting);
        let mut reasons = Vec::new();
        if let Some(Refusal { rule, found, expected, message, place }) = findings.refusal {
            let rule = rule_of(rule);
            let remedy = remedy_of(rule, &found, release, &loads);
            reasons.push(Reason { rule, found, expected, message, remedy, place });
        }
        for Need { rule, found, expected, message, since } in findings.needs {
            let rule = rule_of(rule);
            let remedy = match since {
                Some(since) => self.remedy_of_new(since, release, &loads),
                None => remedy_of(rule, &found, release, &loads),
            };
            let place = "module".to_owned();
            reasons.push(Reason { rule, found, expected, message, remedy, place });
        }
        reasons
    }

    /// Returns the remedy for a feature that a version of StableHLO introduced.
    fn remedy_of_new(&self, since: StableHlo, release: &Release, loads: &str) -> String {
        let again = match self.kind {
            Kind::StableHlo => format!(
                "write it with the target {} of serialize_portable_artifact, which says what that version can",
                release.stablehlo
            ),
            Kind::JaxExport => {
                match releases().iter().rev().find(|made_by| made_by.week_4 < since) {
                    Some(made_by) => format!("export it with {made_by} or older"),
                    None => "export it with an older release".to_owned(),
                }
            }
        };
        format!("{loads}, or {again}")
    }

    fn warn(
        &self,
        release: &'static Release,
        options: &Options,
        findings: &Findings,
        warnings: &mut Vec<Warning>,
    ) {
        let Some(exported) = &findings.exported else { return };
        let mut warn = |rule, message| warnings.push(Warning { rule, message });
        if exported.devices == 0 {
            let message = if exported.has_wide_devices {
                format!(
                    "{release} reads no number of devices in a file of jax 0.9.1 or later, takes it for one of 0 devices, and refuses every call of \
                     the function; load it with jaxlib 0.8.2 or later"
                )
            } else {
                "the file is for 0 devices, so that every call of the function is refused; export it again".to_owned()
            };
            warn(Rule::NotCallable, message);
        }
        if let Some(platform) = &options.platform
            && !exported.allows(platform)
        {
            let platforms = exported.platforms.join(", ");
            warn(
                Rule::NotCallable,
                format!(
                    "the function was exported for {platforms}, and a call on {platform} is refused; export it with platforms=(\"{platform}\", …)"
                ),
            );
        }
        if let Some(Some(module)) = self.modules.first() {
            let targets: Vec<&str> = module.custom_calls.keys().map(String::as_str).collect();
            let on_cpu = exported.platforms.iter().any(|platform| platform == "cpu");
            let crashes = release.deserializer < Deserializer::Tables && on_cpu;
            if let Some(target) = targets.iter().find(|target| target.starts_with("lapack_"))
                && crashes
            {
                warn(
                    Rule::CallCrashes,
                    format!(
                        "a call on a CPU ends the process in {release} at {target}, unless that process has used jax's linear algebra before; call \
                         jnp.linalg.eigh(jnp.eye(2)) first, or load it with jaxlib 0.10.0 or later"
                    ),
                );
            }
            for target in targets.iter().filter(|target| !is_promised(target)) {
                let count = module.custom_calls.get(*target).copied().unwrap_or_default();
                warn(
                    Rule::CustomCall,
                    format!(
                        "the function calls {target} ({count} times), which is none of the targets that jax keeps for six months; the process that \
                         calls the function must have registered it"
                    ),
                );
            }
        }
        for level in 1..self.modules.len() {
            let derivative = self.findings(release, options, level);
            let message = derivative.refusal.map(|refusal| refusal.message);
            let message =
                message.or_else(|| derivative.needs.first().map(|need| need.message.clone()));
            if let Some(message) = message {
                let message = format!(
                    "the derivative of order {level} cannot be read when it is asked for: {message}"
                );
                warn(Rule::DerivativeRefused, message);
            }
        }
        self.warn_of_expiry(release, options, warnings);
    }

    /// Warns if a newer release refuses the file because of its age.
    fn warn_of_expiry(
        &self,
        release: &'static Release,
        options: &Options,
        warnings: &mut Vec<Warning>,
    ) {
        let newer = releases().iter().filter(|other| *other > release);
        let refusing = newer.into_iter().find(|other| {
            let refusal = self.findings(other, options, 0).refusal;
            refusal.is_some_and(|refusal| refusal.rule == Rule::TooOld)
        });
        if let Some(refusing) = refusing {
            let message = format!(
                "{refusing} (of {}) and later refuse this file for its age; export it again before you upgrade",
                refusing.day
            );
            warnings.push(Warning { rule: Rule::Expires, message });
        }
    }
}

impl Exported {
    /// Returns true if the function may be called on a platform.
    fn allows(&self, platform: &str) -> bool {
        let is_unchecked = self.disabled_checks.contains(&exported::DisabledCheck::Platform);
        is_unchecked || self.platforms.iter().any(|known| known == platform)
    }

    /// Returns the oldest and the newest release that write the fields of the file; if the file
    /// records its version, that release.
    pub(crate) fn makers(&self) -> Option<(&'static Release, &'static Release)> {
        if let Some(version) = &self.jax_version {
            return Release::find(version).map(|release| (release, release));
        }
        let fits = |release: &&Release| {
            let devices = match (self.has_short_devices, self.has_wide_devices) {
                (true, true) => DeviceField::Both,
                (false, true) => DeviceField::Wide,
                _ => DeviceField::Short,
            };
            let names_version = release.deserializer >= Deserializer::Expiring;
            let has_tables = release.deserializer >= Deserializer::Tables;
            let names_platform = release.deserializer >= Deserializer::Leaves;
            release.writes_serialization == self.serialization
                && (names_platform || !self.has_device_platform)
                && release.writes_devices == devices
                && !names_version
                && has_tables == self.has_tables
        };
        let mut fitting = releases().iter().filter(fits);
        let oldest = fitting.next()?;
        Some((oldest, fitting.next_back().unwrap_or(oldest)))
    }
}

/// Describes the releases with which the file loads, for a message.
fn loads_with(release: &Release, accepting: &[&'static Release]) -> String {
    let later: Vec<&&Release> = accepting.iter().filter(|other| **other > release).collect();
    match (later.first(), accepting.last()) {
        (Some(first), Some(last)) if **last == *Release::latest() => {
            format!("load it with {first} or later")
        }
        (Some(first), Some(last)) if first == &last => format!("load it with {first}"),
        (Some(first), Some(last)) => format!("load it with {first} to {}", last.version),
        (None, Some(last)) => format!("load it with {last} or older"),
        _ => "no known release loads it".to_owned(),
    }
}

fn remedy_of(rule: Rule, found: &str, release: &Release, loads: &str) -> String {
    match rule {
        Rule::Corrupt => {
            "fetch the file again from where it came from, and compare the sizes and checksums"
                .to_owned()
        }
        Rule::MissingType if found.starts_with("<class") => {
            "export a function without this effect".to_owned()
        }
        Rule::MissingType => format!(
            "register the type with jax.export.register_pytree_node_serialization (or register_namedtuple_serialization) under the name {found} before \
             the file is loaded"
        ),
        Rule::TooOld => format!(
            "{loads}, export it again with a release of the last six months, or set JAX_EXPORT_DESERIALIZE_EXPIRED_VERSIONS=1, which lifts the limit \
             for what has no HloSharding"
        ),
        Rule::TooNew => {
            let older = releases().iter().rev().find(|made_by| made_by.writes_serialization <= 3);
            match older {
                Some(older) if release.deserializer == Deserializer::Numbered => {
                    format!("{loads}, or export it with {older} or older")
                }
                _ => format!("{loads}, or export it with an older release"),
            }
        }
        _ => format!("{loads}, or export it again"),
    }
}

/// Returns true if jax promises to keep a custom call target for six months.
fn is_promised(target: &str) -> bool {
    const PREFIXES: [&str; 7] =
        ["lapack_", "cu_", "cusolver_", "cusparse_", "hip_", "hipsolver_", "stablehlo.dynamic_"];
    const NAMES: [&str; 13] = [
        "AllocateBuffer",
        "ApproxTopK",
        "Eigh",
        "LuDecomposition",
        "ProductOfElementaryHouseholderReflectors",
        "Qr",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "Sharding",
        "annotate_device_placement",
        "mosaic_gpu_v2",
        "shape_assertion",
        "tpu_custom_call",
    ];
    target == "tf.call_tf_function"
        || NAMES.contains(&target)
        || PREFIXES.iter().any(|prefix| target.starts_with(prefix))
}
