//! Streams arrive in chunks of any size, split anywhere: within a line, a word or a character.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;

use crate::player::{ALL, Played, Player};

/// A stream and its result when it arrives as a whole.
struct Stream {
    player: Player,
    bytes: Vec<u8>,
    whole: Played,
}

static STREAMS: LazyLock<Vec<Stream>> = LazyLock::new(|| {
    let streams = ALL.into_iter().flat_map(|player| {
        player.cases(".stream.txt").into_iter().map(move |(_, bytes)| {
            let whole = player.played([bytes.as_slice()]);
            Stream { player, bytes, whole }
        })
    });
    streams.collect()
});

proptest! {
    #[test]
    fn any_chunks_of_a_stream_give_the_same_deltas(
        stream in any::<Index>(), cuts in prop::collection::vec(any::<Index>(), 0..60),
    ) {
        let Stream { player, bytes, whole } = stream.get(&STREAMS);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        // Two splits in one place make an empty chunk, which may also occur.
        let chunks = places.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
        prop_assert_eq!(&player.played(chunks), whole);
    }
}

#[test]
fn a_stream_may_come_byte_by_byte() {
    for Stream { player, bytes, whole } in STREAMS.iter() {
        assert_eq!(&player.played(bytes.chunks(1)), whole);
    }
}
