//! Prompts of servers as commands of this extension: typed, they are sent to the session as the user's.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    rc::Rc,
};

use atoll_mcp_client::{
    commands::{ServerPrompt, command_names, message, unknown},
    session::Session,
};
use atoll_mcp_connection::server::Server;
use atoll_plugin::{
    Content, Error, clock,
    extension::{Input, Outcome, Transform},
    host, log, session,
    types::{Command, Delivery, Subscription},
    ui,
};

use futures::future::{join_all, select};
use tokio::sync::watch;

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
    /// The servers whose prompts were asked for in this session.
    seen: watch::Sender<BTreeSet<String>>,
}

impl Prompts {
    /// None yet, beside what else is wanted.
    pub(crate) fn beside(others: Subscription) -> Self {
        Self {
            others,
            commands: RefCell::default(),
            has_started: Cell::new(false),
            seen: watch::channel(BTreeSet::new()).0,
        }
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
        self.change(server, prompts).await;
        self.seen(server);
    }

    /// The same, of what is known from before.
    pub(crate) async fn change(&self, server: &str, prompts: Vec<ServerPrompt>) {
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

    /// Says that it is known in this session which prompts a server has, or that it will not be.
    pub(crate) fn seen(&self, server: &str) {
        self.seen.send_modify(|seen| {
            seen.insert(server.to_owned());
        });
    }

    /// Waits until it is known which prompts these have.
    async fn known(&self, servers: &[Rc<Server>]) {
        let known = async |server: &Rc<Server>| {
            server.known().await;
            if server.is_there() {
                let _ = self.seen.subscribe().wait_for(|seen| seen.contains(&server.name)).await;
            }
        };
        join_all(servers.iter().map(known)).await;
    }

    /// Lists the prompts of these anew: one that was just added is there before the server has told of it.
    async fn look_again(&self, servers: &[Rc<Server>]) {
        let look = async |server: &Rc<Server>| {
            let listed = server.reading("its prompts", async |session: &Session| session.prompts().await).await;
            if let Ok((prompts, _)) = listed {
                self.have(&server.name, prompts).await;
            }
        };
        join_all(servers.iter().map(look)).await;
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
    /// command yet. The servers that it may be of are waited for so long.
    pub(crate) async fn typed(
        &self,
        input: &Input,
        servers: &[Rc<Server>],
        milliseconds: u64,
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
        let known = async {
            self.known(&some).await;
            if !self.commands.borrow().contains_key(name) {
                self.look_again(&some).await;
            }
        };
        select(pin!(known), pin!(clock::sleep(milliseconds))).await;
        let content = match self.content(name, typed, servers).await {
            Ok(content) => content,
            Err(error) => {
                // It is no question for a model.
                ui::notify(&error.message(), ui::Tone::Error);
                return Ok(Outcome::Handled);
            }
        };
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
