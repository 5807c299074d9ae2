//! What is told, and to whom.

use super::*;
use crate::fact::Quota;

/// Asks in the name of a session and an agent, answers, and waits until the client has it all.
async fn exchange(
    api: &mut Api,
    request: reqwest::RequestBuilder,
    headers: &[(&'static str, &str)],
    body: &str,
) {
    let asked = tokio::spawn(request.send());
    api.next().await.say(headers, body.to_owned()).await;
    let answer = within(asked).await.unwrap().unwrap().text();
    assert_eq!(within(answer).await.unwrap(), body);
}

#[tokio::test]
async fn two_sessions_do_not_see_each_other_and_agents_are_told_apart() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let (mut one, mut two) = (tap.watch("one"), tap.watch("two"));
    let mut also_one = tap.watch("one");
    let answer = |id: &str| format!("{}{}", began(id), ended());
    exchange(&mut api, question(&tap, "one"), SSE, &answer("msg_1")).await;
    let sub = question(&tap, "two").header("x-claude-code-agent-id", "a7");
    exchange(&mut api, sub, SSE, &answer("msg_2")).await;
    exchange(&mut api, question(&tap, "nobody"), SSE, &answer("msg_3")).await;
    for watched in [&mut one, &mut also_one] {
        assert_eq!(next(watched).await, Tapped::RequestBegan { agent: None });
        let (facts, _) = until_end(watched).await;
        let expected =
            Fact::MessageBegan { message: "msg_1".to_owned(), model: Some("m".to_owned()) };
        assert_eq!((facts.len(), &facts[0]), (2, &expected));
        assert!(watched.try_recv().is_err());
    }
    let agent = Some("a7".to_owned());
    let message = "msg_2".to_owned();
    let expected = [
        Tapped::RequestBegan { agent: agent.clone() },
        Tapped::Fact {
            agent: agent.clone(),
            fact: Box::new(Fact::MessageBegan {
                message: message.clone(),
                model: Some("m".to_owned()),
            }),
        },
        Tapped::Fact {
            agent: agent.clone(),
            fact: Box::new(Fact::MessageEnded { message, stop_reason: None }),
        },
        Tapped::RequestEnded { agent, status: Some(200) },
    ];
    for expected in expected {
        assert_eq!(next(&mut two).await, expected);
    }
    assert!(two.try_recv().is_err());
}

#[tokio::test]
async fn what_the_cli_asks_on_the_side_is_no_live_text() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let mut watched = tap.watch("s");
    let answer = format!("{}{}", began("msg_title"), text("A title"));
    let title =
        question(&tap, "s").body(r#"{"messages":[{"tools":[1]}],"tools":[],"stream":true}"#);
    exchange(&mut api, title, SSE, &answer).await;
    assert_eq!(until_end(&mut watched).await, (vec![], Some(200)));
    // Counting tokens and asking for a file are no questions at all.
    let url = format!("{}/v1/messages/count_tokens", tap.base_url());
    let count = client().post(url).header("x-claude-code-session-id", "s").body(QUESTION);
    exchange(&mut api, count, SSE, &answer).await;
    assert!(watched.try_recv().is_err());
}

#[tokio::test]
async fn failures_in_a_row_are_told_as_retries_until_an_answer_comes() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let mut watched = tap.watch("s");
    let mut told = Vec::new();
    let json = ("content-type", "application/json");
    for (agent, status) in
        [("", 529), ("", 429), ("a7", 500), ("", 200), ("", 503), ("", 400), ("a7", 529)]
    {
        let mut asked = question(&tap, "s");
        if !agent.is_empty() {
            asked = asked.header("x-claude-code-agent-id", agent);
        }
        let asked = tokio::spawn(asked.send());
        api.next().await.say_status(status, &[json, ("retry-after", "3")], "{}").await;
        assert_eq!(within(asked).await.unwrap().unwrap().status(), status);
        let (facts, ended) = until_end(&mut watched).await;
        assert_eq!(ended, Some(status));
        told.push(facts.first().map(|fact| match fact {
            Fact::Retry { attempt, wait, .. } => (*attempt, wait.as_secs()),
            other => panic!("{other:?}"),
        }));
    }
    let expected =
        [Some((1, 3)), Some((2, 3)), Some((1, 3)), None, Some((1, 3)), None, Some((2, 3))];
    assert_eq!(told, expected);
    // On the side nothing is retried that a person waits for.
    let asked = tokio::spawn(question(&tap, "s").body(r#"{"tools":[]}"#).send());
    api.next().await.say_status(529, &[json], "{}").await;
    within(asked).await.unwrap().unwrap();
    assert_eq!(until_end(&mut watched).await, (vec![], Some(529)));
}

#[tokio::test]
async fn the_state_of_the_account_is_told_when_it_changes() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let mut watched = tap.watch("s");
    let mut told = Vec::new();
    for status in ["allowed", "allowed", "allowed_warning", "allowed_warning"] {
        let headers = [
            ("anthropic-ratelimit-unified-status", status),
            ("anthropic-ratelimit-unified-reset", "1764590400"),
        ];
        exchange(&mut api, question(&tap, "s"), &headers, "{}").await;
        told.extend(until_end(&mut watched).await.0);
    }
    let quota = |status: &str| {
        let status = status.to_owned();
        Fact::Quota(Quota { status, resets_at: Some(1_764_590_400), kind: None })
    };
    assert_eq!(told, [quota("allowed"), quota("allowed_warning")]);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_passes_all_the_same() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let mut watched = tap.watch("s");
    let odd = format!("{}data: {{\"broken\n\n{}no field at all\n\n", began("msg_1"), text("on"));
    exchange(&mut api, question(&tap, "s"), SSE, &odd).await;
    assert_eq!(until_end(&mut watched).await.0.len(), 2);
}

#[tokio::test]
async fn watching_ends_with_the_receiver() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    for _ in 0..100 {
        drop(tap.watch("s"));
        drop(tap.watch(&uuid::Uuid::new_v4().to_string()));
    }
    let mut watched = tap.watch("s");
    assert_eq!(tap.watchers.count(), 1);
    exchange(&mut api, question(&tap, "s"), SSE, &began("msg_1")).await;
    assert_eq!(until_end(&mut watched).await.0.len(), 1);
}
