//! What the person may type after `claw`. Forms and names follow claw-code.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use claw_runtime::permissions::PermissionMode;
use claw_runtime::settings::TransportChoice;

/// A terminal for coding agents.
#[derive(Debug, Parser)]
#[command(
    name = "claw",
    version,
    about = "A terminal for coding agents",
    long_about = None,
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Form>,

    /// Run one turn without a screen and print the answer
    #[arg(short, long, value_name = "PROMPT", num_args = 0..=1, default_missing_value = "-")]
    print: Option<String>,

    /// Prompt for one turn without a screen (the same as -p)
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,

    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum Form {
    /// Talk to the agent on a full screen (also what `claw` alone does)
    Tui {
        /// Sent at once
        prompt: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Run one turn without a screen and print the answer
    Prompt {
        /// `-` or nothing: read it from standard input
        prompt: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Say what claw finds on this machine, and what to do about what is missing
    #[command(after_help = DOCTOR_CODES)]
    Doctor(DoctorOptions),
    /// Keep Claude Code workers warm for scripts and editors, and ask them
    #[command(subcommand)]
    Pool(PoolForm),
}

/// Forms of `claw pool`.
#[derive(Debug, Subcommand)]
pub enum PoolForm {
    /// Run the pool; it prints the path of its socket and ends with SIGTERM or Ctrl+C
    Serve(PoolServe),
    /// Ask the pool that runs, and print the answer
    #[command(after_help = POOL_CODES)]
    Ask(PoolAsk),
    /// Say what the pool that runs is doing
    Status {
        #[command(flatten)]
        at: PoolWhere,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Start one worker as the pool would, and say what becomes of it
    #[command(after_help = POOL_CODES)]
    Doctor(PoolServe),
}

const POOL_CODES: &str = "\
Exit codes, by the name of the error:
  2   bad_request, refused_prompt, other_folder, too_large, line_too_long
  3   program_missing
  4   version_unknown
  5   auth
  6   not_trusted
  7   dialog
  8   timeout, not_ready, inactive, unconfirmed, not_reading
  9   busy, closed, too_many_connections
  10  api
  11  not_running, already_running, not_a_socket, other_user
  1   everything else";

/// Where the socket of the pool is.
#[derive(Debug, Clone, Default, Args)]
pub struct PoolWhere {
    /// The socket; its folder must be yours alone (mode 0700)
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// Options of `claw pool serve`.
#[derive(Debug, Clone, Args)]
pub struct PoolServe {
    #[command(flatten)]
    pub at: PoolWhere,

    /// pty or stream; without it as in the settings (workers.transport)
    #[arg(long, value_parser = transport)]
    pub transport: Option<TransportChoice>,

    /// Workers that are kept ready
    #[arg(long, default_value_t = 1)]
    pub warm: usize,

    /// Processes at the same time, in whatever state
    #[arg(long, default_value_t = 4)]
    pub max: usize,

    /// Of those, how many may be starting
    #[arg(long, default_value_t = 2)]
    pub starting: usize,

    /// Asks that may wait
    #[arg(long, default_value_t = 64)]
    pub queue: usize,

    /// Model of the workers
    #[arg(long)]
    pub model: Option<String>,

    /// The CLI's own permission mode
    #[arg(long, value_name = "MODE")]
    pub permission_mode: Option<String>,

    /// The CLI's own rules for tools that need no permission
    #[arg(long = "allowedTools", visible_alias = "allowed-tools", value_delimiter = ',')]
    pub allowed_tools: Vec<String>,

    /// Seconds without a prompt after which a session gives its worker back
    #[arg(long, default_value_t = 1800, value_name = "SECONDS")]
    pub idle_seconds: u64,

    /// Seconds that an ask may take when it does not say
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    pub timeout: u64,

    /// Seconds that running asks are given when the pool ends
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub grace: u64,

    /// Folder of asks that name none; without it a scratch folder of its own
    #[arg(short = 'C', long = "cwd", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// Options of `claw pool ask`.
#[derive(Debug, Clone, Args)]
pub struct PoolAsk {
    /// `-` or nothing: read it from standard input, so that it is in no list of processes
    pub prompt: Option<String>,

    #[command(flatten)]
    pub at: PoolWhere,

    /// Go on in the session of this name
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,

    /// Work in this folder
    #[arg(short = 'C', long = "cwd", value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Seconds until it is given up
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,

    /// Print the answer, or the error, as JSON
    #[arg(long)]
    pub json: bool,
}

fn transport(name: &str) -> Result<TransportChoice, String> {
    match name {
        "pty" => Ok(TransportChoice::Pty),
        "stream" => Ok(TransportChoice::Stream),
        _ => Err("one of pty, stream".to_owned()),
    }
}

const DOCTOR_CODES: &str = "\
Exit codes (the first that holds):
  0  everything that is needed works
  1  claw could not look
  3  a settings file is not understood
  4  no backend but the demo
  5  the claude backend is wanted, and its program is missing
  6  the same, and its program does not run or does not say its version
  7  the same, and no login of it can be seen
  8  conversations cannot be saved in this folder";

/// Options of `claw doctor`.
#[derive(Debug, Clone, Default, Args)]
pub struct DoctorOptions {
    /// The backend that is meant to answer
    #[arg(long, value_enum)]
    pub backend: Option<BackendName>,

    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,

    /// Look from this folder
    #[arg(short = 'C', long = "cwd", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// Options of every form.
#[derive(Debug, Clone, Default, Args)]
pub struct Common {
    /// Backend; without it the first that is configured
    #[arg(long, value_enum)]
    pub backend: Option<BackendName>,

    /// Model or alias
    #[arg(long)]
    pub model: Option<String>,

    /// read-only, workspace-write, danger-full-access, prompt or allow
    #[arg(long, value_name = "MODE")]
    pub permission_mode: Option<PermissionMode>,

    /// The same as --permission-mode danger-full-access
    #[arg(long, visible_alias = "skip-permissions", conflicts_with = "permission_mode")]
    pub dangerously_skip_permissions: bool,

    /// Offer only these tools, by our names or Claude Code's: read_file,grep_search or Read,Grep
    #[arg(
        long = "allowedTools",
        visible_alias = "allowed-tools",
        value_name = "TOOLS",
        value_delimiter = ','
    )]
    pub allowed_tools: Vec<String>,

    /// Continue a session: an id, the beginning of one, a path, or `latest` (also without a value)
    #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "latest")]
    pub resume: Option<String>,

    /// Work in this folder
    #[arg(short = 'C', long = "cwd", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    Anthropic,
    Openai,
    Xai,
    Dashscope,
    Ollama,
    Demo,
    Claude,
}

impl BackendName {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::Xai => "xai",
            Self::Dashscope => "dashscope",
            Self::Ollama => "ollama",
            Self::Demo => "demo",
            Self::Claude => "claude",
        }
    }
}

/// What to do, with everything it needs.
pub enum Task {
    Interactive(Options),
    Headless(Options),
    Doctor(DoctorOptions),
    Pool(PoolForm),
}

pub struct Options {
    pub common: Common,
    /// Headless: `None` or `-` mean standard input.
    pub prompt: Option<String>,
}

impl Cli {
    pub fn task(self) -> Task {
        match (self.command, self.print, self.prompt) {
            (Some(Form::Tui { prompt, common }), ..) => {
                Task::Interactive(Options { common, prompt })
            }
            (Some(Form::Prompt { prompt, common }), ..) => {
                Task::Headless(Options { common, prompt })
            }
            (Some(Form::Doctor(options)), ..) => Task::Doctor(options),
            (Some(Form::Pool(form)), ..) => Task::Pool(form),
            (None, Some(print), prompt) => {
                let prompt = if print == "-" { prompt } else { Some(print) };
                Task::Headless(Options { common: self.common, prompt })
            }
            (None, None, Some(prompt)) => {
                Task::Headless(Options { common: self.common, prompt: Some(prompt) })
            }
            (None, None, None) => Task::Interactive(Options { common: self.common, prompt: None }),
        }
    }
}

impl Common {
    /// The mode asked for on the command line.
    pub fn mode(&self) -> Option<PermissionMode> {
        if self.dangerously_skip_permissions {
            Some(PermissionMode::DangerFullAccess)
        } else {
            self.permission_mode
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Task {
        Cli::try_parse_from(line.split_whitespace()).unwrap().task()
    }

    #[test]
    fn the_argument_table_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_form_finds_its_task() {
        for (line, interactive, prompt) in [
            ("claw", true, None),
            ("claw tui", true, None),
            ("claw tui hello", true, Some("hello")),
            ("claw tui --resume", true, None),
            ("claw -p hello", false, Some("hello")),
            ("claw -p", false, None),
            ("claw hello", false, Some("hello")),
            ("claw prompt hello", false, Some("hello")),
            ("claw prompt", false, None),
        ] {
            let (is_interactive, options) = match parse(line) {
                Task::Interactive(options) => (true, options),
                Task::Headless(options) => (false, options),
                Task::Doctor(_) | Task::Pool(_) => panic!("{line}"),
            };
            assert_eq!(is_interactive, interactive, "{line}");
            assert_eq!(options.prompt.as_deref(), prompt, "{line}");
        }
    }

    #[test]
    fn resume_without_a_value_means_latest() {
        let Task::Interactive(options) = parse("claw tui --resume") else { panic!("interactive") };
        assert_eq!(options.common.resume.as_deref(), Some("latest"));
        let Task::Interactive(options) = parse("claw tui --resume session-1") else {
            panic!("interactive")
        };
        assert_eq!(options.common.resume.as_deref(), Some("session-1"));
    }
}
