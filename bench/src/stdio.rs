//! Stdio load generator: one thread, non-blocking pipes, and as few system calls as possible.
//!
//! Requests are sent in one `writev` directly from their buffers; replies are split at newlines, matched by their ids
//! and compared by length. Only the first and the last ones are parsed.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, read, writev};

use crate::request::{self, FIRST_ID, PreparedCall, SINGLE_ID, id_of, preview};
use crate::window::Meter;

/// A server that is silent for this long is stuck.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Our ends of a server's standard streams.
#[derive(Debug)]
pub(crate) struct Pipes {
    to: OwnedFd,
    from: OwnedFd,
    lines: LineBuffer,
}

/// Read buffer, including a partial last line.
#[derive(Debug)]
struct LineBuffer {
    bytes: Vec<u8>,
    /// Bytes `start..end` are not consumed yet; `start..searched` contain no newline.
    start: usize,
    searched: usize,
    end: usize,
}

/// One of the calls in flight.
struct InFlightCall {
    call: PreparedCall,
    id: u64,
    sent: Instant,
}

impl Pipes {
    pub(crate) fn new(to: ChildStdin, from: ChildStdout) -> Result<Pipes> {
        let (to, from) = (OwnedFd::from(to), OwnedFd::from(from));
        ioctl_fionbio(&to, true)?;
        ioctl_fionbio(&from, true)?;
        Ok(Pipes { to, from, lines: LineBuffer::new() })
    }

    /// The legacy handshake.
    pub(crate) fn initialize(&mut self) -> Result<()> {
        let reply = self.exchange(&[&request::initialize()[..], b"\n"].concat())?;
        ensure!(id_of(&reply)? == 1, "not a reply to `initialize`: {}", preview(&reply));
        self.send(&[&request::initialized()[..], b"\n"].concat())
    }

    /// Makes one call, verifies the reply and returns its length.
    pub(crate) fn call_once(&mut self, call: &PreparedCall) -> Result<usize> {
        let mut call = call.clone().with_framing(b"", b"\n");
        call.set_id(SINGLE_ID);
        let reply = self.exchange(&call.bytes)?;
        call.check(SINGLE_ID, &reply)?;
        Ok(reply.len())
    }

    /// Keeps `at_once` calls in flight until the meter ends the window, then waits for the last replies.
    pub(crate) fn drive(
        &mut self,
        call: &PreparedCall,
        at_once: usize,
        reply_length: usize,
        meter: &mut Meter,
    ) -> Result<()> {
        let call = call.clone().with_framing(b"", b"\n");
        let started = Instant::now();
        let mut slots: Vec<InFlightCall> =
            (0..at_once).map(|_| InFlightCall { call: call.clone(), id: 0, sent: started }).collect();
        let mut to_send: VecDeque<usize> = VecDeque::with_capacity(at_once);
        for (index, slot) in slots.iter_mut().enumerate() {
            slot.assign_id(index, at_once, started);
            to_send.push_back(index);
        }
        let (mut sent_of_first, mut in_flight, mut going_on) = (0, at_once, true);
        while in_flight > 0 {
            self.write_some(&slots, &mut to_send, &mut sent_of_first)?;
            self.wait(!to_send.is_empty())?;
            if !self.lines.fill(&self.from)? {
                continue;
            }
            let now = Instant::now();
            while let Some(reply) = self.lines.next() {
                ensure!(reply.len() == reply_length, "a reply of another length: {}", preview(reply));
                let id = id_of(reply)?;
                let index = (id % at_once as u64) as usize;
                let slot = &mut slots[index];
                ensure!(slot.id == id, "a reply nobody waits for: {}", preview(reply));
                going_on = meter.record(slot.sent, now) && going_on;
                if going_on {
                    slot.assign_id(index, at_once, now);
                    to_send.push_back(index);
                } else {
                    slot.call.check(id, reply)?;
                    slot.id = 0;
                    in_flight -= 1;
                }
            }
        }
        Ok(())
    }

