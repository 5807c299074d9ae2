//! Plays a [`WorkerStory`] with a worker from anywhere, and compares what it told.

#![expect(clippy::expect_used, reason = "support code fails the test that uses it by panicking")]
#![expect(clippy::missing_panics_doc, reason = "panicking is how a test fails")]

use std::collections::VecDeque;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use claw_runtime::session::ContentBlock;
use claw_workers::{Asked, Fact, OpenAs, SteerError, TurnEnd, Verdict, Worker, WorkerEvent};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use crate::claude::housekeeping;
use crate::mock_api::{Gate, MockApi, PATIENCE};
use crate::worker_stories::{Step, WorkerStory};

/// Where workers come from: a transport, a version, the real CLI or its stand-in.
pub trait Cast {
    /// A worker whose model is this server, in the cast's own workspace.
    fn open(
        &self,
        api: &MockApi,
        open: OpenAs,
    ) -> impl Future<Output = (Worker, UnboundedReceiver<WorkerEvent>)>;
    /// Where its tools run.
    fn workspace(&self) -> PathBuf;
}

/// One line of a story; none for what is no part of it.
pub fn line(event: &WorkerEvent) -> Option<String> {
    match event {
        WorkerEvent::Fact { fact, .. } => fact_line(fact),
        WorkerEvent::TurnEnded { end, unasked } => {
            let how = match end {
                TurnEnd::Completed { .. } => "completed",
                TurnEnd::Interrupted => "interrupted",
                TurnEnd::Withdrawn => "withdrawn",
                TurnEnd::Failed(_) => "failed",
                TurnEnd::Compacted => "compacted",
                #[expect(unreachable_patterns, reason = "further ends are told by their name")]
                _ => "otherwise",
            };
            Some(format!("end {how}{}", if *unasked { " unasked" } else { "" }))
        }
        WorkerEvent::Ended(_) => Some("ended".to_owned()),
        _ => None,
    }
}

fn fact_line(fact: &Fact) -> Option<String> {
    Some(match fact {
        Fact::Block { content: ContentBlock::Text { text }, .. } => format!("text {text}"),
        Fact::Block { content: ContentBlock::Thinking { thinking, .. }, .. } => {
            format!("thinking {thinking}")
        }
        Fact::Block { content: ContentBlock::ToolUse { id, name, .. }, .. } => {
            format!("tool {name} {id}")
        }
        Fact::ToolResult { id, output, is_error, .. } => {
            let mark = if *is_error { "error: " } else { "" };
            let first = output.split_inclusive(['.', '\n']).next().unwrap_or_default().trim_end();
            format!("result {id} {mark}{first}")
        }
        Fact::ApiFailure { kind, .. } => format!("failure {kind:?}"),
        Fact::Interrupted { .. } => "interrupted".to_owned(),
        Fact::Compacted { .. } => "compacted".to_owned(),
        Fact::AgentSpawned { background, .. } => {
            format!("agent {}", if *background { "in the background" } else { "spawned" })
        }
        Fact::AgentDone { status, .. } => format!("agent {status:?}"),
        _ => return None,
    })
}

/// Plays one story from its beginning.
pub async fn play(story: &WorkerStory, cast: &impl Cast) {
    let api = MockApi::start();
    api.answer(housekeeping);
    let gate = Gate::new();
    (story.script)(&api, &gate);
    let session = uuid::Uuid::new_v4().to_string();
    let (worker, events) = cast.open(&api, OpenAs::New(session.clone())).await;
    let mut stage = Stage {
        story,
        worker: Some(Arc::new(worker)),
        steering: None,
        events,
        lines: Vec::new(),
        live: String::new(),
        asked: VecDeque::new(),
        ends: 0,
        ends_taken: 0,
        ended: false,
    };
    for step in story.steps {
        stage.take(step, &session, &api, &gate, cast).await;
    }
    if let Some(worker) = stage.worker.take() {
        Arc::into_inner(worker).expect("nobody else holds it").stop().await;
    }
    assert_eq!(stage.lines, story.lines, "{}", story.name);
}

/// A prompt about a picture of one red dot.
fn prompt_with_image(folder: &Path) -> String {
    const DOT: &[u8] = include_bytes!("../fixtures/dot.png");
    let file = folder.join("dot.png");
    std::fs::write(&file, DOT).expect("a file");
    format!("What is on\n{}\nplease?", file.display())
}

struct Stage<'a> {
    story: &'a WorkerStory,
    worker: Option<Arc<Worker>>,
    steering: Option<JoinHandle<Result<(), SteerError>>>,
    events: UnboundedReceiver<WorkerEvent>,
    lines: Vec<String>,
    /// Live text so far.
    live: String,
    asked: VecDeque<Asked>,
    ends: usize,
    ends_taken: usize,
    ended: bool,
}

