//! What goes through is what came.

use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

#[tokio::test]
async fn bodies_of_every_size_and_framing_pass_byte_for_byte_both_ways() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let large: Vec<u8> = (0..1024 * 1024_u32).map(|n| (n * 7 % 251) as u8).collect();
    for body in [Vec::new(), vec![0], b"\r\n0\r\n\r\n".to_vec(), large] {
        let length = body.len().to_string();
        for chunked in [false, true] {
            let what = format!("{length} bytes, chunked: {chunked}");
            let asked = client().post(format!("{}/v1/messages?beta=true", tap.base_url()));
            let asked = if chunked {
                let pieces = body.chunks(10_007).map(|piece| Ok::<_, Infallible>(piece.to_vec()));
                let pieces = stream::iter(pieces.collect::<Vec<_>>());
                asked.body(reqwest::Body::wrap_stream(pieces))
            } else {
                asked.header("content-length", &length).body(body.clone())
            };
            let asked = tokio::spawn(asked.send());
            let got = api.next().await;
            let framing = if chunked { "transfer-encoding" } else { "content-length" };
            assert!(got.head.headers.contains_key(framing), "{what}: {:?}", got.head.headers);
            let received = if chunked {
                let (received, pour) = got.read_and_stream(&[]).await;
                for piece in received.chunks(9_999) {
                    pour.send(piece.to_vec()).await;
                }
                received
            } else {
                got.say(&[], body.clone()).await
            };
            assert!(received == body, "{what} to the upstream");
            let answer = within(asked).await.unwrap().unwrap();
            assert!(answer.headers().contains_key(framing), "{what}: {:?}", answer.headers());
            assert!(within(answer.bytes()).await.unwrap() == body, "{what} back");
        }
    }
}

#[tokio::test]
async fn an_event_that_is_cut_anywhere_passes_unchanged_and_is_told_all_the_same() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let mut watched = tap.watch("s");
    let answer = format!("{}{}{}", began("msg_1"), text("hé 🎉"), ended()).into_bytes();
    for cut in 0..=answer.len() {
        let asked = tokio::spawn(question(&tap, "s").send());
        let pour = api.next().await.stream(SSE).await;
        for piece in [&answer[..cut], &answer[cut..]] {
            pour.send(piece.to_vec()).await;
        }
        drop(pour);
        let passed = within(asked).await.unwrap().unwrap().bytes();
        assert!(within(passed).await.unwrap() == answer, "cut at {cut}");
        let (facts, status) = until_end(&mut watched).await;
        assert_eq!((facts.len(), status), (3, Some(200)), "cut at {cut}: {facts:?}");
    }
}

#[tokio::test]
async fn the_first_delta_passes_while_the_upstream_holds_the_rest_back() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let mut watched = tap.watch("s");
    let asked = tokio::spawn(question(&tap, "s").send());
    let pour = api.next().await.stream(SSE).await;
    let mut answer = within(asked).await.unwrap().unwrap().bytes_stream();
    pour.send(began("msg_1")).await;
    assert_eq!(within(answer.next()).await.unwrap().unwrap(), began("msg_1"));
    pour.send(text("first")).await;
    assert_eq!(within(answer.next()).await.unwrap().unwrap(), text("first"));
    // What the client has, the watcher has: it is told first.
    assert!(matches!(watched.try_recv(), Ok(Tapped::RequestBegan { .. })));
    let mut facts = Vec::new();
    while let Ok(Tapped::Fact { fact, .. }) = watched.try_recv() {
        facts.push(*fact);
    }
    let delta = Fact::TextDelta { message: "msg_1".to_owned(), block: 0, text: "first".to_owned() };
    assert_eq!(facts.last(), Some(&delta));
    drop(pour);
    assert!(within(answer.next()).await.is_none());
}

