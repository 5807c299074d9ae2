//! The screen of the worker that is in use, for a person who wants to look at it and type into it.
//! Whoever looks holds this; the worker behind it may change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::WeakUnboundedSender;
use tokio::sync::watch;

use crate::child::LiveScreen;
use crate::config::WindowSize;
use crate::screen::ScreenView;
use crate::worker::Order;

/// Clones show the same worker.
#[derive(Clone)]
pub struct Screens(Arc<Shared>);

struct Shared {
    shown: Mutex<Option<Shown>>,
    /// Marked when another worker is shown, or none.
    replaced: watch::Sender<u64>,
}

struct Shown {
    screen: LiveScreen,
    orders: WeakUnboundedSender<Order>,
}

impl Default for Screens {
    fn default() -> Self {
        Self(Arc::new(Shared { shown: Mutex::new(None), replaced: watch::Sender::new(0) }))
    }
}

impl Screens {
    pub(crate) fn show(&self, screen: LiveScreen, orders: WeakUnboundedSender<Order>) {
        *self.lock() = Some(Shown { screen, orders });
        self.mark();
    }

    /// Shows nothing any more, unless another worker has taken the place.
    pub(crate) fn clear(&self, screen: &LiveScreen) {
        let mut shown = self.lock();
        if shown.as_ref().is_some_and(|shown| shown.screen.is(screen)) {
            *shown = None;
            drop(shown);
            self.mark();
        }
    }

    /// What is on it now; none without a worker that has a screen.
    pub fn view(&self) -> Option<ScreenView> {
        let screen = self.lock().as_ref()?.screen.clone();
        Some(screen.view())
    }

    /// Hands the worker what the person typed.
    pub fn type_bytes(&self, bytes: Vec<u8>) {
        self.order(Order::Type(bytes));
    }

    pub fn resize(&self, size: WindowSize) {
        self.order(Order::Resize(size));
    }

    /// Returns when something has changed since `seen`, which is brought up to date.
    pub async fn changed(&self, seen: &mut SeenScreen) {
        loop {
            let current = self.lock().as_ref().map(|shown| shown.screen.changes());
            let was_replaced = {
                let mut marks = self.0.replaced.subscribe();
                let now = *marks.borrow_and_update();
                std::mem::replace(&mut seen.replaced, now) != now
            };
            if was_replaced {
                seen.changes = current;
                return;
            }
            let mut replaced = self.0.replaced.subscribe();
            let from = seen.replaced;
            let another = replaced.wait_for(|now| *now != from);
            match &mut seen.changes {
                Some(changes) => tokio::select! {
                    // The screen of a worker that has ended changes no more.
                    outcome = changes.changed() => match outcome {
                        Ok(()) => return,
                        Err(_) => seen.changes = None,
                    },
                    _ = another => {}
                },
                None => drop(another.await),
            }
        }
    }

    fn order(&self, order: Order) {
        // A worker whose holder is gone, or that has ended, takes nothing more.
        if let Some(orders) = self.lock().as_ref().and_then(|shown| shown.orders.upgrade()) {
            let _ = orders.send(order);
        }
    }

    fn mark(&self) {
        self.0.replaced.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, Option<Shown>> {
        self.0.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What somebody who waits for changes has seen already.
#[derive(Default)]
pub struct SeenScreen {
    replaced: u64,
    changes: Option<watch::Receiver<u64>>,
}
