use std::collections::HashMap;

use proptest::prelude::*;

use super::super::request::{Question, QuestionAnswer};
use super::super::{PermissionLevel, PermissionMode};
use super::*;
use crate::tools::Grant;
use PermissionPromptDecision::{AllowForSession, AllowInput, AllowOnce, Deny};

const NO: PermissionPromptDecision = Deny { reason: None };

fn asker(worker: u8) -> Asker {
    Asker { worker: Some(format!("w{worker}")), ..Asker::default() }
}

fn request(id: u64, worker: u8) -> PermissionRequest {
    let input = format!("input {id}");
    PermissionRequest {
        id: RequestId(id),
        kind: RequestKind::Tool { editable: true },
        asker: asker(worker),
        tool_use_id: String::new(),
        tool_name: "Bash".into(),
        digest: Digest::of(&input),
        input,
        expires: None,
        current_mode: PermissionMode::Prompt,
        required: PermissionLevel::DangerFullAccess,
        reason: None,
        preview: None,
        grant: Grant { key: String::new(), words: String::new() },
    }
}

struct Rig {
    store: Store,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        Self { store: Store::default(), now: Instant::now() }
    }

    fn ask(&mut self, request: &PermissionRequest) {
        assert!(self.store.ask(self.now, request).0);
    }

    fn answer(
        &mut self,
        request: &PermissionRequest,
        client: &str,
        decision: PermissionPromptDecision,
    ) -> Result<PermissionPromptDecision, AnswerError> {
        let (asker, digest) = (&request.asker, &request.digest);
        let answer = Answer { id: request.id, asker, digest, client, decision };
        self.store.answer(self.now, &answer)
    }
}

#[test]
fn the_first_answer_counts_and_the_others_hear_who_gave_it() {
    let mut rig = Rig::new();
    let asked = request(1, 1);
    rig.ask(&asked);
    assert_eq!(rig.answer(&asked, "a", AllowOnce), Ok(AllowOnce));
    assert_eq!(rig.answer(&asked, "a", AllowOnce), Ok(AllowOnce), "a lost reply is asked again");
    let taken = AnswerError::AlreadyAnswered { by: "a".into(), at: rig.now, decision: AllowOnce };
    assert_eq!(rig.answer(&asked, "b", AllowOnce), Err(taken.clone()));
    assert_eq!(rig.answer(&asked, "a", NO), Err(taken), "nobody changes their mind");
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let mut rig = Rig::new();
    let asked = request(1, 1);
    rig.ask(&asked);
    let before = rig.store.last_change();
    assert_eq!(rig.answer(&request(2, 1), "a", AllowOnce), Err(AnswerError::Unknown));
    let stranger = PermissionRequest { asker: asker(2), ..asked.clone() };
    assert_eq!(rig.answer(&stranger, "a", AllowOnce), Err(AnswerError::OtherAsker));
    let other = PermissionRequest { digest: Digest::of("other"), ..asked.clone() };
    assert_eq!(rig.answer(&other, "a", AllowOnce), Err(AnswerError::OtherInput));
    let answers = PermissionPromptDecision::Answers(Vec::new());
    assert_eq!(rig.answer(&asked, "a", answers), Err(AnswerError::NotOffered));
    assert_eq!(rig.store.last_change(), before);
    assert_eq!(rig.answer(&asked, "a", AllowOnce), Ok(AllowOnce));
}

