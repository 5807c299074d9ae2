//! What end-to-end tests share: stand-ins for the outside world, and nothing that ships.

pub mod harness;
pub mod mock_api;
pub mod screen;
pub mod story;
pub mod turn;
