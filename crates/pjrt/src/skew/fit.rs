//! The verdict on a framework and a plug-in.

use std::fmt;

use serdes_abi::pjrt::{self, Minor, Struct};

use super::{
    framework::Framework,
    gate::Gate,
    plugin_version::{PluginVersion, SizeRule},
    steps::{NEEDS, STRUCTS, Step, TOLERATED},
};

/// The rule because of which a framework and a plug-in do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SkewRule {
    /// The framework requires exactly the minor that it was built with.
    MinorsDiffer,
    /// The plug-in is older than the framework's minimum.
    PluginTooOld,
    /// The plug-in is from a time in which functions moved to other slots.
    SlotsMoved,
    /// The framework declares a struct shorter than the plug-in requires.
    StructTooShort,
    /// The plug-in requires exactly its own size, and the framework declares another.
    StructSizeDiffers,
    /// The framework needs a function that the plug-in does not have.
    FunctionMissing,
    /// No version of StableHLO is written by the framework and read by the plug-in.
    StableHlo,
    /// A version is newer than the tables of layouts, so the newest known layout was used.
    UnknownMinor,
}

impl SkewRule {
    /// Returns the name for programs: `minors_differ`, `struct_too_short` and so on.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MinorsDiffer => "minors_differ",
            Self::PluginTooOld => "plugin_too_old",
            Self::SlotsMoved => "slots_moved",
            Self::StructTooShort => "struct_too_short",
            Self::StructSizeDiffers => "struct_size_differs",
            Self::FunctionMissing => "function_missing",
            Self::StableHlo => "stablehlo",
            Self::UnknownMinor => "unknown_minor",
        }
    }
}

/// One incompatibility of a framework and a plug-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    rule: SkewRule,
    step: Step,
    message: String,
}

impl Mismatch {
    /// Returns the rule that is broken.
    #[must_use]
    pub fn rule(&self) -> SkewRule {
        self.rule
    }

    /// Returns the step of the framework in which the mismatch occurs.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// Returns the message with the value found, the value expected, and the remedy.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// The verdict on a framework and a plug-in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    reasons: Vec<Mismatch>,
    warnings: Vec<Mismatch>,
}

impl Fit {
    /// Returns true if there is no reason against the pair.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Returns the reasons why the pair does not fit, in the order in which the framework meets
    /// them: a user sees the first.
    #[must_use]
    pub fn reasons(&self) -> &[Mismatch] {
        &self.reasons
    }

    /// Returns calls that fail although the pair fits, and facts that are unknown.
    #[must_use]
    pub fn warnings(&self) -> &[Mismatch] {
        &self.warnings
    }

    fn refuse(&mut self, rule: SkewRule, step: Step, message: String) {
        self.reasons.push(Mismatch { rule, step, message });
    }

    fn warn(&mut self, rule: SkewRule, step: Step, message: String) {
        self.warnings.push(Mismatch { rule, step, message });
    }
}

impl Framework {
    /// Checks if this framework can use a plug-in, as far as the versions of both show.
    #[must_use]
    pub fn fit(&self, plugin: &PluginVersion) -> Fit {
        let mut fit = Fit::default();
        gate(self, plugin, &mut fit);
        if !plugin.minor().is_supported() {
            // No function can be found in such a table, so none can be checked.
            return fit;
        }
        for &(step, structs) in STRUCTS {
            for found in structs.iter().filter_map(|name| pjrt::structure(name)) {
                size(self, plugin, step, found, &mut fit);
            }
            needs(self, plugin, step, &mut fit);
            if step == Step::Compile {
                stablehlo(self, plugin, &mut fit);
            }
        }
        unknown_minor(self, plugin, &mut fit);
        fit
    }
}

/// Checks the plug-in's version like the framework does before any other call.
fn gate(framework: &Framework, plugin: &PluginVersion, fit: &mut Fit) {
    let (name, minor, own) = (framework.name(), plugin.minor(), framework.minor());
    match framework.gate() {
        Gate::Equal if minor != own => {
            let message = format!(
                "the plug-in is of PJRT {minor}, and {name} takes only its own, {own}; use a plug-in of {own}, or a release of the framework that takes others (jaxlib 0.4.33 and later)"
            );
            fit.refuse(SkewRule::MinorsDiffer, Step::Load, message);
        }
        Gate::AtLeast(minimum) if minor < minimum => {
            let message = format!(
                "the plug-in is of PJRT {minor}, and {name} takes {minimum} and later; use a newer plug-in"
            );
            fit.refuse(SkewRule::PluginTooOld, Step::Load, message);
        }
        Gate::Equal | Gate::AtLeast(_) => {}
    }
    if !minor.is_supported() {
        let oldest = Minor::OLDEST_SUPPORTED;
        let message = format!(
            "the plug-in is of PJRT {minor}, and before {oldest} functions moved to other slots with each version: a call by the framework's table reaches another function; use a plug-in of {oldest} or later"
        );
        fit.refuse(SkewRule::SlotsMoved, Step::Load, message);
    }
}

