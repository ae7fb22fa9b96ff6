//! What a model request declares: the active tools, and where a tool runs scripts, how the others look to them.
//!
//! A declaration must not change from one request to the next without need: prompt caches hold what came before. So what
//! was once listed keeps its words and its place until the list is begun anew.

use std::sync::{Arc, Mutex, PoisonError};

use atoll_table::{
    Registered, Table,
    declare::{Listing, Piece, Scriptable, result_type},
    model::Declaration,
    tool::Exposure,
};

use crate::{
    pipeline::Pipeline,
    settings::{CodemodeMode, CodemodeSettings},
};

/// Decides it. Clones are the same one.
#[derive(Clone, Default)]
pub struct Loadout {
    settings: CodemodeSettings,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    listing: Listing,
    /// What was declared last, and of which version of the table.
    last: Option<(u64, Arc<Declared>)>,
    /// It was said that nothing runs scripts.
    warned: bool,
}

/// What a request declares.
#[derive(Default)]
pub struct Declared {
    /// The tools.
    pub tools: Vec<Arc<Registered>>,
    /// How they are declared, in the same order.
    pub declarations: Vec<Declaration>,
}

impl Loadout {
    /// As the settings say.
    pub fn new(settings: CodemodeSettings) -> Self {
        Self { settings, state: Arc::default() }
    }

    /// Begins the list anew: what has gone away is not listed any more.
    pub fn begin_anew(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }

    /// What the next request declares.
    pub fn declared(&self, pipeline: &Pipeline) -> Arc<Declared> {
        pipeline.table_as_of(|table, version| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((of, declared)) = &state.last
                && *of == version
            {
                return Arc::clone(declared);
            }
            let declared = Arc::new(self.declare(table, &mut state));
            state.last = Some((version, Arc::clone(&declared)));
            declared
        })
    }

    fn declare(&self, table: &Table, state: &mut State) -> Declared {
        let active = table.active();
        let only = self.settings.mode == CodemodeMode::Only;
        if !active.iter().any(|entry| entry.runs_scripts) {
            if only && !std::mem::replace(&mut state.warned, true) {
                tracing::warn!("codemode.mode is \"only\", but no active tool runs scripts; all tools stay declared");
            }
            return Declared { declarations: table.declarations(), tools: active };
        }
        let scriptable = table.scriptable();
        let is_listed = |exposure: Exposure| match exposure {
            Exposure::Codemode => true,
            Exposure::Direct => only,
            Exposure::ModelOnly | Exposure::Deferred | Exposure::Hidden => false,
        };
        let listed: Vec<Piece> = (scriptable.iter())
            .filter(|Scriptable { entry, .. }| is_listed(entry.tool.exposure) && !entry.runs_scripts)
            .map(|Scriptable { entry, identifier }| Piece::new(&entry.tool, identifier.as_deref()))
            .collect();
        state.listing.add(&listed, self.settings.inline_budget);
        let list = state.listing.text();
        let is_declared =
            |entry: &&Arc<Registered>| !only || entry.runs_scripts || entry.tool.exposure != Exposure::Direct;
        let tools: Vec<Arc<Registered>> = active.iter().filter(is_declared).map(Arc::clone).collect();
        let declarations = tools.iter().map(|entry| {
            let mut description = entry.tool.description.clone();
            let own = || scriptable.iter().find(|one| one.entry.tool.name == entry.tool.name);
            if entry.runs_scripts {
                if !list.is_empty() {
                    description.push_str("\n\n");
                    description.push_str(&list);
                }
            } else if let Some(Scriptable { identifier, .. }) = own() {
                description.push_str(&in_scripts(entry, identifier.as_deref()));
            }
            Declaration { name: entry.tool.name.clone(), description, parameters: entry.tool.parameters.clone() }
        });
        Declared { declarations: declarations.collect(), tools }
    }
}

/// How a tool that is declared itself is called by scripts.
fn in_scripts(entry: &Registered, identifier: Option<&str>) -> String {
    let call = match identifier {
        Some(identifier) => format!("tools.{identifier}"),
        None => format!("tools[\"{}\"]", entry.tool.name),
    };
    format!("\n\nIn scripts: `{call}(args)` gives {}.", result_type(&entry.tool))
}

