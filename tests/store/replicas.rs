//! Which databases are searched in the place of the primary. Any database can be made to look like a replica, with another
//! document in it that tells which of the two was asked.

use corbie::knowledge::store::Options;
use corbie::knowledge::store::postgres::{Address, Model, Sought, Store};

use crate::database::Database;
use crate::fixture::{base, document, eventually, put};

/// Not behind for as long as a test takes, as nothing brings it further here.
const CLOSE: &str = "-1 hour";

struct Pair {
    primary: Store,
    model: Model,
    replica: Database,
    _database: Database,
}

impl Pair {
    /// A primary, and a database that is named as its replica; none where tests are about files.
    async fn new() -> Option<Pair> {
        let (here, replica) = (Database::if_wanted()?, Database::if_wanted()?);
        let addresses = [&here, &replica].map(|database| Address::parse(&database.url()).unwrap());
        let other = Store::connect(&addresses[1], &[], Options::default()).await.unwrap();
        put(&other, document("replica.pdf", 1)).await;
        // It has the same bases and models in the same order.
        other.prepare_model("minilm", 384).await.unwrap();
        drop(other);
        let primary = Store::connect(&addresses[0], &addresses[1..], Options::default()).await.unwrap();
        put(&primary, document("primary.pdf", 1)).await;
        let model = primary.prepare_model("minilm", 384).await.unwrap();
        Some(Pair { primary, model, replica, _database: here })
    }

    /// Makes the replica look like a copy that is so far behind.
    fn follow(&self, behind: &str) {
        let (history, me) = (self.primary.history(), self.primary.instance());
        self.replica.ask(&format!("UPDATE corbie.meta SET value = '{history}' WHERE name = 'history'"));
        self.replica.ask(&format!(
            "INSERT INTO corbie.instances (name, host, beat) VALUES ('{me}', 'here', now() - interval '{behind}') \
             ON CONFLICT (name) DO UPDATE SET beat = excluded.beat"
        ));
    }

    /// What is found is the document of the database that was asked.
    async fn asked(&self) -> String {
        let sought = Sought { text: "chunk", vector: None, filter: None, top: 3 };
        let found = self.primary.find(&base(), self.model, sought).await.unwrap();
        let names: Vec<&str> = found.iter().map(|(chunk, _)| chunk.filename.as_str()).collect();
        names.join(" ")
    }

    async fn until_asked(&self, wanted: &str) {
        eventually(wanted, async || (self.asked().await == wanted).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_searched_while_it_follows_this_database_closely() {
    let Some(pair) = Pair::new().await else { return };
    assert_eq!(pair.asked().await, "primary.pdf", "another database is no replica");
    pair.follow(CLOSE);
    pair.until_asked("replica.pdf").await;
    pair.follow("5 minutes");
    pair.until_asked("primary.pdf").await;
    pair.follow(CLOSE);
    pair.until_asked("replica.pdf").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_fails_on_a_replica_is_made_on_the_primary() {
    let Some(pair) = Pair::new().await else { return };
    pair.follow(CLOSE);
    pair.until_asked("replica.pdf").await;
    // Words are found there, and the chunks to tell of are not.
    pair.replica.ask("ALTER TABLE corbie.chunks RENAME TO gone");
    assert_eq!(pair.asked().await, "primary.pdf");
    pair.replica.ask("ALTER TABLE corbie.gone RENAME TO chunks");
    pair.until_asked("replica.pdf").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_is_empty_only_if_the_primary_says_so() {
    let Some(pair) = Pair::new().await else { return };
    pair.follow(CLOSE);
    pair.until_asked("replica.pdf").await;
    pair.replica.ask("DELETE FROM corbie.sums");
    assert!(!pair.primary.is_empty(&base()).await.unwrap());
    let other = "another".parse().unwrap();
    assert!(pair.primary.is_empty(&other).await.unwrap());
}
