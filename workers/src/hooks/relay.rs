//! The program that the CLI runs as its hook: hands the payload to us and prints what we answer.
//!
//! Small on purpose, since every event of a turn starts one: the standard library only, no runtime,
//! no parser. It fails closed: whatever goes wrong it prints nothing and says success, which leaves
//! the CLI's own dialog standing.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use super::{MOST_BYTES, PERMISSION_REQUEST, SOCKET, TOKEN};

/// For handing the record over, and for its receipt. A server that is alive needs milliseconds; one
/// that is stopped must not hold up every step of a worker.
const HAND_OVER: Duration = Duration::from_millis(900);

/// What the thread that speaks has come to.
enum Step {
    HandedOver,
    Answered(String),
}

/// Runs the hook: `arguments` are the private folder and the event's name, `input` is where the
/// payload comes from, `output` where a verdict goes.
pub fn relay(
    mut arguments: impl Iterator<Item = OsString>,
    mut input: impl Read,
    mut output: impl Write,
) -> ExitCode {
    let folder = arguments.next().map(PathBuf::from);
    let asks = arguments.next().is_some_and(|event| event == PERMISSION_REQUEST);
    let payload = one_line(&mut input);
    if let (Some(folder), Some(payload)) = (folder, payload) {
        let verdict = speak(folder, payload, asks);
        if let Some(verdict) = verdict.filter(|_| asks) {
            // A CLI that is gone reads nothing; there is nobody to tell.
            let _ = output.write_all(verdict.as_bytes()).and_then(|()| output.flush());
        }
    }
    ExitCode::SUCCESS
}

/// All of the input as one line. Valid JSON has no line ends within its strings, so each of them is
/// mere white space. Of a payload over the limit just enough is kept for the server to say so.
fn one_line(input: &mut impl Read) -> Option<Vec<u8>> {
    let mut payload = Vec::new();
    input.take(MOST_BYTES as u64 + 1).read_to_end(&mut payload).ok()?;
    // The CLI must not find its pipe closed.
    std::io::copy(input, &mut std::io::sink()).ok()?;
    for byte in &mut payload {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    payload.push(b'\n');
    Some(payload)
}

/// Hands the payload over and returns the answer. Connecting and writing may block for good when
/// the server is stopped, so they are done on a thread that is not waited for.
fn speak(folder: PathBuf, payload: Vec<u8>, asks: bool) -> Option<String> {
    let (tell, steps) = mpsc::channel();
    std::thread::spawn(move || converse(&folder, &payload, &tell));
    let Step::HandedOver = steps.recv_timeout(HAND_OVER).ok()? else { return None };
    // The CLI ends a hook that has waited long enough for a verdict.
    let answer = if asks { steps.recv().ok() } else { steps.recv_timeout(HAND_OVER).ok() };
    match answer? {
        Step::Answered(verdict) => Some(verdict),
        Step::HandedOver => None,
    }
}

/// The end of the channel says that it went wrong.
fn converse(folder: &std::path::Path, payload: &[u8], tell: &mpsc::Sender<Step>) -> Option<()> {
    let mut token = std::fs::read(folder.join(TOKEN)).ok()?;
    token.push(b'\n');
    let mut socket = UnixStream::connect(folder.join(SOCKET)).ok()?;
    socket.write_all(&token).ok()?;
    socket.write_all(payload).ok()?;
    tell.send(Step::HandedOver).ok()?;
    // The end without a line is the receipt of what was only told.
    let mut answer = Vec::new();
    BufReader::new(socket.take(MOST_BYTES as u64)).read_until(b'\n', &mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    // Half a line is no verdict.
    let whole = answer.starts_with('{') && answer.ends_with("}\n");
    tell.send(if whole { Step::Answered(answer) } else { Step::Answered(String::new()) }).ok()
}

#[cfg(test)]
mod tests;