#[cfg(test)]
mod tests {
    use atoll_table::{Error, Invocation, Progress, Registration, Tool, ToolOutput, ToolRunner};
    use futures::future::BoxFuture;
    use serde_json::{Value, json};

    use super::*;

    struct Nothing;

    impl ToolRunner for Nothing {
        fn prepare(&self, _: String, arguments: Value) -> BoxFuture<'_, Result<Value, Error>> {
            Box::pin(async { Ok(arguments) })
        }
        fn call(&self, _: Invocation, _: Progress) -> BoxFuture<'_, Result<ToolOutput, Error>> {
            Box::pin(async { Ok(ToolOutput::default()) })
        }
        fn allowed(&self) -> Vec<String> {
            Vec::new()
        }
    }

    fn add(pipeline: &Pipeline, plugin: &str, tools: &[(&str, Exposure)]) {
        let tools = tools.iter().map(|(name, exposure)| Tool {
            description: format!("Does {name}."),
            exposure: *exposure,
            ..Tool::new(name, json!({"type": "object"}))
        });
        let runner: Arc<dyn ToolRunner> = Arc::new(Nothing);
        let who = Registration::user(plugin).running_scripts(Some("codemode".to_owned()));
        pipeline.change(|table| table.register(who, tools.collect(), &runner)).unwrap();
    }

    fn pipeline(tools: &[(&str, Exposure)]) -> Pipeline {
        let pipeline = Pipeline::default();
        add(&pipeline, "p", tools);
        pipeline
    }

    fn shown(loadout: &Loadout, pipeline: &Pipeline) -> String {
        let declared = loadout.declared(pipeline);
        let names: Vec<&str> = declared.tools.iter().map(|entry| entry.tool.name.as_str()).collect();
        let of: Vec<&str> = declared.declarations.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, of);
        let one = |one: &Declaration| format!("# {}\n{}\n", one.name, one.description);
        declared.declarations.iter().map(one).collect()
    }

    const TOOLS: [(&str, Exposure); 5] = [
        ("read", Exposure::Direct),
        ("codemode", Exposure::ModelOnly),
        ("for-scripts", Exposure::Codemode),
        ("found", Exposure::Deferred),
        ("ask", Exposure::ModelOnly),
    ];

    fn only() -> Loadout {
        Loadout::new(CodemodeSettings { mode: CodemodeMode::Only, ..CodemodeSettings::default() })
    }

    #[test]
    fn scripts_tools_are_listed_and_others_say_how_scripts_call_them() {
        insta::assert_snapshot!(shown(&Loadout::default(), &pipeline(&TOOLS)));
        insta::assert_snapshot!(shown(&only(), &pipeline(&TOOLS)));
    }

    #[test]
    fn without_a_tool_that_runs_scripts_all_stays_as_it_is() {
        let pipeline = pipeline(&[("read", Exposure::Direct), ("for_scripts", Exposure::Codemode)]);
        for loadout in [Loadout::default(), only()] {
            assert_eq!(shown(&loadout, &pipeline), "# read\nDoes read.\n");
        }
    }

    #[test]
    fn what_was_listed_stays_until_the_list_is_begun_anew() {
        let (pipeline, loadout) = (pipeline(&TOOLS), Loadout::default());
        let list = |loadout: &Loadout| loadout.declared(&pipeline).declarations[1].description.clone();
        let first = list(&loadout);
        assert!(Arc::ptr_eq(&loadout.declared(&pipeline), &loadout.declared(&pipeline)), "nothing has changed");
        add(&pipeline, "another", &[("later", Exposure::Codemode)]);
        let second = list(&loadout);
        let same = first.strip_suffix("```").unwrap();
        assert!(second.starts_with(same) && second.contains("later(args"), "{second}");
        pipeline.change(|table| table.unregister("p", atoll_table::Origin::User, &["for-scripts".to_owned()])).unwrap();
        assert_eq!(list(&loadout), second);
        loadout.begin_anew();
        let third = list(&loadout);
        assert!(!third.contains("for_scripts") && third.contains("later(args"), "{third}");
    }

    #[test]
    fn the_budget_is_the_settings() {
        let loadout = Loadout::new(CodemodeSettings { inline_budget: 0, ..CodemodeSettings::default() });
        let shown = shown(&loadout, &pipeline(&TOOLS));
        assert!(shown.contains("1 tool can be called; find it with searchTools"), "{shown}");
    }
}
