//! Streams arrive in chunks of any size, split anywhere: within a line, a word or a character.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;

use crate::protocol_fixture::{ALL, ProtocolFixture, StreamResult};

/// A stream and its result when it arrives as a whole.
struct StreamCase {
    player: ProtocolFixture,
    bytes: Vec<u8>,
    expected: StreamResult,
}

static STREAMS: LazyLock<Vec<StreamCase>> = LazyLock::new(|| {
    let streams = ALL.into_iter().flat_map(|player| {
        player.cases(".stream.txt").into_iter().map(move |(_, bytes)| {
            let whole = player.decode_stream([bytes.as_slice()]);
            StreamCase { player, bytes, expected: whole }
        })
    });
    streams.collect()
});

proptest! {
    #[test]
    fn any_chunks_of_a_stream_give_the_same_deltas(
        stream in any::<Index>(), cuts in prop::collection::vec(any::<Index>(), 0..60),
    ) {
        let StreamCase { player, bytes, expected: whole } = stream.get(&STREAMS);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        // Two splits in one place make an empty chunk, which may also occur.
        let chunks = places.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
        prop_assert_eq!(&player.decode_stream(chunks), whole);
    }
}

#[test]
fn a_stream_may_come_byte_by_byte() {
    for StreamCase { player, bytes, expected: whole } in STREAMS.iter() {
        assert_eq!(&player.decode_stream(bytes.chunks(1)), whole);
    }
}
