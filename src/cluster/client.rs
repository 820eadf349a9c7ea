//! A small client: one connection over a Unix socket, simple queries, rows of text. No pool, no TLS, no passwords.

use crate::error::{Error, Result};
use std::path::Path;

/// One connection.
#[derive(Debug)]
pub struct Client {}

/// One row: a text, or NULL, for each column.
pub type TextRow = Vec<Option<String>>;

impl Client {
    /// Connects to the socket file.
    ///
    /// # Errors
    /// With the server's own words.
    pub fn connect(_socket: &Path, _user: &str, _database: &str) -> Result<Client> {
        Err(Error::bug("not there yet"))
    }

    /// Runs one or more statements and returns the rows of the last one that has any.
    ///
    /// # Errors
    /// With the server's own words.
    pub fn query(&mut self, _sql: &str) -> Result<Vec<TextRow>> {
        Err(Error::bug("not there yet"))
    }
}
