use super::super::RequestKind;
use super::super::{PermissionLevel, PermissionMode};
use super::*;
use crate::tools::Grant;
use PermissionPromptDecision::{AllowOnce, Deny};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

struct Told(UnboundedSender<TuiEvent>);

impl StreamSink for Told {
    fn emit(&self, event: TuiEvent) {
        let _ = self.0.send(event);
    }
}

fn approvals() -> (Approvals, UnboundedReceiver<TuiEvent>) {
    let (sender, told) = unbounded_channel();
    (Approvals::new(Arc::new(Told(sender))), told)
}

fn request(worker: Option<&str>) -> PermissionRequest {
    let input = r#"{"command":"ls"}"#;
    PermissionRequest {
        id: RequestId::next(),
        kind: RequestKind::Tool { editable: true },
        asker: Asker { worker: worker.map(str::to_owned), ..Asker::default() },
        tool_use_id: String::new(),
        tool_name: "bash".into(),
        input: input.into(),
        digest: Digest::of(input),
        expires: None,
        current_mode: PermissionMode::WorkspaceWrite,
        required: PermissionLevel::DangerFullAccess,
        reason: None,
        preview: None,
        grant: Grant { key: "k".into(), words: "w".into() },
    }
}

fn required(event: TuiEvent) -> (PermissionRequest, PermissionReply) {
    match event {
        TuiEvent::PermissionRequired { request, reply } => (request, reply),
        other => panic!("{other:?}"),
    }
}

fn retired(event: &TuiEvent) -> RetiredReason {
    match event {
        TuiEvent::PermissionRetired { reason, .. } => *reason,
        other => panic!("{other:?}"),
    }
}

