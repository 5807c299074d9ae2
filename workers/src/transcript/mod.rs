//! The transcript file that the CLI writes: where it lies, what its lines say, and how it is
//! followed while it grows. The truth about a session is here, whole blocks after the fact.
//!
//! Refuses to write, move or lock anything of the CLI (but for `migrate`, which copies a session), and to wait for a line that is not there:
//! whoever needs an end of waiting brings it.

mod agents;
mod lines;
mod migrate;
mod path;
mod reader;
pub(crate) mod record;
mod tail;
mod watch;

pub use agents::AgentFollower;
pub use lines::LINE_LIMIT;
pub use migrate::{MigrateError, Migrated, migrate};
pub use path::{agents_folder, config_dir, slug, transcript_path};
pub use reader::{ReaderEvent, TranscriptReader};
pub use record::{Record, RecordError};
