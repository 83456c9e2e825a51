//! Concurrent clients that generate load.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::request_mix::RequestMix;
use crate::http::{HttpConnection, HttpRequest, ServerAddress};
use crate::rng::SeededRng;

/// A call without a response by then counts as silently dropped.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);
/// Number of wrong responses to report; one is a failure.
const MAX_REPORTED_ERRORS: usize = 20;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// Closed loop: each client sends the next call after the response.
    ClosedLoop,
    /// Open loop: all clients together send this many calls per second, independent of the responses.
    OpenLoop(f64),
}

#[derive(Debug)]
pub(crate) struct LoadGenerator<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) requests: &'a RequestMix,
    pub(crate) seed: u64,
}

/// Counts of call outcomes.
#[derive(Debug, Default)]
pub(crate) struct LoadCounts {
    pub(crate) sent: u64,
    pub(crate) correct: u64,
    /// Rejected with a retry hint.
    pub(crate) refused: u64,
    /// Closed before the first byte of a response: connections over the limit.
    pub(crate) closed: u64,
    pub(crate) timed_out: u64,
    /// Total time the clients waited for responses.
    pub(crate) wait_time: Duration,
    pub(crate) wrong: Vec<String>,
}

enum AnswerKind {
    Correct,
    Refused,
    Closed,
    TimedOut,
    Wrong(String),
}

impl LoadGenerator<'_> {
    pub(crate) fn run(&self, clients: usize, lasts: Duration, pace: Pace) -> LoadCounts {
        let numbers = AtomicU64::new(1);
        let until = Instant::now() + lasts;
        std::thread::scope(|scope| {
            let one = |client: usize| {
                let numbers = &numbers;
                std::thread::Builder::new()
                    .stack_size(128 << 10)
                    .spawn_scoped(scope, move || self.run_client(client, clients, until, pace, numbers))
            };
            let running: Vec<_> = (0..clients).map(one).collect();
            let mut all = LoadCounts::default();
            for client in running {
                match client.map(std::thread::ScopedJoinHandle::join) {
                    Ok(Ok(came)) => all.add(came),
                    _ => all.wrong.push("a client could not be started".to_owned()),
                }
            }
            all
        })
    }

    fn run_client(&self, client: usize, clients: usize, until: Instant, pace: Pace, numbers: &AtomicU64) -> LoadCounts {
        let mut chance = SeededRng::for_part(self.seed, &format!("client {client}"));
        let mut line = HttpConnection::new(ServerAddress::Tcp(self.address));
        let mut came = LoadCounts::default();
        let mut next = Instant::now();
        loop {
            if let Pace::OpenLoop(rate) = pace {
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
            let answer = self.send_one(&mut line, &mut chance, numbers.fetch_add(1, Ordering::Relaxed));
            came.wait_time += begun.elapsed();
            match answer {
                AnswerKind::Correct => came.correct += 1,
                AnswerKind::Refused => came.refused += 1,
                AnswerKind::Closed => came.closed += 1,
                AnswerKind::TimedOut => came.timed_out += 1,
                AnswerKind::Wrong(what) if came.wrong.len() < MAX_REPORTED_ERRORS => came.wrong.push(what),
                AnswerKind::Wrong(_) => {}
            }
        }
    }

    fn send_one(&self, line: &mut HttpConnection, chance: &mut SeededRng, number: u64) -> AnswerKind {
        let question = self.requests.next(chance, number);
        let body = question.body.to_string();
        let headers = [("Content-Type", "application/json")];
        let request = HttpRequest { method: "POST", path: question.path, headers: &headers, body: body.as_bytes() };
        match line.send(&request, RESPONSE_TIMEOUT) {
            Ok(reply) => {
                let text = reply.text();
                match reply.status {
                    200 if text.contains(&question.expected) => AnswerKind::Correct,
                    // A tool rejected for lack of a permit reports that in its result.
                    200 if text.contains("retry_after") => AnswerKind::Refused,
                    429 | 503 if reply.header("retry-after").is_some() => AnswerKind::Refused,
                    status => AnswerKind::Wrong(format!("{status} to {body}: {text}")),
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::TimedOut | ErrorKind::WouldBlock => AnswerKind::TimedOut,
                ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
                    if !line.response_started =>
                {
                    AnswerKind::Closed
                }
                _ => AnswerKind::Wrong(format!("no whole answer to {body}: {error}")),
            },
        }
    }
}

impl LoadCounts {
    fn add(&mut self, other: LoadCounts) {
        self.sent += other.sent;
        self.correct += other.correct;
        self.refused += other.refused;
        self.closed += other.closed;
        self.timed_out += other.timed_out;
        self.wait_time += other.wait_time;
        self.wrong.extend(other.wrong);
    }
}
