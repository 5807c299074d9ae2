//! The machine behind the lines, without a process and with a clock of its own.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use tokio::sync::oneshot;

use super::scripted::{OPENED, SESSION, said};
use crate::error::WorkerError;
use crate::event::{SteerError, TurnEnd, Verdict, WorkerEvent};
use crate::fact::{DeniedBy, Fact, FailureKind, PromptSource};
use crate::stream::codec::Decoder;
use crate::stream::process::NotTaken;
use crate::stream::turns::{Step, Turns, Why};
use crate::timings::Timings;
use crate::worker::Order;

struct Bench {
    turns: Turns,
    decoder: Decoder,
    now: Instant,
    steps: Vec<Step>,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        let turns = Turns::new(Timings::default(), SESSION.to_owned(), "2.1.332".to_owned(), now);
        let mut bench = Self { turns, decoder: Decoder::default(), now, steps: Vec::new() };
        bench.say(OPENED);
        bench.steps.clear();
        bench
    }

    fn say(&mut self, line: &str) {
        self.turns.message(self.now, self.decoder.decode(line).unwrap());
        self.steps.extend(self.turns.steps());
    }

    fn order(&mut self, order: Order) {
        self.turns.order(self.now, order);
        self.steps.extend(self.turns.steps());
    }

    fn submit(&mut self, text: &str) -> oneshot::Receiver<Result<(), WorkerError>> {
        let (taken, answer) = oneshot::channel();
        self.order(Order::Submit { text: text.to_owned(), taken });
        answer
    }

    fn steer(&mut self, text: &str) -> oneshot::Receiver<Result<(), SteerError>> {
        let (taken, answer) = oneshot::channel();
        self.order(Order::Steer { text: text.to_owned(), taken });
        answer
    }

    /// Lets the time pass up to the next deadline.
    fn wait(&mut self) {
        self.now = self.turns.deadline().expect("nothing is waited for");
        self.turns.tick(self.now);
        self.steps.extend(self.turns.steps());
    }

    /// What was done since the last look, in short.
    fn seen(&mut self) -> Vec<String> {
        self.steps.drain(..).filter_map(|step| short(&step)).collect()
    }

    fn ours(&mut self, prompt: &str, reply: &str) {
        for line in
            [said::init(), said::replay(prompt), said::text(reply, reply), said::result(reply)]
        {
            self.say(&line);
        }
    }
}

fn short(step: &Step) -> Option<String> {
    Some(match step {
        Step::Write { why, .. } => format!("write {why:?}"),
        Step::Ask { request_id, .. } => format!("ask {request_id}"),
        Step::GiveUp(error) => format!("give up: {error}"),
        Step::Tell(WorkerEvent::Fact { fact: Fact::Block { message, .. }, unasked }) => {
            format!("{}says {message}", if *unasked { "unasked " } else { "" })
        }
        Step::Tell(WorkerEvent::Fact { fact: Fact::Prompt { text, source, .. }, .. }) => {
            format!("prompt {source:?} {text}")
        }
        Step::Forget { .. } | Step::Tell(WorkerEvent::Fact { .. }) => return None,
        Step::Tell(WorkerEvent::TurnEnded { end, unasked }) => {
            let end = match end {
                TurnEnd::Completed { last_message } => last_message.clone().unwrap_or_default(),
                TurnEnd::Failed(fact) => match &**fact {
                    Fact::ApiFailure { kind, .. } => format!("failed {kind:?}"),
                    other => format!("{other:?}"),
                },
                other => format!("{other:?}"),
            };
            format!("{}end: {end}", if *unasked { "unasked " } else { "" })
        }
        Step::Tell(WorkerEvent::UnaskedBegan { text }) => format!("unasked began {text}"),
        Step::Tell(WorkerEvent::AskedRetired { .. }) => "retired".to_owned(),
        Step::Tell(event) => format!("{event:?}").split(' ').next().unwrap_or_default().to_owned(),
    })
}

