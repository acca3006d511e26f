//! Running programs.

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

/// An array that a program is run with.
#[derive(Debug)]
pub enum Argument<'a> {
    /// It stays as it is, also if the program could take it.
    Kept(&'a Buffer),
    /// The program may take its memory for an output; it is gone in any case.
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

/// Options of a run of a program.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    launch_id: c_int,
    device: Option<Device>,
    host_transfers: HostTransfers,
}

impl ExecuteOptions {
    /// Creates options to run it as the program was compiled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number that tells which runs in several processes belong together.
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

/// Results of a run of a program; outputs may not be computed yet.
#[derive(Debug)]
pub struct Execution {
    outputs: Vec<Vec<Buffer>>,
    complete: Vec<Event>,
    /// Callbacks of the program, kept until it has run on all devices.
    _called: Option<Arc<DropOnHostThread<HeldTransfers>>>,
}

impl Execution {
    /// Waits until the program has run on every device.
    ///
    /// # Errors
    /// [`PjrtError::Status`] if it failed on one: the first that it failed on.
    pub fn wait(&self) -> Result<(), PjrtError> {
        // All of them are waited for, also after one has failed.
        self.complete.iter().map(Event::wait).fold(Ok(()), Result::and)
    }

    /// Returns the completion events, one per device, for plug-ins that give them.
    #[must_use]
    pub fn complete(&self) -> &[Event] {
        &self.complete
    }

    /// Returns the outputs of each device.
    #[must_use]
    pub fn outputs(&self) -> &[Vec<Buffer>] {
        &self.outputs
    }

    /// Returns the outputs of each device. A buffer that could not be computed says so when it is
    /// read.
    #[must_use]
    pub fn into_outputs(self) -> Vec<Vec<Buffer>> {
        self.outputs
    }

    /// Returns the outputs of each device, and [what happens](Self::complete) when a device is
    /// done.
    #[must_use]
    pub fn into_parts(self) -> (Vec<Vec<Buffer>>, Vec<Event>) {
        (self.outputs, self.complete)
    }
}

/// The first minor whose options say which arguments are kept.
const KEPT_SINCE: Minor = Minor::new(39);
/// Places behind those for outputs, in which a plug-in that has more of them than it says leaves
/// them.
const SPARE: usize = 8;
const CALL: &str = "PJRT_LoadedExecutable_Execute";

impl LoadedExecutable {
    /// Runs it with the arguments of each device, in the order of
    /// [`addressable_devices`](Self::addressable_devices).
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for another number of devices than it is compiled for, or
    /// devices with different numbers of arguments; [`PjrtError::OtherClient`];
    /// [`PjrtError::Status`] as the plug-in's, such as that an array has another size;
    /// [`PjrtError::BadAnswer`] for other outputs than it said.
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
        // SAFETY: the executable and the buffers are alive and of one client. There are lists for
        // as many devices as are said, each with as many arguments, and with room for as many
        // outputs as the executable says that it has. The options are there for the call, and so
        // are the lists of what the program may call, each as long as they say.
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
        // SAFETY: a call that succeeds hands over these events, or none.
        let taken = events.into_iter().filter_map(|event| unsafe { Event::taken(client, event) });
        let complete: Vec<Event> = taken.collect();
        let called = called.hold(&complete);
        let outputs = self.take_outputs(outputs)?;
        Ok(Execution { outputs, complete, _called: called })
    }

    /// Fails for arguments that cannot be; how many each device has.
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

    /// Holds the arguments that are kept, where options cannot say it.
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

    /// Takes the outputs that a run has left.
    fn take_outputs(
        &self,
        left: Vec<Vec<*mut PJRT_Buffer>>,
    ) -> Result<Vec<Vec<Buffer>>, PjrtError> {
        let said = self.executable().output_count();
        let client = &self.handle.client;
        let mut outputs = Vec::with_capacity(left.len());
        let mut more = 0;
        let mut failed = None;
        // Each is taken, also where another is wrong, so that it is destroyed.
        for list in left {
            let mut of_device = Vec::with_capacity(said);
            for (at, raw) in list.into_iter().enumerate() {
                if at >= said && raw.is_null() {
                    continue;
                }
                // SAFETY: a call that succeeds hands over what it leaves here.
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

/// Returns the numbers of the arguments that are kept on any device: plug-ins cannot be told of one
/// alone.
fn kept_indices(arguments: &[Vec<Argument<'_>>], count: usize) -> Vec<i64> {
    let is_kept =
        |at: &usize| arguments.iter().any(|list| matches!(list.get(*at), Some(Argument::Kept(_))));
    (0..count).filter(is_kept).map(|at| at as i64).collect()
}

/// Returns the options as a plug-in of that minor takes them; they point to `kept`.
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
