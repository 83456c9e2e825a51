//! Response of the mock upstream: one text, complete or streamed. The load generator checks for it.

/// Each is an event of a stream; together they are the complete response.
pub(crate) const PIECES: [&str; 20] = [
    "Of course. ",
    "A gateway stands ",
    "between programs ",
    "and the models ",
    "they ask. ",
    "It reads each request, ",
    "decides who should ",
    "answer it, ",
    "and hands the answer ",
    "back as it comes. ",
    "What it adds ",
    "is time, ",
    "and a good one ",
    "adds so little ",
    "of it that ",
    "nobody can tell ",
    "the difference ",
    "from the outside, ",
    "whatever the load. ",
    "Shall I go on?",
];

/// JSON events in OpenAI's stream: the role, the pieces, the finish reason, and the usage. `[DONE]` is extra.
pub(crate) const EVENT_COUNT: usize = PIECES.len() + 3;

pub(crate) fn full_text() -> String {
    PIECES.concat()
}
