//! Prompts on their way through the real input box: what the model gets is what was meant.

use std::fmt::Write as _;

use claw_tests::mock_api::{MessagesStream, PATIENCE, RecordedRequest};
use claw_workers::{Timings, prompt};
use serde_json::Value;

use crate::cli::{Room, on_both_versions};
use crate::terminal::at_input_box;

on_both_versions!(every_prompt_reaches_the_model_as_it_was_meant);

/// A prompt, and what the model gets where that is not the same.
fn table() -> Vec<(String, Option<&'static str>)> {
    let same = |text: &str| (text.to_owned(), None);
    let other = |text: &str, meant: &'static str| (text.to_owned(), Some(meant));
    let mut lines = String::new();
    for number in 0..400 {
        let _ = writeln!(lines, "line {number} of a long prompt, with some words");
    }
    lines.push_str("end");
    vec![
        same("1"),
        same("a line"),
        same("four\nlines\nof\ntext"),
        same("a gap\n\n\n\nof empty lines"),
        same("first\n/clear\n!ls\nlast"),
        same(&"0123456789".repeat(90)),
        same("word ".repeat(3000).trim_end()),
        same("/home/user/file.txt holds something"),
        other("!echo not a command", " !echo not a command"),
        same("#note, @nobody, &more, ?what"),
        same("back\\slash \\n inside"),
        other("ends in a backslash\\", "ends in a backslash\\"),
        other("tab\there\r\nand there", "tab    here\nand there"),
        other("\u{1b}[31mred\u{1b}[0m \u{1b}[201~ \u{3}\u{4} bell\u{7}", "[31mred[0m [201~  bell"),
        other("  spaces around \n\n", "  spaces around"),
        same("family 👩‍👩‍👧‍👦, flag 🇦🇶, 漢字かな, עברית, é"),
        same("<b>tags</b> & $HOME `ls` \"quotes\" 'single' {json: [1]}"),
        same(&lines),
        same(&"0123456789abcdef".repeat(6400)),
        // The last one, since screens do not agree on how wide these are.
        same(&"👩‍👩‍👧‍👦".repeat(200)),
    ]
}

/// Everything that the model got as the words of a person in its last message but the CLI's own.
fn blocks(request: &RecordedRequest) -> Vec<String> {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let users = messages.iter().filter(|message| message["role"] == "user");
    let mut blocks = Vec::new();
    for message in users {
        match &message["content"] {
            Value::String(text) => blocks.push(text.clone()),
            Value::Array(parts) => {
                blocks.extend(
                    parts.iter().filter_map(|part| part["text"].as_str()).map(str::to_owned),
                );
            }
            _ => {}
        }
    }
    blocks
}

async fn every_prompt_reaches_the_model_as_it_was_meant(room: &Room) {
    room.trust_workspace();
    let environment = room.environment(room.api.base_url());
    let mut terminal = room.interactive(&["--permission-mode", "default"], &environment);
    terminal.until("input box", at_input_box).await;
    // As a worker does: the box is drawn a moment before it listens.
    tokio::time::sleep(Timings::default().settle).await;
    let table = table();
    let last = table.len() - 1;
    for (number, (text, meant)) in table.into_iter().enumerate() {
        let meant = meant.unwrap_or(&text);
        let answer = format!("answer number {number}.");
        room.api.push(MessagesStream::say(&answer));
        let prepared = prompt::prepare(&text).expect("it is a prompt");
        terminal.write(&prompt::paste(&prepared)).await;
        // What a worker waits as well: nothing tells when the box has taken a paste in.
        tokio::time::sleep(Timings::default().paste_to_cr).await;
        terminal.write(prompt::CR).await;
        let shown: String = text.chars().take(60).collect();
        if number < last {
            terminal
                .until(&format!("answer to {shown:?}"), |screen| {
                    screen.contains(&answer).then_some(())
                })
                .await;
        } else {
            let asked = async {
                while room.questions().len() <= number {
                    terminal.change().await;
                }
            };
            let asked = tokio::time::timeout(PATIENCE, asked).await;
            assert!(asked.is_ok(), "{shown:?} was not submitted:\n{}", terminal.text());
        }
        let question = room.questions().pop().expect("a question");
        let blocks = blocks(&question);
        assert!(blocks.iter().any(|block| block == meant), "{shown:?} became {:?}", blocks.last());
        assert!(prompt::receipt_matches(&prepared, meant), "{shown:?}");
    }
}
