//! Notes about a selection of versions, before anything is written at it.

use serdes::version::{DeviceState, Ifrt, Line, Week4OldVersionAccessor};

use crate::terminal::Terminal;

/// Notes the versions of a state for the builds of four weeks ago that are younger than that.
pub(crate) fn say_what_is_young(terminal: &mut Terminal) {
    for note in [young::<DeviceState>(), young::<Ifrt>()].into_iter().flatten() {
        terminal.note(note);
    }
}

fn young<L: Line>() -> Option<String> {
    let selection = Week4OldVersionAccessor::<L>::select().ok()?;
    selection.is_younger_than_asked().then(|| format!("note: {selection}"))
}
