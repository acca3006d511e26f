//! The order in which `tf.saved_model.load` loads the functions of a library.
//!
//! Depends on the references between functions, but not on their contents.

use super::{
    super::{
        count,
        instantiate::{FunctionDiagnostic, InstantiationDiagnostic},
        lists::Lists,
    },
    summarized::{Summarized, Unloaded},
};
use crate::graph::{ImportDiagnosticKind, diagnostic::Part};

/// Returns the order in which functions are loaded, or the reason why there is none: as in Python,
/// the function that became ready last is first, and a repeated name counts twice.
pub(super) fn order(functions: &Summarized<'_>) -> Result<Vec<u32>, FunctionDiagnostic> {
    let unresolved =
        functions.first_diagnostic(|judged| judged.named.as_deref()?.unresolved.as_ref());
    if let Some(diagnostic) = unresolved {
        return Err(diagnostic);
    }
    let places = functions.summaries.len();
    let pairs = (0..places).flat_map(|caller| {
        functions.named_by(caller).iter().map(move |named| (*named, count(caller)))
    });
    let callers = Lists::of(pairs, places);
    let waiting = (0..places).map(|position| functions.named_by(position).len() as i32);
    let mut waiting: Vec<i32> = waiting.collect();
    let mut ready = ready_at_first(functions);
    let mut order = Vec::with_capacity(places);
    let mut loaded = vec![false; places];
    let is_loaded = |loaded: &[bool], one: &u32| loaded.get(*one as usize) == Some(&true);
    while let Some(next) = ready.pop() {
        let named = functions.named_by(next as usize);
        if !named.iter().all(|one| is_loaded(&loaded, one))
            && let Some(function) = functions.get(next as usize)
        {
            return Err(needs_itself(&function));
        }
        if let Some(loaded) = loaded.get_mut(next as usize) {
            *loaded = true;
        }
        order.push(next);
        for caller in &callers[next] {
            if let Some(waiting) = waiting.get_mut(*caller as usize) {
                *waiting -= 1;
                if *waiting == 0 {
                    ready.push(*caller);
                }
            }
        }
    }
    let left = functions.iter().find(|(position, _)| loaded.get(*position) != Some(&true));
    // A repeated name that waits for others is ready only once.
    let twice = || {
        functions.iter().find(|(position, Unloaded { function, .. })| {
            function.last_number != function.number && !functions.named_by(*position).is_empty()
        })
    };
    match left.or_else(twice) {
        None => Ok(order),
        Some((_, function)) => Err(needs_itself(&function)),
    }
}

/// Returns the functions that name no others, in the order of the library; each as often as its
/// name occurs, up to twice.
fn ready_at_first(functions: &Summarized<'_>) -> Vec<u32> {
    let ready = functions.iter().filter(|(position, _)| functions.named_by(*position).is_empty());
    let count = ready.count();
    let mut found: Vec<(u32, u32)> = Vec::with_capacity(count);
    let mut comes_again = false;
    for (position, Unloaded { function, .. }) in functions.iter() {
        if functions.named_by(position).is_empty() {
            let position = u32::try_from(position).unwrap_or(u32::MAX);
            found.push((function.number, position));
            if function.last_number != function.number {
                comes_again = true;
                found.push((function.last_number, position));
            }
        }
    }
    if comes_again {
        found.sort_unstable();
    }
    found.into_iter().map(|(_, position)| position).collect()
}

fn needs_itself(function: &Unloaded) -> FunctionDiagnostic {
    let diagnostic = InstantiationDiagnostic::of(Part::Function, ImportDiagnosticKind::Python);
    let diagnostic = diagnostic.with("it needs itself, at once or through others", "");
    FunctionDiagnostic { function: function.place, diagnostic: diagnostic.into() }
}
