//! Reads what a component imports and exports from its type, and says what the contract, its manifest and its
//! grants make of it. Nothing is run here.

use std::collections::BTreeSet;

use atoll_caps::{Capability, Effective, Manifest};
use atoll_table::Error;
use wasmparser::{Parser, Payload};
use wasmtime::{
    Engine,
    component::{Component, types::ComponentItem},
};

use crate::{bindings, convert, linking::Linking};

/// The contract's package, as it stands in front of its interfaces' names.
const PACKAGE: &str = "atoll:plugin/";
/// Interfaces of the contract that this host implements. The rest is part of the contract, and refused until
/// there is something behind it.
const SERVED: &[&str] = &[
    "types",
    "log",
    "clock",
    "progress",
    "workers",
    "host",
    "source",
    "files",
    "http",
    "process",
    "listener",
    "store",
    "table",
    "session",
    "models",
    "ui",
    "bus",
    "secrets",
    "config",
    "providers",
    "servers",
];
/// Interfaces of the contract that this host calls.
const SERVED_EXPORTS: &[&str] = &["tools", "worker", "provider", "extension"];
/// The WASI packages that language runtimes need; none of them reaches anything outside of the instance.
const WASI: &[&str] = &["wasi:cli/", "wasi:clocks/", "wasi:random/", "wasi:io/", "wasi:filesystem/"];

/// What a component brings and asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surface {
    /// Interfaces of the contract that it exports, without package and version.
    pub exports: BTreeSet<String>,
    /// Capabilities that it imports.
    pub imports: BTreeSet<Capability>,
    /// Every import, in full.
    pub all_imports: BTreeSet<String>,
    /// Every export, in full.
    pub all_exports: BTreeSet<String>,
    /// Those of them that are something else than an interface.
    pub(crate) other_exports: BTreeSet<String>,
}

impl Surface {
    /// What the names of imports, of exported interfaces and of other exports mean to this host.
    pub(crate) fn new(imports: BTreeSet<String>, interfaces: &BTreeSet<String>, others: BTreeSet<String>) -> Self {
        let capability = |name: &String| Capability::of_interface(contract_name(name)?.0);
        let exported = |name: &String| Some(contract_name(name)?.0.to_owned());
        Self {
            exports: interfaces.iter().filter_map(exported).collect(),
            imports: imports.iter().filter_map(capability).collect(),
            all_imports: imports,
            all_exports: interfaces.union(&others).cloned().collect(),
            other_exports: others,
        }
    }
}

/// Reads a component's surface.
pub(crate) fn surface(engine: &Engine, component: &Component) -> Surface {
    let kind = component.component_type();
    let imports = kind.imports(engine).map(|(name, _)| name.to_owned()).collect();
    let (mut interfaces, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (name, item) in kind.exports(engine) {
        let is_interface = matches!(item.ty, ComponentItem::ComponentInstance(_));
        if is_interface { &mut interfaces } else { &mut others }.insert(name.to_owned());
    }
    Surface::new(imports, &interfaces, others)
}

/// Whether a component lifts `on-event` asynchronously, so that it can hear of an event while it waits for something.
/// What is not known does not: then it is refused some events, and waits for nothing that can not come.
///
/// Component types do not say how an export is lifted. The tools that make components call the core function of an
/// asynchronous one `[async-lift]…`, in every language.
pub(crate) fn is_concurrent(component: &[u8]) -> bool {
    let function = format!("[async-lift]{PACKAGE}extension@{}#on-event", bindings::VERSION);
    let is_it = |payload: wasmparser::Result<Payload<'_>>| {
        let Ok(Payload::ExportSection(exports)) = payload else { return false };
        exports.into_iter().flatten().any(|export| export.name == function)
    };
    Parser::new(0).parse_all(component).any(is_it)
}