#[test]
fn a_prompt_is_delivered_with_evidence_and_ends_once() {
    let mut bench = Bench::new();
    let mut taken = bench.submit("hi");
    assert_eq!(bench.seen(), ["write Prompt"]);
    assert!(taken.try_recv().is_err(), "nothing shows yet that it was taken");
    bench.ours("hi", "Hello.");
    assert!(taken.try_recv().unwrap().is_ok());
    assert_eq!(bench.seen(), ["Delivered", "says Hello.", "end: Hello."]);
    bench.say(&said::init());
    assert_eq!(bench.seen(), ["unasked began "], "what follows is not ours");
}

#[test]
fn a_prompt_that_is_not_confirmed_is_not_said_to_be_delivered() {
    let mut bench = Bench::new();
    let mut taken = bench.submit("hi");
    bench.wait();
    assert!(matches!(taken.try_recv(), Ok(Err(WorkerError::Unconfirmed(_)))));
    bench.ours("hi", "Late.");
    assert_eq!(bench.seen().last().unwrap(), "unasked end: Late.");
}

#[test]
fn commands_of_the_cli_are_refused_as_prompts() {
    let mut bench = Bench::new();
    assert!(matches!(bench.submit("/clear").try_recv(), Ok(Err(WorkerError::RefusedPrompt(_)))));
    assert!(bench.submit("/tmp/x is a path").try_recv().is_err(), "a path is no command");
}

#[test]
fn a_turn_nobody_asked_for_is_never_our_reply() {
    let mut bench = Bench::new();
    bench.say(&said::agent_started());
    bench.say(&said::agent_done());
    // It begins just before our prompt is read.
    let mut taken = bench.submit("hi");
    bench.say(&said::init());
    bench.say(&said::text("Foreign.", "Foreign."));
    bench.say(&said::result("Foreign."));
    assert!(taken.try_recv().is_err());
    bench.ours("hi", "Ours.");
    assert!(taken.try_recv().unwrap().is_ok());
    assert_eq!(
        bench.seen(),
        [
            "write Prompt",
            "unasked began Agent \"Small job\" finished",
            "unasked says Foreign.",
            "unasked end: Foreign.",
            "Delivered",
            "says Ours.",
            "end: Ours.",
        ]
    );
}

#[test]
fn a_prompt_waits_for_the_end_of_a_turn_nobody_asked_for() {
    let mut bench = Bench::new();
    bench.say(&said::init());
    let mut taken = bench.submit("hi");
    assert_eq!(bench.seen(), ["unasked began "]);
    bench.say(&said::result("Foreign."));
    assert_eq!(bench.seen(), ["unasked end: Foreign.", "write Prompt"]);
    bench.ours("hi", "Ours.");
    assert!(taken.try_recv().unwrap().is_ok());
}

#[test]
fn an_interrupt_ends_the_turn_once_and_is_nothing_when_idle() {
    let mut bench = Bench::new();
    bench.order(Order::Interrupt);
    assert!(bench.seen().is_empty());
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    bench.order(Order::Interrupt);
    bench.order(Order::Interrupt);
    bench.say(&said::broken());
    assert_eq!(bench.seen(), ["write Prompt", "Delivered", "write Interrupt", "end: Interrupted"]);
}

#[test]
fn an_interrupt_that_is_not_obeyed_ends_in_time_and_its_late_end_is_nobodys() {
    let mut bench = Bench::new();
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    bench.order(Order::Interrupt);
    bench.wait();
    assert_eq!(bench.seen().last().unwrap(), "end: Interrupted");
    let mut next = bench.submit("again");
    assert!(bench.seen().is_empty(), "not before the old turn is over");
    bench.say(&said::broken());
    assert_eq!(bench.seen(), ["write Prompt"]);
    bench.ours("again", "Yes.");
    assert!(next.try_recv().unwrap().is_ok());
    assert_eq!(bench.seen().last().unwrap(), "end: Yes.");
}

