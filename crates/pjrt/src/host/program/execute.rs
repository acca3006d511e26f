//! Runs programs.

use std::{ffi::c_int, ptr, sync::Arc};

use serdes_abi::pjrt::{Minor, args::*};

use super::{
    code::struct_size,
    host_transfers::{HeldTransfers, HostTransfers},
    loaded::LoadedExecutable,
};
use crate::{
    Buffer, Device, Event, PjrtError,
    host::{border::Handed, buffer::ExternalReference, drop_thread::DropOnHostThread},
};

/// An argument of a run.
#[derive(Debug)]
pub enum Argument<'a> {
    /// The array is kept, even if the program could take over its memory.
    Kept(&'a Buffer),
    /// The program may take over the array's memory for an output; the array is deleted in any
    /// case.
    Given(Buffer),
}

impl Argument<'_> {
    fn buffer(&self) -> &Buffer {
        match self {
            Self::Kept(buffer) => buffer,
            Self::Given(buffer) => buffer,
        }
    }
}

/// The options of a program run.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    launch_id: c_int,
    device: Option<Device>,
    host_transfers: HostTransfers,
}

impl ExecuteOptions {
    /// Creates options to run the program as it was compiled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number that identifies the runs in several processes that belong together.
    #[must_use]
    pub fn with_launch_id(mut self, launch_id: i32) -> Self {
        self.launch_id = launch_id;
        self
    }

    /// Sets the device of the run, for a portable program.
    #[must_use]
    pub fn with_device(mut self, device: Device) -> Self {
        self.device = Some(device);
        self
    }

    /// Sets the handlers of the program's transfers to and from the host.
    #[must_use]
    pub fn with_host_transfers(mut self, transfers: HostTransfers) -> Self {
        self.host_transfers = transfers;
        self
    }
}

/// The results of a program run; outputs may not be computed yet.
#[derive(Debug)]
pub struct Execution {
    outputs: Vec<Vec<Buffer>>,
    complete: Vec<Event>,
    /// The program's callbacks, kept until it has run on all devices.
    _called: Option<Arc<DropOnHostThread<HeldTransfers>>>,
}

impl Execution {
    /// Waits until the program has run on every device.
    ///
    /// # Errors
    /// [`PjrtError::Status`] of the first device on which it failed.
    pub fn wait(&self) -> Result<(), PjrtError> {
        // Waits for all devices, even after one has failed.
        self.complete.iter().map(Event::wait).fold(Ok(()), Result::and)
    }

    /// Returns the completion events, one per device, if the plug-in returns them.
    #[must_use]
    pub fn complete(&self) -> &[Event] {
        &self.complete
    }

    /// Returns the outputs of each device.
    #[must_use]
    pub fn outputs(&self) -> &[Vec<Buffer>] {
        &self.outputs
    }

    /// Returns the outputs of each device. A buffer that could not be computed returns an error
    /// when it is read.
    #[must_use]
    pub fn into_outputs(self) -> Vec<Vec<Buffer>> {
        self.outputs
    }

    /// Returns the outputs of each device, and the [completion event](Self::complete) of each
    /// device.
    #[must_use]
    pub fn into_parts(self) -> (Vec<Vec<Buffer>>, Vec<Event>) {
        (self.outputs, self.complete)
    }
}

/// The first minor whose options declare which arguments are kept.
const KEPT_SINCE: Minor = Minor::new(39);
/// The number of extra entries for outputs, in which a plug-in can store more outputs than it
/// declares.
const SPARE: usize = 8;
const CALL: &str = "PJRT_LoadedExecutable_Execute";

