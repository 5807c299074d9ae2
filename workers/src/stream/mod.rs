//! The `stream` transport: the CLI with JSON lines in both directions.
//!
//! [`codec`] and [`write`] know the lines and nothing else. Refuses to know
//! terminals, and to decide about permissions: every question goes out as an event.

pub mod codec;
mod message;
pub mod write;