#[test]
fn a_prompt_behind_a_turn_that_never_ends_is_refused_in_time() {
    let mut bench = Bench::new();
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    bench.order(Order::Interrupt);
    bench.wait();
    bench.seen();
    let mut next = bench.submit("again");
    bench.wait();
    assert!(matches!(next.try_recv(), Ok(Err(WorkerError::RefusedPrompt(_)))));
    assert!(bench.seen().is_empty(), "nothing was written");
}

#[test]
fn a_steered_prompt_is_taken_when_it_is_echoed() {
    let mut bench = Bench::new();
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    let mut steered = bench.steer("and quickly");
    assert!(steered.try_recv().is_err(), "pending until it is absorbed");
    bench.say(&said::replay("and quickly"));
    assert_eq!(steered.try_recv(), Ok(Ok(())));
    bench.say(&said::result("Done."));
    assert_eq!(bench.seen()[2..], ["write Steer(1)", "prompt Queued and quickly", "end: Done."]);
}

#[test]
fn a_steered_prompt_that_becomes_the_next_turn_belongs_to_the_same_one() {
    let mut bench = Bench::new();
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    let mut steered = bench.steer("more");
    bench.say(&said::result("First."));
    assert!(!bench.seen().iter().any(|seen| seen.starts_with("end")), "it is followed");
    bench.ours("more", "Second.");
    assert_eq!(steered.try_recv(), Ok(Ok(())));
    assert_eq!(bench.seen(), ["prompt Queued more", "says Second.", "end: Second."]);
}

#[test]
fn a_steered_prompt_of_which_nothing_is_seen_is_uncertain_and_the_turn_keeps_its_end() {
    let mut bench = Bench::new();
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    let mut steered = bench.steer("more");
    bench.say(&said::result("First."));
    bench.wait();
    assert_eq!(steered.try_recv(), Ok(Err(SteerError::Uncertain)));
    assert_eq!(bench.seen().last().unwrap(), "end: First.");
    let mut idle = bench.steer("x");
    assert!(matches!(idle.try_recv(), Ok(Err(SteerError::Refused(_)))));
}

#[test]
fn steering_refuses_what_nobody_means() {
    let mut bench = Bench::new();
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    bench.seen();
    for text in ["/clear", "a\0b", "\u{1b}[31mred", ""] {
        let mut steered = bench.steer(text);
        assert!(matches!(steered.try_recv(), Ok(Err(SteerError::Refused(_)))), "{text:?}");
    }
    assert!(bench.seen().is_empty(), "nothing was written");
    // Nor what would be the next turn, after one that is being stopped.
    bench.order(Order::Interrupt);
    bench.seen();
    let mut steered = bench.steer("instead");
    assert!(matches!(steered.try_recv(), Ok(Err(SteerError::Refused(_)))));
    assert!(bench.seen().is_empty(), "nothing was written");
}

#[test]
fn a_steered_prompt_that_is_not_read_says_how_much_was_accepted() {
    let mut bench = Bench::new();
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    let mut steered = bench.steer("more");
    bench.turns.written(
        bench.now,
        Why::Steer(1),
        Err(NotTaken { accepted: 4096, total: 70_000, closed: false }),
    );
    let Ok(Err(SteerError::Refused(reason))) = steered.try_recv() else { panic!() };
    assert!(reason.contains("4096 of 70000"), "{reason}");
    let mut second = bench.steer("again");
    assert!(matches!(second.try_recv(), Ok(Err(SteerError::Refused(_)))), "nothing may follow");
    bench.ours("hi", "Done.");
    let seen = bench.seen();
    assert_eq!(seen[seen.len() - 2], "end: Done.", "the turn went on: {seen:?}");
    assert!(seen[seen.len() - 1].starts_with("give up"), "{seen:?}");
}