    /// Writes as much as the pipe accepts.
    fn write_some(
        &self,
        slots: &[InFlightCall],
        to_send: &mut VecDeque<usize>,
        sent_of_first: &mut usize,
    ) -> Result<()> {
        const MAX_IOVECS: usize = 64;
        while !to_send.is_empty() {
            let mut parts = [IoSlice::new(&[]); MAX_IOVECS];
            let mut count = 0;
            for (part, &index) in parts.iter_mut().zip(to_send.iter()) {
                let skip = if count == 0 { *sent_of_first } else { 0 };
                *part = IoSlice::new(&slots[index].call.bytes[skip..]);
                count += 1;
            }
            let mut written = match writev(&self.to, &parts[..count]) {
                Ok(written) => written,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => bail!("the server takes no more input: {error}"),
            };
            while let Some(&first) = to_send.front() {
                let left = slots[first].call.bytes.len() - *sent_of_first;
                if written < left {
                    *sent_of_first += written;
                    break;
                }
                written -= left;
                *sent_of_first = 0;
                to_send.pop_front();
            }
        }
        Ok(())
    }

    /// Waits for readability, and optionally for writability.
    fn wait(&self, to_write: bool) -> Result<()> {
        let mut both = [
            PollFd::from_borrowed_fd(self.from.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.to.as_fd(), PollFlags::OUT),
        ];
        let watched = if to_write { &mut both[..] } else { &mut both[..1] };
        let patience = Timespec { tv_sec: RESPONSE_TIMEOUT.as_secs() as i64, tv_nsec: 0 };
        match poll(watched, Some(&patience)) {
            Ok(0) => bail!("the server has said nothing for {RESPONSE_TIMEOUT:?}"),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>> {
        let mut rest = message;
        loop {
            rest = self.write_rest(rest)?;
            if let Some(line) = self.lines.next() {
                return Ok(line.to_vec());
            }
            self.wait(!rest.is_empty())?;
            self.lines.fill(&self.from)?;
        }
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        let mut rest = message;
        loop {
            rest = self.write_rest(rest)?;
            if rest.is_empty() {
                return Ok(());
            }
            self.wait(true)?;
        }
    }

    fn write_rest<'a>(&self, rest: &'a [u8]) -> Result<&'a [u8]> {
        match rustix::io::write(&self.to, rest) {
            Ok(written) => Ok(&rest[written..]),
            Err(Errno::AGAIN) => Ok(rest),
            Err(error) => bail!("the server takes no input: {error}"),
        }
    }
}

impl InFlightCall {
    /// Assigns a new id from which the slot can be derived.
    fn assign_id(&mut self, index: usize, at_once: usize, now: Instant) {
        let at_once = at_once as u64;
        self.id = match self.id {
            0 => FIRST_ID.next_multiple_of(at_once) + index as u64,
            last => last + at_once,
        };
        self.call.set_id(self.id);
        self.sent = now;
    }
}

impl LineBuffer {
    const MIN_FREE: usize = 256 * 1024;

    fn new() -> LineBuffer {
        LineBuffer { bytes: vec![0; 2 * LineBuffer::MIN_FREE], start: 0, searched: 0, end: 0 }
    }

    /// Reads once; false if no data was available.
    fn fill(&mut self, from: &OwnedFd) -> Result<bool> {
        if self.bytes.len() - self.end < LineBuffer::MIN_FREE {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.searched, self.end, self.start) = (self.searched - self.start, self.end - self.start, 0);
            if self.bytes.len() - self.end < LineBuffer::MIN_FREE {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
        }
        match read(from, &mut self.bytes[self.end..]) {
            Ok(0) => bail!("the server has closed its output"),
            Ok(count) => self.end += count,
            Err(Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    fn next(&mut self) -> Option<&[u8]> {
        let Some(at) = memchr::memchr(b'\n', &self.bytes[self.searched..self.end]) else {
            self.searched = self.end;
            return None;
        };
        let line = self.start..self.searched + at;
        self.start = line.end + 1;
        self.searched = self.start;
        if self.start == self.end {
            (self.start, self.searched, self.end) = (0, 0, 0);
        }
        Some(&self.bytes[line])
    }
}
