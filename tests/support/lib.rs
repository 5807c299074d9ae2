//! What end-to-end tests share: stand-ins for the outside world, and nothing that ships.

pub mod mock_api;
