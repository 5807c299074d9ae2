//! The handle of one worker: orders go in, [`WorkerEvent`]s come out. Which transport carries them is
//! known in one place.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::config::{Transport, WindowSize, WorkerConfig};
use crate::error::WorkerError;
use crate::event::{SteerError, WorkerEvent};
use crate::host::Host;
use crate::{interactive, stream};

/// Which Claude session a worker opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenAs {
    /// A new one under this id (a v4 UUID).
    New(String),
    /// One that exists.
    Resume(String),
    /// A copy of `from` under the id `into`.
    Fork { from: String, into: String },
}

impl OpenAs {
    /// The id that the session will have.
    pub fn session_id(&self) -> &str {
        match self {
            Self::New(id) | Self::Resume(id) | Self::Fork { into: id, .. } => id,
        }
    }
}

/// What a worker can be told. A transport answers each with an event or on its channel.
#[derive(Debug)]
pub enum Order {
    /// A prompt for an idle worker. Answered when it was delivered or refused; the turn then comes as
    /// events.
    Submit {
        text: String,
        taken: oneshot::Sender<Result<(), WorkerError>>,
    },
    /// A prompt into the running turn.
    Steer {
        text: String,
        taken: oneshot::Sender<Result<(), SteerError>>,
    },
    /// Stops the turn that runs; without one nothing happens.
    Interrupt,
    /// The CLI's own compaction; ends as a turn (`TurnEnd::Compacted`).
    Compact,
    /// Bytes that the person typed into its screen.
    Type(Vec<u8>),
    Resize(WindowSize),
    /// Ends the process and everything that it started.
    Stop {
        done: oneshot::Sender<()>,
    },
}

/// What a transport is run with.
pub(crate) struct Parts {
    pub open: OpenAs,
    pub orders: mpsc::UnboundedReceiver<Order>,
    pub events: mpsc::UnboundedSender<WorkerEvent>,
}

/// One live worker. Dropping it ends the process in the background.
pub struct Worker {
    orders: mpsc::UnboundedSender<Order>,
}

impl Worker {
    /// Starts one, on the runtime that this is called in. Everything is told by the receiver; the last
    /// event is [`WorkerEvent::Ended`].
    pub fn start(
        config: WorkerConfig,
        open: OpenAs,
        host: Arc<Host>,
    ) -> (Self, mpsc::UnboundedReceiver<WorkerEvent>) {
        let (orders_in, orders) = mpsc::unbounded_channel();
        let (events_in, events) = mpsc::unbounded_channel();
        let parts = Parts { open, orders, events: events_in };
        match config.transport {
            Transport::Pty => {
                let own = orders_in.downgrade();
                tokio::spawn(async move {
                    let _present = host.presence();
                    Box::pin(interactive::run(config, parts, own, Arc::clone(&host))).await;
                });
            }
            Transport::Stream => {
                tokio::spawn(async move {
                    let _present = host.presence();
                    let marker = host.next_marker(&config);
                    match stream::Launch::prepare(&config, &parts.open, marker).await {
                        Ok(launch) => stream::run(config, launch, parts).await,
                        Err(error) => drop(parts.events.send(WorkerEvent::Ended(error))),
                    }
                });
            }
        }
        (Self { orders: orders_in }, events)
    }

    /// The way for orders, for others than the holder.
    pub(crate) fn orders(&self) -> mpsc::UnboundedSender<Order> {
        self.orders.clone()
    }

    /// Only for tests of what holds a worker.
    #[doc(hidden)]
    pub fn from_orders(orders: mpsc::UnboundedSender<Order>) -> Self {
        Self { orders }
    }

    /// Hands over a prompt. Returns when it was delivered, with evidence.
    pub fn submit(
        &self,
        text: String,
    ) -> impl Future<Output = Result<(), WorkerError>> + Send + use<> {
        let (taken, answer) = oneshot::channel();
        self.order(Order::Submit { text, taken });
        async move { answer.await.unwrap_or(Err(WorkerError::Stopped)) }
    }

    /// Hands a prompt to the running turn. `Ok` only with evidence.
    pub async fn steer(&self, text: String) -> Result<(), SteerError> {
        let (taken, answer) = oneshot::channel();
        self.order(Order::Steer { text, taken });
        answer.await.unwrap_or_else(|_| Err(SteerError::Refused("the worker has ended".to_owned())))
    }

    pub fn interrupt(&self) {
        self.order(Order::Interrupt);
    }

    pub fn compact(&self) {
        self.order(Order::Compact);
    }

    pub fn type_bytes(&self, bytes: Vec<u8>) {
        self.order(Order::Type(bytes));
    }

    pub fn resize(&self, size: WindowSize) {
        self.order(Order::Resize(size));
    }

    /// Ends the process and everything that it started, in bounded time.
    pub async fn stop(self) {
        let (done, ended) = oneshot::channel();
        self.order(Order::Stop { done });
        // A worker that is gone already answers by the end of the channel.
        let _ = ended.await;
    }

    fn order(&self, order: Order) {
        // One that has ended says so by its last event.
        let _ = self.orders.send(order);
    }
}
