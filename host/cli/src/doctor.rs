//! `atoll doctor`: what is set up, what is not, and how to fix it.

use std::{process::ExitCode, sync::Arc, time::Instant};

use atoll_agent::settings::{BashSandbox, Settings};
use atoll_table::Error;
use serde::Serialize;

use crate::{
    arguments::{ExtensionArguments, TrustArguments},
    assemble::Parts,
    assembled::{Surroundings, report_as_note},
    awaited, builtins,
    directories::Directories,
    exit::{ExitStatus, FAILED},
    loaded::Plugins,
    terminal,
};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    /// Works, but something is missing.
    Warn,
    /// Does not work.
    Fail,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, says: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, says: says.into(), fix: None }
    }

    fn bad(check: &'static str, verdict: Verdict, says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, verdict, says: says.into(), fix: Some(fix.into()) }
    }
}

pub(crate) async fn run(
    as_json: bool,
    trust: TrustArguments,
    extensions: &ExtensionArguments,
) -> anyhow::Result<ExitCode> {
    let directories = Directories::find()?;
    let mut findings = vec![Finding::ok("version", env!("CARGO_PKG_VERSION"))];
    findings.push(home(&directories));
    match Settings::load(&directories.settings()) {
        Ok(_) => findings.push(Finding::ok("settings", present(&directories.settings()))),
        Err(error) => {
            findings.push(Finding::bad("settings", Verdict::Fail, error.to_string(), "correct or remove the file"));
        }
    }
    let began = Instant::now();
    match Parts::for_run(trust, false, extensions, false).await {
        Err(error) => {
            let fix = "if the line above names a file, correct it; otherwise this machine can not run the sandbox";
            findings.push(Finding::bad("sandbox", Verdict::Fail, format!("{error:#}"), fix));
        }
        Ok(parts) => {
            findings.push(Finding::ok("sandbox", format!("ready in {} ms", began.elapsed().as_millis())));
            let parts = Arc::new(parts);
            findings.push(tools(&parts, extensions).await);
            findings.extend(models(&parts).await);
            findings.push(shell(&parts));
            findings.push(bash_sandbox(&parts));
        }
    }
    let failed = findings.iter().any(|finding| finding.verdict == Verdict::Fail);
    if as_json {
        terminal::line(format_args!("{}", serde_json::to_string(&findings)?))?;
    } else {
        for finding in &findings {
            let mark = match finding.verdict {
                Verdict::Ok => "ok  ",
                Verdict::Warn => "warn",
                Verdict::Fail => "FAIL",
            };
            terminal::line(format_args!("{mark}  {:<10} {}", finding.check, finding.says))?;
            if let Some(fix) = &finding.fix {
                terminal::line(format_args!("                 fix: {fix}"))?;
            }
        }
    }
    Ok(if failed { ExitStatus(FAILED).into() } else { ExitCode::SUCCESS })
}

fn present(path: &std::path::Path) -> String {
    let state = if path.exists() { "" } else { " (not there; defaults hold)" };
    format!("{}{state}", path.display())
}

fn home(directories: &Directories) -> Finding {
    let path = &directories.atoll_home;
    let shown = path.display().to_string();
    if !path.exists() {
        return Finding::ok("home", format!("{shown} (made when first needed)"));
    }
    match tempfile::tempfile_in(path) {
        Ok(_) => Finding::ok("home", shown),
        Err(error) => {
            let fix = format!("make {shown} writable, or set ATOLL_HOME to another folder");
            Finding::bad("home", Verdict::Fail, format!("{shown} can not be written to: {error}"), fix)
        }
    }
}

