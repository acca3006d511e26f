//! Lowers the priority of threads with abandoned work: they cannot be stopped, and get only spare
//! processor time.

/// The lowest priority of the system.
#[cfg(target_os = "linux")]
const LOWEST: i32 = 19;

/// Prefix of the names of XLA's threads.
#[cfg(target_os = "linux")]
const OF_XLA: &str = "tf_";

/// A thread of this process, by the system's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread(i32);

impl Thread {
    /// Returns the calling thread, if the system reports it.
    pub(crate) fn own() -> Option<Self> {
        let path = std::fs::read_link("/proc/thread-self").ok()?;
        path.file_name()?.to_str()?.parse().ok().map(Self)
    }

    /// Returns the threads that XLA plug-ins have started so far, if the system reports them.
    pub(crate) fn of_plugins() -> Vec<Self> {
        #[cfg(target_os = "linux")]
        {
            let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
            let of_xla = threads.filter(|thread| {
                let name = std::fs::read_to_string(thread.path().join("comm"));
                name.is_ok_and(|name| name.starts_with(OF_XLA))
            });
            let numbers = of_xla.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
            numbers.map(Self).collect()
        }
        #[cfg(not(target_os = "linux"))]
        Vec::new()
    }

    /// Gives the thread the lowest priority, if the system has priorities per thread.
    pub(crate) fn lower(self) {
        #[cfg(target_os = "linux")]
        if let Some(thread) = rustix::process::Pid::from_raw(self.0)
            && let Err(error) = rustix::process::setpriority_process(Some(thread), LOWEST)
        {
            tracing::debug!(%error, "the priority of a thread cannot be changed");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn thread_is_lowered_alone() {
        let own = rustix::process::Pid::from_raw(Thread::own().unwrap().0);
        let before = rustix::process::getpriority_process(own).unwrap();
        let lowered = std::thread::spawn(|| {
            let own = Thread::own().unwrap();
            own.lower();
            rustix::process::getpriority_process(rustix::process::Pid::from_raw(own.0)).unwrap()
        });
        let lowered = lowered.join().unwrap();
        assert_eq!(lowered, LOWEST);
        // Under `nice` the priority may already be the lowest.
        assert_eq!(rustix::process::getpriority_process(own).unwrap(), before);
    }

    #[test]
    fn thread_of_a_plugin_is_known_by_its_name() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let named = std::thread::Builder::new().name("tf_XLAEigen".to_owned());
        let (told, number) = std::sync::mpsc::channel();
        let named = named.spawn(move || {
            told.send(Thread::own().unwrap()).unwrap();
            receiver.recv()
        });
        let number = number.recv().unwrap();
        let found = Thread::of_plugins();
        assert!(found.contains(&number) && !found.contains(&Thread::own().unwrap()));
        drop(sender);
        assert!(named.unwrap().join().unwrap().is_err());
    }
}