impl LoadedExecutable {
    /// Runs the program with the arguments of each device, in the order of
    /// [`addressable_devices`](Self::addressable_devices).
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] if the number of devices differs from the compiled one, or
    /// devices have different numbers of arguments; [`PjrtError::OtherClient`];
    /// [`PjrtError::Status`] from the plug-in, for example if an array has another size;
    /// [`PjrtError::BadAnswer`] if the outputs differ from the declared ones.
    pub fn execute(
        &self,
        arguments: Vec<Vec<Argument<'_>>>,
        options: &ExecuteOptions,
    ) -> Result<Execution, PjrtError> {
        let count = self.check(&arguments, options)?;
        let kept = kept_indices(&arguments, count);
        let _held = self.hold(&arguments)?;
        let buffers: Vec<Vec<*mut PJRT_Buffer>> = arguments
            .iter()
            .map(|list| list.iter().map(|argument| argument.buffer().handle().raw()).collect())
            .collect();
        let lists: Vec<*const *mut PJRT_Buffer> =
            buffers.iter().map(|list| list.as_ptr()).collect();
        let places = self.executable().output_count() + SPARE;
        let mut outputs = vec![vec![ptr::null_mut::<PJRT_Buffer>(); places]; lists.len()];
        let output_lists: Vec<*mut *mut PJRT_Buffer> =
            outputs.iter_mut().map(|list| list.as_mut_ptr()).collect();
        let mut events = vec![ptr::null_mut::<PJRT_Event>(); lists.len()];
        let table = self.handle.client.table();
        let mut called = options.host_transfers.register(self.handle.client.plugin(), lists.len());
        let (mut sends, mut receives) = called.lists();
        let mut handed = Handed::of(execute_options(table.minor(), options, &kept));
        if !options.host_transfers.is_empty() {
            (handed.send_callbacks, handed.recv_callbacks) =
                (sends.as_mut_ptr(), receives.as_mut_ptr());
            // Pieces are read as arrays of the host.
            handed.use_major_to_minor_data_layout_for_callbacks = 1;
        }
        let raw = self.handle.raw();
        // SAFETY: the executable and the buffers are alive and belong to one client. There are
        // lists for the declared number of devices, each with the declared number of arguments, and
        // with space for the declared number of outputs. The options are valid for the call, and so
        // are the lists of the program's callbacks, with their declared lengths.
        unsafe {
            table.ask(|call: &mut PJRT_LoadedExecutable_Execute_Args| {
                call.executable = raw;
                call.options = &raw mut *handed;
                call.argument_lists = lists.as_ptr();
                call.num_devices = lists.len();
                call.num_args = count;
                call.output_lists = output_lists.as_ptr();
                call.device_complete_events = events.as_mut_ptr();
                if let Some(device) = &options.device {
                    call.execute_device = device.raw();
                }
            })
        }?;
        let client = &self.handle.client;
        // SAFETY: a successful call returns ownership of these events, or none.
        let taken = events.into_iter().filter_map(|event| unsafe { Event::taken(client, event) });
        let complete: Vec<Event> = taken.collect();
        let called = called.hold(&complete);
        let outputs = self.take_outputs(outputs)?;
        Ok(Execution { outputs, complete, _called: called })
    }

    /// Fails for invalid arguments; returns the number of arguments per device.
    fn check(
        &self,
        arguments: &[Vec<Argument<'_>>],
        options: &ExecuteOptions,
    ) -> Result<usize, PjrtError> {
        let client = self.client();
        let expected = match &options.device {
            Some(device) if device.client() != client => {
                return Err(PjrtError::OtherClient { what: "device" });
            }
            Some(_) => 1,
            None => self.addressable_devices().len(),
        };
        let refuse = |what, found: usize, expected: String| {
            Err(PjrtError::InvalidArgument { what, found: found.to_string(), expected })
        };
        if arguments.len() != expected || expected == 0 {
            let expected = match expected {
                0 => "those of one device, which the options name".to_owned(),
                expected => expected.to_string(),
            };
            return refuse("the number of devices with arguments", arguments.len(), expected);
        }
        let count = arguments.first().map_or(0, Vec::len);
        if let Some(other) = arguments.iter().find(|list| list.len() != count) {
            let expected = format!("{count}, as of the first device");
            return refuse("the number of arguments of a device", other.len(), expected);
        }
        if arguments.iter().flatten().any(|argument| argument.buffer().client() != client) {
            return Err(PjrtError::OtherClient { what: "argument" });
        }
        Ok(count)
    }

    /// Pins the kept arguments, if the plug-in's options cannot declare them.
    fn hold(&self, arguments: &[Vec<Argument<'_>>]) -> Result<Vec<ExternalReference>, PjrtError> {
        if self.handle.client.table().minor() >= KEPT_SINCE {
            return Ok(Vec::new());
        }
        let kept = arguments.iter().flatten().filter_map(|argument| match argument {
            Argument::Kept(buffer) => Some(buffer.external_reference()),
            Argument::Given(_) => None,
        });
        kept.collect()
    }

    /// Takes ownership of the outputs of a run.
    fn take_outputs(
        &self,
        left: Vec<Vec<*mut PJRT_Buffer>>,
    ) -> Result<Vec<Vec<Buffer>>, PjrtError> {
        let said = self.executable().output_count();
        let client = &self.handle.client;
        let mut outputs = Vec::with_capacity(left.len());
        let mut more = 0;
        let mut failed = None;
        // Takes each output, even if another is invalid, so that all are destroyed.
        for list in left {
            let mut of_device = Vec::with_capacity(said);
            for (at, raw) in list.into_iter().enumerate() {
                if at >= said && raw.is_null() {
                    continue;
                }
                // SAFETY: a successful call returns ownership of the outputs here.
                match unsafe { Buffer::taken(CALL, client, raw) } {
                    Ok(buffer) if at < said => of_device.push(buffer),
                    Ok(_) => more += 1,
                    Err(error) => failed = Some(error),
                }
            }
            outputs.push(of_device);
        }
        if more > 0 {
            failed = Some(PjrtError::BadAnswer {
                call: CALL,
                what: "outputs",
                found: format!("{more} more than {said} on each device"),
                expected: "as many as it said before",
            });
        }
        failed.map_or(Ok(outputs), Err)
    }
}

/// Returns the indices of the arguments that are kept on any device: plug-ins have only one list
/// for all devices.
fn kept_indices(arguments: &[Vec<Argument<'_>>], count: usize) -> Vec<i64> {
    let is_kept =
        |at: &usize| arguments.iter().any(|list| matches!(list.get(*at), Some(Argument::Kept(_))));
    (0..count).filter(is_kept).map(|at| at as i64).collect()
}

/// Returns the options in the form that a plug-in of `minor` takes; they point to `kept`.
fn execute_options(minor: Minor, options: &ExecuteOptions, kept: &[i64]) -> PJRT_ExecuteOptions {
    PJRT_ExecuteOptions {
        struct_size: struct_size(PJRT_ExecuteOptions::HISTORY, minor),
        extension_start: ptr::null_mut(),
        send_callbacks: ptr::null_mut(),
        recv_callbacks: ptr::null_mut(),
        num_send_ops: options.host_transfers.send_count(),
        num_recv_ops: options.host_transfers.receive_count(),
        launch_id: options.launch_id,
        non_donatable_input_indices: kept.as_ptr(),
        num_non_donatable_input_indices: kept.len(),
        context: ptr::null_mut(),
        call_location: ptr::null(),
        num_tasks: 0,
        task_ids: ptr::null_mut(),
        incarnation_ids: ptr::null_mut(),
        multi_slice_config: ptr::null_mut(),
        use_major_to_minor_data_layout_for_callbacks: 0,
        hlo_output_callbacks: ptr::null_mut(),
        num_hlo_output_callbacks: 0,
        custom_options: ptr::null(),
        num_custom_options: 0,
    }
}
