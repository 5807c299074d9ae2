//! `claw-runtime`: the agent.
//!
//! A [`conversation`] runs turns: it sends the [`session`] to an [`api`] client, runs the
//! [`tools`] that the model asks for once [`permissions`] allow it, and [`compact`]s when the
//! context grows too large. Everything it tells goes through one [`event`] sink; everything it asks
//! and everything that stops it comes through the [`context`]. The [`driver`] owns it on a thread.
//!
//! Deliberately missing: any terminal, any pty, any printing, any knowledge of who is listening.

pub mod api;
pub mod compact;
pub mod context;
pub mod conversation;
pub mod driver;
pub mod error;
pub mod event;
pub mod hooks;
pub mod permissions;
pub mod prompt;
pub mod redact;
pub mod sequences;
pub mod session;
pub mod settings;
pub mod tools;
pub mod usage;

pub use context::TurnContext;
pub use conversation::{TurnStop, TurnSummary};
pub use error::RuntimeError;
pub use event::{CompactionCause, NoticeLevel, StreamSink, TuiEvent};
