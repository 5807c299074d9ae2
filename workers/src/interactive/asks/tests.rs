use futures_util::FutureExt as _;
use proptest::prelude::*;
use tokio::sync::oneshot::Receiver;

use super::*;

/// One held question with everything around it.
struct Held {
    agent: Option<&'static str>,
    call: String,
    reply: Option<oneshot::Sender<Verdict>>,
    handed_over: Receiver<String>,
    hook: CancellationToken,
    /// Nobody may answer any more, and nothing had been handed over by then.
    retired_silently: bool,
    over: bool,
}

struct Rig {
    questions: Questions,
    held: Vec<Held>,
}

const AGENTS: [Option<&str>; 3] = [None, Some("foreground"), Some("background")];

impl Rig {
    fn new() -> Self {
        Self { questions: Questions::default(), held: Vec::new() }
    }

    fn ask(&mut self, agent: Option<&'static str>) {
        let call = format!("call {}", self.held.len());
        let tool = ToolUse { name: "Bash".into(), input: format!("{{\"command\":\"{call}\"}}") };
        self.questions.announce(&call, &tool);
        let moved = self.questions.asker_moved_on(agent);
        self.note(&moved, |held| held.agent == agent);
        let (reply, handed_over, hook) = HookReply::held();
        let asking = agent.map(|id| AskingAgent { id: id.to_owned(), kind: None });
        let asked = self.questions.hold(&tool, asking, reply);
        assert_eq!(asked.tool_use_id.as_deref(), Some(call.as_str()));
        self.held.push(Held {
            agent,
            call,
            reply: Some(asked.reply),
            handed_over,
            hook,
            retired_silently: false,
            over: false,
        });
    }

    /// Those are over: whatever was handed over by now was; nothing may be from here on.
    fn note(&mut self, _moved: &[Moved], over: impl Fn(&Held) -> bool) {
        for held in self.held.iter_mut().filter(|held| !held.over && over(held)) {
            held.over = true;
            held.retired_silently = matches!(
                held.handed_over.try_recv(),
                Err(oneshot::error::TryRecvError::Empty | oneshot::error::TryRecvError::Closed)
            );
        }
    }

    /// Lets everything move that can.
    fn run(&mut self) {
        while self.questions.next().now_or_never().is_some() {}
    }
}

#[derive(Debug, Clone)]
enum Step {
    Ask(usize),
    Answer(usize),
    Drop(usize),
    HookEnds(usize),
    Settled(usize),
    Typed,
    TurnOver,
    SessionOver,
    Run,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let which = 0..8_usize;
    let step = prop_oneof![
        3 => (0..AGENTS.len()).prop_map(Step::Ask),
        3 => which.clone().prop_map(Step::Answer),
        1 => which.clone().prop_map(Step::Drop),
        1 => which.clone().prop_map(Step::HookEnds),
        2 => which.prop_map(Step::Settled),
        1 => Just(Step::Typed),
        1 => Just(Step::TurnOver),
        1 => Just(Step::SessionOver),
        4 => Just(Step::Run),
    ];
    prop::collection::vec(step, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever races with an answer: once a question is over nothing is handed over any more, and a
    /// verdict that is handed over is the one that was given.
    #[test]
    fn no_verdict_follows_a_retirement(steps in steps()) {
        let mut rig = Rig::new();
        for step in steps {
            match step {
                Step::Ask(agent) => rig.ask(AGENTS[agent]),
                Step::Answer(at) => {
                    if let Some(reply) = rig.held.get_mut(at).and_then(|held| held.reply.take()) {
                        let _ = reply.send(Verdict::Allow { updated_input: None });
                    }
                }
                Step::Drop(at) => {
                    if let Some(held) = rig.held.get_mut(at) {
                        held.reply = None;
                    }
                }
                Step::HookEnds(at) => {
                    if let Some(held) = rig.held.get_mut(at) {
                        held.hook.cancel();
                        if !held.over {
                            held.over = true;
                            held.retired_silently = held.handed_over.try_recv().is_err();
                        }
                    }
                }
                Step::Settled(at) => {
                    if let Some(call) = rig.held.get(at).map(|held| held.call.clone()) {
                        let moved = rig.questions.settled(&call);
                        rig.note(&moved, |held| held.call == call);
                    }
                }
                Step::Typed => {
                    let moved = rig.questions.yield_to_terminal();
                    rig.note(&moved, |_| true);
                }
                Step::TurnOver => {
                    let moved = rig.questions.turn_over(|agent| agent == "background");
                    rig.note(&moved, |held| held.agent != Some("background"));
                }
                Step::SessionOver => {
                    let moved = rig.questions.all_settled();
                    rig.note(&moved, |_| true);
                }
                Step::Run => rig.run(),
            }
        }
        rig.run();
        for held in &mut rig.held {
            let verdict = held.handed_over.try_recv().ok();
            if held.retired_silently {
                prop_assert_eq!(verdict, None, "{} was over", held.call);
            }
        }
    }
}

#[test]
fn a_person_at_the_terminal_takes_the_question_before_their_first_key() {
    let mut rig = Rig::new();
    rig.ask(None);
    let reply = rig.held[0].reply.take().unwrap();
    // The answer is on its way, and the person begins to type.
    reply.send(Verdict::Allow { updated_input: None }).unwrap();
    let moved = rig.questions.yield_to_terminal();
    assert_eq!(moved, [Moved::Retired(Some("call 0".into()))]);
    rig.run();
    assert!(rig.held[0].handed_over.try_recv().is_err());
    // Its dialog stands until it is settled there.
    assert_eq!(rig.questions.ids(), ["call 0"]);
    assert_eq!(rig.questions.settled("call 0"), [Moved::Settled(AskedBy::Turn)]);
}

#[test]
fn another_tools_end_settles_nothing() {
    let mut rig = Rig::new();
    rig.ask(None);
    assert_eq!(rig.questions.settled("another"), []);
    let reply = rig.held[0].reply.take().unwrap();
    reply.send(Verdict::Allow { updated_input: None }).unwrap();
    rig.run();
    assert_eq!(rig.held[0].handed_over.try_recv().ok().as_deref(), Some(ALLOW));
}

#[test]
fn the_next_question_of_the_same_asker_takes_the_place_of_its_last_one() {
    let mut rig = Rig::new();
    rig.ask(Some("background"));
    rig.ask(None);
    rig.ask(None);
    let answers: Vec<_> = rig.held.iter_mut().map(|held| held.reply.take().unwrap()).collect();
    for reply in answers {
        let _ = reply.send(Verdict::Allow { updated_input: None });
    }
    rig.run();
    let got: Vec<bool> =
        rig.held.iter_mut().map(|held| held.handed_over.try_recv().is_ok()).collect();
    assert_eq!(got, [true, false, true]);
}

const ALLOW: &str = r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}"#;