#[test]
fn a_prompt_that_meets_a_closed_input_cannot_have_run() {
    for closed in [false, true] {
        let mut bench = Bench::new();
        let _taken = bench.submit("hi");
        assert!(bench.turns.may_have_run());
        let outcome =
            if closed { Err(NotTaken { accepted: 0, total: 70, closed }) } else { Ok(()) };
        bench.turns.written(bench.now, Why::Prompt, outcome);
        assert_eq!(bench.turns.may_have_run(), !closed);
    }
}

#[test]
fn a_compaction_ends_as_one_and_waits_for_its_turn() {
    let mut bench = Bench::new();
    bench.say(&said::init());
    bench.order(Order::Compact);
    bench.order(Order::Compact);
    bench.say(&said::result("Foreign."));
    bench.say(r#"{"type":"system","subtype":"status","status":"compacting"}"#);
    bench.say(r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"manual","pre_tokens":10,"post_tokens":3}}"#);
    bench.say(&said::result(""));
    assert_eq!(
        bench.seen(),
        ["unasked began ", "unasked end: Foreign.", "write Compact", "end: Compacted"]
    );
    bench.order(Order::Compact);
    bench.say(&said::init());
    bench.say(&said::result("Not enough messages to compact."));
    assert_eq!(bench.seen(), ["write Compact", "end: failed Unknown(\"not_compacted\")"]);
}

#[test]
fn a_compaction_that_takes_too_long_ends() {
    let mut bench = Bench::new();
    bench.order(Order::Compact);
    bench.wait();
    assert_eq!(bench.seen(), ["write Compact", "end: failed Unknown(\"compaction_timed_out\")"]);
}

#[test]
fn each_failure_ends_the_turn_with_its_own_reason() {
    let failed = |status: u16| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":{status},"result":"API Error"}}"#
        )
    };
    let ends = [
        (failed(401), format!("end: failed {:?}", FailureKind::Authentication)),
        (failed(429), format!("end: failed {:?}", FailureKind::RateLimit)),
        (failed(529), format!("end: failed {:?}", FailureKind::Server)),
        (said::broken(), "end: failed Unknown(\"error_during_execution\")".to_owned()),
    ];
    for (line, expected) in ends {
        let mut bench = Bench::new();
        let _taken = bench.submit("hi");
        bench.say(&said::init());
        bench.say(&line);
        let ends: Vec<String> =
            bench.seen().into_iter().filter(|seen| seen.contains("end")).collect();
        assert_eq!(ends, [expected]);
    }
}

#[test]
fn a_quota_warning_ends_nothing() {
    let mut bench = Bench::new();
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    for status in ["allowed", "allowed_warning", "rejected"] {
        bench.say(&format!(
            r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"{status}"}}}}"#
        ));
    }
    assert!(!bench.seen().iter().any(|seen| seen.contains("end")));
    bench.ours("hi", "Fine.");
    assert_eq!(bench.seen().last().unwrap(), "end: Fine.");
}

#[test]
fn a_turn_without_a_sign_of_life_is_given_up_but_not_while_a_question_is_open() {
    let mut bench = Bench::new();
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    bench.say(&said::question("r1", "t1"));
    bench.wait();
    let seen = bench.seen();
    assert_eq!(seen[seen.len() - 1], "write Answer", "the question is denied first: {seen:?}");
    bench.wait();
    assert!(bench.seen().last().unwrap().starts_with("give up: Claude Code showed no sign"));
}

