//! ZIP archive reader.
//!
//! Written here instead of using a library because of the limits: output is counted while it is decompressed, across
//! all parts, and no size or count declared by the archive is used for allocation. Only the central directory
//! determines where parts begin. Checksums are not verified: a part with readable XML is more useful than an error.

use std::collections::HashMap;

use flate2::{Decompress, FlushDecompress, Status};

use crate::{Error, Limits};

/// An archive with its parsed central directory. Parts are decompressed on demand.
pub(crate) struct Archive<'a> {
    bytes: &'a [u8],
    limits: Limits,
    /// Keyed by lowercase name without a leading slash: part names are case-insensitive.
    entries: HashMap<String, ZipEntry>,
    /// Decompressed bytes so far, of all parts.
    inflated: u64,
    /// Reused for every part, because creating one costs more than most parts.
    inflater: Decompress,
}

#[derive(Clone, Copy)]
struct ZipEntry {
    /// Offset of its local header.
    header: usize,
    compressed: usize,
    method: Compression,
}

#[derive(Clone, Copy)]
enum Compression {
    Stored,
    Deflated,
    /// Unsupported or encrypted: an error only if the part is read.
    Unknown,
}

const END_OF_CENTRAL_DIRECTORY: &[u8] = b"PK\x05\x06";
const END_OF_CENTRAL_DIRECTORY_64: &[u8] = b"PK\x06\x06";
const LOCATOR_64: &[u8] = b"PK\x06\x07";
const CENTRAL_DIRECTORY_ENTRY: &[u8] = b"PK\x01\x02";
const LOCAL_FILE_HEADER: &[u8] = b"PK\x03\x04";
/// Below this output size, the compression ratio is not checked.
const MIN_BOMB_BYTES: u64 = 4 << 20;
const OUTPUT_GROWTH_BYTES: usize = 32 << 10;

// === impl ===

impl<'a> Archive<'a> {
    pub(crate) fn open(bytes: &'a [u8], limits: &Limits) -> Result<Archive<'a>, Error> {
        let (table, shift) = find_central_directory(bytes)?;
        let mut archive = Archive {
            bytes,
            limits: limits.clone(),
            entries: HashMap::new(),
            inflated: 0,
            inflater: Decompress::new(false),
        };
        let mut at = table;
        let mut seen = 0;
        while let Some(entry) = bytes.get(at..).filter(|rest| rest.starts_with(CENTRAL_DIRECTORY_ENTRY)) {
            seen += 1;
            if seen > limits.entries {
                return Err(Error::TooMuch { what: "parts", most: limits.entries as u64 });
            }
            at = archive.read_entry(entry, at, shift).ok_or_else(invalid_directory)?;
        }
        if archive.entries.is_empty() { Err(invalid_directory()) } else { Ok(archive) }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        key(name).is_some_and(|key| self.entries.contains_key(&key))
    }

    /// The content of a part; `None` if it does not exist.
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.read_head(name, usize::MAX)
    }

    /// The first `most` bytes of a part. The rest is neither decompressed nor counted.
    pub(crate) fn read_head(&mut self, name: &str, most: usize) -> Result<Option<Vec<u8>>, Error> {
        let Some(entry) = key(name).and_then(|key| self.entries.get(&key).copied()) else { return Ok(None) };
        let header = self.bytes.get(entry.header..).filter(|rest| rest.starts_with(LOCAL_FILE_HEADER));
        let start = header
            .and_then(|header| Some(30 + usize::from(read_u16(header, 26)?) + usize::from(read_u16(header, 28)?)));
        let data = start.and_then(|start| self.bytes.get(entry.header..)?.get(start..));
        let data = data.ok_or_else(|| Error::Corrupted(format!("part `{name}` is not at its offset")))?;
        // A truncated part still returns the available bytes.
        let data = &data[..entry.compressed.min(data.len())];
        match entry.method {
            Compression::Stored => {
                let data = &data[..data.len().min(most)];
                self.count(data.len(), data.len() as u64)?;
                Ok(Some(data.to_vec()))
            }
            Compression::Deflated => self.inflate(data, most, name).map(Some),
            Compression::Unknown => {
                Err(Error::Corrupted(format!("part `{name}` uses an unsupported compression method")))
            }
        }
    }

    /// Adds an entry of the central directory and returns the offset of the next one.
    fn read_entry(&mut self, entry: &[u8], at: usize, shift: usize) -> Option<usize> {
        let name_length = usize::from(read_u16(entry, 28)?);
        let extra_length = usize::from(read_u16(entry, 30)?);
        let comment_length = usize::from(read_u16(entry, 32)?);
        let name = entry.get(46..46 + name_length)?;
        let extra = entry.get(46 + name_length..46 + name_length + extra_length)?;
        let mut compressed = u64::from(read_u32(entry, 20)?);
        let mut header = u64::from(read_u32(entry, 42)?);
        if compressed == u64::from(u32::MAX) || header == u64::from(u32::MAX) {
            let wide = read_u32(entry, 24)? == u32::MAX;
            read_zip64_extra(extra, wide, &mut compressed, &mut header);
        }
        let enciphered = read_u16(entry, 8)? & 1 != 0;
        let method = match read_u16(entry, 10)? {
            _ if enciphered => Compression::Unknown,
            0 => Compression::Stored,
            8 => Compression::Deflated,
            _ => Compression::Unknown,
        };
        let header = usize::try_from(header).ok()?.checked_add(shift)?;
        let compressed = usize::try_from(compressed).ok()?;
        // The first of several parts with the same name wins. A name outside the package is not a part.
        if let Some(key) = key(&String::from_utf8_lossy(name)) {
            self.entries.entry(key).or_insert(ZipEntry { header, compressed, method });
        }
        Some(at + 46 + name_length + extra_length + comment_length)
    }

