//! Bit-packed posting lists in blocks of 128.
//!
//! A list with more than one block starts with a header per block: its last chunk, the offset of its bits, and the
//! highest count and shortest length of its chunks, which bound the score. Lists are read forwards and can skip
//! blocks.

/// Postings per block.
pub(crate) const BLOCK_LEN: usize = 128;

/// Zero bytes after the last list, so that eight bytes can be read at any position.
pub(crate) const PADDING_BYTES: usize = 8;

const HEADER_BYTES: usize = 11;

/// A chunk that contains a term. `count` is in halves: see [`crate::inverted_index`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Posting {
    pub(crate) chunk: u32,
    pub(crate) count: u8,
}

/// An encoded list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PostingList<'a> {
    bytes: &'a [u8],
    pub(crate) len: usize,
}

/// Iterates over a list, a block at a time.
pub(crate) struct Cursor<'a> {
    list: PostingList<'a>,
    /// The block after the decoded one.
    next_block: usize,
    chunks: [u32; BLOCK_LEN],
    counts: [u32; BLOCK_LEN],
    filled: usize,
    at: usize,
}

/// The header of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockHeader {
    pub(crate) last: u32,
    offset: u32,
    pub(crate) max_count: u8,
    pub(crate) min_length: u16,
}

/// Appends a list. Postings are sorted by chunk; `lengths` has the length of each chunk.
pub(crate) fn write_list(postings: &[Posting], lengths: &[u16], out: &mut Vec<u8>) {
    let blocks = postings.len().div_ceil(BLOCK_LEN);
    let start = out.len();
    if blocks > 1 {
        out.resize(start + blocks * HEADER_BYTES, 0);
    }
    let mut next = 0;
    for (number, block) in postings.chunks(BLOCK_LEN).enumerate() {
        if blocks > 1 {
            let offset = (out.len() - start) as u32;
            let header = &mut out[start + number * HEADER_BYTES..];
            let shortest = block.iter().map(|posting| lengths[posting.chunk as usize]).min().unwrap_or(0);
            header[..4].copy_from_slice(&block[block.len() - 1].chunk.to_le_bytes());
            header[4..8].copy_from_slice(&offset.to_le_bytes());
            header[8] = block.iter().map(|posting| posting.count).max().unwrap_or(0);
            header[9..11].copy_from_slice(&shortest.to_le_bytes());
        }
        next = write_block(block, next, out);
    }
}

/// Appends one block and returns the lowest possible first chunk of the next one.
fn write_block(block: &[Posting], first: u32, out: &mut Vec<u8>) -> u32 {
    let mut next = first;
    let gaps: Vec<u32> = block
        .iter()
        .map(|posting| {
            let gap = posting.chunk - next;
            next = posting.chunk + 1;
            gap
        })
        .collect();
    let gap_bits = bit_width(gaps.iter().copied().max().unwrap_or(0));
    let count_bits = bit_width(block.iter().map(|posting| u32::from(posting.count) - 1).max().unwrap_or(0));
    out.extend([gap_bits, count_bits]);
    let mut packer = Packer { out, buffer: 0, bits: 0 };
    for gap in gaps {
        packer.push(gap, gap_bits);
    }
    for posting in block {
        packer.push(u32::from(posting.count) - 1, count_bits);
    }
    packer.finish();
    next
}

fn bit_width(most: u32) -> u8 {
    (32 - most.leading_zeros()) as u8
}

struct Packer<'a> {
    out: &'a mut Vec<u8>,
    buffer: u64,
    bits: u32,
}

// === impl Packer ===

impl Packer<'_> {
    fn push(&mut self, number: u32, bits: u8) {
        self.buffer |= u64::from(number) << self.bits;
        self.bits += u32::from(bits);
        while self.bits >= 8 {
            self.out.push(self.buffer as u8);
            self.buffer >>= 8;
            self.bits -= 8;
        }
    }

    fn finish(self) {
        if self.bits > 0 {
            self.out.push(self.buffer as u8);
        }
    }
}

