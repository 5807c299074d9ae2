//! The rows. Only commands that do something are listed.

use super::{Argument, CommandAction as A, CommandSpec, Values, When};

/// How many prompts `/history` shows when no number is given.
const HISTORY_DEFAULT: usize = 20;

const fn plain(
    name: &'static str,
    aliases: &'static [&'static str],
    help: &'static str,
    when: When,
    build: fn(Option<&str>) -> Result<A, String>,
) -> CommandSpec {
    CommandSpec { name, aliases, argument: Argument::None, help, when, build }
}

const fn taking(
    name: &'static str,
    aliases: &'static [&'static str],
    argument: Argument,
    help: &'static str,
    when: When,
    build: fn(Option<&str>) -> Result<A, String>,
) -> CommandSpec {
    CommandSpec { name, aliases, argument, help, when, build }
}

fn owned(argument: Option<&str>) -> Option<String> {
    argument.map(str::to_owned)
}

/// Every command, in the order in which help and completion show them.
pub static COMMANDS: &[CommandSpec] = &[
    plain("help", &["?", "keys"], "list keys and commands", When::Always, |_| Ok(A::Help)),
    plain("status", &[], "show the session, model, mode and backend", When::Always, |_| {
        Ok(A::Status)
    }),
    taking(
        "model",
        &[],
        Argument::Optional("name", Values::Models),
        "switch the model, or choose one from a list",
        When::Idle,
        |argument| Ok(A::Model(owned(argument))),
    ),
    taking(
        "permissions",
        &["mode"],
        Argument::Optional("mode", Values::PermissionModes),
        "switch the permission mode, or choose one from a list",
        When::Idle,
        |argument| match argument {
            None => Ok(A::Permissions(None)),
            Some(mode) => match mode.parse() {
                Ok(mode) => Ok(A::Permissions(Some(mode))),
                Err(error) => Err(format!("{error}")),
            },
        },
    ),
    taking(
        "backend",
        &["provider"],
        Argument::Optional("name", Values::Backends),
        "switch the backend: the named one, or the next",
        When::Idle,
        |argument| Ok(A::Backend(owned(argument))),
    ),
    plain("compact", &[], "shorten the context by a summary", When::Idle, |_| Ok(A::Compact)),
    plain("clear", &["new"], "start a fresh session; this one stays on disk", When::Idle, |_| {
        Ok(A::Clear)
    }),
    plain(
        "session list",
        &["session", "sessions"],
        "choose a session of this workspace",
        When::Idle,
        |_| Ok(A::SessionList),
    ),
    taking(
        "session fork",
        &["fork"],
        Argument::Optional("branch", Values::Free),
        "go on in a copy of this session",
        When::Idle,
        |argument| Ok(A::SessionFork(owned(argument))),
    ),
    taking(
        "session switch",
        &[],
        Argument::Required("session", Values::Sessions),
        "open a session by id, unique beginning, path or `latest`",
        When::Idle,
        |argument| Ok(A::SessionSwitch(owned(argument).unwrap_or_default())),
    ),
    taking(
        "resume",
        &[],
        Argument::Optional("session", Values::Sessions),
        "open an earlier session, or choose one from a list",
        When::Idle,
        |argument| Ok(A::Resume(owned(argument))),
    ),
    taking(
        "export",
        &[],
        Argument::Optional("file", Values::Free),
        "write the conversation as markdown",
        When::Always,
        |argument| Ok(A::Export(argument.map(Into::into))),
    ),
    plain("cost", &["usage"], "show tokens and cost of this session", When::Always, |_| {
        Ok(A::Cost)
    }),
    plain("context", &["tokens"], "show how full the context is", When::Always, |_| Ok(A::Context)),
    plain("config", &[], "show the settings and where each comes from", When::Always, |_| {
        Ok(A::Config)
    }),
    taking(
        "history",
        &[],
        Argument::Optional("count", Values::Free),
        "show the last prompts",
        When::Always,
        |argument| match argument.map(str::parse) {
            None => Ok(A::History(HISTORY_DEFAULT)),
            Some(Ok(count)) if count > 0 => Ok(A::History(count)),
            Some(_) => Err("the count must be a whole number above 0".to_owned()),
        },
    ),
    plain("retry", &[], "run the last prompt again after a failure", When::Idle, |_| Ok(A::Retry)),
    plain("stop", &[], "interrupt what is running", When::Always, |_| Ok(A::Stop)),
    plain("copy", &[], "put the last answer on the clipboard", When::Always, |_| Ok(A::Copy)),
    plain("thinking", &[], "show or hide the model's thinking", When::Always, |_| Ok(A::Thinking)),
    plain("details", &[], "show or fold the details of tool calls", When::Always, |_| {
        Ok(A::Details)
    }),
    plain("worker", &[], "look at the worker's own screen and type into it", When::Always, |_| {
        Ok(A::Worker)
    }),
    taking(
        "theme",
        &[],
        Argument::Optional("name", Values::Themes),
        "switch the colours, or choose them from a list",
        When::Always,
        |argument| Ok(A::Theme(owned(argument))),
    ),
    plain("version", &[], "show the version of this program", When::Always, |_| Ok(A::Version)),
    plain("exit", &["quit"], "leave; the session stays on disk", When::Always, |_| Ok(A::Exit)),
];
