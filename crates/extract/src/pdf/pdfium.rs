//! The text that PDFium finds, to compare ours with. Nothing else uses it.
//!
//! The library is loaded while the program runs, and only the functions that are called here are declared.

#![allow(unsafe_code, reason = "a library in C can be called in no other way")]

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use libloading::{Library, Symbol};

use crate::Error;

/// Names the file of the library.
const VARIABLE: &str = "CORBIE_PDFIUM";
/// What `FPDF_GetLastError` says of a file that needs a password.
const PASSWORD: c_ulong = 4;

/// The library allows one call at a time, whatever it is about.
static TURN: Mutex<()> = Mutex::new(());

/// The library, ready for use. It stays loaded until the program ends.
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

/// Why there is no library.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    #[error("no PDFium is named; set `{VARIABLE}` to the path of its library")]
    Unnamed,
    #[error("`{path}`, named by `{VARIABLE}`, is no PDFium: {source}")]
    Unusable { path: String, source: libloading::Error },
}

type Handle = *mut c_void;

/// Something the library has opened, closed when it goes out of use.
struct Open {
    handle: Handle,
    close: unsafe extern "C" fn(Handle),
}

impl Pdfium {
    /// Loads the library that `CORBIE_PDFIUM` names.
    pub fn load() -> Result<Pdfium, Missing> {
        Pdfium::from_file(&std::env::var(VARIABLE).map_err(|_| Missing::Unnamed)?)
    }

    /// Loads the library in a file. Whoever names it vouches for it: it becomes part of the program.
    pub fn from_file(path: &str) -> Result<Pdfium, Missing> {
        Pdfium::of(path).map_err(|source| Missing::Unusable { path: path.to_owned(), source })
    }

    fn of(path: &str) -> Result<Pdfium, libloading::Error> {
        // SAFETY: whoever sets the variable vouches for the file it names.
        let library: &'static Library = Box::leak(Box::new(unsafe { Library::new(path)? }));
        // SAFETY: the types of the fields are those of `fpdfview.h` and `fpdf_text.h`, and the library is never unloaded.
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

    /// The text of each page. One that cannot be opened is empty.
    pub fn pages(&self, bytes: &[u8]) -> Result<Vec<String>, Error> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the bytes outlive the document, which is closed at the end of this function; no password is allowed.
        let document = unsafe { (self.load_document)(bytes.as_ptr().cast(), bytes.len(), ptr::null()) };
        let Some(document) = Open::new(document, self.close_document) else {
            // SAFETY: it takes nothing and reads what the call before has left.
            let password = unsafe { (self.last_error)() } == PASSWORD;
            let broken = || Error::Corrupted("PDFium cannot open it".to_owned());
            return Err(if password { Error::PasswordProtected } else { broken() });
        };
        // SAFETY: the document is open.
        let count = unsafe { (self.page_count)(document.handle) };
        Ok((0..count).map(|number| self.page(&document, number).unwrap_or_default()).collect())
    }

    fn page(&self, document: &Open, number: c_int) -> Option<String> {
        // SAFETY: the document is open, and what is opened here is closed before it: the text first, then its page.
        let page = Open::new(unsafe { (self.load_page)(document.handle, number) }, self.close_page)?;
        // SAFETY: the page is open.
        let text = Open::new(unsafe { (self.load_text)(page.handle) }, self.close_text)?;
        // SAFETY: the text is open.
        let count = unsafe { (self.count_characters)(text.handle) };
        let mut units = vec![0; 2 * (usize::try_from(count).ok()? + 1)];
        // SAFETY: the text is open, and there is room for the zero at the end and for characters of two units each.
        let written = unsafe { (self.get_text)(text.handle, 0, count, units.as_mut_ptr()) };
        units.truncate(usize::try_from(written).ok()?.saturating_sub(1));
        // It stands for a hyphen that breaks a word at the end of a line.
        units.retain(|unit| *unit != 0xFFFE);
        Some(String::from_utf16_lossy(&units))
    }
}

impl Open {
    fn new(handle: Handle, close: unsafe extern "C" fn(Handle)) -> Option<Open> {
        // Made only where there is something: what is made is closed.
        (!handle.is_null()).then(|| Open { handle, close })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the handle came from the library, is not null, and nobody else closes it.
        unsafe { (self.close)(self.handle) }
    }
}
