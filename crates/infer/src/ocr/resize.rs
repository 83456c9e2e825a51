//! Image resizing to float colours from 0 to 255.
//!
//! Uses a triangle (tent) filter, which preserves thin strokes when downscaling.

use super::ImageRef;

/// The resized image: red, green and blue of each pixel.
pub(crate) fn resize(picture: &ImageRef<'_>, width: usize, height: usize) -> Vec<f32> {
    let (old_width, old_height) = (picture.width as usize, picture.height as usize);
    let (columns, rows) = (triangle_filters(old_width, width), triangle_filters(old_height, height));
    let mut resized = vec![0.0f32; width * height * 3];
    let mut narrow = vec![0.0f32; width * 3];
    // The new rows that the old row contributes to; the window only moves down.
    let mut first = 0;
    for (y, row) in picture.rgb.chunks_exact(old_width * 3).enumerate().take(old_height) {
        while first < height && rows[first].start + rows[first].weights.len() <= y {
            first += 1;
        }
        if first == height || rows[first].start > y {
            continue;
        }
        for (pixel, tent) in narrow.chunks_exact_mut(3).zip(&columns) {
            let mut sum = [0.0f32; 3];
            let old = row[tent.start * 3..].chunks_exact(3);
            for (old, weight) in old.zip(&tent.weights) {
                for (sum, old) in sum.iter_mut().zip(old) {
                    *sum += f32::from(*old) * weight;
                }
            }
            pixel.copy_from_slice(&sum);
        }
        for (index, tent) in rows.iter().enumerate().skip(first).take_while(|(_, tent)| tent.start <= y) {
            let Some(weight) = tent.weights.get(y - tent.start) else { continue };
            let target = &mut resized[index * width * 3..(index + 1) * width * 3];
            for (target, narrow) in target.iter_mut().zip(&narrow) {
                *target += narrow * weight;
            }
        }
    }
    resized
}

/// Filter weights of a new pixel over the old pixels; the sum is one.
struct TriangleFilter {
    start: usize,
    weights: Vec<f32>,
}

fn triangle_filters(old: usize, new: usize) -> Vec<TriangleFilter> {
    let scale = old as f32 / new as f32;
    let reach = scale.max(1.0);
    (0..new)
        .map(|index| {
            let middle = (index as f32 + 0.5) * scale;
            let start = (middle - reach).max(0.0) as usize;
            let end = ((middle + reach).ceil() as usize).clamp(start + 1, old.max(start + 1)).min(old);
            let start = start.min(end - 1);
            let weight = |old: usize| (1.0 - ((old as f32 + 0.5 - middle) / reach).abs()).max(0.0);
            let mut weights: Vec<f32> = (start..end).map(weight).collect();
            let sum: f32 = weights.iter().sum();
            if sum > 0.0 {
                weights.iter_mut().for_each(|weight| *weight /= sum);
            } else {
                weights.fill(1.0 / (end - start) as f32);
            }
            TriangleFilter { start, weights }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gray(width: u32, height: u32, values: &[u8]) -> Vec<f32> {
        let rgb: Vec<u8> = values.iter().flat_map(|value| [*value; 3]).collect();
        let picture = ImageRef { width, height, rgb: &rgb };
        resize(&picture, width as usize / 2, height as usize / 2).into_iter().step_by(3).collect()
    }

    #[test]
    fn a_plain_picture_stays_plain_at_every_size() {
        let rgb = [40u8, 90, 200].repeat(31 * 17);
        let picture = ImageRef { width: 31, height: 17, rgb: &rgb };
        for (width, height) in [(1, 1), (31, 17), (7, 5), (100, 40), (30, 16), (3, 90)] {
            let resized = resize(&picture, width, height);
            assert_eq!(resized.len(), width * height * 3);
            for pixel in resized.chunks_exact(3) {
                for (found, expected) in pixel.iter().zip([40.0, 90.0, 200.0]) {
                    assert!((found - expected).abs() < 0.01, "{width}x{height}: {pixel:?}");
                }
            }
        }
    }

    #[test]
    fn a_picture_of_its_own_size_is_itself() {
        let rgb: Vec<u8> = (0..5 * 4 * 3).map(|value| value as u8 * 4).collect();
        let picture = ImageRef { width: 5, height: 4, rgb: &rgb };
        assert_eq!(resize(&picture, 5, 4), rgb.iter().map(|value| f32::from(*value)).collect::<Vec<_>>());
    }

    #[test]
    fn a_thin_stroke_grows_pale_and_does_not_vanish() {
        let columns = gray(8, 2, &[255, 255, 255, 0, 255, 255, 255, 255].repeat(2));
        assert!(columns.iter().any(|value| *value < 190.0), "{columns:?}");
    }
}