impl Stage<'_> {
    async fn take(
        &mut self,
        step: &Step,
        session: &str,
        api: &MockApi,
        gate: &Gate,
        cast: &impl Cast,
    ) {
        let what = format!("{}: {step:?}", self.story.name);
        match *step {
            Step::Submit(_) | Step::SubmitImage => {
                let text = match *step {
                    Step::Submit(text) => text.to_owned(),
                    _ => prompt_with_image(&cast.workspace()),
                };
                let taken = self.worker().submit(text).await;
                if let Err(error) = taken {
                    let events: Vec<WorkerEvent> =
                        std::iter::from_fn(|| self.events.try_recv().ok()).collect();
                    panic!("{what}: {error}\n{:#?}\n{events:#?}", self.lines);
                }
            }
            Step::Steer(text) => {
                let worker = Arc::clone(self.worker.as_ref().expect("a worker"));
                let mut steering = tokio::spawn(async move { worker.steer(text.to_owned()).await });
                // Without a terminal it is known only when a tool's result takes it in.
                match tokio::time::timeout(Duration::from_millis(500), &mut steering).await {
                    Ok(taken) => taken.expect("it ends").expect(&what),
                    Err(_) => self.steering = Some(steering),
                }
            }
            Step::Interrupt => self.worker().interrupt(),
            Step::Compact => self.worker().compact(),
            Step::Asked => {
                while self.asked.is_empty() {
                    self.next(&what).await;
                }
            }
            Step::Allow => self.answer(&what, Verdict::Allow { updated_input: None }).await,
            Step::AllowInput(input) => {
                let input = Some(input.to_owned());
                self.answer(&what, Verdict::Allow { updated_input: input }).await;
            }
            Step::Deny(message) => {
                let message = message.to_owned();
                self.answer(&what, Verdict::Deny { message, interrupt: false }).await;
            }
            Step::AtGate(count) => {
                let gate = gate.clone();
                let reached = tokio::task::spawn_blocking(move || gate.wait_reached(count));
                reached.await.expect("the script comes to its gate");
            }
            Step::Shown(text) => {
                let shown = async {
                    while !self.live.contains(text) {
                        self.next(&what).await;
                    }
                };
                let _ = tokio::time::timeout(Duration::from_secs(2), shown).await;
            }
            Step::Pass => gate.release(),
            Step::Ends => {
                self.ends_taken += 1;
                while self.ends < self.ends_taken {
                    self.next(&what).await;
                }
                if let Some(steering) = self.steering.take() {
                    steering.await.expect("it ends").expect(&what);
                }
            }
            Step::ToolRuns => {
                let file = cast.workspace().join("running");
                while !file.exists() {
                    // What it tells meanwhile must not wait.
                    let _ = tokio::time::timeout(Duration::from_millis(20), self.next(&what)).await;
                }
            }
            Step::Stop => {
                let worker = self.worker.take().and_then(Arc::into_inner);
                worker.expect("a worker that nobody else holds").stop().await;
                while !self.ended {
                    self.next(&what).await;
                }
            }
            Step::Resume => self.reopen(cast, api, OpenAs::Resume(session.to_owned())).await,
            Step::Fork => {
                let into = uuid::Uuid::new_v4().to_string();
                self.reopen(cast, api, OpenAs::Fork { from: session.to_owned(), into }).await;
            }
        }
    }

    fn worker(&self) -> &Worker {
        self.worker.as_ref().expect("a worker")
    }

    async fn reopen(&mut self, cast: &impl Cast, api: &MockApi, open: OpenAs) {
        let (worker, events) = cast.open(api, open).await;
        (self.worker, self.events, self.ended) = (Some(Arc::new(worker)), events, false);
    }

    async fn answer(&mut self, what: &str, verdict: Verdict) {
        while self.asked.is_empty() {
            self.next(what).await;
        }
        let asked = self.asked.pop_front().expect("just seen");
        asked.reply.send(verdict).expect("the question waits");
    }

    async fn next(&mut self, what: &str) {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        let event = event.ok().flatten();
        let event = event.unwrap_or_else(|| panic!("{what}: nothing came\n{:#?}", self.lines));
        self.lines.extend(line(&event));
        if let WorkerEvent::Fact { fact: Fact::TextDelta { text, .. }, .. } = &event {
            self.live.push_str(text);
        }
        match event {
            WorkerEvent::TurnEnded { .. } => self.ends += 1,
            WorkerEvent::Ended(_) => self.ended = true,
            WorkerEvent::Asked(asked) => self.asked.push_back(asked),
            _ => {}
        }
    }
}