#[tokio::test]
async fn a_long_question_is_not_held_back_until_it_is_whole() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let (sender, receiver) = mpsc::channel(1);
    let pieces = stream::unfold(receiver, |mut receiver: mpsc::Receiver<Bytes>| async move {
        Some((Ok::<_, Infallible>(receiver.recv().await?), receiver))
    });
    let body = reqwest::Body::wrap_stream(pieces);
    let asked = tokio::spawn(client().post(tap.base_url()).body(body).send());
    sender.send(Bytes::from_static(b"begin")).await.unwrap();
    let mut got = api.next().await;
    let first = within(got.body.frame()).await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, "begin");
    sender.send(Bytes::from_static(b"end")).await.unwrap();
    drop(sender);
    assert_eq!(got.say(&[], "ok").await, "end");
    assert_eq!(within(asked).await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn headers_pass_but_for_those_of_a_connection_and_the_wish_for_compression() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let address = tap.base_url().strip_prefix("http://").unwrap();
    let (address, secret) = address.split_once('/').unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "PUT /{secret}/v1/files?a=b%20c&d HTTP/1.1\r\nHost: {address}\r\nX-Api-Key: key-1\r\n\
         Authorization: Bearer token\r\nAnthropic-Beta: a,b\r\nAnthropic-Beta: c\r\nAccept: */*\r\n\
         Accept-Encoding: gzip, br\r\nX-Claude-Code-Session-Id: s\r\nConnection: keep-alive, X-Once\r\n\
         X-Once: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\nProxy-Connection: x\r\n\
         Proxy-Authorization: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let got = api.next().await;
    assert_eq!(got.head.method, "PUT");
    assert_eq!(got.head.uri, "/v1/files?a=b%20c&d");
    let host = api.url.strip_prefix("http://").unwrap();
    assert_eq!(
        listed(&got.head.headers),
        [
            "accept: */*",
            "anthropic-beta: a,b",
            "anthropic-beta: c",
            "authorization: Bearer token",
            "content-length: 2",
            &format!("host: {host}"),
            "x-api-key: key-1",
            "x-claude-code-session-id: s",
        ]
    );
    assert_eq!(got.say(&[("request-id", "req_1")], "").await, "hi");
    let mut answer = vec![0; 12];
    within(socket.read_exact(&mut answer)).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 "), "{answer:?}");
}

#[tokio::test]
async fn every_status_passes_with_its_headers_and_body() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let headers = [
        ("content-type", "application/json"),
        ("content-length", "15"),
        ("date", "Tue, 01 Dec 2026 05:00:00 GMT"),
        ("retry-after", "7"),
        ("anthropic-ratelimit-unified-status", "rejected"),
        ("anthropic-ratelimit-requests-remaining", "0"),
        ("request-id", "req_1"),
        ("location", "http://127.0.0.1:1/"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
    ];
    for status in [200, 204, 307, 400, 401, 404, 413, 429, 500, 503, 529] {
        let asked = tokio::spawn(question(&tap, "s").send());
        let body = if status == 204 { "" } else { r#"{"type":"error"}"# };
        let length = body.len().to_string();
        let mut headers = headers.to_vec();
        headers[1].1 = &length;
        if status == 204 {
            headers.remove(1);
        }
        api.next().await.say_status(status, &headers, body).await;
        let answer = within(asked).await.unwrap().unwrap();
        assert_eq!(answer.status(), status);
        let mut expected: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        expected.sort();
        assert_eq!(listed(answer.headers()), expected, "{status}");
        assert_eq!(within(answer.bytes()).await.unwrap(), body, "{status}");
    }
}

#[tokio::test]
async fn the_path_goes_after_the_upstreams_own() {
    let mut api = Api::start().await;
    for (base, asked, expected) in [
        ("", "/v1/messages?beta=true", "/v1/messages?beta=true"),
        ("/", "", "/"),
        ("", "/", "/"),
        ("/gateway/", "/v1/messages", "/gateway/v1/messages"),
        ("/gateway", "", "/gateway"),
        ("/gateway", "?x=1", "/gateway?x=1"),
        ("", "/v1/a%2Fb/%C3%A9", "/v1/a%2Fb/%C3%A9"),
    ] {
        let tap = Tap::start(&format!("{}{base}", api.url)).unwrap();
        let head = client().head(format!("{}{asked}", tap.base_url())).send();
        let head = tokio::spawn(head);
        let got = api.next().await;
        assert_eq!(
            (got.head.method.as_str(), got.head.uri.to_string().as_str()),
            ("HEAD", expected)
        );
        got.say_status(404, &[("content-length", "9")], "not found").await;
        let answer = within(head).await.unwrap().unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-length"]),
            (404, &"9".parse().unwrap())
        );
    }
}

#[tokio::test]
async fn an_upstream_that_dies_in_the_middle_breaks_the_answer_in_the_same_place() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let mut watched = tap.watch("s");
    let asked = tokio::spawn(question(&tap, "s").send());
    let pour = api.next().await.stream(SSE).await;
    pour.send(began("msg_1")).await;
    pour.send("event: content_bl").await;
    let mut answer = within(asked).await.unwrap().unwrap().bytes_stream();
    let expected = format!("{}event: content_bl", began("msg_1"));
    let mut got = Vec::new();
    while got.len() < expected.len() {
        got.extend(within(answer.next()).await.unwrap().unwrap());
    }
    assert_eq!(String::from_utf8(got).unwrap(), expected);
    pour.break_off().await;
    assert!(within(answer.next()).await.unwrap().is_err());
    let (facts, status) = until_end(&mut watched).await;
    assert_eq!((facts.len(), status), (1, Some(200)));
}

