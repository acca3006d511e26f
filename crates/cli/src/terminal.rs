//! Standard output and standard error: results as text or JSON, notes, errors, progress.
//!
//! Results go to standard output, as one JSON object per line with `--json`; everything else goes
//! to standard error. Does not depend on the meaning of results.

use std::{
    fmt,
    fs::File,
    io::{self, IsTerminal, Write},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use crate::{
    arguments::{Color, Global},
    failure::Failure,
    startup,
    status::ExitStatus,
};

/// First byte of the lines that end the results of a supervised process; other lines never begin
/// with it.
pub(crate) const END_OF_RESULTS: u8 = 4;

/// Mark in such a line that all results were written and the plug-in is still to be unloaded;
/// otherwise the line has the exit status.
pub(crate) const UNLOADING: u8 = b'u';

/// Output for results.
#[cfg(unix)]
type Results = std::fs::File;
#[cfg(not(unix))]
type Results = io::Stdout;

/// Reserves standard output for results: from now on output of a plug-in or its libraries goes to
/// standard error, so that it does not mix with JSON objects.
#[cfg(unix)]
fn results() -> io::Result<Results> {
    use std::os::fd::AsFd;
    let results = if startup::standard_output_was_closed() {
        // A file opened for reading cannot be written.
        File::open("/dev/null")?
    } else {
        io::stdout().as_fd().try_clone_to_owned()?.into()
    };
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(results)
}

/// Duplicates standard error.
#[cfg(unix)]
fn messages() -> io::Result<Results> {
    use std::os::fd::AsFd;
    Ok(io::stderr().as_fd().try_clone_to_owned()?.into())
}

#[cfg(not(unix))]
fn results() -> io::Result<Results> {
    Ok(io::stdout())
}

/// Output of the command: results, messages, progress.
pub(crate) struct Terminal {
    supervised: bool,
    json: bool,
    quiet: bool,
    verbosity: u8,
    stdout: anstream::AutoStream<Results>,
    /// File for results, instead of standard output.
    file: Option<anstream::StripStream<File>>,
    stderr: anstream::AutoStream<io::Stderr>,
    bars: Arc<Bars>,
}

/// Style of good results.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Style of bad results.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Style of warnings.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// Style of names.
pub(crate) const NAME: Style = Style::new().bold();
/// Style of less important text.
pub(crate) const FAINT: Style = Style::new().dimmed();

impl Terminal {
    /// Creates the terminal from the global options.
    ///
    /// # Errors
    /// The system's error if standard output cannot be duplicated.
    pub(crate) fn new(global: &Global) -> io::Result<Self> {
        let choice = match global.color {
            Color::Auto => None,
            Color::Always => Some(anstream::ColorChoice::Always),
            Color::Never => Some(anstream::ColorChoice::Never),
        };
        let stdout = results()?;
        let stderr = io::stderr();
        let are_shown = !global.quiet && !global.json && stderr.is_terminal();
        Ok(Self {
            supervised: false,
            json: global.json,
            quiet: global.quiet,
            verbosity: global.verbose,
            stdout: match choice {
                Some(choice) => anstream::AutoStream::new(stdout, choice),
                None => anstream::AutoStream::auto(stdout),
            },
            file: None,
            stderr: match choice {
                Some(choice) => anstream::AutoStream::new(stderr, choice),
                None => anstream::AutoStream::auto(stderr),
            },
            bars: Arc::new(Bars { are_shown, current: Mutex::new(ProgressBar::hidden()) }),
        })
    }

    /// Takes standard output for binary data; results go to standard error from now on.
    ///
    /// # Errors
    /// If standard output is a terminal, which the data could affect.
    #[cfg(unix)]
    pub(crate) fn take_stream(&mut self) -> Result<Results, Failure> {
        let failed =
            |error| Failure::new(format_args!("cannot use standard error for results: {error}"));
        let messages =
            anstream::AutoStream::new(messages().map_err(failed)?, self.stderr.current_choice());
        let stream = std::mem::replace(&mut self.stdout, messages).into_inner();
        if stream.is_terminal() {
            return Err(Failure::new(
                "standard output is a terminal; expected a file or a pipe, as in `serdes save --from a.npz -o - > a.sds`",
            ));
        }
        Ok(stream)
    }

    /// Not supported on this system.
    #[cfg(not(unix))]
    pub(crate) fn take_stream(&mut self) -> Result<Results, Failure> {
        Err(Failure::new("standard output takes results alone on this system; name a file"))
    }

    /// Returns the progress bars, which are hidden while something is printed.
    pub(crate) fn bars(&self) -> Arc<Bars> {
        Arc::clone(&self.bars)
    }

    /// Marks this process as supervised: the process that reads the results is told when they end.
    pub(crate) fn be_supervised(&mut self) {
        self.supervised = true;
    }

    /// Tells the supervising process, if there is one, that only unloading the plug-in remains.
    pub(crate) fn unloading(&self) {
        self.mark(UNLOADING);
    }

    /// Tells the supervising process, if there is one, that the results are complete, and the exit
    /// status.
    pub(crate) fn end(&self, status: ExitStatus) {
        self.bars.clear();
        self.mark(b'0' + status as u8);
    }

    fn mark(&self, what: u8) {
        if self.supervised {
            // Bypasses the filter of escape sequences, which drops control characters.
            let mut results: &Results = self.stdout.as_inner();
            // A failed write cannot be reported.
            let _ = results.write_all(&[END_OF_RESULTS, what, b'\n']);
        }
    }

    /// Returns the options with which another process of this command prints like this one.
    pub(crate) fn options(&self) -> Vec<&'static str> {
        let mut options = vec![match self.stdout.current_choice() {
            anstream::ColorChoice::Never => "--color=never",
            _ => "--color=always",
        }];
        if self.quiet {
            options.push("--quiet");
        }
        options.extend(std::iter::repeat_n("-v", self.verbosity.into()));
        options
    }

    /// Switches to JSON, as `--json` does.
    pub(crate) fn speak_json(&mut self) {
        self.json = true;
    }

    /// Redirects results into a file, without colours.
    pub(crate) fn write_into(&mut self, file: File) {
        self.file = Some(anstream::StripStream::new(file));
    }

    /// Returns the number of `-v` options.
    pub(crate) fn verbosity(&self) -> u8 {
        self.verbosity
    }

    /// Returns true if results are JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Prints one result as a JSON line; only with `--json`.
    pub(crate) fn object(&mut self, value: &Value) -> Result<(), Failure> {
        self.print(json_line(value).as_bytes())
    }

    /// Returns the width of the terminal for results in columns; `None` if they go elsewhere.
    pub(crate) fn columns(&self) -> Option<usize> {
        if self.file.is_some() {
            return None;
        }
        let results = self.stdout.as_inner();
        let size = results.is_terminal().then(|| terminal_size::terminal_size_of(results));
        size.flatten().map(|(terminal_size::Width(columns), _)| columns.into())
    }

    /// Prints a line of text, unless `--json` is given.
    pub(crate) fn line(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        if !self.json {
            let line = escaped(text.to_string(), |c| c.escape_default().to_string());
            self.print(format!("{line}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Prints bytes unchanged in any mode (completion scripts).
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.print(bytes)
    }

    /// Prints without buffering.
    fn print(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Self { bars, stdout, file, .. } = self;
        let results: &mut dyn Write = match file {
            Some(file) => file,
            None => stdout,
        };
        bars.aside(|| {
            results.write_all(bytes)?;
            results.flush()
        })?;
        Ok(())
    }

    /// Prints a fact of a list: its label, followed by its value in a column, or directly after a
    /// longer label.
    pub(crate) fn fact(&mut self, label: &str, value: impl fmt::Display) -> Result<(), Failure> {
        self.line(fact(label, value))
    }

    /// Prints a note on standard error, unless quiet.
    pub(crate) fn note(&mut self, text: impl fmt::Display) {
        if !self.quiet {
            let Self { bars, stderr, .. } = self;
            let line = escaped(text.to_string(), |c| c.escape_default().to_string());
            // If standard error is gone, there is no way to report it.
            let _ = bars.aside(|| writeln!(stderr, "{line}"));
        }
    }

    /// Prints a warning on standard error.
    pub(crate) fn warning(&mut self, text: impl fmt::Display) {
        self.note(format_args!("{WARN}warning{WARN:#}: {}", harmless(&text.to_string())));
    }

    /// Reports a failure and returns its status; with `--json` also as an object.
    pub(crate) fn fail(&mut self, failure: &Failure) -> ExitStatus {
        if failure.is_of_closed_output() {
            return failure.status();
        }
        self.bars.clear();
        let mut status = failure.status();
        let message = failure.to_string();
        if self.json
            && let Err(unwritten) = self.object(&serde_json::json!({ "error": &message }))
            && !unwritten.is_of_closed_output()
        {
            status = status.worst(unwritten.status());
        }
        let _ = writeln!(self.stderr, "{BAD}error{BAD:#}: {}", harmless(&message));
        status
    }
}

/// Formats an object as a line of `--json`.
pub(crate) fn json_line(value: &Value) -> String {
    escaped(value.to_string(), |c| format!("\\u{:04x}", u32::from(c))) + "\n"
}

/// Progress bar of the current phase, over a number of bytes, on standard error; hidden if that is
/// not a terminal.
#[derive(Debug)]
pub(crate) struct Bars {
    are_shown: bool,
    current: Mutex<ProgressBar>,
}

impl Bars {
    fn current(&self) -> MutexGuard<'_, ProgressBar> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the bar of a phase, replacing the previous one.
    pub(crate) fn begin(&self, phase: &str, bytes: u64) {
        let mut current = self.current();
        current.finish_and_clear();
        if !self.are_shown {
            return;
        }
        let bar =
            ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template(
            "{prefix:>10} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}",
        ) {
            bar.set_style(style);
        }
        bar.set_prefix(phase.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        *current = bar;
    }

    /// Advances the bar.
    pub(crate) fn advance(&self, bytes: u64) {
        self.current().inc(bytes);
    }

    /// Prints while the bar is hidden.
    fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        let bar = self.current().clone();
        bar.suspend(print)
    }

    /// Removes the bar.
    fn clear(&self) {
        self.current().finish_and_clear();
    }
}

/// Formats a label and its value in columns.
fn fact(label: &str, value: impl fmt::Display) -> String {
    // Some labels come from files.
    let label = shown(label).to_string();
    if label.len() < LABEL {
        format!("  {label:<LABEL$}{value}")
    } else {
        format!("  {label}  {value}")
    }
}

/// Width of the label column in characters.
const LABEL: usize = 12;

/// Formats a number with its noun: `1 tensor`, `2 tensors`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Returns the rate in bytes per second; 0 if no time passed.
pub(crate) fn rate(bytes: u64, time: Duration) -> u64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { (bytes as f64 / seconds) as u64 } else { 0 }
}

/// Formats text from a file: quoted and escaped if it could affect a terminal, or be invisible.
pub(crate) fn shown(text: &str) -> impl fmt::Display {
    let odd = text.is_empty() || text.chars().any(|c| c.is_control() || turns(c));
    if odd { format!("{text:?}") } else { text.to_owned() }
}

/// Formats a path like [`shown`].
pub(crate) fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy()).to_string()
}