// === impl List ===

impl<'a> PostingList<'a> {
    /// `bytes` start with the list and extend to the end of the padding.
    pub(crate) fn new(bytes: &'a [u8], len: usize) -> PostingList<'a> {
        PostingList { bytes, len }
    }

    pub(crate) fn blocks(&self) -> usize {
        self.len.div_ceil(BLOCK_LEN)
    }

    /// Header of a block; `None` in a list with a single block.
    pub(crate) fn header(&self, block: usize) -> Option<BlockHeader> {
        if self.blocks() < 2 {
            return None;
        }
        let header: &[u8; HEADER_BYTES] = self.bytes.get(block * HEADER_BYTES..)?.first_chunk()?;
        let [a, b, c, d, e, f, g, h, most, i, j] = *header;
        Some(BlockHeader {
            last: u32::from_le_bytes([a, b, c, d]),
            offset: u32::from_le_bytes([e, f, g, h]),
            max_count: most,
            min_length: u16::from_le_bytes([i, j]),
        })
    }

    /// Decodes a block and returns its number of chunks, or `None` if the bytes end early.
    fn decode_block(
        &self,
        block: usize,
        chunks: &mut [u32; BLOCK_LEN],
        counts: &mut [u32; BLOCK_LEN],
    ) -> Option<usize> {
        let filled = (self.len - block * BLOCK_LEN).min(BLOCK_LEN);
        let (offset, mut next) = match self.header(block) {
            None => (0, 0),
            Some(header) if block == 0 => (header.offset as usize, 0),
            Some(header) => (header.offset as usize, self.header(block - 1)?.last.wrapping_add(1)),
        };
        let bytes = self.bytes.get(offset..)?;
        let [gap_bits, count_bits] = *bytes.first_chunk()?;
        let bytes = &bytes[2..];
        if gap_bits > 32 || count_bits > 8 {
            return None;
        }
        let all_bits = filled * (usize::from(gap_bits) + usize::from(count_bits));
        if all_bits.div_ceil(8) + PADDING_BYTES > bytes.len() {
            return None;
        }
        read_bits(bytes, 0, gap_bits, &mut chunks[..filled]);
        for chunk in &mut chunks[..filled] {
            next = next.wrapping_add(*chunk);
            *chunk = next;
            next = next.wrapping_add(1);
        }
        read_bits(bytes, filled * usize::from(gap_bits), count_bits, &mut counts[..filled]);
        for count in &mut counts[..filled] {
            *count += 1;
        }
        Some(filled)
    }

    /// Whether the list is decodable, sorted, below `chunks`, and consistent with its headers.
    pub(crate) fn is_valid(&self, chunks: usize, lengths: &[u16]) -> bool {
        let mut cursor = Cursor::new(*self);
        let mut last: Option<u32> = None;
        for block in 0..self.blocks() {
            let Some(filled) = self.decode_block(block, &mut cursor.chunks, &mut cursor.counts) else { return false };
            for (chunk, count) in cursor.chunks[..filled].iter().zip(&cursor.counts) {
                if last.is_some_and(|last| *chunk <= last) || *chunk as usize >= chunks || *count > 255 {
                    return false;
                }
                if let Some(header) = self.header(block) {
                    let is_within =
                        *count <= u32::from(header.max_count) && lengths[*chunk as usize] >= header.min_length;
                    if !is_within {
                        return false;
                    }
                }
                last = Some(*chunk);
            }
            if self.header(block).is_some_and(|header| Some(header.last) != last) {
                return false;
            }
        }
        true
    }
}

/// Decodes numbers of `width` bits. The caller has checked the length of the bytes.
fn read_bits(bytes: &[u8], from: usize, width: u8, out: &mut [u32]) {
    if width == 0 {
        return out.fill(0);
    }
    let mask = (1_u64 << width) - 1;
    let mut bit = from;
    for number in out {
        let at = bit / 8;
        let word = bytes.get(at..at + 8).and_then(|word| word.first_chunk()).copied().unwrap_or_default();
        *number = ((u64::from_le_bytes(word) >> (bit % 8)) & mask) as u32;
        bit += usize::from(width);
    }
}

// === impl Cursor ===

impl<'a> Cursor<'a> {
    pub(crate) fn new(list: PostingList<'a>) -> Cursor<'a> {
        Cursor { list, next_block: 0, chunks: [0; BLOCK_LEN], counts: [0; BLOCK_LEN], filled: 0, at: 0 }
    }

    /// Moves to the first chunk at or after `chunk` and returns it.
    pub(crate) fn seek(&mut self, chunk: u32) -> Option<u32> {
        if self.at >= self.filled || self.chunks[self.filled - 1] < chunk {
            let mut block = self.next_block;
            let blocks = self.list.blocks();
            // Galloping search, because most steps are short.
            let mut step = 1;
            let ends_before = |block: usize| self.list.header(block).is_some_and(|header| header.last < chunk);
            while block + step < blocks && ends_before(block + step - 1) {
                block += step;
                step *= 2;
            }
            while step > 0 {
                while block < blocks && block + step <= blocks && ends_before(block + step - 1) {
                    block += step;
                }
                step /= 2;
            }
            if block >= blocks {
                (self.next_block, self.filled, self.at) = (blocks, 0, 0);
                return None;
            }
            self.load(block)?;
        }
        while self.at < self.filled && self.chunks[self.at] < chunk {
            self.at += 1;
        }
        if self.at < self.filled { Some(self.chunks[self.at]) } else { None }
    }

    /// The count of the chunk that `seek` returned.
    pub(crate) fn count(&self) -> u32 {
        self.counts[self.at]
    }

    /// Calls `each` for all unread chunks before `end`, with their counts.
    pub(crate) fn read_until(&mut self, end: u32, mut each: impl FnMut(u32, u32)) {
        loop {
            while self.at < self.filled {
                let chunk = self.chunks[self.at];
                if chunk >= end {
                    return;
                }
                each(chunk, self.counts[self.at]);
                self.at += 1;
            }
            if self.next_block >= self.list.blocks() || self.load(self.next_block).is_none() {
                return;
            }
        }
    }

    fn load(&mut self, block: usize) -> Option<()> {
        let filled = self.list.decode_block(block, &mut self.chunks, &mut self.counts);
        (self.next_block, self.filled, self.at) = (block + 1, filled.unwrap_or(0), 0);
        filled.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(gaps in prop::collection::vec((0_u32..5000, 1_u8..), 1..700), skip in 1_u32..9000) {
            let mut next = 0;
            let postings: Vec<Posting> = gaps
                .iter()
                .map(|&(gap, count)| {
                    let chunk = next + gap;
                    next = chunk + 1;
                    Posting { chunk, count }
                })
                .collect();
            let lengths = vec![7; next as usize];
            let mut bytes = Vec::new();
            write_list(&postings, &lengths, &mut bytes);
            bytes.extend([0; PADDING_BYTES]);
            let list = PostingList::new(&bytes, postings.len());
            prop_assert!(list.is_valid(next as usize, &lengths));
            prop_assert!(!list.is_valid(next as usize - 1, &lengths));
            let mut read = Vec::new();
            Cursor::new(list).read_until(u32::MAX, |chunk, count| read.push(Posting { chunk, count: count as u8 }));
            prop_assert_eq!(&read, &postings);
            let mut cursor = Cursor::new(list);
            let mut chunk = 0;
            while chunk < next {
                let wanted = postings.iter().find(|posting| posting.chunk >= chunk);
                prop_assert_eq!(cursor.seek(chunk), wanted.map(|posting| posting.chunk));
                if let Some(wanted) = wanted {
                    prop_assert_eq!(cursor.count(), u32::from(wanted.count));
                }
                chunk += skip;
            }
        }
    }
}
