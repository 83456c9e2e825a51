//! Guard-page allocator: every allocation ends at an inaccessible page, and freed memory is inaccessible too. One byte
//! out of bounds is a fault.
//!
//! For tests of functions that read and write memory by address. It detects errors that are invisible to tools with
//! limited support for the processor's instructions, and is cheap enough for every run.

#![expect(unsafe_code, reason = "an allocator is made of addresses")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system allocator, except for allocations inside [`with_guard_pages`]. The tests of a crate make it their global
/// allocator.
#[derive(Debug)]
pub struct GuardPageAllocator;

/// Reserved addresses, not memory; each is used once. Allocations that no longer fit use the system allocator.
const REGION_SIZE: usize = 16 << 30;
const PAGE: usize = 4096;

/// Start of the reserved range; zero if there is none.
static REGION_START: OnceLock<usize> = OnceLock::new();
static REGION_USED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function whose allocations on this thread end at an inaccessible page.
pub fn with_guard_pages<T>(work: impl FnOnce() -> T) -> T {
    struct RestoreOnDrop(bool);
    impl Drop for RestoreOnDrop {
        fn drop(&mut self) {
            IS_GUARDED.set(self.0);
        }
    }
    let _before = RestoreOnDrop(IS_GUARDED.replace(true));
    work()
}

fn region_start() -> usize {
    *REGION_START.get_or_init(|| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: this maps unused addresses.
        let room = unsafe { libc::mmap(ptr::null_mut(), REGION_SIZE, libc::PROT_NONE, flags, -1, 0) };
        if room == libc::MAP_FAILED { 0 } else { room as usize }
    })
}

/// Whether the address is in the reserved range.
fn is_in_region(address: *mut u8) -> bool {
    let room = REGION_START.get().copied().unwrap_or_default();
    room != 0 && (room..room + REGION_SIZE).contains(&(address as usize))
}

fn allocate_guarded(layout: Layout) -> Option<*mut u8> {
    let length = layout.size().checked_next_multiple_of(PAGE)?;
    if !IS_GUARDED.get() || layout.align() > PAGE || region_start() == 0 {
        return None;
    }
    let offset = REGION_USED.fetch_add(length + PAGE, Ordering::Relaxed);
    if offset + length + PAGE > REGION_SIZE {
        return None;
    }
    let start = region_start() + offset;
    // SAFETY: these pages are in the reserved range and were handed out only here.
    let opened = unsafe { libc::mprotect(start as *mut _, length, libc::PROT_READ | libc::PROT_WRITE) };
    (opened == 0).then(|| ((start + length - layout.size()) & !(layout.align() - 1)) as *mut u8)
}

// SAFETY: each allocation is from the system, or from pages that are handed out once and have the requested size.
unsafe impl GlobalAlloc for GuardPageAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `System`.
        allocate_guarded(layout).unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        if !is_in_region(address) {
            // SAFETY: it was allocated by the system with this layout.
            return unsafe { System.dealloc(address, layout) };
        }
        let start = (address as usize & !(PAGE - 1)) as *mut _;
        let length = layout.size().next_multiple_of(PAGE);
        // SAFETY: these pages belong to this allocation alone. Their memory is released, their addresses stay reserved.
        unsafe {
            libc::madvise(start, length, libc::MADV_DONTNEED);
            libc::mprotect(start, length, libc::PROT_NONE);
        }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_in_region(address) && !IS_GUARDED.get() {
            // SAFETY: the caller upholds the contract of `System`.
            return unsafe { System.realloc(address, layout, size) };
        }
        // SAFETY: the caller guarantees a valid size, and both allocations are at least as long as the copied range.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                ptr::copy_nonoverlapping(address, new, layout.size().min(size));
                self.dealloc(address, layout);
            }
            new
        }
    }
}

/// Whether the kernel can read a byte; a direct access would end the process.
#[cfg(test)]
fn is_readable(address: *const u8) -> bool {
    let (mut ends, read) = ([0; 2], |end: i32, address: *const u8| {
        // SAFETY: the kernel checks the address and returns an error.
        unsafe { libc::write(end, address.cast(), 1) }
    });
    // SAFETY: the array has space for both descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let is_readable = read(ends[1], address) == 1;
    for end in ends {
        // SAFETY: they were opened here.
        unsafe { libc::close(end) };
    }
    is_readable
}

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: GuardPageAllocator = GuardPageAllocator;

#[test]
fn one_byte_beyond_guarded_memory_cannot_be_touched() {
    for length in [1, 63, 64, 4095, 4096, 4097, 100_000] {
        let bytes = with_guard_pages(|| vec![7_u8; length].into_boxed_slice());
        assert!(is_readable(&raw const bytes[0]) && is_readable(&raw const bytes[length - 1]));
        assert!(!is_readable(bytes.as_ptr_range().end));
        let gone = bytes.as_ptr();
        drop(bytes);
        assert!(!is_readable(gone), "what was given back is gone");
    }
}
