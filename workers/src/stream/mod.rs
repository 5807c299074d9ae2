//! The `stream` transport: the CLI with JSON lines in both directions.
//!
//! [`codec`] and [`mod@write`] know the lines and nothing else; a pure machine behind them knows orders
//! and turns; one loop joins it with the process. Refuses to know terminals, and to decide about
//! permissions: every question goes out as an event, and one that nobody answers is denied.

pub mod codec;
mod process;
mod transport;
mod turns;
pub mod write;

#[cfg(test)]
mod tests;

use tokio::sync::mpsc;

pub use transport::Launch;
pub(crate) use transport::run;

use crate::config::WorkerConfig;
use crate::event::WorkerEvent;
use crate::worker::{OpenAs, Parts, Worker};

/// Starts a worker on this transport, on the runtime that this is called in. The last event is
/// [`WorkerEvent::Ended`].
pub fn start(
    config: WorkerConfig,
    launch: Launch,
    open: OpenAs,
) -> (Worker, mpsc::UnboundedReceiver<WorkerEvent>) {
    let (orders_in, orders) = mpsc::unbounded_channel();
    let (events_in, events) = mpsc::unbounded_channel();
    let parts = Parts { open, orders, events: events_in };
    tokio::spawn(transport::run(config, launch, parts));
    (Worker::from_orders(orders_in), events)
}
