//! The end of the real CLI and of the commands that its tools run: they live in sessions of their own,
//! and outlive the older version when it alone is ended.

use std::time::Duration;

use claw_tests::mock_api::{MessagesStream, PATIENCE};
use claw_workers::{OpenAs, Transport, WorkerConfig};
use serde_json::json;

use crate::cli::{Room, on_both_versions};
use crate::start::open_with;
use crate::terminal::at_input_box;

on_both_versions!(ending_it_ends_the_commands_of_its_tools);

async fn ending_it_ends_the_commands_of_its_tools(room: &Room) {
    room.trust_workspace();
    let config =
        WorkerConfig { allowed_tools: vec!["Bash".to_owned()], ..room.config(Transport::Pty) };
    // One that outlives its own shell, and one that the tool waits for.
    let command = "(setsid sleep 3601 &) ; sleep 3602";
    let input = json!({"command": command, "description": "wait"}).to_string();
    let answer = MessagesStream::new().tool_use("toolu_1", "Bash", &input);
    room.api.push(answer.stop("tool_use", 9).reply());
    let open = OpenAs::New(uuid::Uuid::new_v4().to_string());
    let mut terminal = open_with(room, &config, &open, None);
    terminal.until("input box", at_input_box).await;
    terminal.submit("wait").await;
    let sleeping = |terminal: &crate::terminal::Terminal| {
        let names = terminal.processes().into_iter().filter(|process| {
            let file = format!("/proc/{}/cmdline", process.pid());
            std::fs::read(file).is_ok_and(|words| words.starts_with(b"sleep\0"))
        });
        names.count()
    };
    let started = async {
        while sleeping(&terminal) < 2 {
            // Nothing tells when a command has started another.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let started = tokio::time::timeout(PATIENCE, started).await;
    assert!(started.is_ok(), "{:?}:\n{}", terminal.processes(), terminal.text());
    let left = tokio::time::timeout(Duration::from_secs(5), terminal.end()).await;
    assert_eq!(left.expect("within five seconds"), []);
}
