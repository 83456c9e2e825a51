//! PDFium bindings, only for comparison with our text extraction.
//!
//! The library is loaded at run time, and only the functions used here are declared.

#![allow(unsafe_code, reason = "calls into a C library are unsafe")]

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use libloading::{Library, Symbol};

use crate::Error;

/// Environment variable with the path of the library.
const VARIABLE: &str = "CORBIE_PDFIUM";
/// Result of `FPDF_GetLastError` for a password-protected file.
const PASSWORD: c_ulong = 4;

/// PDFium is not thread-safe: one call at a time.
static CALL_LOCK: Mutex<()> = Mutex::new(());

/// The loaded library. It is never unloaded.
#[derive(Debug)]
pub struct Pdfium {
    load_document: unsafe extern "C" fn(*const c_void, usize, *const c_char) -> Handle,
    last_error: unsafe extern "C" fn() -> c_ulong,
    page_count: unsafe extern "C" fn(Handle) -> c_int,
    load_page: unsafe extern "C" fn(Handle, c_int) -> Handle,
    load_text: unsafe extern "C" fn(Handle) -> Handle,
    count_characters: unsafe extern "C" fn(Handle) -> c_int,
    get_text: unsafe extern "C" fn(Handle, c_int, c_int, *mut u16) -> c_int,
    close_text: unsafe extern "C" fn(Handle),
    close_page: unsafe extern "C" fn(Handle),
    close_document: unsafe extern "C" fn(Handle),
}

/// Why the library is not available.
#[derive(Debug, thiserror::Error)]
pub enum PdfiumError {
    #[error("set `{VARIABLE}` to the path of the PDFium library")]
    Unnamed,
    #[error("cannot load PDFium from `{path}` (set by `{VARIABLE}`): {source}")]
    Unusable { path: String, source: libloading::Error },
}

type Handle = *mut c_void;

/// An open PDFium object, closed on drop.
struct OpenHandle {
    handle: Handle,
    close: unsafe extern "C" fn(Handle),
}

impl Pdfium {
    /// Loads the library named by `CORBIE_PDFIUM`.
    pub fn load() -> Result<Pdfium, Missing> {
        Pdfium::from_file(&std::env::var(VARIABLE).map_err(|_| Missing::Unnamed)?)
    }

    /// Loads the library from a file. The caller must trust it: it becomes part of the process.
    pub fn from_file(path: &str) -> Result<Pdfium, Missing> {
        Pdfium::of(path).map_err(|source| Missing::Unusable { path: path.to_owned(), source })
    }

    fn of(path: &str) -> Result<Pdfium, libloading::Error> {
        // SAFETY: the user who sets the variable trusts the file.
        let library: &'static Library = Box::leak(Box::new(unsafe { Library::new(path)? }));
        // SAFETY: the types of the fields are those of `fpdfview.h` and `fpdf_text.h`, and the library is never
        // unloaded.
        unsafe {
            let begin: Symbol<'_, unsafe extern "C" fn()> = library.get(b"FPDF_InitLibrary")?;
            let pdfium = Pdfium {
                load_document: *library.get(b"FPDF_LoadMemDocument64")?,
                last_error: *library.get(b"FPDF_GetLastError")?,
                page_count: *library.get(b"FPDF_GetPageCount")?,
                load_page: *library.get(b"FPDF_LoadPage")?,
                load_text: *library.get(b"FPDFText_LoadPage")?,
                count_characters: *library.get(b"FPDFText_CountChars")?,
                get_text: *library.get(b"FPDFText_GetText")?,
                close_text: *library.get(b"FPDFText_ClosePage")?,
                close_page: *library.get(b"FPDF_ClosePage")?,
                close_document: *library.get(b"FPDF_CloseDocument")?,
            };
            let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            begin();
            Ok(pdfium)
        }
    }

    /// The text of each page; empty for a page that cannot be opened.
    pub fn pages(&self, bytes: &[u8]) -> Result<Vec<String>, Error> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the bytes outlive the document, which is closed at the end of this function; a null password is
        // allowed.
        let document = unsafe { (self.load_document)(bytes.as_ptr().cast(), bytes.len(), ptr::null()) };
        let Some(document) = Open::new(document, self.close_document) else {
            // SAFETY: no arguments; reads the error of the previous call.
            let password = unsafe { (self.last_error)() } == PASSWORD;
            let broken = || Error::Corrupted("PDFium cannot open it".to_owned());
            return Err(if password { Error::PasswordProtected } else { broken() });
        };
        // SAFETY: the document is open.
        let count = unsafe { (self.page_count)(document.handle) };
        Ok((0..count).map(|number| self.page(&document, number).unwrap_or_default()).collect())
    }

    fn page(&self, document: &Open, number: c_int) -> Option<String> {
        // SAFETY: the document is open, and the text and then its page are closed before it.
        let page = Open::new(unsafe { (self.load_page)(document.handle, number) }, self.close_page)?;
        // SAFETY: the page is open.
        let text = Open::new(unsafe { (self.load_text)(page.handle) }, self.close_text)?;
        // SAFETY: the text is open.
        let count = unsafe { (self.count_characters)(text.handle) };
        let mut units = vec![0; 2 * (usize::try_from(count).ok()? + 1)];
        // SAFETY: the text is open, and the buffer has room for the terminating zero and for characters of two units
        // each.
        let written = unsafe { (self.get_text)(text.handle, 0, count, units.as_mut_ptr()) };
        units.truncate(usize::try_from(written).ok()?.saturating_sub(1));
        // Marks a hyphen that breaks a word at the end of a line.
        units.retain(|unit| *unit != 0xFFFE);
        Some(String::from_utf16_lossy(&units))
    }
}

impl Open {
    fn new(handle: Handle, close: unsafe extern "C" fn(Handle)) -> Option<Open> {
        // Never created for a null handle, because drop closes the handle.
        (!handle.is_null()).then(|| Open { handle, close })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the handle came from the library, is not null, and is closed only here.
        unsafe { (self.close)(self.handle) }
    }
}
