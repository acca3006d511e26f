//! Transfers between a running program and the host: the channels that it was compiled with, and a
//! handler for each.

use std::{fmt, ptr::NonNull, sync::Arc};

use serdes_abi::pjrt::args::*;

use crate::{
    PjrtError, PjrtPlugin,
    host::{
        border::{Chunk, Handler, Registration, received, sent},
        drop_thread::DropOnHostThread,
        event::Event,
    },
};

/// A piece of data that a program sends.
#[derive(Clone, Copy, Debug)]
pub struct SentPiece<'a> {
    device: usize,
    data: &'a [u8],
    total: usize,
    is_last: bool,
}

impl<'a> SentPiece<'a> {
    /// Returns the index of the sending device, in the order of the run's arguments.
    #[must_use]
    pub fn device_index(&self) -> usize {
        self.device
    }

    /// Returns its bytes, which are valid during the call.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Returns the total size of the transfer that the piece belongs to, in bytes.
    #[must_use]
    pub fn total_bytes(&self) -> usize {
        self.total
    }

    /// Returns true for the last piece of the transfer.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.is_last
    }
}

type OnSend = Arc<dyn Fn(SentPiece<'_>) -> Result<(), String> + Send + Sync>;
type OnReceive = Arc<dyn Fn(HostStream) + Send + Sync>;

/// Handlers of a program's sends to and receives from the host, by channel number. The plug-in
/// calls them on its threads during the run, for several devices at once.
#[derive(Clone, Default)]
pub struct HostTransfers {
    sends: Vec<(i64, OnSend)>,
    receives: Vec<(i64, OnReceive)>,
}

impl HostTransfers {
    /// Creates the transfers of a program without channels.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a handler that receives each piece that a program sends on this channel. A message that
    /// it returns becomes the error with which the run fails.
    #[must_use]
    pub fn with_send(
        mut self,
        channel: i64,
        action: impl Fn(SentPiece<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.sends.push((channel, Arc::new(action)));
        self
    }

    /// Adds a handler that fills each stream that a program receives on this channel.
    #[must_use]
    pub fn with_receive(
        mut self,
        channel: i64,
        action: impl Fn(HostStream) + Send + Sync + 'static,
    ) -> Self {
        self.receives.push((channel, Arc::new(action)));
        self
    }

    /// Returns true if there is no channel.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty()
    }

    pub(super) fn send_count(&self) -> usize {
        self.sends.len()
    }

    pub(super) fn receive_count(&self) -> usize {
        self.receives.len()
    }

    /// Registers all handlers for a run on `devices` devices.
    pub(super) fn register(&self, plugin: &PjrtPlugin, devices: usize) -> RegisteredTransfers {
        let mut registered = RegisteredTransfers::default();
        for device in 0..devices {
            let sends = self.sends.iter().map(|(channel, action)| {
                let action = Arc::clone(action);
                let number =
                    registered.held.add(Handler::Send(Arc::new(move |data, total, is_last| {
                        action(SentPiece { device, data, total, is_last })
                    })));
                PJRT_SendCallbackInfo {
                    channel_id: *channel,
                    user_arg: number,
                    send_callback: Some(sent),
                }
            });
            registered.sends.push(sends.collect());
            let receives = self.receives.iter().map(|(channel, action)| {
                let (action, plugin) = (Arc::clone(action), plugin.clone());
                let number = registered.held.add(Handler::Receive(Arc::new(move |raw| {
                    if let Some(raw) = NonNull::new(raw) {
                        action(HostStream { plugin: plugin.clone(), raw, device });
                    }
                })));
                PJRT_RecvCallbackInfo {
                    channel_id: *channel,
                    user_arg: number,
                    recv_callback: Some(received),
                }
            });
            registered.receives.push(receives.collect());
        }
        registered
    }
}

impl fmt::Debug for HostTransfers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sends: Vec<i64> = self.sends.iter().map(|(channel, _)| *channel).collect();
        let receives: Vec<i64> = self.receives.iter().map(|(channel, _)| *channel).collect();
        let mut text = formatter.debug_struct("HostTransfers");
        text.field("sends", &sends).field("receives", &receives).finish()
    }
}

/// The handlers in the form that a run passes to the plug-in.
#[derive(Default)]
pub(super) struct RegisteredTransfers {
    sends: Vec<Vec<PJRT_SendCallbackInfo>>,
    receives: Vec<Vec<PJRT_RecvCallbackInfo>>,
    held: HeldTransfers,
}

impl RegisteredTransfers {
    /// Returns the lists of each device, for the options of a run; they are valid as long as this
    /// value.
    pub(super) fn lists(
        &mut self,
    ) -> (Vec<*mut PJRT_SendCallbackInfo>, Vec<*mut PJRT_RecvCallbackInfo>) {
        (
            self.sends.iter_mut().map(|list| list.as_mut_ptr()).collect(),
            self.receives.iter_mut().map(|list| list.as_mut_ptr()).collect(),
        )
    }

