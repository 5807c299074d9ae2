//! To be built: the table of built-in tools and the [`super::ToolExecutor`] over it.

/// The built-in tools bound to a workspace.
pub struct ToolRegistry;
