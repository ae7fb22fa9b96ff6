//! What a file's headers tell before anything is decoded.

use crate::format::Format;

/// What decoding will take beside the pixels.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Bytes beside the file and the pixels that come out.
    pub(crate) extra: u64,
    /// Pixels that are decoded and may not come out.
    pub(crate) hidden: u64,
    /// Why the file can not be whole, if so.
    pub(crate) flaw: Option<&'static str>,
}

/// The size that a file states where it is sure to be found. Some decoders only say that it is too much for them.
pub(crate) fn stated_size(data: &[u8], format: Format) -> Option<(u32, u32)> {
    let four = |at: usize| data.get(at..at + 4)?.first_chunk::<4>().copied();
    match format {
        Format::Png => Some((u32::from_be_bytes(four(16)?), u32::from_be_bytes(four(20)?))),
        Format::Gif => {
            let [w0, w1, h0, h1] = four(6)?;
            Some((u16::from_le_bytes([w0, w1]).into(), u16::from_le_bytes([h0, h1]).into()))
        }
        // The oldest header has sides of two bytes, which are no problem. A height below 0 is that of rows from the top.
        Format::Bmp if data.get(14) != Some(&12) => {
            let side = |at| Some(i32::from_le_bytes(four(at)?).unsigned_abs());
            Some((side(18)?, side(22)?))
        }
        _ => None,
    }
}

/// Looks through the headers of a file; `pixels` come out of it. Errors in them are for the decoder to find.
pub(crate) fn needs(data: &[u8], format: Format, pixels: u64) -> Needs {
    match format {
        // Rows and tables are small; a PNG's decoder is told how much it may take.
        Format::Png | Format::Bmp => Needs::default(),
        // A frame that does not fill the picture is decoded beside it.
        Format::Gif => Needs { extra: pixels.saturating_mul(4), ..Needs::default() },
        Format::Webp => webp(data, pixels),
        Format::Jpeg => jpeg(data),
    }
}

/// The decoder copies the file, keeps what precedes the picture once more, and for a progressive picture holds all
/// coefficients.
fn jpeg(data: &[u8]) -> Needs {
    let length = data.len() as u64;
    let mut needs = Needs { extra: length, ..Needs::default() };
    let (mut coefficients, mut components) = (0, 0);
    let mut rest = data.get(2..).unwrap_or_default();
    while let [0xff, kind, after @ ..] = rest {
        if *kind == 0xff {
            rest = &rest[1..];
            continue;
        }
        let [high, low, ..] = after else { break };
        let size = usize::from(u16::from_be_bytes([*high, *low]));
        let Some(content) = after.get(2..size.max(2)) else { break };
        match kind {
            0xc0..=0xc2 => {
                (coefficients, components) = (coefficient_bytes(content), content.get(5).copied().unwrap_or(0));
                if *kind == 0xc2 {
                    needs.extra += coefficients;
                    coefficients = 0;
                }
            }
            0xda => {
                needs.extra += length - rest.len() as u64;
                // Components one after the other are collected like progressive ones.
                if content.first().is_some_and(|&scanned| scanned < components) {
                    needs.extra += coefficients;
                }
                if !after.windows(2).any(|pair| pair == [0xff, 0xd9]) {
                    needs.flaw = Some("its data end too early");
                }
                return needs;
            }
            _ => {}
        }
        rest = after.get(size.max(2)..).unwrap_or_default();
    }
    needs
}

/// Two bytes for each sample, in whole units of blocks. `frame`: the content of a frame header.
fn coefficient_bytes(frame: &[u8]) -> u64 {
    let [_, h1, h0, w1, w0, _, components @ ..] = frame else { return 0 };
    let sampling = |component: &[u8]| match component {
        [_, factors, ..] => (u64::from(factors >> 4).max(1), u64::from(factors & 15).max(1)),
        _ => (1, 1),
    };
    let all = || components.chunks(3).take(4).map(sampling);
    let most_across = all().map(|(across, _)| across).max().unwrap_or(1);
    let most_down = all().map(|(_, down)| down).max().unwrap_or(1);
    let width = u64::from(u16::from_be_bytes([*w1, *w0]));
    let height = u64::from(u16::from_be_bytes([*h1, *h0]));
    let units = width.div_ceil(8 * most_across) * height.div_ceil(8 * most_down);
    all().map(|(across, down)| units * across * down * 128).sum()
}

/// Frames are decoded to planes or to pixels of their own, transparency likewise.
fn webp(data: &[u8], pixels: u64) -> Needs {
    let extended = data.get(12..16) == Some(b"VP8X");
    let animated = extended && data.get(20).is_some_and(|flags| flags & 2 != 0);
    let factor = match data.get(12..16) {
        Some(b"VP8 ") => 2,
        Some(b"VP8L") => 5,
        _ if animated => 14,
        _ => 8,
    };
    let hidden = if extended { largest_frame(data) } else { 0 };
    Needs { extra: pixels.max(hidden).saturating_mul(factor), hidden, flaw: None }
}

/// Pixels of the largest lossy frame by its own header, which need not agree with the file's.
fn largest_frame(data: &[u8]) -> u64 {
    let mut largest = 0;
    let mut at = 12_usize;
    while let (Some(kind), Some(&[a, b, c, d])) = (data.get(at..at + 4), data.get(at + 4..at + 8)) {
        let size = u32::from_le_bytes([a, b, c, d]) as usize;
        let content = at + 8;
        if kind == b"ANMF" {
            // A frame of an animation has chunks of its own after 16 bytes.
            at = content + 16;
            continue;
        }
        if kind == b"VP8 "
            && let Some(&[w0, w1, h0, h1]) = data.get(content + 6..content + 10)
        {
            let side = |low, high| u64::from(u16::from_le_bytes([low, high]) & 0x3fff);
            largest = largest.max(side(w0, w1) * side(h0, h1));
        }
        let Some(next) = content.checked_add(size).and_then(|end| end.checked_add(size % 2)) else { break };
        at = next;
    }
    largest
}
