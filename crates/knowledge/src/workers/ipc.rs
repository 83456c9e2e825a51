//! Worker side of the IPC.

use std::io::{self, Read, StdinLock, StdoutLock, Write};

use corbie_extract::Raster;

use super::message::{OcrResult, WorkerJob, WorkerMessage, encode_frame, frame_length};

/// Every message is flushed, so that a finished page is not lost when the next one crashes the worker.
pub(super) struct IpcChannel<'a> {
    input: StdinLock<'a>,
    out: StdoutLock<'a>,
    /// Whether a page exceeded the maximum message size.
    pub(super) too_large: bool,
}

impl IpcChannel<'_> {
    pub(super) fn new() -> IpcChannel<'static> {
        IpcChannel { input: io::stdin().lock(), out: io::stdout().lock(), too_large: false }
    }

    /// The next document. `None` at the end of stdin.
    pub(super) fn next_job(&mut self) -> io::Result<Option<(WorkerJob, Vec<u8>)>> {
        let mut head = [0; 4];
        match self.input.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let job: WorkerJob = self.read_message(head)?;
        let mut bytes = Vec::with_capacity(usize::try_from(job.length).map_err(io::Error::other)?);
        (&mut self.input).take(job.length).read_to_end(&mut bytes)?;
        Ok(Some((job, bytes)))
    }

    pub(super) fn send(&mut self, said: &WorkerMessage) -> io::Result<()> {
        self.out.write_all(&encode_frame(said)?)?;
        self.out.flush()
    }

    /// Sends a message during a document. After an oversized page nothing more is sent. If the parent is dead, the
    /// worker exits.
    pub(super) fn send_or_exit(&mut self, said: &WorkerMessage) {
        if self.too_large {
            return;
        }
        match self.send(said) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => self.too_large = true,
            Err(_) => std::process::exit(1),
        }
    }

    /// Sends an image to the parent for OCR and waits for the result.
    pub(super) fn request_ocr(&mut self, picture: &Raster) -> io::Result<OcrResult> {
        let Raster { width, height, rgb } = picture;
        self.send(&WorkerMessage::RecognizeImage { width: *width, height: *height })?;
        let gray: Vec<u8> = rgb.chunks_exact(3).map(|dot| luma([dot[0], dot[1], dot[2]])).collect();
        self.out.write_all(&gray)?;
        self.out.flush()?;
        let mut head = [0; 4];
        self.input.read_exact(&mut head)?;
        self.read_message(head)
    }

    fn read_message<T: serde::de::DeserializeOwned>(&mut self, head: [u8; 4]) -> io::Result<T> {
        let mut text = vec![0; frame_length(head)?];
        self.input.read_exact(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// Perceived brightness.
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    let sum = u32::from(red) * 77 + u32::from(green) * 150 + u32::from(blue) * 29;
    (sum >> 8) as u8
}
