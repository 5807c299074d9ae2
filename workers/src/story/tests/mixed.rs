//! Stories from records alone.
