//! The amount of memory that a process of this machine may still allocate.

use std::path::{Path, PathBuf};

/// The assumed memory, in bytes, of a machine that does not report it.
const UNKNOWN: u64 = 8 << 30;

/// Returns the number of bytes that the process can still allocate without being refused or killed:
/// the available memory of the machine, limited by the rest of the process's control groups (both
/// versions) and of its address space.
///
/// It is a snapshot from `/proc` and `/sys`; without them, it is 8 GiB.
#[must_use]
pub fn available_memory() -> u64 {
    if cfg!(miri) {
        // Miri isolates tests from the machine.
        return UNKNOWN;
    }
    let machine = read("/proc/meminfo").and_then(|text| kibibytes(&text, "MemAvailable:"));
    let bounds = [machine, control_groups(), address_space()];
    bounds.into_iter().flatten().min().unwrap_or(UNKNOWN)
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Returns the number of a line `NAME: N kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the rest of the smallest memory limit of the process's control groups and their parents,
/// in bytes.
fn control_groups() -> Option<u64> {
    let text = read("/proc/self/cgroup")?;
    let left = text.lines().filter_map(group).flat_map(|(root, path, names)| {
        let folders: Vec<PathBuf> = path
            .ancestors()
            .map(|folder| root.join(folder.strip_prefix("/").unwrap_or(folder)))
            .collect();
        folders.into_iter().filter_map(move |folder| left_of_group(&folder, names))
    });
    left.min()
}

/// The names of the files with a group's limit and use.
type Names = [&'static str; 2];

/// Parses a line of `/proc/self/cgroup`: returns the folder of all groups, the group's path there,
/// and the names of its files.
fn group(line: &str) -> Option<(&'static Path, &Path, Names)> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, Path::new(parts.next()?));
    if controllers.is_empty() {
        return Some((Path::new("/sys/fs/cgroup"), path, ["memory.max", "memory.current"]));
    }
    let memory = controllers.split(',').any(|name| name == "memory");
    let names = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
    memory.then_some((Path::new("/sys/fs/cgroup/memory"), path, names))
}

fn left_of_group(folder: &Path, [limit, used]: Names) -> Option<u64> {
    let number = |name| read(folder.join(name))?.trim().parse::<u64>().ok();
    // `max` is not a number, and means no limit.
    let limit: u64 = number(limit)?;
    // Cached files can be dropped from memory; their amount is not reported here, so they count as
    // used.
    Some(limit.saturating_sub(number(used)?))
}

/// Returns the rest of the limit on the address space, in bytes.
fn address_space() -> Option<u64> {
    let limits = read("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    let used = kibibytes(&read("/proc/self/status")?, "VmSize:")?;
    Some(limit.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_some_memory_left_and_not_more_than_it_has() {
        let available = available_memory();
        assert!(available > 0);
        if let Some(total) = read("/proc/meminfo").and_then(|text| kibibytes(&text, "MemTotal:")) {
            assert!(available <= total);
        }
    }

    #[test]
    fn groups_of_both_versions_are_found() {
        let names = |line| {
            group(line)
                .map(|(root, path, names)| (root.join(path.strip_prefix("/").unwrap()), names[0]))
        };
        assert_eq!(names("0::/a/b"), Some((PathBuf::from("/sys/fs/cgroup/a/b"), "memory.max")));
        let expected = (PathBuf::from("/sys/fs/cgroup/memory/a"), "memory.limit_in_bytes");
        assert_eq!(names("4:cpu,memory:/a"), Some(expected));
        assert_eq!(names("5:cpuset:/a"), None);
        assert_eq!(names("nothing"), None);
    }

    #[test]
    fn a_group_without_a_limit_says_nothing() {
        let folder = std::env::temp_dir().join(format!("serdes-group-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let names = ["memory.max", "memory.current"];
        std::fs::write(folder.join("memory.current"), "1000\n").unwrap();
        assert_eq!(left_of_group(&folder, names), None);
        std::fs::write(folder.join("memory.max"), "max\n").unwrap();
        assert_eq!(left_of_group(&folder, names), None);
        std::fs::write(folder.join("memory.max"), "1500\n").unwrap();
        assert_eq!(left_of_group(&folder, names), Some(500));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