/// Converts a path to JSON; bytes that are not text are replaced.
pub(crate) fn json_of_path(path: &Path) -> Value {
    path.to_string_lossy().into()
}

/// Returns true if a character changes the text direction, which control characters do not include.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns true if a character other than ASCII control characters affects a terminal: U+007F,
/// those of C1 (U+009B begins an escape sequence), and those that change the text direction. No
/// message of the command has one.
fn acts(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}') || turns(c)
}

/// Escapes all such characters of a line; all output passes through here.
fn escaped(line: String, escape: impl Fn(char) -> String) -> String {
    if !line.contains(acts) {
        return line;
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        if acts(c) { shown.push_str(&escape(c)) } else { shown.push(c) }
    }
    shown
}

/// Escapes the parts of a message that may come from files, servers and plug-ins and could affect a
/// terminal, other than line breaks.
pub(crate) fn harmless(message: &str) -> String {
    let mut shown = String::with_capacity(message.len());
    for c in message.chars() {
        if (c.is_control() && !matches!(c, '\n' | '\t')) || turns(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Formats a number of bytes.
pub(crate) fn bytes(count: u64) -> impl fmt::Display {
    indicatif::BinaryBytes(count)
}

/// Converts a value of the library to JSON.
pub(crate) fn json_of<T: serde::Serialize>(value: &T) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(Failure::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_never_touches_its_value() {
        assert_eq!(fact("date", "today"), "  date        today");
        assert_eq!(fact("architecture", "x86_64"), "  architecture  x86_64");
        assert_eq!(fact("functions123", 1), "  functions123  1");
    }

    #[test]
    fn words_of_others_do_nothing_to_a_terminal() {
        let evil = "a\u{1b}]0;x\u{7}\u{9b}2J\u{202e}b\r";
        assert_eq!(harmless(evil), r"a\u{1b}]0;x\u{7}\u{9b}2J\u{202e}b\r");
        assert_eq!(harmless("one\n\ttwo \u{fc}"), "one\n\ttwo \u{fc}");
        assert_eq!(fact("a\u{1b}[2J", 1), r#"  "a\u{1b}[2J"  1"#);
    }

    #[test]
    fn count_of_one_is_printed_in_the_singular() {
        assert_eq!([0, 1, 2].map(|n| count(n, "tensor")), ["0 tensors", "1 tensor", "2 tensors"]);
    }
}
