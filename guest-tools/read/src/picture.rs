//! A picture as the model and scripts get it.

use atoll_plugin::{Error, ToolOutput, files};
use atoll_tool_image::{Bounds, Format, MAX_FILE, Picture, Problem, fit};
use atoll_tool_text::{format_size, name_path};
use base64::Engine;
use serde_json::json;

use crate::{PIECE, kind};

/// Reads on to the end and shows the picture.
pub(crate) async fn show(
    file: &files::Reader,
    first: Vec<u8>,
    path: &str,
    format: Format,
) -> Result<ToolOutput, Error> {
    let size = file.metadata().size;
    let refused = |problem| Error::failed(kind::no_picture(path, format, &problem));
    let too_long = |size| {
        let (size, most) = (format_size(size), format_size(MAX_FILE));
        refused(Problem::TooLarge(format!("is a file of {size}, more than {most}")))
    };
    if size > MAX_FILE {
        return Err(too_long(size));
    }
    let mut data = first;
    // At once: growing it step by step would need twice the memory.
    data.reserve_exact(usize::try_from(size).unwrap_or_default().saturating_sub(data.len()));
    loop {
        let piece = file.read(PIECE).await.map_err(|error| name_path(path, error))?;
        if piece.is_empty() {
            break;
        }
        data.extend_from_slice(&piece);
        if data.len() as u64 > MAX_FILE {
            return Err(too_long(data.len() as u64));
        }
    }
    Ok(output(fit(data, format, Bounds::default()).map_err(refused)?, format))
}

/// The result. `format`: the file's.
fn output(picture: Option<Picture>, format: Format) -> ToolOutput {
    let Some(Picture { data, format, hints }) = picture else {
        let note =
            format!("Read image file [{format}]\n[Image omitted: it could not be made small enough to be shown.]");
        return ToolOutput::text(&note).with_structured(&json!(note));
    };
    let note = [vec![format!("Read image file [{format}]")], hints].concat().join("\n");
    let structured = json!({
        "type": "image",
        "data": base64::engine::general_purpose::STANDARD.encode(&data),
        "mimeType": format.mime_type(),
        "note": note,
    });
    ToolOutput::text(note).with_image(data, format.mime_type()).with_structured(&structured)
}

#[cfg(test)]
mod tests {
    use atoll_plugin::types::Content;

    use super::*;

    #[test]
    fn hints_follow_the_note() {
        let hints = vec!["[One.]".to_owned(), "[Two.]".to_owned()];
        let output = output(Some(Picture { data: vec![1, 2], format: Format::Png, hints }), Format::Bmp);
        let [Content::Text(text), Content::Image(image)] = &output.content[..] else { panic!("a text and a picture") };
        assert_eq!(text, "Read image file [image/png]\n[One.]\n[Two.]");
        assert_eq!((&image.data[..], &image.mime_type[..]), (&[1, 2][..], "image/png"));
        let structured = output.structured.expect("structured");
        assert!(structured.contains(r#""data":"AQI=""#) && structured.contains(r#""mimeType":"image/png""#));
    }

    #[test]
    fn the_largest_result_fits_the_limit_of_plugins() {
        // As the manifest sets no other: 8 MiB for the picture, its base64 form for scripts, and the notes.
        let Bounds { base64, .. } = Bounds::default();
        assert!(base64 / 4 * 3 + base64 + 65_536 < 8 * 1024 * 1024);
    }

    #[test]
    fn nothing_to_show_is_said() {
        let output = output(None, Format::Gif);
        let [Content::Text(text)] = &output.content[..] else { panic!("a text") };
        assert!(text.starts_with("Read image file [image/gif]\n[Image omitted: "));
    }
}
