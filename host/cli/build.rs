//! Embeds the built-in plugins' images, which `cargo xtask build` makes before it builds this crate.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ATOLL_GUEST_IMAGES");
    let folder = env::var_os("ATOLL_GUEST_IMAGES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guests/images"), PathBuf::from);
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names: Vec<String> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".image")?.to_owned()))
        .collect();
    names.sort();
    if names.is_empty() {
        println!("cargo::error=the built-in plugins have not been compiled yet; run `cargo xtask build` first");
        return;
    }
    // On pages of their own, so that their code can run where it is.
    let mut source = String::from(
        "#[repr(C, align(4096))]\nstruct ImageInPages<T>(T);\n\npub(crate) static BUILTINS: &[atoll_engine::Builtin] = &[\n",
    );
    for name in &names {
        let file = |extension: &str| folder.join(format!("{name}.{extension}"));
        for extension in ["image", "toml", "json"] {
            println!("cargo::rerun-if-changed={}", file(extension).display());
        }
        let (manifest, image, description) = (file("toml"), file("image"), file("json"));
        if !description.is_file() {
            println!("cargo::error=the built-in plugin {name} has not been asked what it is; run `cargo xtask build`");
            return;
        }
        let _ = writeln!(
            source,
            "    atoll_engine::Builtin {{ name: {name:?}, manifest: include_str!({manifest:?}), image: &ImageInPages(*include_bytes!({image:?})).0, description: include_str!({description:?}) }},"
        );
    }
    source.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("builtins.rs");
    if let Err(error) = fs::write(&out, source) {
        println!("cargo::error={}: {error}", out.display());
    }
}