fn why(decision: PermissionPromptDecision) -> String {
    match decision {
        Deny { reason: Some(reason) } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_answer_reaches_whoever_asked_and_counts_once() {
    let (approvals, mut told) = approvals();
    let cancel = CancellationToken::new();
    let question = request(None);
    let (id, asker, digest) = (question.id, question.asker.clone(), question.digest.clone());
    let decide = approvals.decide(question, &cancel);
    let person = async {
        let (_, reply) = required(told.recv().await.unwrap());
        assert_eq!(reply.answer(AllowOnce), Ok(()));
        let again = |client: &'static str, decision| {
            approvals.answer(&Answer { id, asker: &asker, digest: &digest, client, decision })
        };
        assert_eq!(again(FRONT_END, AllowOnce), Ok(()), "a repetition hears the same");
        let other = again("another", AllowOnce);
        assert!(matches!(other, Err(AnswerError::AlreadyAnswered { by, .. }) if by == FRONT_END));
    };
    let (decision, ()) = tokio::join!(decide, person);
    assert_eq!(decision, AllowOnce);
    assert_eq!(retired(&told.recv().await.unwrap()), RetiredReason::Answered);
    assert_eq!(approvals.look(|store| store.pending().len()), 0);
}

#[tokio::test]
async fn an_answer_inside_the_very_event_is_delivered() {
    struct AtOnce;
    impl StreamSink for AtOnce {
        fn emit(&self, event: TuiEvent) {
            if let TuiEvent::PermissionRequired { reply, .. } = event {
                assert_eq!(reply.answer(AllowOnce), Ok(()));
            }
        }
    }
    let approvals = Approvals::new(Arc::new(AtOnce));
    let cancel = CancellationToken::new();
    assert_eq!(approvals.decide(request(None), &cancel).await, AllowOnce);
}

#[tokio::test]
async fn what_nobody_can_answer_any_more_is_denied_and_says_why() {
    let (approvals, mut told) = approvals();
    let cancel = CancellationToken::new();
    // Dropped.
    let decide = approvals.decide(request(None), &cancel);
    let (decision, ()) = tokio::join!(decide, async { drop(told.recv().await) });
    assert_eq!(why(decision), "the request was dropped without an answer");
    assert_eq!(retired(&told.recv().await.unwrap()), RetiredReason::Dropped);
    // Out of time.
    let late = PermissionRequest {
        expires: Some(Instant::now() + std::time::Duration::from_millis(1)),
        ..request(None)
    };
    let decide = approvals.decide(late, &cancel);
    let (decision, reply) = tokio::join!(decide, async { required(told.recv().await.unwrap()).1 });
    assert_eq!(why(decision), "nobody answered in time");
    assert_eq!(reply.answer(AllowOnce), Err(LateAnswer));
    assert_eq!(retired(&told.recv().await.unwrap()), RetiredReason::Expired);
    // Cancelled: also an answer that comes at the same moment has no effect.
    let decide = approvals.decide(request(None), &cancel);
    let (decision, ()) = tokio::join!(decide, async {
        let (_, reply) = required(told.recv().await.unwrap());
        cancel.cancel();
        assert_eq!(reply.answer(AllowOnce), Err(LateAnswer));
    });
    assert_eq!(why(decision), "interrupted");
    assert_eq!(retired(&told.recv().await.unwrap()), RetiredReason::Cancelled);
}

#[tokio::test]
async fn whoever_asks_and_goes_away_takes_the_question_along() {
    let (approvals, mut told) = approvals();
    let cancel = CancellationToken::new();
    let mut decide = approvals.decide(request(None), &cancel);
    let reply = tokio::select! {
        _ = &mut decide => unreachable!("nobody answers"),
        event = told.recv() => required(event.unwrap()).1,
    };
    assert!(!reply.is_closed());
    drop(decide);
    assert!(reply.is_closed());
    assert_eq!(retired(&told.recv().await.unwrap()), RetiredReason::Dropped);
    assert_eq!(reply.answer(AllowOnce), Err(LateAnswer));
}

#[tokio::test]
async fn the_next_question_of_a_worker_takes_the_place_of_its_last_one() {
    let (approvals, mut told) = approvals();
    let cancel = CancellationToken::new();
    let (first, second, other) = (request(Some("a")), request(Some("a")), request(Some("b")));
    let id = second.id;
    let person = async {
        let first = required(told.recv().await.unwrap()).1;
        let second = required(told.recv().await.unwrap()).1;
        let other = required(told.recv().await.unwrap()).1;
        assert_eq!(first.answer(AllowOnce), Err(LateAnswer));
        assert_eq!(other.answer(AllowOnce), Ok(()));
        assert_eq!(second.answer(Deny { reason: None }), Ok(()));
    };
    let (first, second, other, ()) = tokio::join!(
        approvals.decide(first, &cancel),
        approvals.decide(second, &cancel),
        approvals.decide(other, &cancel),
        person,
    );
    assert!(matches!(first, Deny { .. }));
    assert_eq!((second, other), (Deny { reason: None }, AllowOnce));
    let reasons: Vec<_> =
        (0..3).map(|_| retired(&told.try_recv().expect("each is retired"))).collect();
    assert!(reasons.contains(&RetiredReason::Superseded { by: id }), "{reasons:?}");
}

#[tokio::test]
async fn a_hundred_questions_side_by_side_get_each_its_own_answer() {
    let (approvals, mut told) = approvals();
    let cancel = CancellationToken::new();
    let requests = (0..100).map(|number| {
        let mut asked = request(Some(&format!("worker {number}")));
        asked.tool_use_id = number.to_string();
        asked
    });
    let asked = requests.map(|request| approvals.decide(request, &cancel));
    let asked = futures_util::future::join_all(asked);
    let person = async {
        let mut replies = Vec::new();
        while replies.len() < 100 {
            replies.push(required(told.recv().await.unwrap()));
        }
        for (request, reply) in replies.into_iter().rev() {
            reply.answer(Deny { reason: Some(request.tool_use_id) }).unwrap();
        }
    };
    let (decisions, ()) = tokio::join!(asked, person);
    for (number, decision) in decisions.into_iter().enumerate() {
        assert_eq!(why(decision), number.to_string());
    }
}
