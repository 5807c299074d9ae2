//! The whole program with the stand-in for the Claude Code CLI as its backend.

mod asides;
mod crashes;
mod ending;
mod failures;
mod interrupts;
mod questions;
mod sessions;
mod steering;
mod trust;
mod turns;
