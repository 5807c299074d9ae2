//! A place in a script where the server waits for the test.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::Semaphore;

use super::PATIENCE;

/// Clone it freely: one end goes into the script, the other stays with the test. One gate may stand
/// at several places; each place needs its own [`Gate::release`].
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    permits: Semaphore,
    reached: Mutex<usize>,
    changed: Condvar,
}

impl Gate {
    #[expect(clippy::new_without_default, reason = "a gate is made on purpose")]
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            permits: Semaphore::new(0),
            reached: Mutex::new(0),
            changed: Condvar::new(),
        }))
    }

    /// Lets the server pass this gate once.
    pub fn release(&self) {
        self.0.permits.add_permits(1);
    }

    /// Lets the server pass this gate from now on.
    pub fn open(&self) {
        self.0.permits.close();
    }

    /// Blocks until the server has come to this gate `count` times; everything that the script has
    /// before it is on the wire then. Panics after [`PATIENCE`].
    pub fn wait_reached(&self, count: usize) {
        let reached = self.0.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let (reached, timeout) = self
            .0
            .changed
            .wait_timeout_while(reached, PATIENCE, |reached| *reached < count)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "the server reached the gate {reached} of {count} times");
    }

    /// The server's side.
    pub(super) async fn pass(&self) {
        *self.0.reached.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.changed.notify_all();
        // An error means that the gate is open for good.
        if let Ok(permit) = self.0.permits.acquire().await {
            permit.forget();
        }
    }
}
