//! Connected components of a text map: one per line of text.

use super::geometry::{Point, convex_hull};

/// A connected component of pixels above the threshold.
#[derive(Debug, Clone)]
pub(crate) struct Component {
    /// Convex hull around the pixels, not through their centers.
    pub(crate) hull: Vec<Point>,
    /// Mean of the map over the pixels.
    pub(crate) score: f32,
    pub(crate) pixels: usize,
}

/// A horizontal run of pixels in one row.
struct PixelRun {
    row: usize,
    start: usize,
    end: usize,
    sum: f32,
}

/// Connected components of a map with `width` columns, in the order of their first pixels. Uses 8-connectivity.
pub(crate) fn connected_components(map: &[f32], width: usize, threshold: f32) -> Vec<Component> {
    let runs = pixel_runs(map, width, threshold);
    let mut parents: Vec<usize> = (0..runs.len()).collect();
    let (mut above, mut row_start) = (0, 0);
    for index in 0..runs.len() {
        let run = &runs[index];
        if run.row != runs[row_start].row {
            (above, row_start) = (row_start, index);
        }
        if runs[above].row + 1 != run.row {
            continue;
        }
        // Runs that end before this one starts also end before the following runs of this row.
        while above < row_start && runs[above].end < run.start {
            above += 1;
        }
        for other in (above..row_start).take_while(|other| runs[*other].start <= run.end) {
            union(&mut parents, other, index);
        }
    }
    let mut numbers = vec![usize::MAX; runs.len()];
    let mut found: Vec<(Vec<Point>, f32, usize)> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let root = root(&mut parents, index);
        if numbers[root] == usize::MAX {
            numbers[root] = found.len();
            found.push((Vec::new(), 0.0, 0));
        }
        let (points, sum, pixels) = &mut found[numbers[root]];
        for x in [run.start, run.end] {
            points.extend([run.row, run.row + 1].map(|y| Point::new(x as f32, y as f32)));
        }
        *sum += run.sum;
        *pixels += run.end - run.start;
    }
    let blob = |(points, sum, pixels)| Component { hull: convex_hull(points), score: sum / pixels as f32, pixels };
    found.into_iter().map(blob).collect()
}

fn pixel_runs(map: &[f32], width: usize, threshold: f32) -> Vec<PixelRun> {
    let mut runs: Vec<PixelRun> = Vec::new();
    for (row, values) in map.chunks_exact(width.max(1)).enumerate() {
        let mut open: Option<PixelRun> = None;
        for (column, value) in values.iter().enumerate() {
            if *value > threshold {
                let run = open.get_or_insert(PixelRun { row, start: column, end: column, sum: 0.0 });
                run.end = column + 1;
                run.sum += value;
            } else {
                runs.extend(open.take());
            }
        }
        runs.extend(open);
    }
    runs
}

fn root(parents: &mut [usize], mut index: usize) -> usize {
    while parents[index] != index {
        parents[index] = parents[parents[index]];
        index = parents[index];
    }
    index
}

/// Union of two components; the earlier root is kept.
fn union(parents: &mut [usize], one: usize, other: usize) {
    let (one, other) = (root(parents, one), root(parents, other));
    parents[one.max(other)] = one.min(other);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(map: &[&str]) -> Vec<usize> {
        let values: Vec<f32> = map.iter().flat_map(|row| row.bytes()).map(|byte| f32::from(byte == b'#')).collect();
        connected_components(&values, map[0].len(), 0.5).iter().map(|blob| blob.pixels).collect()
    }

    #[test]
    fn pixels_that_touch_are_one_blob() {
        assert_eq!(found(&["#..#", "#..#", ".##."]), [6]);
        assert_eq!(found(&["##.##", ".....", "##.##"]), [2, 2, 2, 2]);
        assert_eq!(found(&["#.#.#", "#####"]), [8]);
        assert_eq!(found(&["#...", "..#.", "#..."]), [1, 1, 1]);
        assert_eq!(found(&["...."]), [0; 0]);
    }

    #[test]
    fn a_blob_reaches_to_the_edges_of_its_pixels() {
        let blob = connected_components(&[0.0, 0.9, 0.7, 0.0], 4, 0.5).remove(0);
        assert!((blob.score - 0.8).abs() < 1e-6, "{}", blob.score);
        let mut corners: Vec<(f32, f32)> = blob.hull.iter().map(|point| (point.x, point.y)).collect();
        corners.sort_by(|one, other| one.partial_cmp(other).unwrap());
        assert_eq!(corners, [(1.0, 0.0), (1.0, 1.0), (3.0, 0.0), (3.0, 1.0)]);
    }

    /// Reference implementation: flood fill from every pixel.
    #[test]
    fn blobs_are_what_flooding_finds() {
        let (width, height) = (37, 29);
        let mut state = 7u32;
        for share in [3, 5, 8] {
            let mut random = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 16
            };
            let map: Vec<f32> = (0..width * height).map(|_| f32::from(u8::from(random() % 10 < share))).collect();
            let mut seen = vec![false; map.len()];
            let mut expected = Vec::new();
            for start in 0..map.len() {
                let mut stack = vec![start];
                let mut pixels = 0;
                while let Some(place) = stack.pop() {
                    if map[place] == 0.0 || std::mem::replace(&mut seen[place], true) {
                        continue;
                    }
                    pixels += 1;
                    let (x, y) = ((place % width) as i32, (place / width) as i32);
                    for (nx, ny) in (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (x + dx, y + dy))) {
                        if (0..width as i32).contains(&nx) && (0..height as i32).contains(&ny) {
                            stack.push(ny as usize * width + nx as usize);
                        }
                    }
                }
                expected.extend((pixels > 0).then_some(pixels));
            }
            let found: Vec<usize> = connected_components(&map, width, 0.5).iter().map(|blob| blob.pixels).collect();
            assert_eq!(found, expected);
        }
    }
}
