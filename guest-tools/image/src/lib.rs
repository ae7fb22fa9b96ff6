//! Pictures as a model can take them: checked, turned upright and scaled down. No host calls.
//!
//! Every picture is decoded, for one that is damaged would make each later request of a session fail. What is
//! decoded is known from the headers first, so that no file, however small, costs more memory than [`MAX_MEMORY`].
//!
//! A picture that fits [`Bounds`] and is upright stays as it is, animated or not. Others become a PNG or a JPEG;
//! their colour profile is dropped, and of an animation the first frame is kept.

mod decode;
mod encode;
mod format;
mod header;
mod pixels;
#[cfg(test)]
mod sample;
mod scale;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::encode::Encoded;
pub use crate::format::{Format, is_animated_png};
use crate::pixels::Pixels;

/// Bytes that a picture may take together with everything that decoding it needs. A plugin has 256 MiB.
pub const MAX_MEMORY: u64 = 208 * 1024 * 1024;

/// Bytes of a file at most.
pub const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Pixels of a picture at most; above what cameras of telephones make. Bounds the time.
pub const MAX_PIXELS: u64 = 64_000_000;

/// Pixels of a side at most: what JPEG and GIF can have.
pub const MAX_SIDE: u32 = 65_535;

/// What a picture may have to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Pixels of either side.
    pub side: u32,
    /// Characters of its base64 form must be fewer than these.
    pub base64: usize,
}

impl Default for Bounds {
    /// What every provider takes.
    fn default() -> Self {
        Self { side: 2000, base64: 4_718_592 }
    }
}

impl Bounds {
    /// The most bytes whose base64 form is short enough.
    fn bytes(self) -> usize {
        self.base64.saturating_sub(1) / 4 * 3
    }
}

/// A picture to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The file's bytes, or those of a new file.
    pub data: Vec<u8>,
    /// What they are.
    pub format: Format,
    /// What the model should know, each in brackets.
    pub hints: Vec<String>,
}

/// Why a picture is not shown. Displayed to follow "it": "it is …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It would take too long or too much memory.
    #[error("it {0}; make a smaller copy of it with another program")]
    TooLarge(String),
    /// It breaks the rules of its format, or ends too early.
    #[error("it is damaged ({0})")]
    Damaged(String),
    /// It uses a part of its format that nothing here knows.
    #[error("it can not be decoded ({0}); convert it with another program")]
    Unsupported(String),
}

/// Makes a picture fit. `None`: nothing of it is small enough to be shown.
///
/// # Errors
/// The picture is damaged, unsupported or too large to be decoded.
pub fn fit(data: Vec<u8>, format: Format, bounds: Bounds) -> Result<Option<Picture>, Problem> {
    let decoded = decode::decode(&data, format)?;
    let (stored, orientation) = (decoded.pixels, decoded.orientation);
    let small = stored.width <= bounds.side && stored.height <= bounds.side;
    let upright = orientation == image::metadata::Orientation::NoTransforms;
    if small && upright && data.len() <= bounds.bytes() && format != Format::Bmp {
        return Ok(Some(Picture { data, format, hints: Vec::new() }));
    }
    drop(data);
    let original = pixels::turned_size(stored.width, stored.height, orientation);
    let scaled = if small {
        stored
    } else {
        let (width, height) = scale::to_fit(stored.width, stored.height, bounds.side);
        scale::scale(&stored, width, height)
    };
    let pixels = scaled.turned(orientation).without_plain_alpha();
    // What was only turned or converted need not lose anything.
    let lossless = if small && (format == Format::Bmp || (!upright && format != Format::Jpeg)) {
        encode::png(&pixels, bounds.bytes()).map(|data| (Encoded { data, format: Format::Png }, pixels.size()))
    } else {
        None
    };
    let Some((encoded, size)) = lossless.or_else(|| shrink(&pixels, bounds.bytes())) else { return Ok(None) };
    let mut hints = Vec::new();
    if size != original {
        hints.push(resized(original, size));
    }
    if format == Format::Bmp {
        hints.push(format!("[Image converted from {format} to {}.]", encoded.format));
    }
    if decoded.animated {
        hints.push("[The image is animated; only its first frame is shown.]".to_owned());
    }
    Ok(Some(Picture { data: encoded.data, format: encoded.format, hints }))
}

/// Encodes in at most `most` bytes, with fewer and fewer pixels if need be.
fn shrink(pixels: &Pixels, most: usize) -> Option<(Encoded, (u32, u32))> {
    let (mut width, mut height) = pixels.size();
    if let Some(encoded) = encode::smallest(pixels, most) {
        return Some((encoded, (width, height)));
    }
    while (width, height) != (1, 1) {
        let less = |side: u32| (side - side.div_ceil(4)).max(1);
        (width, height) = (less(width), less(height));
        if let Some(encoded) = encode::smallest(&scale::scale(pixels, width, height), most) {
            return Some((encoded, (width, height)));
        }
    }
    None
}

/// Tells how places in the picture shown map to the file's.
fn resized(original: (u32, u32), shown: (u32, u32)) -> String {
    let factor = f64::from(original.0) / f64::from(shown.0);
    format!(
        "[Image: original {}x{}, displayed at {}x{}. Multiply coordinates by {factor:.2} to map to original image.]",
        original.0, original.1, shown.0, shown.1
    )
}

/// A number of bytes for people.
pub(crate) struct Mb(pub(crate) u64);

impl fmt::Display for Mb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MB", self.0.div_ceil(1024 * 1024))
    }
}