#[test]
fn only_what_is_offered_is_taken() {
    let question = |text: &str| Question {
        question: text.into(),
        header: String::new(),
        options: Vec::new(),
        multi_select: false,
    };
    let answer = |text: &str| QuestionAnswer { question: text.into(), answer: "so".into() };
    let answers = |texts: &[&str]| {
        PermissionPromptDecision::Answers(texts.iter().map(|text| answer(text)).collect())
    };
    let input = || AllowInput { input: "{}".into() };
    let plan = || PermissionPromptDecision::ApprovePlan { text: "1.".into() };
    let questions = RequestKind::Questions(vec![question("which"), question("how")]);
    let always_asked = Some("protected".to_owned());
    for (kind, reason, decision, fits) in [
        (RequestKind::Tool { editable: true }, None, AllowForSession, true),
        (RequestKind::Tool { editable: true }, always_asked, AllowForSession, false),
        (RequestKind::Tool { editable: true }, None, input(), true),
        (RequestKind::Tool { editable: false }, None, input(), false),
        (RequestKind::Tool { editable: true }, None, plan(), false),
        (RequestKind::TrustFolder, None, AllowOnce, true),
        (RequestKind::TrustFolder, None, AllowForSession, false),
        (questions.clone(), None, AllowOnce, false),
        (questions.clone(), None, answers(&["which", "how"]), true),
        (questions.clone(), None, answers(&["which"]), false),
        (questions.clone(), None, answers(&["how", "which"]), false),
        (questions, None, NO, true),
        (RequestKind::Plan { text: "1.".into() }, None, plan(), true),
        (RequestKind::Plan { text: "1.".into() }, None, AllowOnce, false),
    ] {
        let mut rig = Rig::new();
        let asked = PermissionRequest { kind, reason, ..request(1, 1) };
        rig.ask(&asked);
        let expected = if fits { Ok(decision.clone()) } else { Err(AnswerError::NotOffered) };
        assert_eq!(rig.answer(&asked, "a", decision), expected, "{asked:?}");
    }
}

#[test]
fn a_deadline_is_exact_even_when_nobody_looked_at_the_clock() {
    let mut rig = Rig::new();
    let expires = Some(rig.now + Duration::from_secs(10));
    let (first, second) = (
        PermissionRequest { expires, ..request(1, 1) },
        PermissionRequest { expires, ..request(2, 2) },
    );
    rig.ask(&first);
    rig.ask(&second);
    rig.now += Duration::from_millis(9_999);
    assert_eq!(rig.answer(&first, "a", AllowOnce), Ok(AllowOnce));
    rig.now += Duration::from_millis(1);
    let gone = AnswerError::Gone(RetiredReason::Expired);
    assert_eq!(rig.answer(&second, "a", AllowOnce), Err(gone));
    assert_eq!(rig.store.pending(), []);
}

#[test]
fn history_is_bounded_in_number_and_age() {
    let mut rig = Rig::new();
    let all: Vec<_> = (0..300).map(|id| request(id, 1)).collect();
    for asked in &all {
        rig.ask(asked);
        assert_eq!(rig.answer(asked, "a", AllowOnce), Ok(AllowOnce));
    }
    assert_eq!(rig.answer(&all[43], "a", AllowOnce), Err(AnswerError::Unknown));
    assert_eq!(rig.answer(&all[44], "a", AllowOnce), Ok(AllowOnce));
    rig.now += REMEMBERED_FOR;
    assert_eq!(rig.answer(&all[299], "a", AllowOnce), Err(AnswerError::Unknown));
    assert!(rig.store.changes_since(0).is_some());
    for id in 1000..2000 {
        rig.ask(&request(id, 1));
    }
    assert!(rig.store.changes_since(0).is_none(), "it says that it cannot");
    let last = rig.store.last_change();
    assert_eq!(rig.store.changes_since(last).map(Iterator::count), Some(0));
    assert!(rig.store.changes_since(last + 1).is_none());
}

#[test]
fn no_more_than_a_bounded_number_waits() {
    let mut rig = Rig::new();
    for id in 0..u64::try_from(MOST).unwrap() {
        rig.ask(&PermissionRequest { asker: Asker::default(), ..request(id, 1) });
    }
    let one_more = PermissionRequest { asker: Asker::default(), ..request(999, 1) };
    assert!(!rig.store.ask(rig.now, &one_more).0);
    assert_eq!(rig.store.pending().len(), MOST);
}

#[test]
fn another_store_knows_nothing_of_it() {
    let mut rig = Rig::new();
    let asked = request(1, 1);
    rig.ask(&asked);
    let mut after_restart = Rig::new();
    assert_eq!(after_restart.answer(&asked, "a", AllowOnce), Err(AnswerError::Unknown));
    let next = request(2, 1);
    after_restart.ask(&next);
    assert_eq!(after_restart.answer(&next, "a", NO), Ok(NO));
}

