//! Scaling down. Each new pixel is the mean of the area that it covers, which neither invents nor skips detail and
//! needs memory for one row only.

use crate::pixels::Pixels;

/// The largest size of the same shape whose sides are at most `side`.
pub(crate) fn to_fit(width: u32, height: u32, side: u32) -> (u32, u32) {
    let long = width.max(height);
    if long <= side {
        return (width, height);
    }
    let scaled = |length: u32| {
        let scaled = (u64::from(length) * u64::from(side) + u64::from(long) / 2) / u64::from(long);
        u32::try_from(scaled).unwrap_or(side).max(1)
    };
    (scaled(width), scaled(height))
}

/// The old pixels under a new one, along one side.
struct Span {
    first: usize,
    /// How much of each counts, from the first on.
    weights: Vec<f32>,
}

/// The spans of all new pixels along a side, with weights that sum up to 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "sides are below 2^16")]
fn spans(old: u32, new: u32) -> Vec<Span> {
    let (old, new) = (u64::from(old), u64::from(new));
    // In units of 1/new of an old pixel everything is whole.
    (0..new)
        .map(|index| {
            let (start, end) = (index * old, (index + 1) * old);
            let first = start / new;
            let weights = (first..end.div_ceil(new))
                .map(|pixel| ((end.min((pixel + 1) * new) - start.max(pixel * new)) as f32) / old as f32)
                .collect();
            Span { first: first as usize, weights }
        })
        .collect()
}

/// Scales to a size that is not larger along either side, and not 0.
pub(crate) fn scale(source: &Pixels, width: u32, height: u32) -> Pixels {
    let channels = source.channels;
    let columns = spans(source.width, width);
    let mut sums = vec![0_f32; source.width as usize * channels];
    let mut data = Vec::with_capacity(width as usize * height as usize * channels);
    for span in spans(source.height, height) {
        sums.fill(0.0);
        for (row, &weight) in source.rows().skip(span.first).zip(&span.weights) {
            match channels {
                2 => add_transparent::<2>(&mut sums, row, weight),
                4 => add_transparent::<4>(&mut sums, row, weight),
                _ => add(&mut sums, row, weight),
            }
        }
        match channels {
            1 => narrow::<1>(&mut data, &sums, &columns),
            2 => narrow_transparent::<2>(&mut data, &sums, &columns),
            3 => narrow::<3>(&mut data, &sums, &columns),
            _ => narrow_transparent::<4>(&mut data, &sums, &columns),
        }
    }
    Pixels { width, height, channels, data }
}

fn add(sums: &mut [f32], row: &[u8], weight: f32) {
    for (sum, &value) in sums.iter_mut().zip(row) {
        *sum += weight * f32::from(value);
    }
}

/// Colours count as much as they can be seen, or transparent pixels would shine through.
fn add_transparent<const N: usize>(sums: &mut [f32], row: &[u8], weight: f32) {
    for (sums, pixel) in sums.as_chunks_mut::<N>().0.iter_mut().zip(row.as_chunks::<N>().0) {
        let alpha = weight * f32::from(pixel[N - 1]);
        for (sum, &value) in sums[..N - 1].iter_mut().zip(pixel) {
            *sum += alpha * f32::from(value);
        }
        sums[N - 1] += alpha;
    }
}

/// The means of the pixels of a row under each new one.
fn means<const N: usize>(sums: &[f32], columns: &[Span]) -> impl Iterator<Item = [f32; N]> {
    let pixels = sums.as_chunks::<N>().0;
    columns.iter().map(|span| {
        let mut mean = [0_f32; N];
        for (pixel, &weight) in pixels[span.first..].iter().zip(&span.weights) {
            for (mean, &value) in mean.iter_mut().zip(pixel) {
                *mean += weight * value;
            }
        }
        mean
    })
}

fn narrow<const N: usize>(data: &mut Vec<u8>, sums: &[f32], columns: &[Span]) {
    for mean in means::<N>(sums, columns) {
        data.extend(mean.map(byte));
    }
}

fn narrow_transparent<const N: usize>(data: &mut Vec<u8>, sums: &[f32], columns: &[Span]) {
    for mut mean in means::<N>(sums, columns) {
        let alpha = mean[N - 1];
        if alpha > 0.0 {
            for value in &mut mean[..N - 1] {
                *value /= alpha;
            }
        }
        data.extend(mean.map(byte));
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn byte(value: f32) -> u8 {
    (value + 0.5) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_keep_their_shape() {
        assert_eq!(to_fit(2000, 2000, 2000), (2000, 2000));
        assert_eq!(to_fit(4000, 3000, 2000), (2000, 1500));
        assert_eq!(to_fit(3000, 4000, 2000), (1500, 2000));
        assert_eq!(to_fit(2001, 2000, 2000), (2000, 1999));
        assert_eq!(to_fit(65_535, 1, 2000), (2000, 1));
    }

    #[test]
    fn a_pixel_is_the_mean_of_its_area() {
        let grey = |width, data: &[u8]| Pixels { width, height: 2, channels: 1, data: data.to_vec() };
        assert_eq!(scale(&grey(4, &[0, 10, 100, 100, 20, 30, 200, 200]), 2, 1).data, [15, 150]);
        assert_eq!(scale(&grey(3, &[0, 90, 180, 0, 90, 180]), 2, 2).data, [30, 150, 30, 150]);
    }

    #[test]
    fn hidden_colours_stay_hidden() {
        let source = Pixels { width: 2, height: 1, channels: 4, data: vec![255, 0, 0, 255, 0, 255, 0, 0] };
        assert_eq!(scale(&source, 1, 1).data, [255, 0, 0, 128]);
    }

    proptest! {
        #[test]
        fn one_colour_stays_one_colour(
            (old, new) in (1_u32..70).prop_flat_map(|old| (Just(old), 1..=old)),
            channels in 1_usize..5,
            value in 1_u8..,
        ) {
            let data = vec![value; (old * old) as usize * channels];
            let scaled = scale(&Pixels { width: old, height: old, channels, data }, new, new);
            prop_assert_eq!(scaled.data, vec![value; (new * new) as usize * channels]);
        }
    }
}