#[tokio::test]
async fn a_client_that_hangs_up_is_gone_for_the_upstream_at_once() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let mut watched = tap.watch("s");
    // In the middle of the answer.
    let asked = tokio::spawn(question(&tap, "s").send());
    let pour = api.next().await.stream(SSE).await;
    pour.send(began("msg_1")).await;
    drop(within(asked).await.unwrap().unwrap());
    pour.hung_up().await;
    assert_eq!(until_end(&mut watched).await.1, Some(200));
    // Before the answer has a head.
    let asked = tokio::spawn(question(&tap, "s").send());
    let mut got = api.next().await;
    asked.abort();
    within(got.answer.closed()).await;
    assert_eq!(until_end(&mut watched).await.1, None);
    // In the middle of the question.
    let (sender, receiver) = mpsc::channel::<Result<Bytes, Infallible>>(1);
    let pieces =
        stream::unfold(
            receiver,
            |mut receiver| async move { Some((receiver.recv().await?, receiver)) },
        );
    let body = reqwest::Body::wrap_stream(pieces);
    let asked = tokio::spawn(question(&tap, "s").body(body).send());
    sender.send(Ok(Bytes::from_static(b"{"))).await.unwrap();
    let got = api.next().await;
    asked.abort();
    assert!(within(got.body.collect()).await.is_err());
    assert_eq!(until_end(&mut watched).await.1, None);
}

#[tokio::test]
async fn fifty_requests_at_once_get_their_own_answers() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let client = client();
    let asked: Vec<_> = (0..50)
        .map(|n| {
            let url = format!("{}/v1/messages?n={n}", tap.base_url());
            tokio::spawn(client.post(url).body(format!("question {n}")).send())
        })
        .collect();
    let mut waiting = Vec::new();
    for _ in 0..50 {
        waiting.push(api.next().await);
    }
    // All are under way, none waits for another; they are answered the other way round.
    for got in waiting.into_iter().rev() {
        let n = got.head.uri.query().unwrap().to_owned();
        let asked = got.say(&[], format!("answer to {n}")).await;
        assert_eq!(asked, n.replace("n=", "question "));
    }
    for (n, asked) in asked.into_iter().enumerate() {
        let answer = within(asked).await.unwrap().unwrap().text();
        assert_eq!(within(answer).await.unwrap(), format!("answer to n={n}"));
    }
}

#[tokio::test]
async fn a_client_that_reads_slowly_slows_the_upstream_down() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let asked = tokio::spawn(question(&tap, "s").send());
    let pour = api.next().await.stream(SSE).await;
    let answer = within(asked).await.unwrap().unwrap();
    let piece = Bytes::from(vec![b'x'; 64 * 1024]);
    let total = 64 * 1024 * 1024;
    let mut sent = 0;
    // Nobody reads: soon nothing more is taken. The buffers of four sockets hold a few megabytes.
    while sent < total {
        let taken = pour.0.send(Ok(piece.clone()));
        if tokio::time::timeout(Duration::from_millis(500), taken).await.is_err() {
            break;
        }
        sent += piece.len();
    }
    assert!(sent < total / 2, "{sent} bytes were taken");
    // And goes on when it reads again.
    let read = tokio::spawn(answer.bytes());
    pour.send(piece.clone()).await;
    drop(pour);
    assert_eq!(within(read).await.unwrap().unwrap().len(), sent + piece.len());
}

#[tokio::test]
async fn a_question_is_not_gathered_when_the_upstream_does_not_read_it() {
    let mut api = Api::start().await;
    let tap = Tap::start(&api.url).unwrap();
    let (sender, receiver) = mpsc::channel::<Result<Bytes, Infallible>>(1);
    let pieces =
        stream::unfold(
            receiver,
            |mut receiver| async move { Some((receiver.recv().await?, receiver)) },
        );
    let asked = question(&tap, "s").body(reqwest::Body::wrap_stream(pieces));
    let asked = tokio::spawn(asked.send());
    let piece = Bytes::from(vec![b'x'; 64 * 1024]);
    let total = 64 * 1024 * 1024;
    let mut sent = 0;
    while sent < total {
        let taken = sender.send(Ok(piece.clone()));
        if tokio::time::timeout(Duration::from_millis(500), taken).await.is_err() {
            break;
        }
        sent += piece.len();
    }
    assert!(sent < total / 2, "{sent} bytes were taken");
    drop(sender);
    let got = api.next().await;
    assert_eq!(got.say(&[], "ok").await.len(), sent);
    assert_eq!(within(asked).await.unwrap().unwrap().status(), 200);
}
