//! The whole program with the stand-in for the Claude Code CLI as its backend.

mod asides;
mod ending;
mod failures;
mod sessions;
mod trust;
mod turns;
