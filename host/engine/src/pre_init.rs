//! Starting a guest when it is built: a component that has done its beginning already, with its memory as that left it.
//!
//! The beginning is its answer to `list-tools`, which the contract says depends on nothing outside. Here it reaches nothing
//! outside, either: clocks stand still, random numbers are a fixed row, and every import of the contract is a trap. So the same
//! component gives the same bytes on every machine, and nothing of the machine that built it is in there.

use std::time::Duration;

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Instance, Lift, Linker, ResourceTable, ResourceType, Val, WasmList};
use wasmtime::{Config, Engine, OptLevel, Store};
use wasmtime_wasi::{Deterministic, HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView};
use wasmtime_wizer::{ComponentInstanceState, Wizer};

use crate::bindings;

/// The version of what takes the picture, for those who keep what it made.
pub const PRE_INIT_VERSION: &str = "wizer 48 1";

/// Stack of the guest's beginning, in bytes. It runs once and is not optimised, so it takes more than later calls do.
const STACK: usize = 4 << 20;

/// Begins a component, and gives one that has begun.
///
/// # Errors
/// It is no component that brings tools, it asks for something while it begins, or it does not fit into a picture; in one line.
pub async fn pre_initialise(wasm: &[u8]) -> Result<Vec<u8>, String> {
    begun(wasm).await.map_err(|error| format!("it can not be started at build time: {error:#}"))
}

async fn begun(wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    let mut wizer = Wizer::new();
    wizer.keep_init_func(true);
    let (context, instrumented) = wizer.instrument_component(wasm)?;
    let mut config = Config::new();
    config.wasm_component_model_async(true).cranelift_opt_level(OptLevel::None);
    config.max_wasm_stack(STACK).async_stack_size(2 * STACK);
    let engine = Engine::new(&config)?;
    let component = Component::new(&engine, &instrumented)?;
    let mut linker = Linker::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    nothing_of_the_contract(&mut linker, &engine, &component)?;
    let mut store = Store::new(&engine, Nowhere::new());
    let instance = linker.instantiate_async(&mut store, &component).await?;
    begin(&mut store, &instance).await?;
    let mut begun = Begun { store, instance, failed: None };
    let picture = wizer.snapshot_component(&context, &mut begun).await?;
    match begun.failed {
        Some(failed) => Err(failed),
        None => Ok(picture),
    }
}

/// Links every import of the contract to a trap. WASI's are not among them: they are there under another patch version than
/// the one that is asked for, which a trap of the exact name would hide.
fn nothing_of_the_contract(
    linker: &mut Linker<Nowhere>,
    engine: &Engine,
    component: &Component,
) -> wasmtime::Result<()> {
    for (interface, import) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = import.ty else { continue };
        if !interface.starts_with("atoll:") {
            continue;
        }
        let mut linked = linker.instance(interface)?;
        for (name, export) in instance.exports(engine) {
            let refused = format!("it calls `{name}` of {interface} while it begins");
            match export.ty {
                ComponentItem::ComponentFunc(function) if function.async_() => {
                    linked.func_new_concurrent(name, move |_, _, _, _| {
                        let refused = wasmtime::Error::msg(refused.clone());
                        Box::pin(async move { Err(refused) })
                    })?;
                }
                ComponentItem::ComponentFunc(_) => {
                    linked.func_new(name, move |_, _, _, _| Err(wasmtime::Error::msg(refused.clone())))?;
                }
                ComponentItem::Resource(_) => {
                    linked.resource(name, ResourceType::host::<()>(), |_, _| Ok(()))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Has it answer `list-tools`.
async fn begin(store: &mut Store<Nowhere>, instance: &Instance) -> wasmtime::Result<()> {
    let interface = format!("atoll:plugin/tools@{}", bindings::VERSION);
    let none = || wasmtime::Error::msg(format!("it exports no `list-tools` in {interface}"));
    let tools = instance.get_export_index(&mut *store, None, &interface).ok_or_else(none)?;
    let list = instance.get_export_index(&mut *store, Some(&tools), "list-tools").ok_or_else(none)?;
    let list = instance.get_func(&mut *store, list).ok_or_else(none)?;
    list.call_async(&mut *store, &[], &mut [Val::Bool(false)]).await
}

/// A world without anything in it.
struct Nowhere {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl Nowhere {
    fn new() -> Self {
        let row = || Deterministic::new((1..=251).collect());
        let mut wasi = WasiCtx::builder();
        wasi.wall_clock(Standing).monotonic_clock(Standing);
        wasi.secure_random(row()).insecure_random(row()).insecure_random_seed(1);
        Self { wasi: wasi.build(), table: ResourceTable::new() }
    }
}

impl WasiView for Nowhere {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Clocks that do not move.
struct Standing;

impl HostWallClock for Standing {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        Duration::from_secs(1)
    }
}

impl HostMonotonicClock for Standing {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}

/// An instance that has begun, as the one that takes the picture looks at it.
struct Begun {
    store: Store<Nowhere>,
    instance: Instance,
    /// What went wrong; there is no other way to say it.
    failed: Option<wasmtime::Error>,
}

impl Begun {
    async fn look<R: Lift + 'static>(&mut self, interface: &str, name: &str) -> Option<R> {
        let found = async {
            let none = || wasmtime::Error::msg(format!("there is no `{name}` in {interface}"));
            let outer = self.instance.get_export_index(&mut self.store, None, interface).ok_or_else(none)?;
            let inner = self.instance.get_export_index(&mut self.store, Some(&outer), name).ok_or_else(none)?;
            let function = self.instance.get_typed_func::<(), (R,)>(&mut self.store, inner)?;
            Ok::<R, wasmtime::Error>(function.call_async(&mut self.store, ()).await?.0)
        };
        match found.await {
            Ok(found) => Some(found),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }
}

impl ComponentInstanceState for Begun {
    async fn call_func_ret_list_u8(&mut self, interface: &str, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        match self.look::<WasmList<u8>>(interface, name).await {
            Some(list) => contents(list.as_le_slice(&self.store)),
            None => contents(&[]),
        }
    }

    async fn call_func_ret_s32(&mut self, interface: &str, name: &str) -> i32 {
        self.look(interface, name).await.unwrap_or_default()
    }

    async fn call_func_ret_s64(&mut self, interface: &str, name: &str) -> i64 {
        self.look(interface, name).await.unwrap_or_default()
    }

    async fn call_func_ret_f32(&mut self, interface: &str, name: &str) -> u32 {
        self.look::<f32>(interface, name).await.unwrap_or_default().to_bits()
    }

    async fn call_func_ret_f64(&mut self, interface: &str, name: &str) -> u64 {
        self.look::<f64>(interface, name).await.unwrap_or_default().to_bits()
    }
}
