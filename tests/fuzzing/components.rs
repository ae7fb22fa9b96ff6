//! The loader and what it loads: from the bytes of a file to a call of the tool in it.

use std::{fs, sync::Arc, time::Duration};

use atoll_agent::Pipeline;
use atoll_caps::{Digest, Effective, Manifest, Pin, UserLimits};
use atoll_engine::{Places, PluginHost, UserPlugin};
use atoll_table::{Caller, Origin, Registration, Table};
use serde_json::json;

use super::{budget, fuzz};
use crate::common::components::{component, core_module, importing, tool, tool_described, tool_with};

const MANIFEST: &str = "name = \"fuzz\"\nversion = \"1\"\ncontract = \"0.1\"\n\
    [[files]]\nroot = \"$workspace\"\nreason = \"r\"\n[[http]]\norigin = \"http://127.0.0.1:1\"\nreason = \"r\"\n\
    [[process]]\nprogram = \"/bin/true\"\nreason = \"r\"\n[store]\nreason = \"r\"\n";

fn inputs() -> Vec<Vec<u8>> {
    let looping = "(loop $more (br $more)) unreachable";
    let growing = "(loop $more (drop (memory.grow (i32.const 1))) (drop (table.grow $table (ref.null func) \
        (i32.const 9))) (br $more)) unreachable";
    vec![
        tool("good", "(i32.const 64)"),
        tool("loops", looping),
        tool("grows", growing),
        tool("wild", "(i32.const 65530)"),
        tool("fails", "unreachable"),
        tool_with("more", "(i32.const 64)", "(memory 1) (table 3 funcref) (global (mut i64) (i64.const 1))", looping),
        tool_described("schema", "(i32.const 64)", "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}}}"),
        component("(component)"),
        component("(component (component) (core module (func (export \"f\"))) (core instance (instantiate 0)))"),
        importing("atoll:plugin/files@0.1.0"),
        importing("wasi:filesystem/types@0.2.3"),
        core_module(),
    ]
}

#[test]
fn no_component_however_damaged_harms_the_host() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("work")).unwrap();
    let places = Places {
        cwd: at("work"),
        home: at("home"),
        atoll_home: at("home/.atoll"),
        cache: at("cache"),
        sessions: at("home/.atoll/sessions"),
        spill: at("spill"),
        skills: Vec::new(),
        shell: None,
    };
    let host = runtime.block_on(async { PluginHost::new(places).unwrap() });
    // What is damaged may loop, and has to be stopped before it takes the time of the others.
    let limits = json!({"*": {"cpu-ms": 30, "wall-ms": 1_000, "memory-mib": 16, "table-elements": 10_000}});
    host.set_user_limits(serde_json::from_value::<UserLimits>(limits).unwrap());
    let manifest = Manifest::parse(MANIFEST, "plugin.toml").unwrap();
    let effective = Effective::intersect(&manifest, Some(&manifest.wants));
    let file = at("plugin.wasm");
    let target = |input: &[u8]| -> Result<(), String> {
        fs::write(&file, input).unwrap();
        let Ok(component) = host.see_component(&file) else { return Ok(()) };
        let pin = Pin { component: component.digest.clone(), manifest: Digest::of(MANIFEST.as_bytes()) };
        let (manifest, effective) = (manifest.clone(), effective.clone());
        let plugin = UserPlugin { file: file.clone(), component, manifest, effective, pin, origin: Origin::User };
        runtime.block_on(async {
            let loaded = match host.load_user(plugin).await {
                Ok(loaded) => loaded,
                // What is wrong with it has to be said; that the host itself stumbled is not an answer.
                Err(error) if error.to_string().contains("the compiler gave up") => return Err(error.to_string()),
                Err(_) => return Ok(()),
            };
            let Some((tools, runner)) = loaded.tools else { return Ok(()) };
            let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
            let mut table = Table::new();
            if table.register(Registration::user("fuzz"), tools, &runner).is_err() {
                return Ok(());
            }
            let pipeline = Pipeline::new(table);
            for name in names.iter().take(3) {
                let call = async {
                    if let Ok(ready) = pipeline.ready(Caller::Person, "call", name, json!({})).await {
                        ready.run(Arc::new(|_, _| {}), Arc::new(|_| {})).await;
                    }
                };
                if tokio::time::timeout(Duration::from_secs(20), call).await.is_err() {
                    return Err("a call did not end".to_owned());
                }
            }
            Ok(())
        })?;
        // What could be compiled is kept; that is not what this is about.
        if fs::read_dir(at("cache/aot")).is_ok_and(|entries| entries.count() > 200) {
            fs::remove_dir_all(at("cache/aot")).unwrap();
        }
        Ok(())
    };
    fuzz("components", budget(250), inputs(), &target);
}
