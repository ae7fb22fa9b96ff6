//! What a new project is made of: the files of `templates/`, those of examples that serve here too, the contract, and the
//! library for Rust.

use super::new::{Kind, Language};

/// A file of a project: its path and its text, in which `{{name}}` and `{{version}}` are filled in.
type Template = (&'static str, &'static str);

macro_rules! templates {
    ($folder:literal: $($path:literal = $file:literal,)*) => {
        &[$(($path, include_str!(concat!("../../", $folder, $file))),)*]
    };
}

/// The contract, in a folder of each project.
const CONTRACT: &[Template] = templates!("../../wit/":
    "wit/capabilities.wit" = "capabilities.wit",
    "wit/extension.wit" = "extension.wit",
    "wit/provider.wit" = "provider.wit",
    "wit/tools.wit" = "tools.wit",
    "wit/types.wit" = "types.wit",
    "wit/worlds.wit" = "worlds.wit",
);

/// The library for Rust. Its `Cargo.toml` is a template, because ours takes its versions from the workspace.
const SDK: &[Template] = templates!("../../guest-extensions/atoll-plugin/":
    "sdk/atoll-plugin/README.md" = "README.md",
    "sdk/atoll-plugin/src/bindings.rs" = "src/bindings.rs",
    "sdk/atoll-plugin/src/error.rs" = "src/error.rs",
    "sdk/atoll-plugin/src/events.rs" = "src/events.rs",
    "sdk/atoll-plugin/src/export.rs" = "src/export.rs",
    "sdk/atoll-plugin/src/extension_type.rs" = "src/extension_type.rs",
    "sdk/atoll-plugin/src/lib.rs" = "src/lib.rs",
    "sdk/atoll-plugin/src/output.rs" = "src/output.rs",
    "sdk/atoll-plugin/src/schema.rs" = "src/schema.rs",
    "sdk/atoll-plugin/src/stream.rs" = "src/stream.rs",
    "sdk/atoll-plugin/src/tool.rs" = "src/tool.rs",
);

/// The library is not its author's own, so its licences go along.
const SDK_LICENCES: &[Template] = templates!("../../":
    "sdk/atoll-plugin/LICENSE-APACHE" = "LICENSE-APACHE",
    "sdk/atoll-plugin/LICENSE-MIT" = "LICENSE-MIT",
);

const RUST: &[Template] = templates!("templates/":
    "Cargo.toml" = "rust/Cargo.toml.txt",
    "sdk/atoll-plugin/Cargo.toml" = "rust/sdk.toml.txt",
    "build.sh" = "rust/build.sh",
);
const RUST_TOOL: &[Template] = templates!("templates/":
    "plugin.toml" = "tool-plugin.toml",
    "src/lib.rs" = "rust/tool.rs",
    "tests/first.toml" = "tool.toml",
);
const RUST_EXTENSION: &[Template] = templates!("templates/":
    "plugin.toml" = "extension-plugin.toml",
    "src/lib.rs" = "rust/extension.rs",
    "tests/first.toml" = "extension.toml",
);
const RUST_PROVIDER: &[Template] = templates!("templates/":
    "plugin.toml" = "provider-plugin.toml",
    "src/lib.rs" = "rust/provider.rs",
    "tests/first.toml" = "provider.toml",
);

const PYTHON: &[Template] = templates!("../../guest-extensions/examples/": "build.sh" = "python/build.sh",);
const PYTHON_TOOL: &[Template] = templates!("templates/":
    "plugin.toml" = "tool-plugin.toml",
    "app.py" = "python/tool.py",
    "world.wit" = "python/tool-world.wit",
    "tests/first.toml" = "tool.toml",
);
const PYTHON_EXTENSION: &[Template] = templates!("templates/":
    "plugin.toml" = "extension-plugin.toml",
    "app.py" = "python/extension.py",
    "world.wit" = "python/world.wit",
    "tests/first.toml" = "extension.toml",
);

const C: &[Template] = templates!("../../guest-extensions/examples/": "build.sh" = "c/build.sh",);
const C_TOOL: &[Template] = templates!("templates/":
    "plugin.toml" = "text-tool-plugin.toml",
    "plugin.c" = "c/tool.c",
    "world.wit" = "tool-world.wit",
    "bindings/plugin.c" = "c/tool-bindings/plugin.c",
    "bindings/plugin.h" = "c/tool-bindings/plugin.h",
    "tests/first.toml" = "text-tool.toml",
);
const C_EXTENSION: &[Template] = templates!("templates/":
    "plugin.toml" = "extension-plugin.toml",
    "plugin.c" = "c/extension.c",
    "world.wit" = "extension-world.wit",
    "tests/first.toml" = "extension.toml",
);
const C_EXTENSION_BINDINGS: &[Template] = templates!("../../guest-extensions/examples/c/bindings/":
    "bindings/plugin.c" = "plugin.c",
    "bindings/plugin.h" = "plugin.h",
);