/// Returns the shortest size that builds since `oldest` declare for a struct, in bytes.
fn shortest(found: &Struct, oldest: Minor) -> usize {
    let since = found.spans.iter().filter(|span| u32::from(span.last) >= oldest.number());
    since.map(|span| usize::from(span.declared)).min().unwrap_or(0)
}

/// Checks the size of a struct that the framework passes, by the plug-in's rule.
fn size(framework: &Framework, plugin: &PluginVersion, step: Step, found: &Struct, fit: &mut Fit) {
    let declared_at = |minor: Minor| found.size(minor).map(|size| size.declared);
    // A struct that one of the two does not know is never passed.
    let (Some(given), Some(own)) = (declared_at(framework.minor()), declared_at(plugin.minor()))
    else {
        return;
    };
    let least = TOLERATED
        .iter()
        .find(|entry| entry.structure == found.name && plugin.minor() >= entry.since)
        .map_or(own, |entry| entry.least.min(own));
    let (rule, expected) = match plugin.size_rule() {
        SizeRule::AtLeast if given < least => (SkewRule::StructTooShort, least),
        SizeRule::Equal if given != own => (SkewRule::StructSizeDiffers, own),
        SizeRule::Since(oldest) if given < shortest(found, oldest) => {
            (SkewRule::StructTooShort, shortest(found, oldest))
        }
        SizeRule::AtLeast | SizeRule::Equal | SizeRule::Since(_) => return,
    };
    let demands = if rule == SkewRule::StructTooShort { "at least" } else { "exactly" };
    let remedy = if given < own {
        "use a plug-in that is not newer than the framework, or a newer framework"
    } else {
        "use a framework as old as the plug-in, or a newer plug-in"
    };
    let message = format!(
        "{} (PJRT {}) declares {given} bytes for {}, and the plug-in of PJRT {} demands {demands} {expected}: the framework cannot {}; {remedy}",
        framework.name(),
        framework.minor(),
        found.name,
        plugin.minor(),
        step.as_str()
    );
    if step == Step::Extras {
        fit.warn(rule, step, message);
    } else {
        fit.refuse(rule, step, message);
    }
}

/// Checks the functions that the framework needs.
fn needs(framework: &Framework, plugin: &PluginVersion, step: Step, fit: &mut Fit) {
    let due = NEEDS.iter().filter(|need| need.step == step && framework.minor() >= need.since);
    for need in due.filter(|need| plugin.lacks(need.function)) {
        let message = format!(
            "the plug-in does not have {}, without which {} cannot {}; use a newer plug-in, or an older framework",
            need.function,
            framework.name(),
            step.as_str()
        );
        fit.refuse(SkewRule::FunctionMissing, step, message);
    }
}

/// Checks that the plug-in reads programs of the framework.
fn stablehlo(framework: &Framework, plugin: &PluginVersion, fit: &mut Fit) {
    let (Some([oldest, newest]), Some([minimum, current])) =
        (framework.stablehlo(), plugin.stablehlo())
    else {
        return;
    };
    let text = |version: [u32; 3]| version.map(|number| number.to_string()).join(".");
    if current < oldest || newest < minimum {
        let message = format!(
            "{} writes StableHLO {} to {}, and the plug-in reads {} to {}; use builds that are closer to each other",
            framework.name(),
            text(oldest),
            text(newest),
            text(minimum),
            text(current)
        );
        fit.refuse(SkewRule::StableHlo, Step::Compile, message);
    }
}

/// Warns about unknown layouts, for which the newest known ones were used.
fn unknown_minor(framework: &Framework, plugin: &PluginVersion, fit: &mut Fit) {
    for (who, minor) in [(framework.name(), framework.minor()), ("the plug-in", plugin.minor())] {
        if minor > Minor::NEWEST {
            let message = format!(
                "{who} is of PJRT {minor}, and the newest layouts that are known are of {}: what has grown since is not seen",
                Minor::NEWEST
            );
            fit.warn(SkewRule::UnknownMinor, Step::Load, message);
        }
    }
}
