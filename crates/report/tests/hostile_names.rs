//! Tests that no name or message breaks a report or puts markup into one.

use proptest::prelude::*;
use quick_xml::{Reader, events::Event};
use serdes_report::{Artifact, Baseline, Class, Finding, Format, Level, Levels, Report, Tool};

/// Returns a report with `text` in every place that a file can influence.
fn report(text: &str) -> Report {
    let mut artifact = Artifact::new(text).of_kind("saved_model");
    let refusal = Finding::new("unknown_op", text)
        .of_class(Class::Refusal)
        .at(text)
        .with_values(Some(text.to_owned()), Some(text.to_owned()))
        .with_remedy(text);
    let warning = Finding::new("attribute_dropped", text).of_class(Class::Differs).at(text);
    artifact.add_release("2.12", [refusal, warning.clone()]);
    artifact.add_release("2.13", [warning]);
    artifact.add_release("2.14", []);
    let mut report = Report::new(Tool::new("serdes", "0.1.0"));
    report.add(artifact);
    report.note(text);
    report
}

fn written(report: &Report, format: Format) -> String {
    let mut out = Vec::new();
    report.write(format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the names of the elements of XML or HTML, in order.
fn elements(text: &str, is_html: bool) -> Vec<String> {
    // A script is not XML.
    let text = text.replace("&&", "");
    let mut reader = Reader::from_str(&text);
    reader.config_mut().check_end_names = !is_html;
    let mut names = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => return names,
            Event::Start(tag) | Event::Empty(tag) => {
                names.push(String::from_utf8(tag.name().as_ref().to_vec()).unwrap());
            }
            Event::Text(text) => {
                let text = text.decode().unwrap();
                assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
            }
            _ => {}
        }
    }
}

/// Asserts the properties that a report has for every name.
fn holds(text: &str) {
    let (found, plain) = (report(text), report("plain"));
    assert_eq!(
        elements(&written(&found, Format::JUnit), false),
        elements(&written(&plain, Format::JUnit), false)
    );
    assert_eq!(
        elements(&written(&found, Format::Html), true),
        elements(&written(&plain, Format::Html), true)
    );
    for format in [Format::Sarif, Format::GitLab] {
        let parsed: serde_json::Value = serde_json::from_str(&written(&found, format)).unwrap();
        assert!(parsed.is_object() || parsed.is_array());
    }
    let lines = |report: &Report| written(report, Format::GitHub).lines().count();
    assert_eq!(lines(&found), lines(&plain));
    for line in written(&found, Format::GitHub).lines() {
        assert!(line.starts_with("::"), "{line}");
    }
    let text = written(&found, Format::Text);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    let markdown = written(&found, Format::Markdown);
    assert!(!markdown.chars().any(|c| c.is_control() && c != '\n'), "{markdown:?}");
    assert!(markdown.len() <= 65_536);
}

#[test]
fn reports_stay_whole_for_names_that_people_have_tried() {
    let controls: String = (0..0x20).map(|c| char::from(c as u8)).collect();
    for text in [
        controls.as_str(),
        "\u{7f}\u{80}\u{9b}2J\u{202e}\u{2028}\u{feff}\u{fffe}\u{ffff}\u{1fffe}\u{fffd}",
        "]]>",
        "</script><script>alert(1)</script>",
        "<!-- --> --> <!DOCTYPE x [<!ENTITY y 'z'>]> &y;",
        "\"' onmouseover='alert(1)' x=\"",
        "%0A::error::x%25",
        "::set-output name=x::y",
        "[x](javascript:alert(1)) ![x](http://y/z) @you #1 |a|b|\n| c |",
        "``` ` `` a",
        "{0} {{1}} {% raw %}",
        "",
    ] {
        holds(text);
    }
    holds(&"<\u{0}]]>`|\n".repeat(150_000));
}

#[test]
fn baselines_know_findings_of_any_name() {
    let text = "a\u{0}\n\"]]>%0A\u{2028}";
    let mut bytes = Vec::new();
    Baseline::of(&report(text)).write(&mut bytes).unwrap();
    let baseline = Baseline::parse(&String::from_utf8(bytes).unwrap()).unwrap();
    let mut again = report(text);
    again.apply(&Levels::default().with("attribute_dropped", Level::Deny));
    assert!(!again.is_clean());
    assert!(baseline.apply(&mut again).is_empty());
    assert!(again.is_clean());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reports_stay_whole_whatever_a_name_is(text in any::<String>()) {
        holds(&text);
    }
}
