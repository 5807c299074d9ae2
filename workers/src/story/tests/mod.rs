//! Stories from records, from live facts, and from any mix of both.

mod live;
mod mixed;
mod records;
mod support;
mod transcripts;