#[test]
fn an_answer_goes_to_its_own_question_once() {
    let mut bench = Bench::new();
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    bench.say(&said::question("r1", "t1"));
    bench.seen();
    let allow = || Some(Verdict::Allow { updated_input: None });
    bench.turns.answered(bench.now, "unknown", allow());
    assert!(bench.turns.steps().is_empty(), "an answer to no question is nothing");
    bench.turns.answered(bench.now, "r1", allow());
    bench.turns.answered(
        bench.now,
        "r1",
        Some(Verdict::Deny { message: "no".to_owned(), interrupt: false }),
    );
    let written: Vec<String> = bench
        .turns
        .steps()
        .into_iter()
        .filter_map(|step| match step {
            Step::Write { line, .. } => Some(line),
            _ => None,
        })
        .collect();
    assert_eq!(written.len(), 1);
    assert!(
        written[0].contains(r#""behavior":"allow""#) && written[0].contains("\"command\":\"ls\"")
    );
}

#[test]
fn questions_that_are_settled_elsewhere_are_retired() {
    let result = r#"{"type":"user","parent_tool_use_id":null,"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#;
    let withdrawn = r#"{"type":"control_cancel_request","request_id":"r1"}"#;
    for settled in [result.to_owned(), withdrawn.to_owned(), said::result("Done.")] {
        let mut bench = Bench::new();
        let _taken = bench.submit("hi");
        bench.say(&said::init());
        bench.say(&said::question("r1", "t1"));
        bench.say(&settled);
        assert!(bench.seen().contains(&"retired".to_owned()), "{settled}");
        bench.turns.answered(bench.now, "r1", None);
        assert!(bench.turns.steps().is_empty(), "nothing is answered any more");
    }
}

#[test]
fn what_we_denied_is_known_to_be_denied() {
    let mut bench = Bench::new();
    let _taken = bench.submit("hi");
    bench.say(&said::init());
    bench.say(&said::question("r1", "t1"));
    bench.turns.answered(bench.now, "r1", None);
    bench.say(r#"{"type":"user","parent_tool_use_id":null,"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"no","is_error":true}]}}"#);
    let told = bench.steps.iter().any(|step| {
        let Step::Tell(WorkerEvent::Fact { fact, .. }) = step else { return false };
        matches!(fact, Fact::ToolResult { denied: Some(DeniedBy::Person), .. })
    });
    assert!(told);
}

/// A random life: turns that nobody asked for between, before and behind our prompts.
fn lives() -> impl Strategy<Value = Vec<(bool, bool)>> {
    proptest::collection::vec((any::<bool>(), any::<bool>()), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_reply_is_ours_however_turns_mix(life in lives()) {
        let mut bench = Bench::new();
        bench.say(&said::agent_started());
        let mut asked = Vec::new();
        for (number, (foreign, raced)) in life.iter().enumerate() {
            let prompt = format!("prompt {number}");
            let foreign_turn = |bench: &mut Bench| {
                bench.say(&said::agent_started());
                bench.say(&said::agent_done());
                bench.say(&said::init());
            };
            if *foreign && !raced {
                foreign_turn(&mut bench);
            }
            let mut taken = bench.submit(&prompt);
            if *foreign && *raced {
                foreign_turn(&mut bench);
            }
            if *foreign {
                bench.say(&said::text("foreign", "foreign"));
                bench.say(&said::result("foreign"));
            }
            let reply = format!("reply {number}");
            bench.ours(&prompt, &reply);
            prop_assert!(matches!(taken.try_recv(), Ok(Ok(()))));
            asked.push(format!("end: {reply}"));
        }
        let seen = bench.seen();
        let ends: Vec<String> = seen.iter().filter(|seen| seen.starts_with("end")).cloned().collect();
        prop_assert_eq!(ends, asked);
        let unasked = seen.iter().filter(|seen| seen.starts_with("unasked end")).count();
        prop_assert_eq!(unasked, life.iter().filter(|(foreign, _)| *foreign).count());
    }
}

#[test]
fn a_deadline_is_always_ahead_or_met() {
    let mut bench = Bench::new();
    assert_eq!(bench.turns.deadline(), None, "an idle worker waits for nothing");
    let _taken = bench.submit("hi");
    let first = bench.turns.deadline().unwrap();
    assert!(first > bench.now && first <= bench.now + Duration::from_mins(1));
    let source = PromptSource::Queued;
    bench.turns.message(
        bench.now,
        crate::stream::codec::StreamMessage::Facts(vec![Fact::Prompt {
            prompt_id: None,
            text: String::new(),
            source,
        }]),
    );
    assert_eq!(bench.turns.deadline(), Some(first));
}
