//! Commands: real processes that end, hang, hide and flood.

use super::*;

#[tokio::test]
async fn output_comes_in_the_order_it_was_written_with_exit_code_and_facts() {
    let mut bench = bench();
    let outcome = bench.bash("echo a; echo b >&2; echo c; pwd; exit 3").await;
    let pwd = bench.dir.path().canonicalize().unwrap();
    assert_eq!(outcome.output, format!("a\nb\nc\n{}\n[exit code 3]", pwd.display()));
    assert!(outcome.is_error && outcome.elapsed > Duration::ZERO);
    assert!(matches!(outcome.facts, Some(ToolFacts::Command { exit_code: Some(3), .. })));
    let outcome = bench.bash("true").await;
    assert_eq!((outcome.output.as_str(), outcome.is_error), ("(succeeded without output)", false));
    let outcome = bench.bash("kill -9 $$").await;
    assert_eq!(outcome.output, "[ended by signal 9]");
    assert!(matches!(outcome.facts, Some(ToolFacts::Command { signal: Some(9), .. })));
}

#[tokio::test]
async fn only_lines_that_the_command_wrote_are_counted() {
    let mut bench = bench();
    for (command, expected) in [
        ("true", 0),
        ("false", 0),
        ("sleep 2 & echo started", 1),
        ("printf 'a\nb'; exit 1", 2),
        ("seq 20000", 20_000),
    ] {
        let outcome = bench.bash(command).await;
        let Some(ToolFacts::Command { lines, .. }) = outcome.facts else { panic!("no facts") };
        assert_eq!(lines, Some(expected), "{command}: {}", outcome.output);
    }
}

#[tokio::test]
async fn a_command_has_neither_input_nor_the_terminal_of_the_person() {
    let outcome = bench().bash("cat; (: < /dev/tty) 2>/dev/null || echo no terminal").await;
    assert_eq!(outcome.output, "no terminal\n");
    // Also where these tests have no terminal themselves: it leads a session of its own.
    if cfg!(target_os = "linux") {
        let outcome = bench().bash("[ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && echo leads").await;
        assert_eq!(outcome.output, "leads\n");
    }
}

#[tokio::test]
async fn a_command_over_its_time_is_ended_and_its_output_kept() {
    let mut bench = bench();
    let input = json!({"command": "echo $$ > pid; echo begun; sleep 1000", "timeout": 300});
    let outcome = bench.run("bash", input).await;
    assert!(outcome.output.starts_with("begun\n[timed out after "), "{}", outcome.output);
    assert!(outcome.is_error);
    assert!(matches!(outcome.facts, Some(ToolFacts::Command { timed_out: true, .. })));
    bench.gone("pid").await;
}

#[tokio::test]
async fn a_cancel_ends_a_command_that_ignores_the_polite_signal() {
    let mut bench = bench_with(true);
    bench
        .bash("trap '' TERM INT HUP; echo $$ > pid; echo ready; while :; do sleep 0.05; done")
        .await;
    bench.gone("pid").await;
}

#[tokio::test]
async fn a_cancel_ends_descendants_that_left_the_group_and_the_family() {
    let mut bench = bench_with(true);
    bench
        .bash(
            "setsid bash -c 'echo $$ > child; exec sleep 1000' &
             (setsid bash -c 'echo $$ > orphan; exec sleep 1000' &)
             while ! [ -s child ] || ! [ -s orphan ]; do sleep 0.02; done
             echo ready; wait; sleep 1000",
        )
        .await;
    bench.gone("child").await;
    bench.gone("orphan").await;
}

#[tokio::test]
async fn a_turn_that_is_dropped_takes_its_command_with_it() {
    let mut bench = bench_with(true);
    {
        let command = "echo $$ > pid; echo ready; sleep 1000";
        // A token of its own: the cancel only tells that the command is up.
        let cx = TurnContext { cancel: CancellationToken::new(), ..bench.cx.clone() };
        let batch = bench
            .registry
            .execute_batch(vec![call("b", "bash", &json!({ "command": command }))], &cx);
        let up = async {
            tokio::select! {
                _ = batch => panic!("it ended by itself"),
                () = bench.cx.cancel.cancelled() => {}
            }
        };
        tokio::time::timeout(HANG, up).await.expect("the command does not start");
    }
    bench.gone("pid").await;
}

#[tokio::test]
async fn a_child_that_keeps_the_pipe_open_does_not_hold_the_call_and_lives_on() {
    let mut bench = bench();
    let command = "(sleep 0.5; echo late; touch alive) & echo done";
    let outcome = bench.bash(command).await;
    assert!(outcome.output.starts_with("done\n[a process that the command started is still"));
    assert!(!outcome.is_error);
    // Its next write meets an open pipe.
    let alive = async {
        while !bench.dir.path().join("alive").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG, alive).await.expect("it died of its output");
}

#[tokio::test]
async fn live_output_comes_while_the_command_runs_and_equals_the_result() {
    let mut bench = bench_with(true);
    // It would run for ever: that it is cancelled proves that its output came before its end.
    let outcome = bench.bash("printf 'no line end yet, ready '; sleep 1000").await;
    assert!(matches!(outcome.facts, Some(ToolFacts::Command { cancelled: true, .. })));
    assert!(bench.live().starts_with("no line end yet, "));
}

#[tokio::test]
async fn a_flood_of_output_is_bounded_in_the_result_and_live() {
    let mut bench = bench();
    let outcome =
        bench.bash("head -c 5000000 /dev/zero | tr '\\0' 'y' | fold -w 79; echo end").await;
    assert!(outcome.output.len() < 31_000 && outcome.output.ends_with("end\n"));
    assert!(outcome.output.contains("bytes of output left out here]"));
    assert!(bench.live().len() < 2_000_000);
    assert!(
        matches!(outcome.facts, Some(ToolFacts::Command { omitted_bytes, .. }) if omitted_bytes > 4_900_000)
    );
}

#[tokio::test]
async fn background_output_is_readable_and_the_command_ends_with_the_registry() {
    let mut bench = bench();
    let started = |outcome: &ToolOutcome| {
        let path = outcome.output.split("Output goes to ").nth(1).unwrap();
        path.split(';').next().unwrap().to_owned()
    };
    let short = json!({"command": "echo out; echo err >&2; exit 4", "run_in_background": true});
    let outcome = bench.run("bash", short).await;
    assert!(!outcome.is_error, "{}", outcome.output);
    let path = started(&outcome);
    let over = async {
        loop {
            let read = bench.run("read_file", json!({ "path": path })).await.output;
            if read.contains("the command ended") {
                break read;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let read = tokio::time::timeout(HANG, over).await.expect("its end is not told");
    assert!(read.contains("out\n") && read.contains("err\n") && read.contains("exit status: 4"));
    let long = json!({"command": "echo $$ > pid; sleep 1000", "run_in_background": true});
    let path = started(&bench.run("bash", long).await);
    let up = async {
        while bench.dir.path().join("pid").metadata().map_or(0, |found| found.len()) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG, up).await.expect("it does not start");
    let Bench { dir, registry, recorder, cx } = bench;
    drop(registry);
    assert!(!Path::new(&path).exists());
    let registry = ToolRegistry::new(dir.path(), Redactor::default()).unwrap();
    Bench { dir, registry, recorder, cx }.gone("pid").await;
}
