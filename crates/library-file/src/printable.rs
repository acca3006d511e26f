//! Messages of plug-ins in a form that can be displayed.

/// The maximum number of bytes of a plug-in's message that are kept; longer ones are not useful for
/// people.
pub const LONGEST_MESSAGE: usize = 16 << 10;

/// Returns a message in a form that can be displayed: of bounded length, and without characters
/// that would control a terminal.
#[must_use]
pub fn printable(message: &[u8]) -> String {
    let kept = message.get(..LONGEST_MESSAGE).unwrap_or(message);
    let mut text = String::with_capacity(kept.len());
    for character in String::from_utf8_lossy(kept).chars() {
        if character.is_control() && !matches!(character, '\n' | '\t') {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    if kept.len() < message.len() {
        text.push_str(&format!("... ({} bytes in all)", message.len()));
    }
    text
}
