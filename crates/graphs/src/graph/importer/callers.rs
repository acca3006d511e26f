//! An order in which functions are judged: each one after those that it calls.
//!
//! Depends on numbers and calls, not on functions.

/// The dependencies between functions: each is judged after those that it calls.
pub(super) struct Callers {
    /// Pairs of callee and caller, ascending.
    edges: Vec<(u32, u32)>,
    /// Number of called functions that each function still waits for.
    waiting: Vec<u32>,
}

impl Callers {
    /// Creates the dependencies of this number of functions from pairs of called and caller.
    pub(super) fn of(functions: usize, calls: Vec<(u32, u32)>) -> Self {
        let mut edges = calls;
        edges.sort_unstable();
        let mut waiting = vec![0_u32; functions];
        for (_, caller) in &edges {
            if let Some(waiting) = waiting.get_mut(*caller as usize) {
                *waiting = waiting.saturating_add(1);
            }
        }
        Self { edges, waiting }
    }

    /// Returns the functions, each after those that it calls; and those for which there is no such
    /// order, because they can reach themselves or a function that can.
    pub(super) fn callees_first(mut self) -> (Vec<u32>, Vec<u32>) {
        let known = (0_u32..).zip(&self.waiting).filter(|(_, waiting)| **waiting == 0);
        let mut known: Vec<u32> = known.map(|(function, _)| function).collect();
        let mut order = Vec::with_capacity(self.waiting.len());
        while let Some(called) = known.pop() {
            order.push(called);
            let from = self.edges.partition_point(|edge| edge.0 < called);
            let edges = self.edges.get(from..).unwrap_or_default();
            for (_, caller) in edges.iter().take_while(|edge| edge.0 == called) {
                if let Some(waiting) = self.waiting.get_mut(*caller as usize) {
                    *waiting -= 1;
                    if *waiting == 0 {
                        known.push(*caller);
                    }
                }
            }
        }
        let left = (0_u32..).zip(&self.waiting).filter(|(_, waiting)| **waiting > 0);
        (order, left.map(|(function, _)| function).collect())
    }
}
