//! JUnit XML of `serdes plugin verify`: one suite per plug-in, one test case per behaviour.

use std::io::{self, Write};

use quick_xml::{
    Writer,
    events::{BytesDecl, BytesText, Event},
};
use serdes_stream_executor::conformance::Conformance;

use super::{
    plugin_behaviours,
    plugin_tally::{Tally, Tried},
};
use crate::terminal::shown;

/// Result of a test case.
enum Case {
    Passed,
    /// A failure that counts for the status.
    Failed,
    /// A behaviour that was skipped, is missing, or whose failure does not count; with the reason.
    Skipped(&'static str),
}

impl Case {
    fn of(tried: &Tried) -> Self {
        match (tried.result, &tried.known) {
            _ if tried.counts => Self::Failed,
            (Conformance::Pass, _) => Self::Passed,
            (Conformance::Unsupported, _) => Self::Skipped("unsupported"),
            (Conformance::Skipped, _) => Self::Skipped("no hardware"),
            (Conformance::Fail, Some(_)) => Self::Skipped("known failure"),
            (Conformance::Fail, None) => Self::Skipped("failure that does not count"),
        }
    }
}

/// Writes the test suite.
pub(super) fn write(plugin: &str, tally: &Tally, out: &mut Vec<u8>) -> io::Result<()> {
    let tried = tally.tried();
    let number =
        |is: fn(&Case) -> bool| tried.iter().filter(|one| is(&Case::of(one))).count().to_string();
    let failures = number(|case| matches!(case, Case::Failed));
    let skipped = number(|case| matches!(case, Case::Skipped(_)));
    let (tests, name) = (tried.len().to_string(), text(plugin));
    let attributes = [
        ("name", name.as_str()),
        ("tests", &tests),
        ("failures", &failures),
        ("errors", "0"),
        ("skipped", &skipped),
        ("time", "0"),
    ];
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.create_element("testsuites").with_attributes(attributes).write_inner_content(|xml| {
        xml.create_element("testsuite")
            .with_attributes(attributes)
            .write_inner_content(|xml| tried.iter().try_for_each(|one| case(one, xml)))?;
        Ok(())
    })?;
    out.write_all(b"\n")
}

fn case(tried: &Tried, xml: &mut Writer<&mut Vec<u8>>) -> io::Result<()> {
    let attributes =
        [("name", tried.behaviour.as_str()), ("classname", tried.class.as_str()), ("time", "0")];
    let detail = text(&tried.detail);
    xml.create_element("testcase").with_attributes(attributes).write_inner_content(|xml| {
        match Case::of(tried) {
            Case::Passed => {
                xml.create_element("system-out").write_text_content(BytesText::new(&detail))?;
            }
            Case::Failed => {
                let remedy =
                    plugin_behaviours::guidance(&tried.behaviour).map(|found| found.remedy);
                let words = match (tried.result, remedy) {
                    (Conformance::Pass, _) => {
                        "it is listed as a known failure, and passes: take it out".to_owned()
                    }
                    (_, Some(remedy)) => format!("{detail}\nhelp: {remedy}"),
                    (_, None) => detail.clone(),
                };
                xml.create_element("failure")
                    .with_attributes([("message", detail.as_str()), ("type", tried.class.as_str())])
                    .write_text_content(BytesText::new(&words))?;
            }
            Case::Skipped(why) => {
                let message = format!("{why}: {detail}");
                xml.create_element("skipped")
                    .with_attribute(("message", message.as_str()))
                    .write_empty()?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Removes characters that XML cannot represent.
fn text(words: &str) -> String {
    shown(words).to_string()
}
