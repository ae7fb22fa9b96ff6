//! Prompts of servers as commands of this extension: typed, they are sent to the session as the user's.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use atoll_mcp_client::commands::{ServerPrompt, command_names, message, unknown};
use atoll_mcp_connection::server::Server;
use atoll_plugin::{
    Content, Error,
    extension::{Input, Outcome, Transform},
    host, log, session,
    types::{Command, Delivery, Subscription},
};

use crate::shown::content;

/// What commands of prompts begin with.
const BEGINNING: &str = "mcp__";

/// The commands.
pub(crate) struct Prompts {
    /// What this extension wants beside them.
    others: Subscription,
    /// By their names: of which server they are, and which prompt.
    commands: RefCell<BTreeMap<String, (String, ServerPrompt)>>,
    /// What is wanted may be changed.
    has_started: Cell<bool>,
}

impl Prompts {
    /// None yet, beside what else is wanted.
    pub(crate) fn beside(others: Subscription) -> Self {
        Self { others, commands: RefCell::default(), has_started: Cell::new(false) }
    }

    /// What this extension wants at its start. From here on it is changed as prompts come and go.
    pub(crate) fn started(&self) -> Subscription {
        self.has_started.set(true);
        self.wanted()
    }

    fn wanted(&self) -> Subscription {
        let mut wanted = self.others.clone();
        let commands = self.commands.borrow();
        wanted.commands.extend(commands.iter().map(|(name, (server, prompt))| Command {
            name: name.clone(),
            description: prompt.told(server),
            hidden: false,
            completes: false,
        }));
        wanted
    }

    /// Has the prompts of a server, and no others of it.
    pub(crate) async fn have(&self, server: &str, prompts: Vec<ServerPrompt>) {
        {
            let mut commands = self.commands.borrow_mut();
            let before: Vec<(String, ServerPrompt)> = (commands.iter())
                .filter(|(_, (own, _))| own == server)
                .map(|(name, (_, prompt))| (name.clone(), prompt.clone()))
                .collect();
            commands.retain(|_, (own, _)| own != server);
            let names = command_names(server, &prompts, |name| commands.contains_key(name));
            let now: BTreeMap<String, ServerPrompt> = names.into_iter().zip(prompts).collect();
            let is_as_before = now.iter().map(|(name, prompt)| (name.clone(), prompt.clone())).eq(before);
            commands.extend(now.into_iter().map(|(name, prompt)| (name, (server.to_owned(), prompt))));
            if is_as_before || !self.has_started.get() {
                return;
            }
        }
        if let Err(error) = host::subscribe(self.wanted()).await {
            let why = error.message();
            log::write(log::Level::Warn, &format!("the server {server}: its prompts are no commands: {why}"));
        }
    }

    /// Whether it is the name of such a command.
    pub(crate) fn is_one(name: &str) -> bool {
        name.starts_with(BEGINNING)
    }

    /// Runs one: what the prompt gives is sent as the user's.
    pub(crate) async fn run(&self, name: &str, typed: &str, servers: &[Rc<Server>]) -> Result<(), Error> {
        let content = self.content(name, typed, servers).await?;
        session::send(content, Delivery::FollowUp).await
    }

    async fn content(&self, name: &str, typed: &str, servers: &[Rc<Server>]) -> Result<Vec<Content>, Error> {
        let found = self.commands.borrow().get(name).cloned();
        let found = found.and_then(|(server, prompt)| Some((servers.iter().find(|one| one.name == server)?, prompt)));
        let Some((server, prompt)) = found else {
            let commands = self.commands.borrow();
            return Err(Error::not_found(unknown(name, commands.keys().map(String::as_str))));
        };
        let arguments = prompt.arguments(typed).map_err(|why| Error::invalid_arguments(format!("/{name}: {why}.")))?;
        let given = server.prompt(&prompt.name, &arguments).await?;
        let pieces = message(&server.name, &given).map_err(|why| {
            Error::failed(format!("The MCP server {}, asked for {}: {why}.", server.name, prompt.name))
        })?;
        Ok(content(pieces))
    }

    /// What somebody typed who could not know whether the server is there already: its beginning is a command's, and it is no
    /// command yet. `wait` is given the servers that it may be of.
    pub(crate) async fn typed(
        &self,
        input: &Input,
        servers: &[Rc<Server>],
        wait: impl AsyncFnOnce(Vec<Rc<Server>>),
    ) -> Result<Outcome, Error> {
        let Some(line) = input.text.strip_prefix('/').filter(|line| Self::is_one(line)) else {
            return Ok(Outcome::Pass);
        };
        let (name, typed) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let is_of = |server: &&Rc<Server>| {
            let beginning = format!("{}__", atoll_mcp_client::names::namespace(&server.name));
            name.starts_with(&beginning)
        };
        let some: Vec<Rc<Server>> = servers.iter().filter(is_of).map(Rc::clone).collect();
        if some.is_empty() {
            return Ok(Outcome::Pass);
        }
        wait(some).await;
        let content = self.content(name, typed, servers).await?;
        let (mut texts, mut images) = (Vec::new(), input.images.clone());
        for piece in content {
            match piece {
                Content::Text(text) => texts.push(text),
                Content::Image(image) => images.push(image),
            }
        }
        Ok(Outcome::Transform(Transform { text: texts.join("\n"), images: Some(images) }))
    }
}
