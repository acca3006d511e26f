//! SARIF 2.1.0 for code scanners: one result per finding.
//!
//! A result covers all releases with the finding, so that its fingerprint stays when a release is
//! added. Artifacts are binary, so a result refers to the first line of its file; the place in it
//! is a logical location.

use std::{
    collections::HashMap,
    io::{self, Write},
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::{
    Artifact, Class, Finding, Level, Report, Rule,
    fingerprint::clean,
    grouped::{Group, groups},
    names::{shortened, shown},
};

/// Writes the log.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let rules = rules(report);
    let numbers: HashMap<&str, usize> =
        rules.iter().enumerate().map(|(number, rule)| (rule.id, number)).collect();
    let has_baseline = report.summary().known > 0;
    let results = report.artifacts().iter().flat_map(|artifact| {
        let numbers = &numbers;
        groups(artifact)
            .into_iter()
            .map(move |group| result(artifact, &group, numbers, has_baseline))
    });
    let tool = report.tool();
    let log = Log {
        schema: "https://json.schemastore.org/sarif-2.1.0.json",
        version: "2.1.0",
        runs: [Run {
            results: results.collect(),
            tool: Tool {
                driver: Driver {
                    name: &tool.name,
                    semantic_version: &tool.version,
                    information_uri: tool.address.as_deref(),
                    rules,
                },
            },
            automation_details: Id { id: format!("{}/check", tool.name) },
            invocations: [Invocation {
                execution_successful: true,
                tool_execution_notifications: report
                    .notes()
                    .iter()
                    .map(|note| Notification { level: "note", message: Message::new(note) })
                    .collect(),
            }],
            column_kind: "unicodeCodePoints",
        }],
    };
    serde_json::to_writer(&mut *out, &log)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct Log<'r> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'r>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'r> {
    tool: Tool<'r>,
    automation_details: Id,
    invocations: [Invocation; 1],
    column_kind: &'static str,
    results: Vec<Outcome<'r>>,
}

#[derive(Serialize)]
struct Tool<'r> {
    driver: Driver<'r>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver<'r> {
    name: &'r str,
    semantic_version: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    information_uri: Option<&'r str>,
    rules: Vec<Descriptor<'r>>,
}

#[derive(Serialize)]
struct Id {
    id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_execution_notifications: Vec<Notification>,
}

#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Message,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor<'r> {
    id: &'r str,
    short_description: Message,
    full_description: Message,
    help: Help,
    #[serde(skip_serializing_if = "Option::is_none")]
    help_uri: Option<&'r str>,
    default_configuration: Configuration,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct Help {
    text: String,
}

#[derive(Serialize)]
struct Message {
    text: String,
}

impl Message {
    fn new(text: &str) -> Self {
        Self { text: message(text) }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'r> {
    rule_id: &'r str,
    rule_index: usize,
    level: &'static str,
    message: Message,
    locations: [Location; 1],
    partial_fingerprints: Fingerprints,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_state: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Suppression>,
    properties: Properties<'r>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    region: Region,
}

#[derive(Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: String,
}

/// The first name is ours; GitHub recognizes a result by the second.
#[derive(Serialize)]
struct Fingerprints {
    #[serde(rename = "serdes/v1")]
    own: String,
    #[serde(rename = "primaryLocationLineHash")]
    github: String,
}

#[derive(Serialize)]
struct Suppression {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    justification: Option<String>,
}

#[derive(Serialize)]
struct Properties<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'r str>,
    /// The releases with the finding.
    releases: Vec<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loader: Option<&'r str>,
    class: Class,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// Returns the rules of the findings, in the order of the report's rules.
fn rules(report: &Report) -> Vec<Descriptor<'_>> {
    let mut named: HashMap<&str, &Finding> = HashMap::new();
    let mut order = Vec::new();
    for finding in report.artifacts().iter().flat_map(Artifact::findings) {
        if finding.is_shown() && !named.contains_key(finding.rule.as_str()) {
            named.insert(&finding.rule, finding);
            order.push(finding);
        }
    }
    let known = report.rules().iter().filter(|rule| named.contains_key(rule.id.as_str()));
    let mut rules: Vec<Descriptor<'_>> = known.map(descriptor).collect();
    let has = |rules: &[Descriptor<'_>], id: &str| rules.iter().any(|rule| rule.id == id);
    for finding in order {
        if !has(&rules, &finding.rule) {
            rules.push(Descriptor {
                id: &finding.rule,
                short_description: Message::new(&finding.rule),
                full_description: Message::new(&finding.rule),
                help: Help { text: message(&finding.rule) },
                help_uri: None,
                default_configuration: Configuration { level: level(finding) },
            });
        }
    }
    rules
}

