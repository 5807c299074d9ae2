//! The way in for prompts during a turn: open only while a turn of ours runs on a worker.

use std::sync::{Mutex, PoisonError};

use claw_runtime::api::{self, Steering};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::event::SteerError;
use crate::worker::{Order, Worker};

/// Held by the driver beside the running turn.
#[derive(Debug, Default)]
pub(super) struct SteeringLine {
    orders: Mutex<Option<UnboundedSender<Order>>>,
}

impl SteeringLine {
    pub(super) fn open(&self, worker: &Worker) {
        *self.orders.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker.orders());
    }

    pub(super) fn close(&self) {
        *self.orders.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn orders(&self) -> Option<UnboundedSender<Order>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Steering for SteeringLine {
    fn steer(&self, text: String) -> BoxFuture<'_, Result<(), api::SteerError>> {
        let orders = self.orders();
        Box::pin(async move {
            let refused = |why: &str| api::SteerError::Refused(why.to_owned());
            let Some(orders) = orders else { return Err(refused("no turn is running")) };
            let (taken, answer) = oneshot::channel();
            if orders.send(Order::Steer { text, taken }).is_err() {
                return Err(refused("Claude Code has ended"));
            }
            match answer.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(SteerError::Refused(why))) => Err(api::SteerError::Refused(why)),
                // The worker took the order and died: whether the words arrived is not known.
                Ok(Err(SteerError::Uncertain)) | Err(_) => Err(api::SteerError::Uncertain),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    fn line() -> (SteeringLine, mpsc::UnboundedReceiver<Order>) {
        let (orders, taken) = mpsc::unbounded_channel();
        let line = SteeringLine::default();
        line.open(&Worker::from_orders(orders));
        (line, taken)
    }

    async fn answered(with: Option<Result<(), SteerError>>) -> Result<(), api::SteerError> {
        let (line, mut orders) = line();
        let steering = line.steer("more".into());
        let worker = async {
            if let Some(Order::Steer { text, taken }) = orders.recv().await {
                assert_eq!(text, "more");
                if let Some(with) = with {
                    taken.send(with).unwrap();
                }
            }
        };
        tokio::join!(steering, worker).0
    }

    #[tokio::test]
    async fn what_the_worker_says_of_a_prompt_is_what_the_driver_hears() {
        assert_eq!(answered(Some(Ok(()))).await, Ok(()));
        let refused = answered(Some(Err(SteerError::Refused("busy".into())))).await;
        assert_eq!(refused, Err(api::SteerError::Refused("busy".into())));
        let uncertain = answered(Some(Err(SteerError::Uncertain))).await;
        assert_eq!(uncertain, Err(api::SteerError::Uncertain));
        assert_eq!(answered(None).await, Err(api::SteerError::Uncertain), "it died with the order");
    }

    #[tokio::test]
    async fn without_a_turn_nothing_is_sent() {
        let (line, mut orders) = line();
        line.close();
        assert!(matches!(line.steer("x".into()).await, Err(api::SteerError::Refused(_))));
        drop(line);
        assert!(orders.recv().await.is_none(), "nothing was sent");
    }
}
