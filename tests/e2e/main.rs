//! End-to-end tests, one binary: linking dominates.

mod architecture;
mod fake;
mod smoke;
mod stories;
mod turn;
mod wire;
mod workers;
