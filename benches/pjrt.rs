//! Cost of hosting a PJRT plug-in: a call through the safe types against the plug-in's function
//! itself, in turns. The plug-in does next to nothing, so that the host's cost is measured.
//!
//! Target: at most 5 ns per call over the function itself.

fn main() {
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    calls::measure();
}

/// Loading is supported only on these systems.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod calls {
    #![allow(unsafe_code, reason = "the plug-in's function is called as it is")]

    use std::{
        ffi::c_void,
        hint::black_box,
        path::Path,
        process::Command,
        time::{Duration, Instant},
    };

    use serdes_abi::pjrt::{
        Minor,
        args::{Arguments, PJRT_Device_LocalHardwareId_Args},
        function, table_size,
    };
    use serdes_pjrt::{Device, PjrtPlugin};

    /// The version of the plug-in, whose structs are known.
    const MINOR: Minor = Minor::new(81);
    const LIBRARY: &str = "plugin.so";

    /// A plug-in with one device. Its other functions succeed and do nothing.
    const SOURCE: &str = "
#include <stddef.h>
static struct { size_t size; void* extensions; size_t version_size; void* none; int major, minor; void* functions[SLOTS]; } table;
static char client, device;
static void* devices[1] = {&device};
static void* nothing(void* args) { (void)args; return NULL; }
static void* create(void** args) { args[8] = &client; return NULL; }
static void* addressable(void** args) { args[3] = devices; args[4] = (void*)1; return NULL; }
static void* hardware(int* args) { args[6] = 7; return NULL; }
void* GetPjrtApi(void) {
  table.size = sizeof table;
  table.version_size = 24;
  table.minor = MINOR;
  for (int i = 0; i < SLOTS; ++i) table.functions[i] = (void*)nothing;
  table.functions[CREATE] = (void*)create;
  table.functions[ADDRESSABLE] = (void*)addressable;
  table.functions[HARDWARE] = (void*)hardware;
  return &table;
}
";

    type Function = unsafe extern "C" fn(*mut PJRT_Device_LocalHardwareId_Args) -> *mut c_void;

    pub(super) fn measure() {
        let folder = tempfile::tempdir().expect("a folder");
        compile(folder.path());
        let path = folder.path().join(LIBRARY);
        let plugin = PjrtPlugin::load(&path).expect("the plug-in loads");
        let client = plugin.create_client(&[]).expect("a client");
        let device = client.addressable_devices().expect("devices").swap_remove(0);
        let function = bare(&path);
        let safe = |device: &Device| black_box(device).local_hardware_id().expect("a number");
        // The steps of a caller in C: the arguments, the call, the result.
        let direct = || {
            let mut arguments = PJRT_Device_LocalHardwareId_Args::new();
            // SAFETY: the function takes these arguments, and does not use the device.
            let error = unsafe { black_box(function)(&raw mut arguments) };
            assert!(error.is_null());
            arguments.local_hardware_id
        };
        assert_eq!((direct(), safe(&device)), (7, 7));
        let (direct, safe) =
            in_turns(|| _ = black_box(direct()), || _ = black_box(safe(&device)), 10_000);
        println!(
            "PJRT_Device_LocalHardwareId: the function {direct:.2} ns, through the host {safe:.2} ns, more by {:.2} ns",
            safe - direct
        );
    }

    /// Returns the function from the table.
    fn bare(path: &Path) -> Function {
        let slot = slot("PJRT_Device_LocalHardwareId");
        // SAFETY: the library is loaded already.
        let library = unsafe { libloading::Library::new(path) }.expect("the library");
        // SAFETY: the source defines this function, and its table has these functions.
        unsafe {
            let entry = library.get::<extern "C" fn() -> *const Function>(b"GetPjrtApi\0");
            entry.expect("the entry")().add(5 + slot).read()
        }
    }

    fn slot(name: &str) -> usize {
        function(name).and_then(|function| function.slot(MINOR)).expect("the table has it")
    }

    fn compile(folder: &Path) {
        let source = folder.join("plugin.c");
        std::fs::write(&source, SOURCE).expect("the source is written");
        let size = table_size(MINOR).expect("the version is known").size_of;
        let define = |name: &str, value: usize| format!("-D{name}={value}");
        let status = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
            .args(["-O2", "-shared", "-fPIC"])
            .arg(define("SLOTS", (size - 40) / 8))
            .arg(define("MINOR", MINOR.number() as usize))
            .arg(define("CREATE", slot("PJRT_Client_Create")))
            .arg(define("ADDRESSABLE", slot("PJRT_Client_AddressableDevices")))
            .arg(define("HARDWARE", slot("PJRT_Device_LocalHardwareId")))
            .arg(&source)
            .arg("-o")
            .arg(folder.join(LIBRARY))
            .status();
        assert!(status.expect("a C compiler").success());
    }

    /// Returns the nanoseconds per call of each side: the medians of 301 turns of `count` calls.
    ///
    /// Turns are short, so that most of them are not interrupted on a busy machine.
    fn in_turns(mut first: impl FnMut(), mut second: impl FnMut(), count: usize) -> (f64, f64) {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..301 {
            let began = Instant::now();
            (0..count).for_each(|_| first());
            times[0].push(began.elapsed());
            let began = Instant::now();
            (0..count).for_each(|_| second());
            times[1].push(began.elapsed());
        }
        let median = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            times[times.len() / 2].as_nanos() as f64 / count as f64
        };
        let [mut first, mut second] = times;
        (median(&mut first), median(&mut second))
    }
}
