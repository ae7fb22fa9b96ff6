//! A manifest inside a component: the custom section `atoll:plugin.toml`. It is covered by the component's digest and
//! travels with the file. Only the component's own sections count, not those of modules and components inside it.

use atoll_table::Error;
use wasmparser::{Chunk, Parser, Payload};

/// The section's name.
const NAME: &str = "atoll:plugin.toml";
/// A manifest is a page of text; what is longer is a mistake, or worse.
const MAX_MANIFEST: usize = 256 << 10;

/// A section of the component itself.
struct Section<'a> {
    /// Everything it takes up in the file.
    range: std::ops::Range<usize>,
    /// What it holds, if it is a manifest.
    manifest: Option<&'a [u8]>,
}

/// The manifest inside a component, if there is one.
///
/// # Errors
/// `failed` if the component can not be read to its end, or has more than one manifest, or one that is no text or too
/// long.
pub fn embedded_manifest(component: &[u8]) -> Result<Option<String>, Error> {
    let mut found = sections(component)?.into_iter().filter_map(|section| section.manifest);
    let Some(bytes) = found.next() else { return Ok(None) };
    if found.next().is_some() {
        return Err(Error::Failed(format!("it has more than one section `{NAME}`; pack it again")));
    }
    if bytes.len() > MAX_MANIFEST {
        let length = bytes.len();
        return Err(Error::Failed(format!(
            "its section `{NAME}` has {length} bytes; a manifest may have {MAX_MANIFEST}"
        )));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::Failed(format!("its section `{NAME}` is not UTF-8 text; pack it again")))?;
    Ok(Some(text.to_owned()))
}

/// The component with this manifest inside, in the place of any that it had.
///
/// # Errors
/// `failed` if the component can not be read to its end.
pub fn embed_manifest(component: &[u8], manifest: &str) -> Result<Vec<u8>, Error> {
    let mut packed = Vec::with_capacity(component.len() + manifest.len() + 64);
    let mut kept = 0;
    for section in sections(component)? {
        if section.manifest.is_some() {
            packed.extend_from_slice(component.get(kept..section.range.start).unwrap_or_default());
            kept = section.range.end;
        }
    }
    packed.extend_from_slice(component.get(kept..).unwrap_or_default());
    let section = wasm_encoder::CustomSection { name: NAME.into(), data: manifest.as_bytes().into() };
    wasm_encoder::ComponentSection::append_to_component(&section, &mut packed);
    Ok(packed)
}

fn sections(component: &[u8]) -> Result<Vec<Section<'_>>, Error> {
    let broken = |reason: String| Error::Failed(format!("it can not be read to its end: {reason}"));
    let mut parser = Parser::new(0);
    let mut sections = Vec::new();
    let mut at = 0;
    loop {
        let rest = component.get(at..).unwrap_or_default();
        let (consumed, payload) = match parser.parse(rest, true).map_err(|error| broken(error.to_string()))? {
            Chunk::Parsed { consumed, payload } => (consumed, payload),
            Chunk::NeedMoreData(_) => return Err(broken("it is cut off".to_owned())),
        };
        let mut range = at..at + consumed;
        let mut manifest = None;
        match payload {
            Payload::CustomSection(section) if section.name() == NAME => manifest = Some(section.data()),
            // What is inside of it is not looked at: the parser goes on behind it.
            Payload::ModuleSection { unchecked_range, .. } | Payload::ComponentSection { unchecked_range, .. } => {
                range.end = unchecked_range.end;
                if range.end > component.len() {
                    return Err(broken("it is cut off".to_owned()));
                }
            }
            Payload::End(_) => return Ok(sections),
            _ => {}
        }
        at = range.end;
        sections.push(Section { range, manifest });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn component() -> Vec<u8> {
        wat::parse_str(r#"(component (core module (@custom "atoll:plugin.toml" "of a module inside")) (type string))"#)
            .unwrap()
    }

    #[test]
    fn what_is_embedded_is_found_and_replaced() {
        let plain = component();
        assert_eq!(embedded_manifest(&plain).unwrap(), None);
        let once = embed_manifest(&plain, "name = \"a\"").unwrap();
        assert_eq!(embedded_manifest(&once).unwrap().as_deref(), Some("name = \"a\""));
        assert!(once.starts_with(&plain));
        let twice = embed_manifest(&once, "").unwrap();
        assert_eq!(embedded_manifest(&twice).unwrap().as_deref(), Some(""));
        assert_eq!(embed_manifest(&twice, "name = \"a\"").unwrap(), once);
        wasmparser::Validator::new_with_features(wasmparser::WasmFeatures::all()).validate_all(&once).unwrap();
    }

    #[test]
    fn two_manifests_are_none() {
        let mut twice = embed_manifest(&component(), "one").unwrap();
        let section = wasm_encoder::CustomSection { name: NAME.into(), data: b"two".into() };
        wasm_encoder::ComponentSection::append_to_component(&section, &mut twice);
        assert!(embedded_manifest(&twice).unwrap_err().to_string().contains("more than one"));
    }

    #[test]
    fn what_is_no_text_or_too_long_is_refused() {
        let with = |data: Vec<u8>| {
            let mut packed = component();
            let section = wasm_encoder::CustomSection { name: NAME.into(), data: data.into() };
            wasm_encoder::ComponentSection::append_to_component(&section, &mut packed);
            embedded_manifest(&packed)
        };
        assert!(with(vec![0xff]).unwrap_err().to_string().contains("UTF-8"));
        assert!(with(vec![b' '; MAX_MANIFEST + 1]).unwrap_err().to_string().contains("bytes"));
        assert!(with(vec![b' '; MAX_MANIFEST]).is_ok());
    }

    #[test]
    fn a_component_that_is_cut_off_is_an_error_wherever() {
        let whole = embed_manifest(&component(), "name = \"a\"").unwrap();
        for length in 0..whole.len() {
            // Between two sections a shorter file is whole, but without the manifest at its end.
            assert!(!matches!(embedded_manifest(&whole[..length]), Ok(Some(_))), "{length}");
        }
    }
}