/// What every world has in common, as it was generated for the examples.
const GO: &[Template] = templates!("../../guest-extensions/examples/go/":
    "build.sh" = "build.sh",
    "bindings/go.mod" = "bindings/go.mod",
    "bindings/atoll_plugin_types/empty.s" = "bindings/atoll_plugin_types/empty.s",
    "bindings/atoll_plugin_types/wit_bindings.go" = "bindings/atoll_plugin_types/wit_bindings.go",
);
const GO_TOOL: &[Template] = templates!("templates/":
    "plugin.toml" = "text-tool-plugin.toml",
    "plugin.go" = "go/tool.go",
    "world.wit" = "tool-world.wit",
    "bindings/wit_exports.go" = "go/tool-bindings/wit_exports.go",
    "bindings/atoll_plugin_tools/empty.s" = "go/tool-bindings/atoll_plugin_tools/empty.s",
    "bindings/atoll_plugin_tools/wit_bindings.go" = "go/tool-bindings/atoll_plugin_tools/wit_bindings.go",
    "tests/first.toml" = "text-tool.toml",
);
const GO_EXTENSION: &[Template] = templates!("templates/":
    "plugin.toml" = "extension-plugin.toml",
    "plugin.go" = "go/extension.go",
    "world.wit" = "extension-world.wit",
    "tests/first.toml" = "extension.toml",
);
const GO_EXTENSION_BINDINGS: &[Template] = templates!("../../guest-extensions/examples/go/bindings/":
    "bindings/wit_exports.go" = "wit_exports.go",
    "bindings/atoll_plugin_extension/empty.s" = "atoll_plugin_extension/empty.s",
    "bindings/atoll_plugin_extension/wit_bindings.go" = "atoll_plugin_extension/wit_bindings.go",
);

const TS_TOOL: &[Template] = templates!("templates/":
    "plugin.toml" = "ts/tool-plugin.toml",
    "index.ts" = "ts/tool.ts",
    "tests/first.toml" = "tool.toml",
);
const TS_EXTENSION: &[Template] = templates!("templates/":
    "plugin.toml" = "extension-plugin.toml",
    "index.ts" = "ts/extension.ts",
    "tests/first.toml" = "extension.toml",
);

/// What git is not to keep.
const IGNORED: &str = "/plugin.wasm\n/target\n__pycache__/\n";

/// The files of a project, by path. None where there is no such template.
pub(super) fn files(language: Language, kind: Kind, name: &str) -> Option<Vec<(String, String)>> {
    let parts: &[&[Template]] = match (language, kind) {
        (Language::Rust, Kind::Tool) => &[RUST, RUST_TOOL, SDK, SDK_LICENCES, CONTRACT],
        (Language::Rust, Kind::Extension) => &[RUST, RUST_EXTENSION, SDK, SDK_LICENCES, CONTRACT],
        (Language::Rust, Kind::Provider) => &[RUST, RUST_PROVIDER, SDK, SDK_LICENCES, CONTRACT],
        (Language::Python, Kind::Tool) => &[PYTHON, PYTHON_TOOL, CONTRACT],
        (Language::Python, Kind::Extension) => &[PYTHON, PYTHON_EXTENSION, CONTRACT],
        (Language::C, Kind::Tool) => &[C, C_TOOL, CONTRACT],
        (Language::C, Kind::Extension) => &[C, C_EXTENSION, C_EXTENSION_BINDINGS, CONTRACT],
        (Language::Go, Kind::Tool) => &[GO, GO_TOOL, CONTRACT],
        (Language::Go, Kind::Extension) => &[GO, GO_EXTENSION, GO_EXTENSION_BINDINGS, CONTRACT],
        (Language::Ts, Kind::Tool) => &[TS_TOOL],
        (Language::Ts, Kind::Extension) => &[TS_EXTENSION],
        (Language::Python | Language::C | Language::Go | Language::Ts, Kind::Provider) => return None,
    };
    let filled = |text: &str| text.replace("{{name}}", name).replace("{{version}}", env!("CARGO_PKG_VERSION"));
    let mut files: Vec<(String, String)> =
        parts.iter().flat_map(|part| part.iter()).map(|(path, text)| ((*path).to_owned(), filled(text))).collect();
    files.push((".gitignore".to_owned(), IGNORED.to_owned()));
    files.push(("README.md".to_owned(), readme(language, name)));
    Some(files)
}