/// What may happen to a few questions of a few askers.
#[derive(Debug, Clone)]
enum Step {
    Ask { id: u64, worker: u8, lasts: Option<u64> },
    Answer { id: u64, worker: u8, client: u8, yes: bool },
    Retire { id: u64 },
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..12_u64, 0..3_u8, prop::option::of(1..5_u64))
            .prop_map(|(id, worker, lasts)| Step::Ask { id, worker, lasts }),
        (0..12_u64, 0..3_u8, 0..2_u8, any::<bool>())
            .prop_map(|(id, worker, client, yes)| { Step::Answer { id, worker, client, yes } }),
        (0..12_u64).prop_map(|id| Step::Retire { id }),
        (0..3_u64).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    /// In whatever order things come: each question has one outcome, each change of the store is one
    /// numbered step, and the steps replayed from any point give what waits.
    #[test]
    fn every_question_has_one_outcome_and_every_change_is_told_once(steps in steps()) {
        let mut rig = Rig::new();
        let mut asked: HashMap<u64, PermissionRequest> = HashMap::new();
        let mut accepted: HashMap<u64, (u8, bool)> = HashMap::new();
        for step in steps {
            let before = rig.store.last_change();
            match step {
                Step::Ask { id, worker, lasts } => {
                    if asked.contains_key(&id) {
                        continue;
                    }
                    let expires = lasts.map(|lasts| rig.now + Duration::from_secs(lasts));
                    let one = PermissionRequest { expires, ..request(id, worker) };
                    rig.ask(&one);
                    asked.insert(id, one);
                    let of_worker = |one: &&Pending| one.asker == asker(worker);
                    prop_assert_eq!(rig.store.pending().iter().filter(of_worker).count(), 1);
                }
                Step::Answer { id, worker, client, yes } => {
                    let Some(one) = asked.get(&id) else { continue };
                    let one = PermissionRequest { asker: asker(worker), ..one.clone() };
                    let decision = if yes { AllowOnce } else { NO };
                    let name = format!("client {client}");
                    let outcome = rig.answer(&one, &name, decision.clone());
                    match (outcome, accepted.get(&id)) {
                        (Ok(taken), None) => {
                            prop_assert_eq!(taken, decision);
                            prop_assert_eq!(&asked[&id].asker, &asker(worker));
                            prop_assert!(asked[&id].expires.is_none_or(|at| at > rig.now));
                            accepted.insert(id, (client, yes));
                        }
                        (Ok(_), Some(first)) => prop_assert_eq!(*first, (client, yes)),
                        (Err(AnswerError::AlreadyAnswered { by, .. }), Some((first, _))) => {
                            prop_assert_eq!(by, format!("client {first}"));
                        }
                        (Err(error), None) => {
                            let other = matches!(error, AnswerError::OtherAsker | AnswerError::Gone(_));
                            prop_assert!(other, "{error:?}");
                        }
                        (Err(error), Some(_)) => prop_assert!(false, "{error:?}"),
                    }
                }
                Step::Retire { id } => {
                    rig.store.retire(rig.now, RequestId(id), RetiredReason::Cancelled);
                }
                Step::Pass(seconds) => {
                    rig.now += Duration::from_secs(seconds);
                    rig.store.expire(rig.now);
                }
            }
            prop_assert!(rig.store.last_change() - before <= 13);
        }
        let mut waiting: Vec<RequestId> = Vec::new();
        for (at, change) in rig.store.changes_since(0).unwrap().enumerate() {
            prop_assert_eq!(change.number, at as u64 + 1);
            match change.what {
                What::Asked => waiting.push(change.id),
                What::Answered | What::Retired(_) => {
                    let known = waiting.iter().position(|id| *id == change.id);
                    prop_assert!(known.is_some(), "{change:?} of one that does not wait");
                    waiting.remove(known.unwrap());
                }
            }
        }
        let pending: Vec<RequestId> = rig.store.pending().iter().map(|one| one.id).collect();
        prop_assert_eq!(waiting, pending);
    }
}
