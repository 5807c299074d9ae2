//! Without any key the program shows itself by a scripted demo, and says that it is one.

use claw_tests::harness::Harness;

#[test]
fn without_a_key_the_demo_says_what_it_is_and_how_to_connect() {
    let claw = Harness::new().env("CLAW_DEMO_PACE_MS", "0").start();
    claw.wait_for("demo");
    claw.wait_for("ANTHROPIC_API_KEY");
    claw.wait_for("OPENAI_API_KEY");
}

#[test]
fn the_demo_shows_everything_at_work_with_real_tools_behind_real_questions() {
    let claw = Harness::new().env("CLAW_DEMO_PACE_MS", "0");
    let mut claw = claw.arg("show me everything").start();
    claw.allow_once();
    claw.wait_for("step 1 of 5");
    claw.wait_for("exit 0");
    claw.wait_until("the end of the story", |seen| {
        seen.screen.text().lines().last().is_some_and(|line| line.ends_with("ready"))
    });
    // The difference of the change stands open.
    claw.wait_for("A frame costs the screen, not the conversation.");
    let file = std::fs::read_to_string(claw.workspace().join("claw-demo.txt")).unwrap();
    assert!(file.contains("What was shown was saved."), "{file}");
}

#[test]
fn a_denied_step_of_the_demo_ends_the_story_honestly() {
    let claw = Harness::new().env("CLAW_DEMO_PACE_MS", "0");
    let mut claw = claw.arg("please run a command").start();
    claw.deny();
    claw.wait_for("denied");
    claw.wait_ready();
}
