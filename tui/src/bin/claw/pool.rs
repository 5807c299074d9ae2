//! `claw pool`: warm Claude Code workers for scripts and editors, behind a Unix socket.

use std::io::{IsTerminal as _, Read as _, Write as _, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use claw_runtime::settings::TransportChoice;
use claw_tui::sanitise::Sanitiser;
use claw_workers::pool::daemon::{self, DaemonError, PoolClient, PoolServer};
use claw_workers::pool::{Ask, PoolConfig, PoolError, PoolStatus, WorkerPool};
use claw_workers::{Host, WorkerConfig, private_dir};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::{PoolAsk, PoolForm, PoolServe, PoolWhere};
use crate::claude;
use crate::wiring::Workspace;

pub fn run(form: PoolForm) -> Result<ExitCode> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let code = match form {
        PoolForm::Serve(options) => runtime.block_on(serve(options)),
        PoolForm::Ask(options) => runtime.block_on(ask(options)),
        PoolForm::Status { at, json } => runtime.block_on(status(&at, json)),
        PoolForm::Doctor(options) => runtime.block_on(doctor(options)),
    };
    runtime.shutdown_timeout(Duration::from_secs(1));
    code
}

/// Where the socket is.
fn socket(at: &PoolWhere) -> Result<PathBuf, DaemonError> {
    if let Some(path) = &at.socket {
        return Ok(path.clone());
    }
    let environment: Vec<_> = std::env::vars_os().collect();
    Ok(private_dir::private_root(&environment)?.join(daemon::SOCKET))
}

fn worker_config(options: &PoolServe) -> Result<WorkerConfig> {
    let common = crate::args::Common { cwd: options.cwd.clone(), ..Default::default() };
    let workspace = Workspace::enter(&common)?;
    let settings = workspace.settings.workers();
    let mut config = claude::config(&settings, &workspace.root);
    config.private_root = private_dir::private_root(&config.environment)?;
    match options.transport {
        Some(TransportChoice::Pty) => config.transport = claw_workers::Transport::Pty,
        Some(TransportChoice::Stream) => config.transport = claw_workers::Transport::Stream,
        None => {}
    }
    config.model.clone_from(&options.model);
    if let Some(mode) = &options.permission_mode {
        config.permission_mode.clone_from(mode);
    }
    config.allowed_tools.clone_from(&options.allowed_tools);
    if options.cwd.is_none() {
        // Nobody's project: a folder of our own, which needs nobody's trust.
        config.cwd = private_dir::scratch_dir(&config.home)?;
        config.trusted = true;
    }
    // Nobody looks at what it says while it says it.
    config.tap = false;
    Ok(config)
}

fn pool_config(options: &PoolServe) -> Result<PoolConfig> {
    if options.max == 0 || options.warm > options.max {
        bail!("--max must be at least 1 and at least --warm");
    }
    let mut config = PoolConfig::new(worker_config(options)?);
    (config.warm, config.max, config.queue) = (options.warm, options.max, options.queue);
    config.starting = options.starting.max(1);
    config.idle = Duration::from_secs(options.idle_seconds.max(1));
    config.timeout = Duration::from_secs(options.timeout.max(1));
    config.grace = Duration::from_secs(options.grace);
    Ok(config)
}

