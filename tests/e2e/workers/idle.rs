//! A worker that nobody uses is ended, unless something of it goes on; the next prompt finds its
//! session again.

use std::sync::Arc;
use std::time::Duration;

use claw_runtime::TuiEvent;
use claw_runtime::api::ApiClient as _;
use claw_runtime::permissions::PermissionPromptDecision;
use claw_tests::client_talk::ClientTalk;
use claw_tests::mock_api::{Gate, MessagesStream, MockApi, PATIENCE};
use claw_tests::worker_stories::script_agent;
use claw_workers::Transport;

use super::Fake;

fn talk(fake: &Fake, api: &MockApi, idle: Duration) -> ClientTalk {
    let mut config = fake.config(api);
    config.idle = Some(idle);
    ClientTalk::new(config, fake.host.clone(), |_| PermissionPromptDecision::AllowOnce)
}

/// Listens between turns until the worker was ended for want of use; false when a turn of its own
/// comes first, which is taken in.
async fn ends_idle(talk: &mut ClientTalk) -> bool {
    loop {
        tokio::select! {
            biased;
            Some(event) = talk.told.recv() => {
                if matches!(&event, TuiEvent::Notice { text, .. } if text.contains("was not used")) {
                    return true;
                }
            }
            turn = talk.client.unasked(&talk.cx) => {
                talk.messages.extend(turn.messages.into_iter().map(Arc::new));
                return false;
            }
            () = tokio::time::sleep(PATIENCE) => panic!("it is neither ended nor goes on"),
        }
    }
}

fn transcripts(fake: &Fake) -> usize {
    let folders = std::fs::read_dir(fake.folder().join(".claude/projects"));
    let folders = folders.into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).unwrap());
    files.flatten().filter(|file| file.path().extension().is_some()).count()
}

#[tokio::test]
async fn a_worker_that_nobody_uses_is_ended_and_its_session_goes_on() {
    for transport in [Transport::Pty, Transport::Stream] {
        let api = MockApi::start();
        api.answer(claw_tests::claude::housekeeping);
        let fake = Fake::new("332", transport);
        let mut talk = talk(&fake, &api, Duration::from_millis(200));
        api.push(MessagesStream::say("First."));
        assert_eq!(talk.say("one").await, "First.");
        assert!(ends_idle(&mut talk).await);
        assert_eq!(fake.private_folders(), 0);
        api.push(MessagesStream::say("Second."));
        assert_eq!(talk.say("two").await, "Second.");
        assert_eq!(transcripts(&fake), 1, "it is the same session");
        talk.end().await;
    }
}

#[tokio::test]
async fn a_worker_with_a_sub_agent_that_is_out_is_kept_until_that_is_done() {
    for transport in [Transport::Pty, Transport::Stream] {
        let api = MockApi::start();
        let gate = Gate::new();
        script_agent(&api, &gate);
        let idle = Duration::from_millis(300);
        let fake = Fake::new("332", transport);
        let mut talk = talk(&fake, &api, idle);
        assert_eq!(talk.say("delegate it").await, "It works on it.");
        // Much longer than one without anything to do would have.
        assert!(tokio::time::timeout(idle * 4, ends_idle(&mut talk)).await.is_err());
        gate.open();
        assert!(!ends_idle(&mut talk).await, "it reports");
        assert!(ends_idle(&mut talk).await);
        talk.end().await;
    }
}