fn descriptor(rule: &Rule) -> Descriptor<'_> {
    let mut help = rule.meaning.clone();
    for (title, words) in [("Example", &rule.example), ("Remedy", &rule.remedy)] {
        if let Some(words) = words {
            help = format!("{help}\n\n{title}: {words}");
        }
    }
    let meaning = if rule.meaning.is_empty() { &rule.summary } else { &rule.meaning };
    Descriptor {
        id: &rule.id,
        short_description: Message::new(&rule.summary),
        full_description: Message::new(meaning),
        help: Help { text: help.split('\n').map(message).collect::<Vec<_>>().join("\n") },
        help_uri: rule.address.as_deref(),
        default_configuration: Configuration {
            level: if rule.is_warning { "warning" } else { "error" },
        },
    }
}

fn result<'r>(
    artifact: &'r Artifact,
    group: &Group<'r>,
    numbers: &HashMap<&str, usize>,
    has_baseline: bool,
) -> Outcome<'r> {
    let finding = group.finding;
    let releases = group.releases_of(artifact);
    let mut text = shown(&finding.message).into_owned();
    if !releases.is_empty() {
        text = format!("{text} ({releases})");
    }
    if let Some(remedy) = &finding.remedy {
        text = format!("{text}; {}", shown(remedy));
    }
    let name = |text: &String| shown(text).into_owned();
    let fingerprint = finding.fingerprint().to_string();
    Outcome {
        rule_id: &finding.rule,
        rule_index: numbers.get(finding.rule.as_str()).copied().unwrap_or_default(),
        level: level(finding),
        message: Message { text: message(&text) },
        locations: [Location {
            physical_location: PhysicalLocation {
                artifact_location: ArtifactLocation { uri: uri(artifact.location()) },
                region: Region { start_line: 1 },
            },
            logical_locations: finding
                .place
                .iter()
                .map(|place| LogicalLocation { fully_qualified_name: name(place) })
                .collect(),
        }],
        partial_fingerprints: Fingerprints {
            github: format!("{}:1", fingerprint.get(..16).unwrap_or_default()),
            own: fingerprint,
        },
        baseline_state: has_baseline.then_some(if finding.known.is_some() {
            "unchanged"
        } else {
            "new"
        }),
        suppressions: finding
            .known
            .iter()
            .map(|reason| Suppression {
                kind: "external",
                justification: Some(reason).filter(|reason| !reason.is_empty()).map(name),
            })
            .collect(),
        properties: Properties {
            kind: artifact.kind(),
            releases: group.releases.clone(),
            loader: finding.loader.as_deref(),
            class: finding.class,
            found: finding.found.as_ref().map(name),
            expected: finding.expected.as_ref().map(name),
            remedy: finding.remedy.as_ref().map(name),
        },
    }
}

fn level(finding: &Finding) -> &'static str {
    match finding.level {
        Level::Deny => "error",
        Level::Warn => "warning",
        Level::Allow => "none",
    }
}

/// Escapes a message. Braces are doubled, since `{0}` stands for an argument, and link syntax is
/// escaped (SARIF 2.1.0, 3.11.5 and 3.11.6).
fn message(text: &str) -> String {
    let text = shown(text).replace('{', "{{").replace('}', "}}");
    if text.contains("](") { text.replace('[', "\\[").replace(']', "\\]") } else { text }
}

/// Characters of a path that are escaped in a URI: all but the unreserved ones of RFC 3986 and `/`.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Maximum length of a path in a URI, in characters.
const LONGEST_PATH: usize = 4_096;

/// Converts a path to a reference relative to the working directory, or keeps a URL.
fn uri(path: &str) -> String {
    let path = clean(path);
    let path = shortened(&path, LONGEST_PATH);
    let escaped = utf8_percent_encode(&path, ESCAPED).to_string();
    match path.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            format!("{scheme}://{}", utf8_percent_encode(rest, ESCAPED))
        }
        _ if path.starts_with('/') => format!("file://{escaped}"),
        _ => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sarif_paths_are_uris() {
        for (path, expected) in [
            ("./m/saved_model.pb", "m/saved_model.pb"),
            ("/a b", "file:///a%20b"),
            ("s3://b/k e", "s3://b/k%20e"),
            ("a:b%0A\u{7}", "a%3Ab%250A%07"),
            ("ü", "%C3%BC"),
            ("javascript://x", "javascript://x"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }

    #[test]
    fn sarif_messages_have_no_links_and_no_arguments() {
        assert_eq!(message("[serve] is {0}"), "[serve] is {{0}}");
        assert_eq!(message("[a](https://x)"), r"\[a\](https://x)");
    }
}
