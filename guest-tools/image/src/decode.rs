//! From a file to pixels, within bounds of memory.

use std::io::Cursor;

use image::codecs::{bmp::BmpDecoder, gif::GifDecoder, jpeg::JpegDecoder, png::PngDecoder, webp::WebPDecoder};
use image::metadata::Orientation;
use image::{ColorType, ImageDecoder, ImageError, Limits};

use crate::format::Format;
use crate::header::{Needs, needs, stated_size};
use crate::pixels::Pixels;
use crate::{MAX_FILE, MAX_MEMORY, MAX_PIXELS, MAX_SIDE, Mb, Problem};

/// Bytes that a decoder may take for what is not pixels: rows, tables, texts, profiles.
const SMALL_PARTS: u64 = 16 * 1024 * 1024;

/// A decoded file.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// The first frame, as it is stored.
    pub(crate) pixels: Pixels,
    /// How to turn it.
    pub(crate) orientation: Orientation,
    /// There are more frames.
    pub(crate) animated: bool,
}

/// Decodes the first frame.
pub(crate) fn decode(data: &[u8], format: Format) -> Result<Decoded, Problem> {
    if data.len() as u64 > MAX_FILE {
        return Err(Problem::TooLarge(format!("is a file of {}, more than {}", Mb(data.len() as u64), Mb(MAX_FILE))));
    }
    if let Some((width, height)) = stated_size(data, format) {
        check_size(width, height)?;
    }
    let mut animated = false;
    let file = Cursor::new(data);
    let mut decoder: Box<dyn ImageDecoder + '_> = match format {
        Format::Png => Box::new(PngDecoder::with_limits(file, limits(SMALL_PARTS)).map_err(problem)?),
        Format::Jpeg => Box::new(JpegDecoder::new(file).map_err(problem)?),
        Format::Gif => {
            animated = has_two_frames(data);
            Box::new(GifDecoder::new(file).map_err(problem)?)
        }
        Format::Webp => {
            let decoder = WebPDecoder::new(file).map_err(problem)?;
            animated = decoder.has_animation();
            Box::new(decoder)
        }
        Format::Bmp => Box::new(BmpDecoder::new(file).map_err(problem)?),
    };
    let (width, height) = decoder.dimensions();
    let needs = needs(data, format, u64::from(width) * u64::from(height));
    check(data.len() as u64, width, height, decoder.total_bytes(), &needs)?;
    if format == Format::Gif {
        decoder.set_limits(limits(needs.extra)).map_err(problem)?;
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let color = decoder.color_type();
    let size = usize::try_from(decoder.total_bytes()).map_err(|error| Problem::TooLarge(error.to_string()))?;
    let mut bytes = vec![0; size];
    decoder.read_image_boxed(&mut bytes).map_err(problem)?;
    Ok(Decoded { pixels: in_bytes(width, height, color, bytes)?, orientation, animated })
}

/// Whether the size of a picture is in bounds.
fn check_size(width: u32, height: u32) -> Result<(), Problem> {
    if width == 0 || height == 0 {
        return Err(Problem::Damaged("it has no pixels".to_owned()));
    }
    if width > MAX_SIDE || height > MAX_SIDE || u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(Problem::TooLarge(format!(
            "has {width}x{height} pixels, more than {} million altogether or {MAX_SIDE} on a side",
            MAX_PIXELS / 1_000_000
        )));
    }
    Ok(())
}

/// Whether a picture is in bounds. `bytes`: what its pixels take.
fn check(file: u64, width: u32, height: u32, bytes: u64, needs: &Needs) -> Result<(), Problem> {
    check_size(width, height)?;
    if needs.hidden > MAX_PIXELS {
        return Err(Problem::TooLarge(format!("has a frame of more than {} million pixels", MAX_PIXELS / 1_000_000)));
    }
    let memory = file.saturating_add(bytes).saturating_add(needs.extra);
    if memory > MAX_MEMORY {
        return Err(Problem::TooLarge(format!(
            "has {width}x{height} pixels and takes {} of memory to decode, more than {}",
            Mb(memory),
            Mb(MAX_MEMORY)
        )));
    }
    needs.flaw.map_or(Ok(()), |flaw| Err(Problem::Damaged(flaw.to_owned())))
}

/// Limits for a decoder that writes its pixels to where it is told.
fn limits(memory: u64) -> Limits {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(memory);
    limits
}

/// Whether a GIF has a second frame. Its pixels are not decoded.
fn has_two_frames(data: &[u8]) -> bool {
    let mut options = gif::DecodeOptions::new();
    options.skip_frame_decoding(true);
    let Ok(mut decoder) = options.read_info(data) else { return false };
    let mut next = || matches!(decoder.next_frame_info(), Ok(Some(_)));
    next() && next()
}

/// Pixels of 8 bits a channel.
fn in_bytes(width: u32, height: u32, color: ColorType, mut data: Vec<u8>) -> Result<Pixels, Problem> {
    match color {
        ColorType::L8 | ColorType::La8 | ColorType::Rgb8 | ColorType::Rgba8 => {}
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16 => {
            // In place: there may be no memory for both.
            for index in 0..data.len() / 2 {
                let wide = u32::from(u16::from_ne_bytes([data[2 * index], data[2 * index + 1]]));
                data[index] = u8::try_from((wide * 255 + 32_767) / 65_535).unwrap_or(u8::MAX);
            }
            data.truncate(data.len() / 2);
        }
        other => return Err(Problem::Unsupported(format!("pixels of the type {other:?}"))),
    }
    Ok(Pixels { width, height, channels: usize::from(color.channel_count()), data })
}

/// What went wrong, without the names of the layers it went through.
fn problem(error: ImageError) -> Problem {
    match error {
        ImageError::Limits(_) => Problem::TooLarge("has more data than can be decoded".to_owned()),
        ImageError::Unsupported(error) => Problem::Unsupported(error.to_string()),
        ImageError::Decoding(error) => {
            let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            Problem::Damaged(reason)
        }
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Problem::Damaged("its data end too early".to_owned())
        }
        other => Problem::Damaged(other.to_string()),
    }
}
