//! A data race for the sanitizer, to test that the stage detects one: with the argument `race` two
//! threads write to one number without a lock; without it they use every way in which a thread
//! waits for another.

use std::{
    cell::UnsafeCell,
    env,
    sync::{Arc, Condvar, LazyLock, Mutex, RwLock},
    thread,
    time::Duration,
};

struct Number(UnsafeCell<u64>);

// SAFETY: for the threads below, which lock before they write; the one that does not is what this
// program is for.
unsafe impl Sync for Number {}

impl Number {
    fn add(&self) {
        // SAFETY: as above.
        unsafe { *self.0.get() += 1 };
    }
}

static MADE: LazyLock<Vec<u64>> = LazyLock::new(|| (0..1000).collect());

fn main() {
    let racy = env::args().any(|argument| argument == "race");
    let number = Arc::new(Number(UnsafeCell::new(0)));
    let lock = Arc::new(Mutex::new(0u32));
    let changed = Arc::new(Condvar::new());
    let table = Arc::new(RwLock::new(Vec::new()));
    let threads: Vec<_> = (0..4u32)
        .map(|turn| {
            let (number, lock) = (Arc::clone(&number), Arc::clone(&lock));
            let (changed, table) = (Arc::clone(&changed), Arc::clone(&table));
            thread::spawn(move || {
                assert_eq!(MADE.len(), 1000);
                for _ in 0..2000 {
                    if racy {
                        number.add();
                    }
                    let mut held = lock.lock().unwrap();
                    if !racy {
                        number.add();
                    }
                    *held += 1;
                    drop(held);
                    table.write().unwrap().push(turn);
                    assert!(!table.read().unwrap().is_empty());
                }
                // Each thread waits for its turn, with or without a time limit.
                let mut held = lock.lock().unwrap();
                *held += 1 << 16;
                changed.notify_all();
                while *held >> 16 < 4 {
                    held = if turn % 2 == 0 {
                        changed.wait(held).unwrap()
                    } else {
                        changed.wait_timeout(held, Duration::from_millis(1)).unwrap().0
                    };
                }
                number.add();
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
