//! The thread beside the screen: starts the runtime, sends it commands, ends it in bounded time.
//!
//! Nothing here can block the UI thread: commands go into an unbounded channel, and everything comes
//! back through the inbox.

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use claw_runtime::driver::{Command, Driver};
use claw_runtime::{StreamSink, TuiEvent};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The sending end of the runtime thread.
pub struct RuntimeHandle {
    commands: UnboundedSender<Command>,
    ended: mpsc::Receiver<()>,
}

impl RuntimeHandle {
    /// Starts the thread. `build` runs on it, inside its tokio runtime, so that nothing it reads or
    /// opens can delay the first frame. When it fails, the message is told as an event.
    pub fn spawn(
        sink: Arc<dyn StreamSink>,
        build: impl FnOnce(Arc<dyn StreamSink>) -> Result<Driver, String> + Send + 'static,
    ) -> io::Result<Self> {
        let (commands, receiver) = unbounded_channel();
        let (done, ended) = mpsc::channel();
        thread::Builder::new().name("runtime".to_owned()).spawn(move || {
            run(&sink, build, receiver);
            // Nobody may be waiting any more; then there is nobody to tell.
            let _unheard = done.send(());
        })?;
        Ok(Self { commands, ended })
    }

    /// Orders something. A runtime that has ended takes nothing more; it has said so by itself.
    pub fn send(&self, command: Command) {
        let _ended = self.commands.send(command);
    }

    /// Asks the thread to end and waits no longer than `bound`. True when it has ended. The caller
    /// cancels the turn that runs, if one does.
    pub fn shutdown(self, bound: Duration) -> bool {
        self.send(Command::Shutdown);
        self.ended.recv_timeout(bound).is_ok()
    }
}

fn run(
    sink: &Arc<dyn StreamSink>,
    build: impl FnOnce(Arc<dyn StreamSink>) -> Result<Driver, String>,
    commands: UnboundedReceiver<Command>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return fail(sink, &format!("The runtime cannot start: {error}."));
        }
    };
    runtime.block_on(async {
        match build(Arc::clone(sink)) {
            Ok(driver) => driver.run(commands).await,
            Err(message) => fail(sink, &message),
        }
    });
    // Tasks that outlive the driver (a killed tool's grace period) get a moment, not more.
    runtime.shutdown_timeout(Duration::from_millis(500));
}

fn fail(sink: &Arc<dyn StreamSink>, message: &str) {
    sink.emit(TuiEvent::error(message));
    sink.emit(TuiEvent::RuntimeEnded);
}
