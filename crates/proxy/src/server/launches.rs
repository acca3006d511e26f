//! The order in which programs are launched on devices.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Locks for launches on several devices: two programs must reach all devices that both run on in
/// the same order, or they deadlock.
#[derive(Debug)]
pub(crate) struct Launches {
    /// Locks by generation and by position of the device.
    generations: Vec<Vec<Arc<Mutex<()>>>>,
}

/// The right to launch a program on some devices, released on drop.
#[derive(Debug)]
pub(crate) struct Launching {
    _devices: Vec<OwnedMutexGuard<()>>,
}

impl Launches {
    pub(crate) fn new(generations: usize, devices: usize) -> Self {
        let of_generation = |_| (0..devices).map(|_| Arc::default()).collect();
        Self { generations: (0..generations).map(of_generation).collect() }
    }

    /// Waits until no other launch on several devices of this generation uses one of these devices.
    /// A program on one device does not wait.
    pub(crate) async fn take(&self, generation: usize, devices: &[usize]) -> Launching {
        let mut devices = devices.to_vec();
        // A common order of locking prevents deadlocks.
        devices.sort_unstable();
        devices.dedup();
        let mut taken = Vec::new();
        if devices.len() > 1 {
            let known = self.generations.get(generation).map_or(&[][..], Vec::as_slice);
            for device in devices.iter().filter_map(|place| known.get(*place)) {
                taken.push(Arc::clone(device).lock_owned().await);
            }
        }
        Launching { _devices: taken }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn programs_wait_only_for_others_on_their_devices() {
        let launches = Launches::new(2, 4);
        let launching = launches.take(0, &[1, 0]).await;
        drop(launches.take(0, &[2, 3]).await);
        drop(launches.take(0, &[1]).await);
        drop(launches.take(1, &[0, 1]).await);
        for devices in [&[0, 1][..], &[3, 1], &[0, 1, 2, 3]] {
            let waits = tokio::time::timeout(MOMENT, launches.take(0, devices)).await;
            assert!(waits.is_err(), "{devices:?}");
        }
        drop(launching);
        drop(launches.take(0, &[0, 1, 2, 3]).await);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_two_wait_for_each_other_however_their_devices_overlap() {
        let launches = Arc::new(Launches::new(2, 4));
        let mut tasks = tokio::task::JoinSet::new();
        for devices in
            [vec![0, 1, 2], vec![2, 1, 0], vec![3, 0], vec![0, 3], vec![1, 1], vec![2, 3]]
        {
            let launches = Arc::clone(&launches);
            tasks.spawn(async move {
                for _ in 0..200 {
                    let _launching = launches.take(0, &devices).await;
                    tokio::task::yield_now().await;
                }
            });
        }
        let all = tokio::time::timeout(Duration::from_secs(60), tasks.join_all()).await;
        assert_eq!(all.unwrap().len(), 6);
    }
}
