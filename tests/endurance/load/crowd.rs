//! Concurrent clients that generate load.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::question::Questions;
use crate::chance::Chance;
use crate::http::{Line, Place, Request};

/// A call without a response by then counts as silently dropped.
const PATIENCE: Duration = Duration::from_secs(120);
/// Number of wrong responses to report; one is a failure.
const MOST_TOLD: usize = 20;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// Closed loop: each client sends the next call after the response.
    AsItCan,
    /// Open loop: all clients together send this many calls per second, independent of the responses.
    Rate(f64),
}

#[derive(Debug)]
pub(crate) struct Crowd<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) questions: &'a Questions,
    pub(crate) seed: u64,
}

/// Counts of call outcomes.
#[derive(Debug, Default)]
pub(crate) struct Came {
    pub(crate) sent: u64,
    pub(crate) right: u64,
    /// Rejected with a retry hint.
    pub(crate) refused: u64,
    /// Closed before the first byte of a response: connections over the limit.
    pub(crate) closed: u64,
    pub(crate) silent: u64,
    /// Total time the clients waited for responses.
    pub(crate) waited: Duration,
    pub(crate) wrong: Vec<String>,
}

enum Answer {
    Right,
    Refused,
    Closed,
    Silent,
    Wrong(String),
}

impl Crowd<'_> {
    pub(crate) fn come(&self, clients: usize, lasts: Duration, pace: Pace) -> Came {
        let numbers = AtomicU64::new(1);
        let until = Instant::now() + lasts;
        std::thread::scope(|scope| {
            let one = |client: usize| {
                let numbers = &numbers;
                std::thread::Builder::new()
                    .stack_size(128 << 10)
                    .spawn_scoped(scope, move || self.client(client, clients, until, pace, numbers))
            };
            let running: Vec<_> = (0..clients).map(one).collect();
            let mut all = Came::default();
            for client in running {
                match client.map(std::thread::ScopedJoinHandle::join) {
                    Ok(Ok(came)) => all.add(came),
                    _ => all.wrong.push("a client could not be started".to_owned()),
                }
            }
            all
        })
    }

    fn client(&self, client: usize, clients: usize, until: Instant, pace: Pace, numbers: &AtomicU64) -> Came {
        let mut chance = Chance::of(self.seed, &format!("client {client}"));
        let mut line = Line::new(Place::Port(self.address));
        let mut came = Came::default();
        let mut next = Instant::now();
        loop {
            if let Pace::Rate(rate) = pace {
                // Uniformly distributed around the interval of one client, so that all clients together keep the rate.
                let share = Duration::from_secs_f64(clients as f64 / rate);
                let wait = chance.between(Duration::ZERO, share * 2);
                next += wait;
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            if Instant::now() >= until {
                return came;
            }
            came.sent += 1;
            let begun = Instant::now();
            let answer = self.ask(&mut line, &mut chance, numbers.fetch_add(1, Ordering::Relaxed));
            came.waited += begun.elapsed();
            match answer {
                Answer::Right => came.right += 1,
                Answer::Refused => came.refused += 1,
                Answer::Closed => came.closed += 1,
                Answer::Silent => came.silent += 1,
                Answer::Wrong(what) if came.wrong.len() < MOST_TOLD => came.wrong.push(what),
                Answer::Wrong(_) => {}
            }
        }
    }

    fn ask(&self, line: &mut Line, chance: &mut Chance, number: u64) -> Answer {
        let question = self.questions.next(chance, number);
        let body = question.body.to_string();
        let headers = [("Content-Type", "application/json")];
        let request = Request { method: "POST", path: question.path, headers: &headers, body: body.as_bytes() };
        match line.exchange(&request, PATIENCE) {
            Ok(reply) => {
                let text = reply.text();
                match reply.status {
                    200 if text.contains(&question.answer) => Answer::Right,
                    // A tool rejected for lack of a permit reports that in its result.
                    200 if text.contains("retry_after") => Answer::Refused,
                    429 | 503 if reply.header("retry-after").is_some() => Answer::Refused,
                    status => Answer::Wrong(format!("{status} to {body}: {text}")),
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::TimedOut | ErrorKind::WouldBlock => Answer::Silent,
                ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
                    if !line.has_heard =>
                {
                    Answer::Closed
                }
                _ => Answer::Wrong(format!("no whole answer to {body}: {error}")),
            },
        }
    }
}

impl Came {
    fn add(&mut self, other: Came) {
        self.sent += other.sent;
        self.right += other.right;
        self.refused += other.refused;
        self.closed += other.closed;
        self.silent += other.silent;
        self.waited += other.waited;
        self.wrong.extend(other.wrong);
    }
}
