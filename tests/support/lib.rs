//! What end-to-end tests share: stand-ins for the outside world, and nothing that ships.

pub mod claude;
pub mod claude_backend;
pub mod client_talk;
pub mod harness;
pub mod hook_log;
pub mod mock_api;
pub mod screen;
pub mod story;
pub mod turn;
pub mod worker_room;
pub mod worker_stage;
pub mod worker_stories;