/// Whether a component exports `extension`, as far as its bytes say so without being compiled.
pub(crate) fn is_extension(component: &[u8]) -> bool {
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(component) {
        match payload {
            Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => depth += 1,
            Ok(Payload::End(_)) => depth = depth.saturating_sub(1),
            Ok(Payload::ComponentExportSection(exports)) if depth == 0 => {
                let is_it = |name: &str| contract_name(name).is_some_and(|(interface, _)| interface == "extension");
                if exports.into_iter().flatten().any(|export| is_it(export.name.name)) {
                    return true;
                }
            }
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

fn contract_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PACKAGE)?.split_once('@')
}

/// Whether a guest built for `version` can be served: the same major and minor number, and nothing newer than ours.
fn is_served_version(version: &str) -> bool {
    matches!((numbers(version), numbers(bindings::VERSION)), (Some(wanted), Some(served))
        if wanted[..2] == served[..2] && wanted[2] <= served[2])
}

/// `major.minor.patch`; none for anything else, such as a pre-release.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let numbers: Vec<u64> = version.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// Checks the contract that a manifest says its plugin was built for. What the component really imports counts for
/// more, and is checked by [`check`]; this catches a plugin that needs a newer host but imports nothing new.
pub(crate) fn check_declared(manifest: &Manifest) -> Result<(), Error> {
    let declared = manifest.contract;
    if numbers(bindings::VERSION)
        .is_some_and(|[major, minor, _]| (u64::from(declared.major), u64::from(declared.minor)) == (major, minor))
    {
        return Ok(());
    }
    Err(Error::UnsupportedContract {
        wanted: format!("atoll:plugin@{declared}"),
        served: format!("atoll:plugin@{}", bindings::VERSION),
    })
}

/// Checks that everything a component imports is served and granted, and that it exports something of ours.
/// What is linked without a grant passes: each use of it is checked.
pub(crate) fn check(surface: &Surface, effective: &Effective, linking: Linking) -> Result<(), Error> {
    let served = format!("{PACKAGE}…@{}", bindings::VERSION);
    let mismatch = |wanted: &str, served: &str| Error::UnsupportedContract {
        wanted: wanted.to_owned(),
        served: served.to_owned(),
    };
    for name in surface.all_imports.iter().chain(&surface.all_exports) {
        if let Some((_, version)) = contract_name(name)
            && !is_served_version(version)
        {
            return Err(mismatch(name, &served));
        }
    }
    for name in &surface.all_imports {
        match contract_name(name) {
            Some((interface, _)) if SERVED.contains(&interface) => {}
            None if WASI.iter().any(|package| name.starts_with(package)) => {}
            _ => return Err(mismatch(name, "")),
        }
    }
    for capability in &surface.imports {
        if !linking.includes(effective, *capability) {
            let missing = effective.check(*capability).err();
            return Err(missing.map_or_else(
                || Error::Failed(format!("the capability {capability} is not granted")),
                |missing| convert::denied(&missing),
            ));
        }
    }
    // An export that nobody would call must not look as if it worked.
    for name in &surface.all_exports {
        if contract_name(name).is_some_and(|(interface, _)| !SERVED_EXPORTS.contains(&interface)) {
            return Err(mismatch(name, ""));
        }
    }
    if surface.all_imports.iter().any(|name| contract_name(name).is_some_and(|(interface, _)| interface == "workers"))
        && !surface.exports.contains("worker")
    {
        return Err(Error::Failed(format!("it imports {PACKAGE}workers, but does not export {PACKAGE}worker")));
    }
    // Shares of work are no use by themselves.
    if !surface.exports.iter().any(|interface| interface != "worker") {
        let exported: Vec<&str> = surface.all_exports.iter().map(String::as_str).collect();
        return Err(Error::Failed(format!(
            "it is a component, but exports none of {PACKAGE}tools, provider and extension (it exports {})",
            if exported.is_empty() { "nothing".to_owned() } else { exported.join(", ") }
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_an_event_is_lifted_is_read_from_the_core_module() {
        let with = |name: &str| {
            wat::parse_str(format!("(component (core module (func (export \"{name}\"))))")).unwrap_or_default()
        };
        assert!(is_concurrent(&with("[async-lift]atoll:plugin/extension@0.1.0#on-event")));
        for other in ["atoll:plugin/extension@0.1.0#on-event", "[async-lift]atoll:plugin/extension@0.1.0#start"] {
            assert!(!is_concurrent(&with(other)), "{other}");
        }
        assert!(!is_concurrent(b"no component"));
    }

    #[test]
    fn that_a_component_is_an_extension_is_read_from_its_bytes() {
        let with = |text: &str| wat::parse_str(text).unwrap_or_default();
        let exports = r#"(instance $it) (export "atoll:plugin/extension@0.1.0" (instance $it))"#;
        assert!(is_extension(&with(&format!("(component {exports})"))));
        let others = [
            // What is inside of it exports nothing of it.
            format!("(component (component {exports}))"),
            r#"(component (instance $it) (export "atoll:plugin/tools@0.1.0" (instance $it)))"#.to_owned(),
            "(component)".to_owned(),
        ];
        for other in others {
            let bytes = with(&other);
            assert!(!bytes.is_empty() && !is_extension(&bytes), "{other}");
        }
        assert!(!is_extension(b"no component"));
    }

    #[test]
    fn versions_up_to_ours_within_the_minor_number_are_served() {
        for (version, served) in [
            ("0.1.0", true),
            ("0.1.0-rc.1", false),
            ("0.1.10", false),
            ("0.1.1", false),
            ("0.2.0", false),
            ("1.0.0", false),
            ("0.1", false),
        ] {
            assert_eq!(is_served_version(version), served, "{version}");
        }
    }
}