    /// Keeps the handlers until all of these events are done.
    pub(super) fn hold(self, complete: &[Event]) -> Option<Arc<DropOnHostThread<HeldTransfers>>> {
        if self.held.0.is_empty() {
            return None;
        }
        match DropOnHostThread::new(self.held) {
            Ok(held) => {
                let held = Arc::new(held);
                complete.iter().for_each(|event| event.keep(Arc::clone(&held)));
                Some(held)
            }
            // If there is no thread to drop them on, they are leaked.
            Err(held) => {
                std::mem::forget(held);
                None
            }
        }
    }
}

/// The handlers of a run.
#[derive(Debug, Default)]
pub(super) struct HeldTransfers(Vec<Registration>);

impl HeldTransfers {
    fn add(&mut self, handler: Handler) -> *mut std::ffi::c_void {
        let registration = Registration::new(handler);
        let number = registration.number();
        self.0.push(registration);
        number
    }
}

/// A stream of bytes to a device, which a program waits for and the host fills. Closed on drop.
#[derive(Debug)]
pub struct HostStream {
    plugin: PjrtPlugin,
    raw: NonNull<PJRT_CopyToDeviceStream>,
    device: usize,
}

// SAFETY: the C API lets any thread use any object; this is the stream's only owner.
unsafe impl Send for HostStream {}

/// Makes a call whose only input is the stream.
macro_rules! of_stream {
    ($stream:expr, $arguments:ident) => {{
        let raw = $stream.raw.as_ptr();
        // SAFETY: the stream is alive until it is dropped.
        unsafe { $stream.plugin.table().ask(|call: &mut $arguments| call.stream = raw) }
    }};
}

impl HostStream {
    /// Returns the index of the receiving device, in the order of the run's arguments.
    #[must_use]
    pub fn device_index(&self) -> usize {
        self.device
    }

    /// Returns the total number of bytes that the program waits for.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn total_bytes(&self) -> Result<i64, PjrtError> {
        Ok(of_stream!(self, PJRT_CopyToDeviceStream_TotalBytes_Args)?.total_bytes)
    }

    /// Returns the granularity in bytes: the length of each piece must be a multiple of it.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn granule_bytes(&self) -> Result<i64, PjrtError> {
        Ok(of_stream!(self, PJRT_CopyToDeviceStream_GranuleSize_Args)?.granule_size_in_bytes)
    }

    /// Returns the number of bytes passed so far.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn current_bytes(&self) -> Result<i64, PjrtError> {
        Ok(of_stream!(self, PJRT_CopyToDeviceStream_CurrentBytes_Args)?.current_bytes)
    }

    /// Passes the next piece. A later error with it is reported as the error of the run.
    ///
    /// # Errors
    /// [`PjrtError::OutOfRange`] for more bytes than the program waits for;
    /// [`PjrtError::InvalidArgument`] for a piece that is not a multiple of the granule;
    /// [`PjrtError::Status`] from the plug-in.
    pub fn write(&mut self, data: Vec<u8>) -> Result<(), PjrtError> {
        let (total, current) = (self.total_bytes()?, self.current_bytes()?);
        let length = data.len() as i128;
        if i128::from(current) + length > i128::from(total) {
            return Err(PjrtError::OutOfRange {
                what: "stream",
                offset: current.into(),
                bytes: data.len() as u128,
                size: u64::try_from(total).unwrap_or(0),
            });
        }
        let granule = i128::from(self.granule_bytes()?.max(1));
        if length % granule != 0 {
            return Err(PjrtError::InvalidArgument {
                what: "the length of a piece",
                found: format!("{length} bytes"),
                expected: format!("a multiple of {granule}"),
            });
        }
        let (raw, table) = (self.raw.as_ptr(), self.plugin.table());
        let mut chunk = Chunk::new(data);
        // SAFETY: the stream is alive; the chunk is valid for the call, and its content until the
        // plug-in frees it.
        let added = unsafe {
            table.ask(|call: &mut PJRT_CopyToDeviceStream_AddChunk_Args| {
                call.stream = raw;
                call.chunk = chunk.as_mut_ptr();
            })
        }?;
        if let Some(event) = NonNull::new(added.transfer_complete) {
            // SAFETY: a successful call returns this event, which has no other owner. An error has
            // no consequence.
            let _ = unsafe {
                table.ask(|call: &mut PJRT_Event_Destroy_Args| call.event = event.as_ptr())
            };
        }
        Ok(())
    }
}

impl Drop for HostStream {
    fn drop(&mut self) {
        // An error has no consequence.
        let _ = of_stream!(self, PJRT_CopyToDeviceStream_Destroy_Args);
    }
}
