use super::*;
use crate::testing::config;

const NEW: &str = "3b241101-e2bb-4255-8caf-4136c566a962";

fn line(open: &OpenAs, change: impl FnOnce(&mut WorkerConfig)) -> Result<Vec<String>, WorkerError> {
    let mut config = config(Path::new("/home/user"), Path::new("/home/user/project"));
    change(&mut config);
    let line = argv("/bin/claude".as_ref(), &config, open, Some(Path::new("/run/s.json")))?;
    Ok(line.into_iter().map(|word| word.into_string().unwrap()).collect())
}

#[test]
fn the_terminal_transport_never_has_p_and_always_a_session_and_settings() {
    let new = OpenAs::New(NEW.to_owned());
    assert_eq!(
        line(&new, |_| {}).unwrap().join(" "),
        format!("/bin/claude --permission-mode default --settings /run/s.json --session-id {NEW}")
    );
    let resume = line(&OpenAs::Resume("old".to_owned()), |_| {}).unwrap().join(" ");
    assert!(resume.ends_with("--settings /run/s.json --resume old"), "{resume}");
    assert!(!resume.contains("--session-id"));
    let fork = OpenAs::Fork { from: "old".to_owned(), into: NEW.to_owned() };
    let fork = line(&fork, |_| {}).unwrap().join(" ");
    assert!(fork.ends_with(&format!("--resume old --fork-session --session-id {NEW}")), "{fork}");
}

#[test]
fn everything_configured_is_said_in_its_place() {
    let said = line(&OpenAs::New(NEW.to_owned()), |config| {
        config.prefix = vec!["ssh".into(), "host".into()];
        config.arguments = vec!["--add-dir".into(), "/x y".into()];
        config.model = Some("opus".to_owned());
        config.system_prompt = Some("--be brief\nplease".to_owned());
        config.allowed_tools = vec!["Read".to_owned(), "Bash(git log:*, x)".to_owned()];
        config.disallowed_tools = vec!["WebFetch".to_owned()];
        config.permission_mode = "plan".to_owned();
    });
    let expected = [
        "ssh",
        "host",
        "/bin/claude",
        "--add-dir",
        "/x y",
        "--allowedTools",
        "Read",
        "Bash(git log:*, x)",
        "--disallowedTools",
        "WebFetch",
        "--model",
        "opus",
        "--system-prompt",
        "--be brief\nplease",
        "--permission-mode",
        "plan",
        "--settings",
        "/run/s.json",
        "--session-id",
        NEW,
    ];
    assert_eq!(said.unwrap(), expected);
}

#[test]
fn the_stream_speaks_json_both_ways_and_asks_us() {
    let said = line(&OpenAs::New(NEW.to_owned()), |config| config.transport = Transport::Stream);
    let said = said.unwrap().join(" ");
    assert!(
        said.starts_with(
            "/bin/claude -p --input-format stream-json --output-format stream-json --verbose \
             --include-partial-messages --permission-prompt-tool stdio --replay-user-messages "
        ),
        "{said}"
    );
}

#[test]
fn a_system_prompt_replaces_and_what_a_worker_decides_is_refused() {
    for refused in [
        "-p",
        "--print",
        "--append-system-prompt",
        "--append-system-prompt=x",
        "--resume",
        "-c",
        "--session-id=1",
        "--settings",
        "--",
    ] {
        let error = line(&OpenAs::New(NEW.to_owned()), |config| {
            config.arguments = vec![refused.into()];
            config.system_prompt = Some("x".to_owned());
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains(refused) && error.contains("workers.arguments"), "{error}");
    }
}
