//! Metrics of this process from the operating system, under the names that all exporters use.

/// Bytes in memory and open descriptors; `None` if the system does not report them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Process {
    pub(super) resident_bytes: Option<u64>,
    pub(super) open_descriptors: Option<u64>,
    pub(super) processor_seconds: Option<f64>,
}

impl Process {
    #[cfg(target_os = "linux")]
    pub(super) fn read() -> Self {
        /// Times are in hundredths of a second on every machine.
        const TICKS: f64 = 100.0;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = kibibytes.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The program's name is in parentheses, and may contain parentheses and spaces.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let times: Vec<f64> = fields.skip(11).take(2).flat_map(str::parse).collect();
        Self {
            resident_bytes: kibibytes.map(|kibibytes: u64| kibibytes << 10),
            open_descriptors: std::fs::read_dir("/proc/self/fd")
                .ok()
                .map(|entries| entries.count() as u64),
            processor_seconds: (times.len() == 2).then(|| times.iter().sum::<f64>() / TICKS),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn read() -> Self {
        Self::default()
    }
}
