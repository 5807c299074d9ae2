//! What a turn may do to the outside: tell, ask, stop. Nothing else crosses a thread.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::event::StreamSink;
use crate::permissions::PermissionPrompter;

/// Everything a turn may do to the outside. Cheap to clone, so that parallel tools can hold one.
#[derive(Clone)]
pub struct TurnContext {
    /// Tell: facts for the person's eyes. Never the way to return a result.
    pub sink: Arc<dyn StreamSink>,
    /// Ask: a permission question, answered once.
    pub prompter: Arc<dyn PermissionPrompter>,
    /// Stop: cancelled when the person interrupts the turn or the program ends.
    pub cancel: CancellationToken,
}

impl TurnContext {
    /// The same context with a token of its own that is cancelled with the parent's.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { cancel: self.cancel.child_token(), ..self.clone() }
    }
}