    fn inflate(&mut self, data: &[u8], most: usize, name: &str) -> Result<Vec<u8>, Error> {
        self.inflater.reset(false);
        let mut out: Vec<u8> = Vec::with_capacity((data.len() * 4).clamp(OUTPUT_GROWTH_BYTES, 1 << 20));
        loop {
            if out.capacity() - out.len() < OUTPUT_GROWTH_BYTES {
                out.reserve(out.len().max(OUTPUT_GROWTH_BYTES));
            }
            let before = out.len();
            let rest = &data[(self.inflater.total_in() as usize).min(data.len())..];
            let status = self.inflater.decompress_vec(rest, &mut out, FlushDecompress::None);
            self.count(out.len() - before, out.len() as u64)?;
            if out.len() >= most {
                out.truncate(most);
                return Ok(out);
            }
            match status {
                Ok(Status::StreamEnd) => return Ok(out),
                Ok(_) if out.len() > before => {}
                // The stream ends early: return what a truncated part has.
                _ if !out.is_empty() => return Ok(out),
                _ => return Err(Error::Corrupted(format!("part `{name}` cannot be decompressed"))),
            }
        }
    }

    fn count(&mut self, more: usize, part: u64) -> Result<(), Error> {
        self.inflated += more as u64;
        if part > self.limits.part_bytes {
            return Err(Error::TooMuch { what: "bytes in a part", most: self.limits.part_bytes });
        }
        let by_size = (self.bytes.len() as u64).saturating_mul(self.limits.inflation).max(MIN_BOMB_BYTES);
        let most = self.limits.inflated_bytes.min(by_size);
        if self.inflated > most { Err(Error::TooMuch { what: "bytes when decompressed", most }) } else { Ok(()) }
    }
}

/// Offset of the central directory, and the shift of all offsets: some files have data before the archive.
fn find_central_directory(bytes: &[u8]) -> Result<(usize, usize), Error> {
    // The end record is followed by a comment of at most 64 KiB.
    let tail = bytes.len().saturating_sub(22 + usize::from(u16::MAX));
    let end = memchr::memmem::rfind(&bytes[tail..], END_OF_CENTRAL_DIRECTORY).map(|at| tail + at);
    let end = end.ok_or_else(|| Error::Corrupted("the end of the ZIP archive is missing".to_owned()))?;
    let record = &bytes[end..];
    let (size, stated) =
        (read_u32(record, 12).ok_or_else(invalid_directory)?, read_u32(record, 16).ok_or_else(invalid_directory)?);
    let (mut size, mut stated, mut end) = (u64::from(size), u64::from(stated), end);
    if let Some(locator) = end.checked_sub(20).and_then(|at| bytes.get(at..)).filter(|at| at.starts_with(LOCATOR_64)) {
        let wide = read_u64(locator, 8).and_then(|at| usize::try_from(at).ok());
        let wide = wide.filter(|at| bytes.get(*at..).is_some_and(|rest| rest.starts_with(END_OF_CENTRAL_DIRECTORY_64)));
        let wide = wide.ok_or_else(invalid_directory)?;
        size = read_u64(&bytes[wide..], 40).ok_or_else(invalid_directory)?;
        stated = read_u64(&bytes[wide..], 48).ok_or_else(invalid_directory)?;
        end = wide;
    }
    let stated = usize::try_from(stated).map_err(|_| invalid_directory())?;
    let size = usize::try_from(size).map_err(|_| invalid_directory())?;
    let is_entry = |at: usize| bytes.get(at..).is_some_and(|rest| rest.starts_with(CENTRAL_DIRECTORY_ENTRY));
    if is_entry(stated) {
        return Ok((stated, 0));
    }
    let counted_back =
        end.checked_sub(size).filter(|at| *at >= stated && is_entry(*at)).ok_or_else(invalid_directory)?;
    Ok((counted_back, counted_back - stated))
}

/// ZIP64: sizes and offsets that do not fit are in an extra field.
fn read_zip64_extra(extra: &[u8], wide_size: bool, compressed: &mut u64, header: &mut u64) {
    let mut rest = extra;
    while let (Some(tag), Some(length)) = (read_u16(rest, 0), read_u16(rest, 2)) {
        let end = (4 + usize::from(length)).min(rest.len());
        if tag == 1 {
            let field = &rest[4..end];
            let mut at = if wide_size { 8 } else { 0 };
            for value in [compressed, header] {
                if *value == u64::from(u32::MAX) {
                    *value = read_u64(field, at).unwrap_or(*value);
                    at += 8;
                }
            }
            return;
        }
        rest = &rest[end..];
    }
}

fn key(name: &str) -> Option<String> {
    let name = name.strip_prefix('/').unwrap_or(name).replace('\\', "/").to_ascii_lowercase();
    let safe = !name.is_empty() && !name.starts_with('/') && name.split('/').all(|piece| piece != "..");
    safe.then_some(name)
}

fn invalid_directory() -> Error {
    Error::Corrupted("the ZIP central directory is invalid".to_owned())
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map(u16::from_le_bytes)
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
}

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
}
