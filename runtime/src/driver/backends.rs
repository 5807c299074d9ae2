//! The backends of the program as a table of rows, and opening one by name.
//!
//! The composition root builds the table in order of preference; a row knows whether it is
//! configured and how to make its client. Nothing is connected before the first request.

use crate::api::{ApiClient, ApiError};

/// An opened backend.
pub struct Backend {
    pub name: String,
    pub client: Box<dyn ApiClient>,
    pub model: String,
    /// Tokens, when the model table knows it.
    pub context_window: Option<u64>,
    /// Must stay visible while it is in use.
    pub note: Option<String>,
}

/// Makes a client for a model; without one for the row's default.
pub type OpenBackend = Box<dyn FnMut(Option<&str>) -> Result<Backend, ApiError> + Send>;

/// One way to get answers.
pub struct BackendRow {
    pub name: &'static str,
    /// It has what it needs (a key, an address, a program).
    pub configured: bool,
    /// The variables that configure it, the most usual first.
    pub variables: Vec<&'static str>,
    /// Where its requests go; none where that is nobody's to say.
    pub address: Option<String>,
    /// Models worth offering.
    pub models: Vec<String>,
    pub open: OpenBackend,
}

/// The table.
pub struct Backends {
    rows: Vec<BackendRow>,
}

impl Backends {
    /// Rows in order of preference.
    pub fn new(rows: Vec<BackendRow>) -> Self {
        Self { rows }
    }

    /// Names of those that are configured, in order of preference.
    pub fn names(&self) -> Vec<String> {
        self.rows.iter().filter(|row| row.configured).map(|row| row.name.to_owned()).collect()
    }

    /// All rows, in order of preference.
    pub fn rows(&self) -> &[BackendRow] {
        &self.rows
    }

    pub fn models(&self, backend: &str) -> Vec<String> {
        self.rows
            .iter()
            .find(|row| row.name == backend)
            .map(|row| row.models.clone())
            .unwrap_or_default()
    }

    /// Opens the named one, configured or not (an unconfigured one says what it needs).
    pub fn open(&mut self, name: &str, model: Option<&str>) -> Result<Backend, ApiError> {
        match self.rows.iter_mut().find(|row| row.name == name) {
            Some(row) => (row.open)(model),
            None => Err(ApiError::UnknownBackend {
                name: name.to_owned(),
                known: self.rows.iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Opens the first that is configured.
    pub fn open_first(&mut self, model: Option<&str>) -> Result<Backend, ApiError> {
        let name = self.names().into_iter().next().unwrap_or_default();
        self.open(&name, model)
    }
}
