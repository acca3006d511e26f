//! The results of `serdes plugin verify` as an HTML page, and as Markdown for a review.

use std::io;

use askama::Template;
use serdes_stream_executor::conformance::{Class, Conformance};

use super::{
    markdown_text::{code, plain},
    plugin_behaviours,
    plugin_tally::{Tally, Tried},
};
use crate::terminal::harmless;

/// A row of a table.
struct Row {
    behaviour: String,
    class: &'static str,
    word: String,
    detail: String,
    remedy: Option<&'static str>,
    /// CSS class of its style.
    style: &'static str,
}

#[derive(Template)]
#[template(path = "plugin_verify.html")]
struct Page {
    plugin: String,
    summary: String,
    version: &'static str,
    rows: Vec<Row>,
}

#[derive(Template)]
#[template(path = "plugin_verify.md", escape = "none")]
struct Comment {
    plugin: String,
    summary: String,
    rows: Vec<Row>,
    failed: Vec<Row>,
}

/// Formats a standalone HTML page.
pub(super) fn html(plugin: &str, tally: &Tally) -> io::Result<String> {
    let page = Page {
        plugin: harmless(plugin),
        summary: tally.summary(),
        version: env!("CARGO_PKG_VERSION"),
        rows: tally.tried().iter().map(|tried| row(tried, harmless)).collect(),
    };
    page.render().map_err(io::Error::other)
}

/// Formats Markdown: the behaviours that did not pass, and a collapsed list of all.
pub(super) fn markdown(plugin: &str, tally: &Tally) -> io::Result<String> {
    let of_markdown = |tried: &Tried| {
        let row = row(tried, plain);
        Row { behaviour: code(&tried.behaviour), ..row }
    };
    let is_of_note = |tried: &&Tried| tried.counts || tried.result == Conformance::Fail;
    let failed = tally.tried().iter().filter(is_of_note);
    let skipped = tally.tried().iter().filter(|tried| tried.result == Conformance::Skipped);
    let page = Comment {
        plugin: code(plugin),
        summary: tally.summary(),
        rows: tally.tried().iter().map(of_markdown).collect(),
        failed: failed.chain(skipped).map(of_markdown).collect(),
    };
    page.render().map_err(io::Error::other)
}

fn row(tried: &Tried, words: impl Fn(&str) -> String) -> Row {
    let note = match (tried.result, tried.class, &tried.known) {
        (Conformance::Pass, _, Some(_)) => " (listed as a known failure)",
        (Conformance::Fail, _, Some(_)) => " (known)",
        (Conformance::Fail, Class::Robust, None) if !tried.counts => " (does not count)",
        _ => "",
    };
    let remedy = plugin_behaviours::guidance(&tried.behaviour).map(|guidance| guidance.remedy);
    let mut detail = tried.detail.replace('\n', " ");
    if let Some(reason) = tried.known.as_deref().filter(|reason| !reason.is_empty()) {
        detail = format!("{reason}: {detail}");
    }
    Row {
        behaviour: tried.behaviour.clone(),
        class: tried.class.as_str(),
        word: format!("{}{note}", tried.result.as_str()),
        detail: words(&detail),
        remedy: remedy.filter(|_| tried.result == Conformance::Fail),
        style: match tried.result {
            _ if tried.counts => "counts",
            Conformance::Pass => "passes",
            _ => "other",
        },
    }
}
