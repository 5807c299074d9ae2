//! `claw-workers`: real Claude Code CLI sessions on ptys, offered as an `ApiClient`.
//!
//! A worker is one CLI process that we start and own. What it says becomes [`Fact`]s, whichever way
//! it comes; a pure protocol machine decides what to do; facts become the runtime's events and
//! messages.
//!
//! Deliberately missing: any drawing, any knowledge of the front-end.

mod api_event;
pub mod argv;
mod child;
mod client;
mod config;
pub mod dialog;
pub mod environment;
mod error;
mod event;
mod fact;
pub mod guard;
pub mod hooks;
mod host;
mod interactive;
pub mod pool;
pub mod private_dir;
pub mod process;
pub mod prompt;
pub mod protocol;
mod pty;
mod screen;
mod screens;
mod story;
pub mod stream;
pub mod tap;
#[cfg(test)]
mod testing;
mod timings;
pub mod transcript;
pub mod trust;
pub mod version;
mod worker;

pub use child::{Exit, Input, LiveScreen, PtyChild};
pub use client::{Judge, Memory, WorkerClient, WorkerClientParts};
pub use config::{Transport, WindowSize, WorkerConfig};
pub use error::WorkerError;
pub use event::{Asked, SteerError, TurnEnd, Verdict, WorkerEvent};
pub use fact::{AgentEnd, DeniedBy, Fact, FailureKind, PromptSource, Quota};
pub use host::Host;
pub use pool::{Ask, PoolConfig, PoolError, PoolStatus, Reply, Stage, WorkerPool};
pub use pty::PtyCommand;
pub use screen::{CellText, Mouse, Screen, ScreenCell, ScreenColour, ScreenView};
pub use screens::{Screens, SeenScreen};
pub use story::{Ending, Story};
pub use timings::Timings;
pub use worker::{OpenAs, Order, Worker};
