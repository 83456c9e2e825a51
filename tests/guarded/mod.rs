//! Memory in which one byte too far is a fault: every allocation ends where a page begins that nobody may touch, and what
//! was given back cannot be touched either.
//!
//! For tests of functions that read and write memory by address. It sees what no tool sees that knows only some of a
//! processor's instructions, and costs nothing to have in every run.

#![expect(unsafe_code, reason = "an allocator is made of addresses")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, but for what is allocated inside [`guarded`].
struct Guarding;

#[global_allocator]
static ALLOCATOR: Guarding = Guarding;

/// Addresses, not memory; each is used once. What does not fit any more comes from the system.
const ROOM: usize = 16 << 30;
const PAGE: usize = 4096;

/// Where the room begins; zero where there is none.
static ROOM_AT: OnceLock<usize> = OnceLock::new();
static USED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs something whose allocations on this thread end at a page that nobody may touch.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_GUARDED.set(self.0);
        }
    }
    let _before = Before(IS_GUARDED.replace(true));
    work()
}

fn room() -> usize {
    *ROOM_AT.get_or_init(|| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: this takes addresses that nobody has.
        let room = unsafe { libc::mmap(ptr::null_mut(), ROOM, libc::PROT_NONE, flags, -1, 0) };
        if room == libc::MAP_FAILED { 0 } else { room as usize }
    })
}

/// Whether it came from the room.
fn is_ours(address: *mut u8) -> bool {
    let room = ROOM_AT.get().copied().unwrap_or_default();
    room != 0 && (room..room + ROOM).contains(&(address as usize))
}

fn allocate(layout: Layout) -> Option<*mut u8> {
    let length = layout.size().checked_next_multiple_of(PAGE)?;
    if !IS_GUARDED.get() || layout.align() > PAGE || room() == 0 {
        return None;
    }
    let offset = USED.fetch_add(length + PAGE, Ordering::Relaxed);
    if offset + length + PAGE > ROOM {
        return None;
    }
    let start = room() + offset;
    // SAFETY: these pages are of the room, and nobody else was given them.
    let opened = unsafe { libc::mprotect(start as *mut _, length, libc::PROT_READ | libc::PROT_WRITE) };
    (opened == 0).then(|| ((start + length - layout.size()) & !(layout.align() - 1)) as *mut u8)
}

// SAFETY: what is handed out is of the system, or of pages that are handed out once and are as long as was asked for.
unsafe impl GlobalAlloc for Guarding {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the system's promises.
        allocate(layout).unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        if !is_ours(address) {
            // SAFETY: it came from the system, with this layout.
            return unsafe { System.dealloc(address, layout) };
        }
        let start = (address as usize & !(PAGE - 1)) as *mut _;
        let length = layout.size().next_multiple_of(PAGE);
        // SAFETY: these pages were handed out for this allocation alone. Their memory goes back, their addresses stay.
        unsafe {
            libc::madvise(start, length, libc::MADV_DONTNEED);
            libc::mprotect(start, length, libc::PROT_NONE);
        }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_ours(address) && !IS_GUARDED.get() {
            // SAFETY: the caller keeps the system's promises.
            return unsafe { System.realloc(address, layout, size) };
        }
        // SAFETY: the caller promises that the size is one that a layout may have, and both are as long as what is copied.
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

/// Whether the system may read a byte; a program that tried would be ended.
fn is_readable(address: *const u8) -> bool {
    let (mut ends, read) = ([0; 2], |end: i32, address: *const u8| {
        // SAFETY: the system looks whether it may read there, and fails if not.
        unsafe { libc::write(end, address.cast(), 1) }
    });
    // SAFETY: there is room for the two ends.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let is_readable = read(ends[1], address) == 1;
    for end in ends {
        // SAFETY: they were opened here.
        unsafe { libc::close(end) };
    }
    is_readable
}

#[test]
fn one_byte_beyond_guarded_memory_cannot_be_touched() {
    for length in [1, 63, 64, 4095, 4096, 4097, 100_000] {
        let bytes = guarded(|| vec![7_u8; length].into_boxed_slice());
        assert!(is_readable(&raw const bytes[0]) && is_readable(&raw const bytes[length - 1]));
        assert!(!is_readable(bytes.as_ptr_range().end));
        let gone = bytes.as_ptr();
        drop(bytes);
        assert!(!is_readable(gone), "what was given back is gone");
    }
}
