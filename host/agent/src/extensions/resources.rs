//! Where extensions say that more skills, templates of prompts and themes are.
//!
//! Naming a place opens nothing: no tool may read what is there because an extension named it.

use std::{
    path::{Path, PathBuf},
    sync::PoisonError,
};

use atoll_table::{
    Error,
    extension::{Event, EventKind, Outcome},
};
use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;

use super::{
    Extensions,
    effects::{Flow, field, reply},
};

/// Places, each once, in load order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Of skills.
    pub skills: Vec<PathBuf>,
    /// Of templates of prompts.
    pub prompts: Vec<PathBuf>,
    /// Of themes.
    pub themes: Vec<PathBuf>,
}

impl Resources {
    fn apply(&mut self, cwd: &Path, outcome: Outcome) -> Result<Flow, Error> {
        let kind = EventKind::ResourcesDiscover;
        let Some(mut fields) = reply(kind, outcome)? else { return Ok(Flow::On) };
        // All of it is read before any of it counts.
        let mut read = |name: &str| paths(kind, &mut fields, name);
        let (skills, prompts, themes) = (read("skillPaths")?, read("promptPaths")?, read("themePaths")?);
        for (all, new) in [(&mut self.skills, skills), (&mut self.prompts, prompts), (&mut self.themes, themes)] {
            for path in new.into_iter().map(|path| cwd.join(path)) {
                if !all.contains(&path) {
                    all.push(path);
                }
            }
        }
        Ok(Flow::On)
    }
}

fn paths(kind: EventKind, fields: &mut Map<String, serde_json::Value>, name: &str) -> Result<Vec<PathBuf>, Error> {
    Ok(field(kind, fields, name)?.unwrap_or_default())
}

impl Extensions {
    /// Asks where more is, and keeps what is said in place of what was said before. `reason` is `startup` or `reload`.
    pub async fn discover_resources(&self, cwd: &Path, reason: &str) {
        let mut resources = Resources::default();
        let event = |_: &Resources| Event::other(EventKind::ResourcesDiscover, json!({"cwd": cwd, "reason": reason}));
        let apply = |resources: &mut Resources, outcome| resources.apply(cwd, outcome);
        let stop = CancellationToken::new();
        self.ask_each(EventKind::ResourcesDiscover, &stop, &mut resources, event, apply).await;
        *self.inner.resources.write().unwrap_or_else(PoisonError::into_inner) = resources;
    }

    /// What was last said.
    pub fn resources(&self) -> Resources {
        self.inner.resources.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replied(fields: serde_json::Value) -> Outcome {
        let serde_json::Value::Object(fields) = fields else { panic!("{fields}") };
        Outcome::Reply(fields)
    }

    #[test]
    fn places_are_joined_in_load_order_each_once() {
        let mut resources = Resources::default();
        let cwd = Path::new("/project");
        resources.apply(cwd, replied(json!({"skillPaths": ["/a", "b"], "themePaths": null}))).unwrap();
        resources.apply(cwd, Outcome::Pass).unwrap();
        resources.apply(cwd, replied(json!({"skillPaths": ["/project/b", "c"], "promptPaths": ["d"]}))).unwrap();
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let expected = Resources {
            skills: paths(&["/a", "/project/b", "/project/c"]),
            prompts: paths(&["/project/d"]),
            themes: Vec::new(),
        };
        assert_eq!(resources, expected);
        // What can not be used changes nothing.
        for wrong in [replied(json!({"promptPaths": ["e"], "skillPaths": "f"})), Outcome::Handled] {
            assert_eq!(resources.apply(cwd, wrong).unwrap_err().code(), "invalid-arguments");
            assert_eq!(resources, expected);
        }
    }
}
