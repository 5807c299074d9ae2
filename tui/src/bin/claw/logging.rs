//! Logs go to files, never to the terminal, and only when CLAW_LOG asks for them.

use std::path::PathBuf;

use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;

/// Files kept; one a day.
const KEPT: usize = 5;

/// Starts logging to `<config home>/logs` when CLAW_LOG holds a filter such as `info` or
/// `claw_runtime=debug`. The guard flushes when dropped.
pub fn start(config_home: Option<PathBuf>) -> Option<WorkerGuard> {
    let filter = std::env::var("CLAW_LOG").ok().filter(|filter| !filter.is_empty())?;
    let files = tracing_appender::rolling::Builder::new()
        .rotation(tracing_appender::rolling::Rotation::DAILY)
        .max_log_files(KEPT)
        .filename_prefix("claw")
        .filename_suffix("log")
        .build(config_home?.join("logs"))
        .ok()?;
    let (writer, guard) = tracing_appender::non_blocking(files);
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(writer)
        .with_ansi(false)
        .try_init()
        .ok()?;
    Some(guard)
}