async fn tools(parts: &Arc<Parts>, extensions: &ExtensionArguments) -> Finding {
    let began = Instant::now();
    // Otherwise they are only loaded when they are used.
    for builtin in builtins::all() {
        if let Err(error) = parts.host.inspect_builtin(builtin) {
            return Finding::bad("tools", Verdict::Fail, error.to_string(), "build or install atoll again");
        }
    }
    let loading = async {
        let assembled = parts.load(extensions, report_as_note()).await?;
        assembled.start(Surroundings::of_command(None)).await?;
        awaited::all(&assembled.pipeline).await;
        anyhow::Ok(assembled)
    };
    match loading.await {
        Ok(assembled) => {
            let took = began.elapsed().as_millis();
            let (all, active) = assembled.pipeline.table(|table| (table.tools().len(), table.active().len()));
            assembled.end().await;
            let yours = assembled.plugins.all().len();
            let plural = if yours == 1 { "plugin" } else { "plugins" };
            let says = format!("{all} tools, {active} active, {yours} {plural} of yours, loaded in {took} ms");
            Finding::ok("tools", says)
        }
        Err(error) => {
            let is_denied = error.downcast_ref::<Error>().is_some_and(|error| matches!(error, Error::Denied { .. }));
            let fix = if is_denied {
                "the line above says what would allow it"
            } else {
                "if the line above names a file, correct it; otherwise build or install atoll again"
            };
            Finding::bad("tools", Verdict::Fail, format!("{error:#}"), fix)
        }
    }
}

async fn models(parts: &Parts) -> Vec<Finding> {
    let path = parts.directories.models();
    let models = match parts.models() {
        Ok(models) => models,
        Err(error) => return vec![Finding::bad("models", Verdict::Fail, format!("{error:#}"), "correct the file")],
    };
    let configured = models.configured();
    let mut findings = Vec::new();
    if configured.is_empty() {
        findings.push(Finding::ok("models", present(&path)));
    } else {
        findings.push(Finding::ok("models", format!("{}: {}", path.display(), configured.join(", "))));
    }
    let wanted = parts.settings.default_model.clone();
    let wanted = wanted.map(|model| match &parts.settings.default_provider {
        Some(provider) => format!("{provider}/{model}"),
        None => model,
    });
    match models.choose(wanted.as_deref()) {
        Ok(chosen) => {
            let key = if chosen.key.is_some() { "with a key" } else { "without a key" };
            let name = format!("{}/{}", chosen.model.provider, chosen.model.id);
            match parts.provider(&chosen.model.api, &Plugins::default()).await {
                Ok(_) => findings.push(Finding::ok("model", format!("{name} at {}, {key}", chosen.model.base_url))),
                Err(error) => {
                    let fix = "choose a model whose api is openai-completions";
                    findings.push(Finding::bad("model", Verdict::Warn, format!("{name}: {error:#}"), fix));
                }
            }
        }
        Err(error) => {
            let fix = format!("describe a server in {}; the README shows the smallest file", path.display());
            let says = error.to_string();
            // Whoever reads this knows of this command.
            let says = says.strip_suffix("; `atoll doctor` tells more").unwrap_or(&says);
            findings.push(Finding::bad("model", Verdict::Warn, says, fix));
        }
    }
    findings
}

/// Whether programs can be confined; that they can not is only bad where they have to be.
fn bash_sandbox(parts: &Parts) -> Finding {
    let check = "bash";
    let wanted = parts.settings.bash.sandbox == BashSandbox::Bubblewrap;
    match atoll_engine::find_bubblewrap(&parts.directories.cwd) {
        Ok(path) if wanted => Finding::ok(check, format!("on, by {}", path.display())),
        Ok(path) => Finding::ok(check, format!("off; {} works, --sandbox-bash switches it on", path.display())),
        Err(reason) if wanted => {
            let fix = "until then no program is started; bash.sandbox in settings.json switches it off";
            Finding::bad(check, Verdict::Fail, reason, fix)
        }
        Err(reason) => Finding::ok(check, format!("off, and not to be had: {reason}")),
    }
}

fn shell(parts: &Parts) -> Finding {
    match &parts.settings.shell_path {
        Some(path) if !path.is_file() => {
            let says = format!("shellPath names {}, which is not there", path.display());
            Finding::bad("shell", Verdict::Fail, says, "correct shellPath in settings.json")
        }
        Some(path) => Finding::ok("shell", path.display().to_string()),
        None => Finding::ok("shell", "the default (bash, else sh)"),
    }
}
