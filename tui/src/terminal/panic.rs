//! A panic's words belong on the normal screen, not under a frame.
//!
//! A panic of the UI thread ends the program: the terminal is given back first, then the hook that
//! was there before speaks. A panic of another thread is told to the person as a notice and to the
//! log; printing it would only scribble over the screen that still runs.

use std::any::Any;
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::thread;

use claw_runtime::TuiEvent;

use super::restore::Restorer;
use crate::inbox::{Inbox, InboxSender};

/// Installs the hook. The calling thread is taken to be the UI thread.
pub fn install(restorer: Arc<Restorer>, inbox: InboxSender) {
    let ui = thread::current().id();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == ui || !restorer.is_taken() {
            restorer.give_back_at_once();
            before(info);
        } else {
            let words = describe(info);
            tracing::error!("{words}");
            inbox.send(Inbox::Runtime(TuiEvent::error(words)));
        }
    }));
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let thread = thread::current();
    let place = info.location().map(|place| format!(" at {place}")).unwrap_or_default();
    format!(
        "an internal error in the thread `{}`{place}: {}. The conversation is kept; if nothing moves any more, quit and resume",
        thread.name().unwrap_or("unnamed"),
        message(info.payload()),
    )
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
