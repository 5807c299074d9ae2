//! The loop of a stream worker: orders and lines go into the machine, its steps are done.

use std::ffi::OsString;
use std::time::Instant;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture, FutureExt as _};
use futures_util::stream::FuturesUnordered;
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};

use super::codec::Decoder;
use super::process::{Line, Process};
use super::turns::{Step, Turns};
use crate::argv::argv;
use crate::config::{Transport, WorkerConfig};
use crate::environment::child_environment;
use crate::error::WorkerError;
use crate::event::{Asked, AskingAgent, Verdict, WorkerEvent};
use crate::process::{MARKER_VARIABLE, Marker};
use crate::version::find_cli;
use crate::worker::{OpenAs, Order, Parts};

/// What a worker is started with, made by who knows versions and environments.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program and its arguments, a prefix first.
    pub argv: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub version: String,
    /// By it everything is found that the CLI leaves behind.
    pub marker: Marker,
}

impl Launch {
    /// Finds the CLI and makes its command line and environment from the settings. It needs no tap:
    /// its text comes live by itself.
    pub async fn prepare(
        config: &WorkerConfig,
        open: &OpenAs,
        marker: Marker,
    ) -> Result<Self, WorkerError> {
        let config = WorkerConfig { transport: Transport::Stream, ..config.clone() };
        let cli = find_cli(&config).await?;
        Ok(Self {
            argv: argv(&cli.program, &config, open, None)?,
            environment: child_environment(&config, marker.as_str(), None),
            version: cli.version.to_string(),
            marker,
        })
    }
}

/// The answer to a question; none when its asker is not waited for any more.
type Answer = (String, Option<Verdict>);

/// Why the loop ends.
enum End {
    Stopped(Option<oneshot::Sender<()>>),
    Failed(WorkerError),
    /// Its output has ended.
    Gone,
}

/// Runs one worker until it ends. The last event is [`WorkerEvent::Ended`].
pub(crate) async fn run(config: WorkerConfig, launch: Launch, parts: Parts) {
    let Parts { open, mut orders, events } = parts;
    let process = command(&config, &launch)
        .and_then(|command| Process::start(command, launch.marker.clone(), config.timings.write));
    let process = match process {
        Ok(process) => process,
        Err(error) => {
            let _ = events.send(WorkerEvent::Ended(error));
            return;
        }
    };
    let turns = Turns::new(
        config.timings.clone(),
        open.session_id().to_owned(),
        launch.version,
        Instant::now(),
    );
    let mut loop_ = Session {
        turns,
        process,
        events,
        decoder: Decoder::default(),
        answers: FuturesUnordered::new(),
        asked: Vec::new(),
    };
    let end = loop_.run(&mut orders).await;
    loop_.close(&config, end, &mut orders).await;
}

fn command(config: &WorkerConfig, launch: &Launch) -> Result<Command, WorkerError> {
    let mut words = launch.argv.iter();
    let program = words
        .next()
        .ok_or_else(|| WorkerError::Spawn { message: "there is no command".to_owned() })?;
    let mut command = Command::new(program);
    command.args(words).current_dir(&config.cwd).env_clear().process_group(0);
    command.envs(launch.environment.iter().map(|(name, value)| (name, value)));
    command.env(MARKER_VARIABLE, launch.marker.as_str());
    Ok(command)
}

struct Session {
    turns: Turns,
    process: Process,
    events: mpsc::UnboundedSender<WorkerEvent>,
    decoder: Decoder,
    answers: FuturesUnordered<BoxFuture<'static, Option<Answer>>>,
    /// Questions that are open, with the way to forget them.
    asked: Vec<(String, AbortHandle)>,
}

