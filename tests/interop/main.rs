//! The real Claude Code CLI against what we say about it: two versions, a model server of our own on
//! loopback, and a home of its own for each test. `.ci/interop` installs the CLI and runs these; without
//! it each test says that it was skipped.

mod cli;
mod ending;
mod hooks;
mod live_text;
mod pool;
mod prompts;
mod questions;
mod start;
mod stories;
mod stream_json;
mod stream_worker;
mod terminal;
mod transcript;
