//! `atoll plugin`: a module for each subcommand. They show and change what the user decides; what a plugin may do is
//! decided by `atoll-caps` alone.

pub(crate) mod dev;
mod grant;
mod inspect;
mod install;
mod list;
pub(crate) mod log;
pub(crate) mod new;
mod pack;
mod remove;
mod sheet;
mod staging;
mod switch;
mod templates;
mod test;
mod toolchain;
mod verify;

use std::process::ExitCode;

use atoll_caps::Grants;

use crate::{
    arguments::{PluginCommand, TrustArguments},
    builtins,
    catalog::{Catalog, not_found},
    directories::Directories,
    installed::Installed,
    project::Project,
    settings_of::Said,
    terminal,
};

pub(crate) async fn run(command: PluginCommand, trust: TrustArguments) -> anyhow::Result<ExitCode> {
    match command {
        PluginCommand::List { json } => list::run(&Known::new(trust, !json)?, json),
        PluginCommand::Inspect { plugin, json } => inspect::run(&plugin, json, trust).await,
        PluginCommand::New(arguments) => new::run(&arguments),
        PluginCommand::Install(arguments) => install::run(arguments).await,
        PluginCommand::Remove { name, yes } => remove::run(&Known::new(trust, true)?, &name, yes),
        PluginCommand::Enable { name } => switch::run(&Known::new(trust, true)?, &name, true),
        PluginCommand::Disable { name } => switch::run(&Known::new(trust, true)?, &name, false),
        PluginCommand::Grant { name, what } => grant::grant(&Known::new(trust, true)?, &name, &what),
        PluginCommand::Revoke { name, what } => grant::revoke(&Known::new(trust, true)?, &name, &what),
        PluginCommand::Verify { names, json } => verify::run(&names, json, trust).await,
        PluginCommand::Pack { component, manifest, output } => pack::run(&component, &manifest, output.as_deref()),
        PluginCommand::Dev(arguments) => dev::run(arguments, trust).await,
        PluginCommand::Test { plugin, scenarios, json } => test::run(&plugin, scenarios, json).await,
        PluginCommand::Log { plugin, denied, since, follow, json } => {
            log::run(log::Filter { plugin, denied, since }, follow, json).await
        }
    }
}

/// What is known of the plugins without setting up the sandbox.
struct Known {
    directories: Directories,
    catalog: Catalog,
}

impl Known {
    fn new(trust: TrustArguments, may_ask: bool) -> anyhow::Result<Self> {
        let directories = Directories::find()?;
        let settings = atoll_agent::settings::Settings::load(&directories.settings())?;
        let project = Project::decide(&directories, settings.default_project_trust, trust, None, may_ask);
        let said = Said::read(&directories, &project)?;
        let catalog = Catalog::read(&directories, &project, &said.settings)?;
        Ok(Self { directories, catalog })
    }

    /// The grants. If they can not be read, nothing is granted, as where plugins are loaded.
    fn grants(&self) -> Grants {
        Grants::load(&self.directories.grants()).unwrap_or_else(|error| {
            terminal::note(format_args!("no plugin of yours is granted anything: {error}"));
            Grants::default()
        })
    }

    /// A plugin that is not built in.
    ///
    /// # Errors
    /// `not-found`, or `invalid-arguments` with `builtin` for one that is built in.
    fn find(&self, name: &str, builtin: &str) -> Result<&Installed, atoll_table::Error> {
        if builtins::by_name(name).is_some() {
            return Err(atoll_table::Error::InvalidArguments(format!("`{name}` is built in; {builtin}")));
        }
        find_any(&self.catalog, name)
    }
}

/// A plugin that is not built in. Built-in ones count where a name is only similar.
fn find_any<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Installed, atoll_table::Error> {
    catalog.find(name).map_err(|_| {
        let known = catalog.plugins.iter().map(|plugin| plugin.name.as_str());
        let known: Vec<&str> = known.chain(builtins::all().map(|builtin| builtin.name)).collect();
        not_found(name, &known)
    })
}
