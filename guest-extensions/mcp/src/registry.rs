//! The tools of all servers, as they are in the table.
//!
//! What a server lists is compared with what is there, and only what differs is withdrawn or put in, a few at a time: calls of
//! other servers, and everybody else who waits for this instance, have their turn in between.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use atoll_mcp_client::{
    exposure::Exposure,
    names::{aliases, namespace, tool_names},
    result::whole_schema,
    tool::ServerTool,
};
use atoll_mcp_connection::{server::Server, shown::annotations};
use atoll_plugin::{Error, clock, log::Level, table, types};

use crate::say;

/// The most tools there can be: as many as a plugin may have in the table, but for the three that read resources.
const MOST: usize = 10_000 - 3;
/// How many of them are kept for each server of which it is not known yet what it has, where there are few servers.
const KEPT_FREE: usize = 500;
/// How many tools are put into the table, or withdrawn, at once, and how long their definitions may be together, in bytes.
const AT_ONCE: usize = 500;
const BYTES_AT_ONCE: usize = 1 << 20;
/// How long that goes on before others have their turn, in nanoseconds.
const TURN: u64 = 5_000_000;
/// How many tools that the table does not take are told of one by one, and looked for among others.
const MAX_REFUSED: usize = 20;

/// Where a tool of the table comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) server: String,
    pub(crate) tool: String,
}

/// A tool that is in the table, or about to be.
#[derive(Debug)]
struct Entry {
    source: Source,
    /// A digest of the definition that is in the table.
    digest: Option<u64>,
}

/// The tools.
#[derive(Debug)]
pub(crate) struct Registry {
    /// By their names in the table.
    tools: RefCell<HashMap<String, Entry>>,
    /// How many there can be; less than [`MOST`] once the table has said so.
    most: Cell<usize>,
    /// The servers of which it was said that they have too many.
    told: RefCell<BTreeSet<String>>,
    /// The servers of which each tool that was last to be had is in the table.
    complete: RefCell<BTreeSet<String>>,
}

/// A definition for the table, and its digest.
type Fresh = (types::Tool, u64);

/// What of some tools the table does not take.
#[derive(Default)]
struct Refused {
    /// Their names in the table.
    names: Vec<String>,
    /// Lines that say so.
    lines: Vec<String>,
    /// The table is full.
    is_full: bool,
    /// It takes nothing.
    is_over: bool,
}

impl Refused {
    fn add(&mut self, some: &[Fresh], error: &Error) {
        let why = error.message();
        match some {
            [] => {}
            [(one, _)] => self.lines.push(format!("the tool {} can not be had: {why}", one.name)),
            several => self.lines.push(format!("{} of its tools can not be had: {why}", several.len())),
        }
        self.names.extend(some.iter().map(|(tool, _)| tool.name.clone()));
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            tools: RefCell::default(),
            most: Cell::new(MOST),
            told: RefCell::default(),
            complete: RefCell::default(),
        }
    }
}

impl Registry {
    /// Where a tool comes from.
    pub(crate) fn source(&self, name: &str) -> Option<Source> {
        self.tools.borrow().get(name).map(|entry| entry.source.clone())
    }

    /// Whether each tool of a server that was last to be had is in the table.
    pub(crate) fn has_all(&self, server: &str) -> bool {
        self.complete.borrow().contains(server)
    }

