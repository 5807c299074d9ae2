//! Who is not let in, what is not shown, and how it ends.

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::*;
use crate::config::{Transport, WindowSize, WorkerConfig};
use crate::environment::{child_environment, variable};
use crate::tap::TapError;
use crate::timings::Timings;

#[tokio::test]
async fn without_the_secret_nothing_is_found_and_nothing_happens() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let mut watched = tap.watch("s");
    let (host, secret) = tap.base_url().rsplit_once('/').unwrap();
    assert_eq!(secret.len(), 32);
    let other = Tap::start(&api.url).unwrap();
    let (_, another) = other.base_url().rsplit_once('/').unwrap();
    assert_ne!(secret, another);
    for path in [
        String::new(),
        "/".to_owned(),
        "//".to_owned(),
        "/v1/messages?beta=true".to_owned(),
        format!("/{another}/v1/messages"),
        format!("/{}/v1/messages", &secret[..31]),
        format!("/{secret}0/v1/messages"),
        format!("/{}/v1/messages", secret.to_uppercase().replace('0', "O")),
        format!("/x/{secret}/v1/messages"),
        format!("/?{secret}"),
        format!("//{secret}/v1/messages"),
    ] {
        let sent = client()
            .post(format!("{host}{path}"))
            .header("x-claude-code-session-id", "s")
            .body(QUESTION)
            .send();
        assert_eq!(within(sent).await.unwrap().status(), 404, "{path}");
    }
    api.assert_untouched();
    assert!(watched.try_recv().is_err());
}

#[tokio::test]
async fn it_listens_on_this_machine_only() {
    let tap = Tap::start("http://127.0.0.1:1").unwrap();
    let url: reqwest::Url = tap.base_url().parse().unwrap();
    assert_eq!(url.host_str(), Some("127.0.0.1"));
    let port = url.port().unwrap();
    // 127.0.0.2 is this machine too, and a listener on every address would answer there.
    assert!(TcpStream::connect(("127.0.0.2", port)).await.is_err());
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_an_error_of_the_apis_own_shape() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let tap = Tap::start(&format!("http://name:password@127.0.0.1:{port}/base")).unwrap();
    let mut watched = tap.watch("s");
    let sent = question(&tap, "s").header("x-api-key", "marker-key").send();
    let answer = within(sent).await.unwrap();
    assert_eq!(answer.status(), 502);
    let text = within(answer.text()).await.unwrap();
    let body: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&body["type"], &body["error"]["type"]), (&"error".into(), &"api_error".into()));
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("could not reach http://127.0.0.1:{port}")), "{message}");
    let (_, secret) = tap.base_url().rsplit_once('/').unwrap();
    for hidden in ["marker-key", "password", secret, "v1"] {
        assert!(!text.contains(hidden), "{text}");
    }
    let (facts, status) = until_end(&mut watched).await;
    assert!(matches!(facts.as_slice(), [Fact::Retry { attempt: 1, .. }]), "{facts:?}");
    assert_eq!(status, None);
}

#[tokio::test]
async fn an_upstream_that_hangs_up_without_an_answer_is_an_error_too() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let asked = tokio::spawn(question(&tap, "s").send());
    drop(api.next().await);
    assert_eq!(within(asked).await.unwrap().unwrap().status(), 502);
}

#[tokio::test]
async fn dropping_it_closes_the_port_and_every_connection() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let url: reqwest::Url = tap.base_url().parse().unwrap();
    let address = ("127.0.0.1", url.port().unwrap());
    let mut idle = TcpStream::connect(address).await.unwrap();
    let asked = tokio::spawn(question(&tap, "s").send());
    let pour = api.next().await.stream(SSE).await;
    pour.send(began("msg_1")).await;
    let answer = within(asked).await.unwrap().unwrap();
    let mut watched = tap.watch("s");
    drop(tap);
    pour.hung_up().await;
    assert!(within(answer.bytes()).await.is_err());
    assert_eq!(within(idle.read(&mut [0; 1])).await.unwrap_or(0), 0);
    // The last one to hold the port lets go of it at the same moment.
    within(async { while TcpStream::connect(address).await.is_ok() {} }).await;
    assert_eq!(within(watched.recv()).await, None);
}

#[tokio::test]
async fn what_is_no_address_is_refused_without_being_repeated() {
    for upstream in
        ["", "api.anthropic.com", "ftp://host", "http://", "http://h?marker", "http://h#marker"]
    {
        let error = Tap::start(upstream).unwrap_err();
        assert!(matches!(error, TapError::Upstream), "{upstream}");
        assert!(!format!("{error} {error:?}").contains("marker"));
    }
}

#[tokio::test]
async fn no_debug_shows_the_address() {
    let tap = Tap::start("http://name:marker@127.0.0.1:1").unwrap();
    assert_eq!(format!("{tap:?}"), "Tap(..)");
}

#[test]
fn a_worker_is_led_here_past_any_proxy() {
    let check = |set: &[(&str, &str)], expected: [&str; 3]| {
        let set: Vec<_> = set.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let config = WorkerConfig { environment: set, ..config() };
        let child = child_environment(&config, "marker", Some("http://127.0.0.1:1/secret"));
        let names = ["ANTHROPIC_BASE_URL", "NO_PROXY", "no_proxy"];
        let found = names.map(|name| variable(&child, name).and_then(|value| value.to_str()));
        assert_eq!(found, expected.map(Some));
    };
    let here = "http://127.0.0.1:1/secret";
    check(&[], [here, "127.0.0.1", "127.0.0.1"]);
    check(
        &[("ANTHROPIC_BASE_URL", "https://h"), ("NO_PROXY", "")],
        [here, "127.0.0.1", "127.0.0.1"],
    );
    let set = [("NO_PROXY", "a.example"), ("no_proxy", "b")];
    check(&set, [here, "a.example,127.0.0.1", "b,127.0.0.1"]);
    let without = child_environment(&config(), "marker", None);
    assert_eq!(variable(&without, "NO_PROXY"), None);
}

fn config() -> WorkerConfig {
    WorkerConfig {
        program: "claude".into(),
        prefix: Vec::new(),
        arguments: Vec::new(),
        cwd: "/".into(),
        trusted: false,
        config_dir: None,
        home: "/".into(),
        environment: Vec::new(),
        pass: Vec::new(),
        model: None,
        system_prompt: None,
        allowed_tools: Vec::new(),
        disallowed_tools: Vec::new(),
        permission_mode: "default".to_owned(),
        transport: Transport::Pty,
        tap: true,
        auto_compaction: true,
        idle: None,
        size: WindowSize::default(),
        hook: Vec::new(),
        guard: Vec::new(),
        private_root: "/".into(),
        timings: Timings::brisk(),
    }
}

#[test]
fn the_upstream_is_the_one_that_the_person_configured() {
    let check = |value: Option<&str>, expected: &str| {
        let set = value.map(|value| ("ANTHROPIC_BASE_URL".into(), value.into()));
        let set: Vec<_> = set.into_iter().collect();
        assert_eq!(Tap::upstream_of(&set), expected);
    };
    check(None, "https://api.anthropic.com");
    check(Some(" "), "https://api.anthropic.com");
    check(Some("http://gateway:8080/x "), "http://gateway:8080/x");
}