/// What of a project is loaded: of a script its folder, where its manifest is.
pub(super) fn built(language: Language) -> &'static str {
    if language == Language::Ts { "." } else { "plugin.wasm" }
}

fn readme(language: Language, name: &str) -> String {
    let file = built(language);
    let build = if language == Language::Ts { "" } else { "sh build.sh                     # leaves plugin.wasm\n" };
    let generated = match language {
        Language::C => Some("c wit --world plugin --sync=all --no-object-file --out-dir bindings"),
        Language::Go => Some("go wit --world plugin --sync=all --out-dir bindings"),
        Language::Rust | Language::Python | Language::Ts => None,
    };
    let generated = generated.map_or(String::new(), |arguments| {
        format!(
            "\n`bindings/` is generated. After a change of `world.wit`, with `wit-bindgen` 0.63.0 (`cargo install \
             wit-bindgen-cli`):\n\n```sh\nmkdir -p generate/wit/deps/atoll\ncp world.wit generate/wit\ncp wit/*.wit \
             generate/wit/deps/atoll\n(cd generate && wit-bindgen {arguments})\ncp -r generate/bindings/. bindings\n```\n"
        )
    });
    let inspect = if language == Language::Ts {
        format!(
            "mkdir -p ~/.atoll/extensions && cp -r . ~/.atoll/extensions/{name}   # instead of `plugin install`\n\
             atoll plugin inspect {name}   # what it asks for; `atoll plugin grant {name}` allows it\n"
        )
    } else {
        format!(
            "atoll plugin inspect {file}   # what it asks for\natoll plugin install {file}   # for every run; asks first\n"
        )
    };
    format!(
        "# {name}\n\n```sh\n{build}atoll plugin test {file}   # plays tests/*.toml\natoll -e {file} -p \"…\"     # one run \
         with it\n{inspect}```\n\n`plugin.toml` says what it may reach.\n{generated}"
    )
}

#[cfg(test)]
mod tests {
    use atoll_caps::Manifest;
    use clap::ValueEnum as _;

    use super::*;

    /// Cargo refuses names that plugins may have, and two packages of one name.
    #[test]
    fn the_name_of_a_package_is_not_that_of_the_plugin() {
        for name in ["2words", "atoll-plugin"] {
            let files = files(Language::Rust, Kind::Tool, name).unwrap_or_default();
            let manifest = files.iter().find(|(path, _)| path == "Cargo.toml").map_or("", |(_, text)| text.as_str());
            let names: Vec<&str> = manifest.lines().filter(|line| line.starts_with("name = ")).collect();
            assert_eq!(names, [r#"name = "plugin""#; 2], "{manifest}");
        }
    }

    #[test]
    fn every_template_has_a_manifest_a_test_and_no_open_places() {
        for language in Language::value_variants() {
            for kind in Kind::value_variants() {
                let Some(files) = files(*language, *kind, "my-plugin") else { continue };
                let text = |wanted: &str| files.iter().find(|(path, _)| path == wanted).map(|(_, text)| text.as_str());
                let manifest = Manifest::parse(text("plugin.toml").unwrap_or_default(), "plugin.toml");
                assert_eq!(
                    manifest.map(|manifest| manifest.name.to_string()).ok().as_deref(),
                    Some("my-plugin"),
                    "{language:?} {kind:?}"
                );
                assert!(text("tests/first.toml").is_some(), "{language:?} {kind:?}");
                for (path, text) in &files {
                    assert!(!text.contains("{{name}}") && !text.contains("{{version}}"), "{path}");
                }
                let mut paths: Vec<&String> = files.iter().map(|(path, _)| path).collect();
                paths.sort();
                paths.dedup();
                assert_eq!(paths.len(), files.len(), "{language:?} {kind:?}: two files of one name");
            }
        }
    }

    /// The library in a project is ours, whole.
    #[test]
    fn no_file_of_the_library_or_the_contract_is_left_out() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (folder, prefix, parts) in
            [("guest-extensions/atoll-plugin/src", "sdk/atoll-plugin/src/", SDK), ("wit", "wit/", CONTRACT)]
        {
            for entry in std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.ends_with(".rs") || name.ends_with(".wit") {
                    assert!(parts.iter().any(|(path, _)| *path == format!("{prefix}{name}")), "{folder}/{name}");
                }
            }
        }
    }
}