    /// The tools of a server that are in the table, by their names on the server, in order.
    pub(crate) fn tools_of(&self, server: &str) -> Vec<String> {
        let tools = self.tools.borrow();
        let own = tools.values().filter(|entry| entry.source.server == server);
        let mut names: Vec<String> = own.map(|entry| entry.source.tool.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Says that tools of a server are to come.
    pub(crate) fn coming(server: &str) {
        let _ = table::expect(&namespace(server), true);
    }

    /// Says that none are to come for now.
    pub(crate) fn settled(server: &str) {
        let _ = table::expect(&namespace(server), false);
    }

    /// Has the tools of a server, and no others of it. `to_come` is how many others there are of which it is not known what
    /// they have, of `all` servers. Gives a line for each tool that could not be had.
    pub(crate) async fn have(
        &self,
        server: &Server,
        instructions: Option<&str>,
        tools: Vec<ServerTool>,
        (to_come, all): (usize, usize),
    ) -> Vec<String> {
        self.complete.borrow_mut().remove(&server.name);
        let mut shown: Vec<(ServerTool, Exposure)> = tools
            .into_iter()
            .map(|tool| {
                let exposure = server.entry.exposure.of(&tool.name);
                (tool, exposure)
            })
            .filter(|(_, exposure)| *exposure != Exposure::Hidden)
            .collect();
        let names: Vec<&str> = shown.iter().map(|(tool, _)| tool.name.as_str()).collect();
        let is_others =
            |name: &str| self.tools.borrow().get(name).is_some_and(|entry| entry.source.server != server.name);
        let mut names = tool_names(&server.name, &names, is_others);
        let of_others = self.tools.borrow().values().filter(|entry| entry.source.server != server.name).count();
        let room = room(self.most.get(), of_others, to_come, all);
        let listed = shown.len();
        shown.truncate(room);
        names.truncate(room);
        let mut turn = Turn::begin();
        self.withdraw(self.plan(&server.name, &names, &shown), &mut turn).await;

        let group = types::Namespace {
            name: namespace(&server.name),
            aliases: aliases(&server.name),
            description: server.entry.description.clone(),
            instructions: instructions.map(str::to_owned),
        };
        let (mut refused, mut fresh, mut bytes, mut looked_at) = (Refused::default(), Vec::<Fresh>::new(), 0, 0);
        for (name, (tool, exposure)) in names.iter().zip(&shown) {
            let definition = definition(name, tool, *exposure, &group);
            let digest = digest(&definition);
            let is_known = self.tools.borrow().get(name).is_some_and(|entry| entry.digest == Some(digest));
            if !is_known {
                bytes += size(&definition);
                fresh.push((definition, digest));
            }
            looked_at += 1;
            if fresh.len() >= AT_ONCE || bytes >= BYTES_AT_ONCE || looked_at >= 2 * AT_ONCE {
                self.put(std::mem::take(&mut fresh), &mut refused, &mut turn).await;
                (bytes, looked_at) = (0, 0);
                turn.give_way().await;
                if server.is_closing() {
                    return Vec::new();
                }
            }
        }
        self.put(fresh, &mut refused, &mut turn).await;
        for name in &refused.names {
            self.tools.borrow_mut().remove(name);
        }
        let left_out = listed - shown.len() + if refused.is_full { refused.names.len() } else { 0 };
        if left_out > 0 && self.told.borrow_mut().insert(server.name.clone()) {
            say(
                Level::Warn,
                &format!(
                    "the server {}: {left_out} of its {listed} tools are left out, for there is room for {}; say in its entry \
                     which are not needed, such as \"toolExposure\": {{\"get_*\": \"codemode\", \"*\": \"hidden\"}}",
                    server.name,
                    listed - left_out
                ),
            );
        }
        if left_out == 0 && refused.names.is_empty() {
            self.complete.borrow_mut().insert(server.name.clone());
        }
        refused.lines
    }

    /// Notes which tools a server has from here on. Gives those that it does not have any more, as far as they are in the
    /// table.
    fn plan(&self, server: &str, names: &[String], shown: &[(ServerTool, Exposure)]) -> Vec<String> {
        let mut all = self.tools.borrow_mut();
        let gone: Vec<(String, Entry)> = {
            let kept: HashSet<&str> = names.iter().map(String::as_str).collect();
            all.extract_if(|name, entry| entry.source.server == server && !kept.contains(name.as_str())).collect()
        };
        for (name, (tool, _)) in names.iter().zip(shown) {
            let source = Source { server: server.to_owned(), tool: tool.name.clone() };
            match all.get_mut(name) {
                Some(entry) => entry.source = source,
                None => drop(all.insert(name.clone(), Entry { source, digest: None })),
            }
        }
        gone.into_iter().filter(|(_, entry)| entry.digest.is_some()).map(|(name, _)| name).collect()
    }

    async fn withdraw(&self, gone: Vec<String>, turn: &mut Turn) {
        for some in gone.chunks(AT_ONCE) {
            // They were put there.
            let _: Result<(), Error> = table::unregister(some.to_vec()).await;
            turn.give_way().await;
        }
    }

    /// Puts these into the table. What of them it does not take is looked for by halves: it must not cost the others.
    async fn put(&self, fresh: Vec<Fresh>, refused: &mut Refused, turn: &mut Turn) {
        let mut waiting = vec![fresh];
        while let Some(mut some) = waiting.pop().filter(|some| !some.is_empty()) {
            if refused.is_full || refused.is_over {
                refused.names.extend(some.into_iter().map(|(tool, _)| tool.name));
                continue;
            }
            let error = match table::register(some.iter().map(|(tool, _)| tool.clone()).collect()).await {
                Ok(()) => {
                    let mut all = self.tools.borrow_mut();
                    for (tool, digest) in some {
                        if let Some(entry) = all.get_mut(&tool.name) {
                            entry.digest = Some(digest);
                        }
                    }
                    continue;
                }
                Err(error) => error,
            };
            let is_full = matches!(&error, Error::Limit(hit) if hit.name == "tools");
            match error {
                Error::Limit(_) | Error::InvalidArguments(_)
                    if some.len() > 1 && (is_full || refused.lines.len() < MAX_REFUSED) =>
                {
                    let rest = some.split_off(some.len() / 2);
                    waiting.extend([rest, some]);
                    turn.give_way().await;
                }
                Error::Limit(_) if is_full => {
                    refused.is_full = true;
                    self.most.set(self.tools.borrow().values().filter(|entry| entry.digest.is_some()).count());
                    refused.names.extend(some.into_iter().map(|(tool, _)| tool.name));
                }
                Error::Limit(_) | Error::InvalidArguments(_) => refused.add(&some, &error),
                // It is not for what these are.
                error => {
                    refused.is_over = true;
                    refused.add(&some, &error);
                }
            }
        }
    }
}

/// How many tools a server may have, where others have so many, and of `to_come` more, of `all` servers, it is not known yet.
fn room(most: usize, of_others: usize, to_come: usize, all: usize) -> usize {
    let kept_free = to_come * KEPT_FREE.min(most / all.max(1));
    most.saturating_sub(of_others).saturating_sub(kept_free)
}

/// How long this has gone on, while everybody else waits who needs this instance.
struct Turn {
    began: u64,
}

impl Turn {
    fn begin() -> Self {
        Self { began: clock::monotonic() }
    }

    /// Has others have theirs, if it was long enough.
    async fn give_way(&mut self) {
        if clock::monotonic() - self.began >= TURN {
            clock::sleep(1).await;
            *self = Self::begin();
        }
    }
}

/// How long a definition is, roughly.
fn size(tool: &types::Tool) -> usize {
    let schema = tool.output_schema.as_ref().map_or(0, String::len);
    tool.name.len() + tool.label.len() + tool.description.len() + tool.parameters.len() + schema
}

fn digest(tool: &types::Tool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&tool.name, &tool.label, &tool.description, &tool.parameters, &tool.output_schema).hash(&mut hasher);
    if let Some(group) = &tool.namespace {
        (&group.name, &group.description, &group.instructions).hash(&mut hasher);
    }
    let claims = &tool.annotations;
    (claims.read_only, claims.destructive, claims.idempotent, claims.open_world).hash(&mut hasher);
    (tool.exposure as u8, tool.default_active).hash(&mut hasher);
    hasher.finish()
}

fn definition(name: &str, tool: &ServerTool, exposure: Exposure, group: &types::Namespace) -> types::Tool {
    let is_direct = exposure == Exposure::Direct;
    let description = match (&tool.description, &tool.title) {
        (description, Some(title)) if description.is_empty() => title.clone(),
        (description, _) => description.clone(),
    };
    types::Tool {
        name: name.to_owned(),
        label: tool.title.clone().unwrap_or_else(|| tool.name.clone()),
        description,
        parameters: tool.input_schema.text().to_owned(),
        output_schema: Some(whole_schema(tool.output_schema.as_ref()).into_owned()),
        prompt_snippet: None,
        prompt_guidelines: Vec::new(),
        // What scripts find by searching is not listed for them: what comes late would change what the model was told.
        exposure: if is_direct { types::Exposure::Direct } else { types::Exposure::Deferred },
        default_active: is_direct,
        execution_mode: types::ExecutionMode::Parallel,
        namespace: Some(group.clone()),
        annotations: annotations(&tool.annotations),
        prepares: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_leaves_room_for_others() {
        assert_eq!(room(MOST, 0, 0, 1), 9_997);
        assert_eq!(room(MOST, 0, 1, 2), 9_497, "for one of which nothing is known yet");
        assert_eq!(room(MOST, 6_000, 0, 2), 3_997);
        assert_eq!(room(MOST, 0, 99, 100), 9_997 - 99 * 99, "where there are many servers, each has its share");
        assert_eq!(room(100, 90, 3, 4), 0);
        assert_eq!(room(0, 0, 0, 0), 0);
    }
}