async fn serve(options: PoolServe) -> Result<ExitCode> {
    let path = match socket(&options.at) {
        Ok(path) => path,
        Err(error) => return Ok(failed(&error)),
    };
    let config = pool_config(&options)?;
    let server = match PoolServer::bind(&path) {
        Ok(server) => server,
        Err(error) => return Ok(failed(&error)),
    };
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt, mut hang_up) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
    );
    let stopped = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up.recv() => {}
        }
        stopped.cancel();
    });
    let host = Arc::new(Host::default());
    let pool = WorkerPool::open(config, Arc::clone(&host));
    say(&format!("{}\n", path.display()))?;
    let left_nothing = server.serve(pool, stop).await;
    Ok(if left_nothing { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

async fn ask(options: PoolAsk) -> Result<ExitCode> {
    let prompt = match options.prompt {
        Some(prompt) if prompt != "-" => prompt,
        _ => {
            if stdin().is_terminal() {
                bail!("give the prompt as an argument or on standard input");
            }
            let mut text = String::new();
            stdin().read_to_string(&mut text).context("the prompt cannot be read")?;
            text
        }
    };
    let cwd = options.cwd.map(|cwd| std::path::absolute(&cwd)).transpose()?;
    let ask = Ask {
        prompt,
        cwd,
        session: options.session,
        timeout_ms: options.timeout.map(|seconds| seconds.saturating_mul(1000)),
    };
    let answered = async {
        let mut client = PoolClient::connect(&socket(&options.at)?).await?;
        client.ask(ask).await
    };
    match answered.await {
        Ok(reply) if options.json => say(&format!("{}\n", serde_json::to_string(&reply)?))?,
        Ok(reply) => {
            let mut shown = String::new();
            if stdout().is_terminal() {
                Sanitiser::text().push(&reply.text, &mut shown);
            } else {
                shown.clone_from(&reply.text);
            }
            say(&format!("{}\n", shown.trim_end()))?;
        }
        Err(error) if options.json => {
            let error =
                serde_json::json!({"error": {"name": error.name(), "message": error.to_string()}});
            say(&format!("{error}\n"))?;
            let name = error["error"]["name"].as_str().unwrap_or_default().to_owned();
            return Ok(ExitCode::from(daemon::exit_code(&name)));
        }
        Err(error) => return Ok(failed(&error)),
    }
    Ok(ExitCode::SUCCESS)
}

async fn status(at: &PoolWhere, json: bool) -> Result<ExitCode> {
    let told = async {
        let mut client = PoolClient::connect(&socket(at)?).await?;
        client.status().await
    };
    match told.await {
        Ok(status) if json => say(&format!("{}\n", serde_json::to_string(&status)?))?,
        Ok(status) => say(&words(&status))?,
        Err(error) => return Ok(failed(&error)),
    }
    Ok(ExitCode::SUCCESS)
}

fn words(status: &PoolStatus) -> String {
    let mut text = format!(
        "pid {} · {} · at most {} workers\n\
         warm {} · starting {} · busy {} · queued {} · retiring {} · sessions {}\n",
        status.pid,
        status.transport,
        status.max,
        status.warm,
        status.starting,
        status.busy,
        status.queued,
        status.retiring,
        status.sessions,
    );
    if let Some((name, message)) = &status.last_failure {
        text.push_str(&format!(
            "{} starts failed, the last one as {name}: {message}\nthe next try is in {} s\n",
            status.failures,
            status.cool_down_ms.div_ceil(1000),
        ));
    }
    text
}

/// Starts one worker and says what became of it.
async fn doctor(options: PoolServe) -> Result<ExitCode> {
    let mut config = pool_config(&options)?;
    config.warm = 1;
    let (program, cwd) =
        (config.worker.program.to_string_lossy().into_owned(), config.worker.cwd.clone());
    let pool = WorkerPool::open(config, Arc::new(Host::default()));
    let began = std::time::Instant::now();
    pool.warmed(1).await;
    let status = pool.status();
    pool.close().await;
    match status.last_failure {
        None => {
            say(&format!(
                "{program} is ready in {} after {:.1} s ({})\n",
                cwd.display(),
                began.elapsed().as_secs_f32(),
                status.transport
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Some((name, message)) => {
            say(&format!("{name}: {message}\n"))?;
            Ok(ExitCode::from(PoolError::exit_code_of(&name)))
        }
    }
}

fn say(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

#[expect(clippy::print_stderr, reason = "there is no screen of ours here")]
fn failed(error: &DaemonError) -> ExitCode {
    eprintln!("claw: {}: {error}", error.name());
    ExitCode::from(daemon::exit_code(error.name()))
}
