//! The client functions of a program, and the transfer handlers with which a run calls them.

use std::sync::Arc;

use serdes_pjrt::HostTransfers;

use super::{callback::HostCallback, exchange::Exchange};

/// Functions that a program calls. They end once the program and all its runs are gone.
#[derive(Debug, Default)]
pub(crate) struct HostCallbacks(Vec<Arc<HostCallback>>);

impl HostCallbacks {
    pub(crate) fn new(callbacks: Vec<Arc<HostCallback>>) -> Arc<Self> {
        Arc::new(Self(callbacks))
    }

    pub(crate) fn list(&self) -> &[Arc<HostCallback>] {
        &self.0
    }

    /// Returns the number of bytes that a run on one device may hold on the host at a time for
    /// callbacks.
    pub(super) fn bytes(&self) -> u64 {
        let of = |callback: &Arc<HostCallback>| {
            // Operands of the current and the next call; results until the device takes them.
            let operands = callback.operand_bytes().saturating_mul(2);
            let results = callback.result_bytes().saturating_mul(Exchange::AHEAD + 1);
            operands.saturating_add(results) as u64
        };
        self.0.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Returns transfer handlers for a run on `devices` devices.
    pub(super) fn transfers(self: &Arc<Self>, devices: usize) -> HostTransfers {
        let mut transfers = HostTransfers::new();
        for callback in &self.0 {
            let exchanges: Arc<[Exchange]> =
                (0..devices).map(|_| Exchange::new(Arc::clone(callback))).collect();
            for (at, channel) in callback.operands.iter().enumerate() {
                let (all, own) = (Arc::clone(self), Arc::clone(&exchanges));
                transfers = transfers.with_send(channel.id.into(), move |piece| {
                    let _all = &all;
                    let exchange = own.get(piece.device_index());
                    exchange
                        .map_or(Ok(()), |exchange| exchange.sent(at, piece.data(), piece.is_last()))
                });
            }
            for (at, channel) in callback.results.iter().enumerate() {
                let own = Arc::clone(&exchanges);
                transfers = transfers.with_receive(channel.id.into(), move |mut stream| {
                    let exchange = own.get(stream.device_index());
                    // Without a result the stream ends empty; the run has already failed.
                    if let Some(result) = exchange.and_then(|exchange| exchange.received(at))
                        && let Err(error) = stream.write(result.into())
                    {
                        tracing::info!(%error, "a device did not take what its program receives");
                    }
                });
            }
        }
        transfers
    }
}

impl Drop for HostCallbacks {
    fn drop(&mut self) {
        self.0.iter().for_each(|callback| callback.end());
    }
}