impl Session {
    async fn run(&mut self, orders: &mut mpsc::UnboundedReceiver<Order>) -> End {
        loop {
            if let Some(end) = self.do_steps() {
                return end;
            }
            let deadline = self.turns.deadline();
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Stop { done }) => return End::Stopped(Some(done)),
                    None => return End::Stopped(None),
                    Some(order) => self.turns.order(Instant::now(), order),
                },
                line = self.process.lines.recv() => match line {
                    Some(Line::Text(line)) => self.line(&line),
                    Some(Line::Failed(error)) => return End::Failed(error),
                    None => return End::Gone,
                },
                Some((why, outcome)) = self.process.written.recv() => {
                    self.turns.written(Instant::now(), why, outcome);
                }
                Some(answer) = self.answers.next(), if !self.answers.is_empty() => {
                    if let Some((request_id, verdict)) = answer {
                        self.forget(&request_id);
                        self.turns.answered(Instant::now(), &request_id, verdict);
                    }
                }
                () = until(deadline) => self.turns.tick(Instant::now()),
            }
        }
    }

    fn line(&mut self, line: &str) {
        match self.decoder.decode(line) {
            Ok(message) => self.turns.message(Instant::now(), message),
            // A wrapper may say something before the CLI speaks; what matters has its own deadline.
            Err(error) => tracing::debug!(%error, "a line of the worker was left out"),
        }
    }

    fn do_steps(&mut self) -> Option<End> {
        for step in self.turns.steps() {
            match step {
                Step::Write { line, why } => self.process.write(line, why),
                Step::Tell(event) => {
                    // Nobody listens any more: the orders end too.
                    let _ = self.events.send(event);
                }
                Step::Ask { request_id, tool_use_id, tool_name, input, agent } => {
                    let (reply, answer) = oneshot::channel();
                    let (handle, registration) = AbortHandle::new_pair();
                    self.asked.push((request_id.clone(), handle));
                    let answer = answer.map(move |verdict| (request_id, verdict.ok()));
                    let answer = Abortable::new(answer, registration).map(Result::ok);
                    self.answers.push(answer.boxed());
                    let agent = agent.map(|id| AskingAgent { id, kind: None });
                    let asked = Asked { tool_use_id, tool_name, input, agent, reply };
                    let _ = self.events.send(WorkerEvent::Asked(asked));
                }
                Step::Forget { request_id } => self.forget(&request_id),
                Step::GiveUp(error) => return Some(End::Failed(error)),
            }
        }
        None
    }

    fn forget(&mut self, request_id: &str) {
        self.asked.retain(|(known, handle)| {
            let other = known != request_id;
            if !other {
                handle.abort();
            }
            other
        });
    }

    /// Ends the process and everything that it started, answers what is open, and says the end.
    async fn close(
        mut self,
        config: &WorkerConfig,
        end: End,
        orders: &mut mpsc::UnboundedReceiver<Order>,
    ) {
        let timings = &config.timings;
        orders.close();
        let started = self.process.started().await;
        self.process.close_input();
        let wait = match end {
            End::Stopped(_) => timings.terminate,
            End::Gone => timings.kill,
            End::Failed(_) => std::time::Duration::ZERO,
        };
        let ended = tokio::time::timeout(wait, self.process.child.wait()).await;
        self.process.end_tree(started, timings).await;
        self.process.drain_errors(timings.kill).await;
        // Whether a prompt was taken is known at the latest now: nobody reads any more.
        while let Ok(Some((why, outcome))) =
            tokio::time::timeout(timings.kill, self.process.written.recv()).await
        {
            self.turns.written(Instant::now(), why, outcome);
        }
        let status = match ended {
            Ok(Ok(status)) => status.to_string(),
            _ => "its output ended".to_owned(),
        };
        let screen = self.process.stderr_tail();
        let (ready, may_have_run) = (self.turns.is_ready(), self.turns.may_have_run());
        let crashed = || {
            let (status, screen) = (status.clone(), screen.clone());
            if ready {
                WorkerError::Crashed { status, screen, may_have_run }
            } else {
                WorkerError::StartFailed { status, screen }
            }
        };
        let stopped = matches!(end, End::Stopped(_));
        self.turns.ended(|| if stopped { WorkerError::Stopped } else { crashed() });
        let _ = self.do_steps();
        let mut waiting = Vec::new();
        while let Ok(order) = orders.try_recv() {
            // Submits and steers are answered by the end of their channels.
            if let Order::Stop { done } = order {
                waiting.push(done);
            }
        }
        let error = match end {
            End::Stopped(done) => {
                waiting.extend(done);
                WorkerError::Stopped
            }
            End::Failed(WorkerError::NotReady { after, .. }) => {
                WorkerError::NotReady { after, screen }
            }
            End::Failed(error) => error,
            End::Gone => crashed(),
        };
        let _ = self.events.send(WorkerEvent::Ended(error));
        for done in waiting {
            let _ = done.send(());
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
