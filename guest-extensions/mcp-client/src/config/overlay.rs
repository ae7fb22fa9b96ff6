//! All files together: the user's servers, and what a project adds and changes.

use super::{
    Document, Place, document,
    entry::{self, Entry, Read},
    problem::{Findings, Problem, Severity, shown},
};
use crate::names::{is_server_name, namespace, near_matches, server_name_like};

/// What the files say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The servers, in the order of the files.
    pub servers: Vec<Server>,
    /// Scripts are switched on where servers need them, unless a file says otherwise.
    pub auto_enable_codemode: Option<bool>,
    /// What is wrong, or worth knowing.
    pub problems: Vec<Problem>,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Whose file defines it.
    pub place: Place,
    /// That file.
    pub path: String,
    /// The project's file that changes it, if there is one.
    pub changed_by: Option<String>,
    /// What it is.
    pub entry: Entry,
}

impl Configuration {
    /// Reads the files, the user's first.
    pub fn read(documents: &[Document<'_>]) -> Self {
        let mut all = Self::default();
        for document in documents {
            all.add(document);
        }
        all
    }

    /// Nothing, because the files can not be read: why, with the file.
    pub fn unreadable(why: String) -> Self {
        let problem = Problem { path: String::new(), server: None, severity: Severity::Error, text: why };
        Self { problems: vec![problem], ..Self::default() }
    }

    /// Whether something was left out.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    fn add(&mut self, document: &Document<'_>) {
        let path = document.path;
        let mut of_file = Findings::default();
        let said = document::read(document.text, &mut of_file);
        let Findings { errors, notes } = of_file;
        let problem = |severity| move |text| Problem { path: path.to_owned(), server: None, severity, text };
        self.problems.extend(errors.into_iter().map(problem(Severity::Error)));
        self.problems.extend(notes.into_iter().map(problem(Severity::Note)));
        if said.auto_enable_codemode.is_some() {
            self.auto_enable_codemode = said.auto_enable_codemode;
        }
        for (name, value) in &said.servers {
            let mut found = Findings::default();
            if is_server_name(name) {
                if let Some(read) = entry::read(value, document.place, &mut found) {
                    self.put(document, name, read, &mut found);
                }
            } else {
                let like = server_name_like(name);
                found.error(format!("a name has letters, digits, `_` and `-`, 64 at most: call it \"{like}\""));
            }
            self.problems.extend(found.problems(path, name));
        }
    }

    fn put(&mut self, document: &Document<'_>, name: &str, read: Read, found: &mut Findings) {
        let known = self.servers.iter().position(|server| server.name == name);
        match (read, known.and_then(|at| self.servers.get_mut(at))) {
            (Read::Override(change), Some(server)) => {
                change.apply(&mut server.entry);
                server.changed_by = Some(document.path.to_owned());
            }
            (Read::Override(_), None) => {
                let near = near_matches(name, self.servers.iter().map(|server| server.name.as_str()));
                let near = near.first().map(|near| format!("; is \"{near}\" meant?")).unwrap_or_default();
                found.error(format!(
                    "there is no server of that name that could be changed{near} To define one here, give it a \"command\" or a \
                     \"url\""
                ));
            }
            (Read::Entry(entry), Some(server)) => {
                if server.place != document.place {
                    found.note(format!("it takes the place of the one that {} has under this name", server.path));
                }
                *server = Server {
                    name: name.to_owned(),
                    place: document.place,
                    path: document.path.to_owned(),
                    changed_by: None,
                    entry,
                };
            }
            (Read::Entry(entry), None) => {
                let own = namespace(name);
                if let Some(clash) = self.servers.iter().find(|server| namespace(&server.name) == own) {
                    return found.error(format!(
                        "the name differs from that of the server {} only in `-` and `_`, so their tools would have the same \
                         names; give it another",
                        shown(&clash.name)
                    ));
                }
                self.servers.push(Server {
                    name: name.to_owned(),
                    place: document.place,
                    path: document.path.to_owned(),
                    changed_by: None,
                    entry,
                });
            }
        }
    }
}
