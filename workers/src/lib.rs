//! `claw-workers`: real Claude Code CLI sessions on ptys, offered as an `ApiClient`.
//!
//! So far only the errors of this crate; the worker, its protocol and the pool move in behind them.
//!
//! Deliberately missing: any drawing, any knowledge of the front-end.

mod error;

pub use error::WorkerError;
