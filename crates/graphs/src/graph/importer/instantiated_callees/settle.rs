//! Finds the diagnostics that keep callees from being built, through the functions that they call.
//!
//! Depends on the calls between functions, but not on instantiation.

use std::{collections::HashMap, rc::Rc};

use super::{
    super::{callers::Callers, count, instantiate::InstantiationDiagnostic},
    InnerCall, InstantiatedCallees, InstantiationResult,
    diagnostics::DiagnosticTable,
};
use crate::graph::diagnostic::{BodyDiagnosticKind, Part};

impl InstantiatedCallees<'_> {
    /// Determines the diagnostic that keeps each function from being built: its own, or that of one
    /// that it calls.
    pub(super) fn settle(&mut self) {
        let this = &*self;
        let calls = (0..this.callees.len()).flat_map(|caller| {
            let called = this.calls_of(caller).iter();
            let called = called.filter_map(|inner| this.position(inner.function));
            called.map(move |called| (count(called), count(caller)))
        });
        let mut edges = Vec::with_capacity(this.calls.len());
        edges.extend(calls);
        let (order, circular) = Callers::of(self.callees.len(), edges).callees_first();
        let lacks = |built: &Rc<InstantiationResult>| {
            built.as_ref().as_ref().is_ok_and(|built| built.no_shape_function.is_some())
        };
        let some_lack = self.callees.iter().any(|callee| {
            self.releases.ids().filter_map(|release| callee.built(release)).any(lacks)
        });
        self.diagnostics = self.diagnostics_of((&order, &circular), true);
        if some_lack {
            self.lenient = Some(self.diagnostics_of((&order, &circular), false));
        }
    }

    fn diagnostics_of(
        &self,
        (order, circular): (&[u32], &[u32]),
        wants_shape_functions: bool,
    ) -> DiagnosticTable {
        let mut diagnostics = DiagnosticTable::of(self.callees.len());
        for function in order {
            self.find_in(*function as usize, &mut diagnostics, wants_shape_functions);
        }
        // In a cycle of calls, each function reports the diagnostic that it reaches before it
        // reaches itself again.
        let mut waiting: Vec<u32> = circular.iter().rev().copied().collect();
        let callers = self.callers_in(circular);
        while let Some(function) = waiting.pop() {
            if self.find_in(function as usize, &mut diagnostics, wants_shape_functions) {
                waiting.extend(callers.get(&function).into_iter().flatten());
            }
        }
        for function in circular {
            if let Some(callee) = self.callees.get(*function as usize) {
                let recursion =
                    InstantiationDiagnostic::names(Part::Function, BodyDiagnosticKind::Recursion);
                let recursion = self.with(callee, recursion.into());
                diagnostics.complete(self.releases, *function as usize, || Rc::clone(&recursion));
            }
        }
        diagnostics
    }

    /// Returns for each of these functions those among them that call it.
    fn callers_in(&self, functions: &[u32]) -> HashMap<u32, Vec<u32>> {
        let mut callers: HashMap<u32, Vec<u32>> = HashMap::new();
        for caller in functions {
            for inner in self.calls_of(*caller as usize) {
                if let Some(called) = self.position(inner.function) {
                    callers.entry(count(called)).or_default().push(*caller);
                }
            }
        }
        callers
    }

    /// Determines the diagnostic that keeps a function from being built, by release, as far as
    /// those of its callees are known; returns true if it is new.
    fn find_in(
        &self,
        function: usize,
        diagnostics: &mut DiagnosticTable,
        wants_shape_functions: bool,
    ) -> bool {
        let Some(callee) = self.callees.get(function) else { return false };
        let find = |diagnostics: &DiagnosticTable, release| {
            let called = |inner: &InnerCall| {
                let tensors = (inner.inputs, inner.outputs);
                self.call_diagnostic(inner.function, tensors, release)
                    .or_else(|| diagnostics.get(self.position(inner.function)?, release))
            };
            let own = callee.own(release, wants_shape_functions);
            let own = own.map(|diagnostic| self.with(callee, diagnostic));
            own.or_else(|| self.calls_of(function).iter().find_map(called))
        };
        diagnostics.add(self.releases, function, find)
    }
}
