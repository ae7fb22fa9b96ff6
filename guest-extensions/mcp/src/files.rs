//! `mcp.json`: the user's, and that of a trusted project.

use atoll_mcp_client::config::{self as client, Configuration, Document, edit};
use atoll_plugin::{
    Error,
    config::{self, Place},
};

/// The file's name.
pub(crate) const FILE: &str = "mcp.json";

/// The files as they were read.
pub(crate) struct Files {
    all: Vec<config::Document>,
}

impl Files {
    /// Reads them. Without any there are no servers.
    ///
    /// # Errors
    /// Why they can not be read.
    pub(crate) async fn read() -> Result<Self, Error> {
        Ok(Self { all: config::read(FILE.to_owned()).await? })
    }

    /// What they say.
    pub(crate) fn configuration(&self) -> Configuration {
        let documents: Vec<Document<'_>> = self
            .all
            .iter()
            .filter(|document| document.trusted)
            .map(|document| Document { place: of_file(document.place), path: &document.path, text: &document.text })
            .collect();
        Configuration::read(&documents)
    }

    /// The one in a place, if it is there.
    fn at(&self, place: Place) -> Option<&config::Document> {
        self.all.iter().find(|document| document.place == place)
    }

    /// The text of the one in a place, to be changed.
    ///
    /// # Errors
    /// `denied` if it is a project's that does not count, in the host's words.
    pub(crate) async fn text(&self, place: Place) -> Result<&str, Error> {
        match self.at(place) {
            // It is not written, for it may not be.
            Some(document) if !document.trusted => {
                let written = self.write(place, String::new()).await;
                Err(written.err().unwrap_or_else(|| Error::failed(format!("{} does not count", document.path))))
            }
            Some(document) => Ok(&document.text),
            None => Ok(""),
        }
    }

    /// Whether the one in a place has a server of this name.
    pub(crate) fn has(&self, place: Place, name: &str) -> bool {
        self.at(place).is_some_and(|document| edit::remove(&document.text, name).is_ok_and(|without| without.is_some()))
    }

    /// Writes the one in a place. Gives its path.
    ///
    /// # Errors
    /// Why it can not be written; `stale` if somebody else has changed it.
    pub(crate) async fn write(&self, place: Place, text: String) -> Result<String, Error> {
        let version = self.at(place).map(|document| document.version.clone());
        Ok(config::write(FILE.to_owned(), place, text, version).await?.path)
    }
}

fn of_file(place: Place) -> client::Place {
    match place {
        Place::User => client::Place::User,
        Place::Project => client::Place::Project,
    }
}
