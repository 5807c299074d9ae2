//! The pool with the real CLI: fresh contexts, sessions, and nothing left.

use std::sync::Arc;

use claw_tests::claude::housekeeping;
use claw_tests::mock_api::{MessagesStream, PATIENCE};
use claw_workers::{Ask, Host, PoolConfig, Transport, WorkerConfig, WorkerPool};

use crate::cli::{Room, on_both_versions};
use crate::stream_worker::config;

on_both_versions!(asks_and_sessions_are_answered_on_either_transport);

async fn asks_and_sessions_are_answered_on_either_transport(room: &Room) {
    room.trust_workspace();
    room.api.answer(|request| {
        let answer = || MessagesStream::say(&format!("re: {}", request.last_user_text()));
        Some(housekeeping(request).unwrap_or_else(answer))
    });
    for transport in [Transport::Pty, Transport::Stream] {
        let worker = WorkerConfig { transport, ..config(room, room.api.base_url()) };
        let pool = WorkerPool::open(PoolConfig::new(worker), Arc::new(Host::default()));
        let ask = async |session: Option<&str>, prompt: &str| {
            let ask = Ask {
                prompt: prompt.to_owned(),
                session: session.map(str::to_owned),
                ..Ask::default()
            };
            let answered = tokio::time::timeout(PATIENCE, pool.ask(ask)).await;
            let reply = answered.expect("it ends").expect("a reply");
            assert!(reply.text.ends_with(prompt), "{transport:?}: {reply:?}");
            reply.session_id
        };
        let (one, two) = (ask(None, "one").await, ask(None, "two").await);
        assert_ne!(one, two, "{transport:?}");
        let (first, second) = (ask(Some("s"), "three").await, ask(Some("s"), "four").await);
        assert_eq!(first, second, "{transport:?}");
        assert!(pool.close().await, "{transport:?}: {:?}", pool.status());
    }
}
