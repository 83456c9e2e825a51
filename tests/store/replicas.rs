//! Read replicas: which database serves a search. A second database is set up to look like a replica and contains a
//! different document, which reveals the database that served the search.

use corbie::knowledge::store::Options;
use corbie::knowledge::store::postgres::{Address, ModelRow, SearchQuery, Store};

use crate::database::Database;
use crate::fixture::{default_base, document, eventually, put};

/// Heartbeat age of an up-to-date replica. In the future, so that it stays recent during the test although no
/// replication takes place.
const NO_LAG: &str = "-1 hour";

struct PrimaryAndReplica {
    primary: Store,
    model: ModelRow,
    replica: Database,
    _database: Database,
}

impl PrimaryAndReplica {
    /// A primary and a database configured as its replica; `None` on the embedded store.
    async fn new() -> Option<PrimaryAndReplica> {
        let (here, replica) = (Database::if_configured()?, Database::if_configured()?);
        let addresses = [&here, &replica].map(|database| Address::parse(&database.url()).unwrap());
        let other = Store::connect(&addresses[1], &[], Options::default()).await.unwrap();
        put(&other, document("replica.pdf", 1)).await;
        // Same bases and models in the same order as the primary.
        other.prepare_model("minilm", 384).await.unwrap();
        drop(other);
        let primary = Store::connect(&addresses[0], &addresses[1..], Options::default()).await.unwrap();
        put(&primary, document("primary.pdf", 1)).await;
        let model = primary.prepare_model("minilm", 384).await.unwrap();
        Some(PrimaryAndReplica { primary, model, replica, _database: here })
    }

    /// Makes the replica look like a copy with this lag.
    fn set_replica_lag(&self, behind: &str) {
        let (history, me) = (self.primary.history(), self.primary.instance());
        self.replica.query(&format!("UPDATE corbie.meta SET value = '{history}' WHERE name = 'history'"));
        self.replica.query(&format!(
            "INSERT INTO corbie.instances (name, host, beat) VALUES ('{me}', 'here', now() - interval '{behind}') \
             ON CONFLICT (name) DO UPDATE SET beat = excluded.beat"
        ));
    }

    /// Name of the found document, which identifies the database.
    async fn searched_database(&self) -> String {
        let sought = SearchQuery { text: "chunk", vector: None, filter: None, top_k: 3 };
        let found = self.primary.search(&default_base(), self.model, sought).await.unwrap();
        let names: Vec<&str> = found.iter().map(|hit| hit.chunk.filename.as_str()).collect();
        names.join(" ")
    }

    async fn wait_until_searched(&self, wanted: &str) {
        eventually(wanted, async || (self.searched_database().await == wanted).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_searched_while_it_follows_this_database_closely() {
    let Some(pair) = PrimaryAndReplica::new().await else { return };
    assert_eq!(pair.searched_database().await, "primary.pdf", "another database is no replica");
    pair.set_replica_lag(NO_LAG);
    pair.wait_until_searched("replica.pdf").await;
    pair.set_replica_lag("5 minutes");
    pair.wait_until_searched("primary.pdf").await;
    pair.set_replica_lag(NO_LAG);
    pair.wait_until_searched("replica.pdf").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_fails_on_a_replica_is_made_on_the_primary() {
    let Some(pair) = PrimaryAndReplica::new().await else { return };
    pair.set_replica_lag(NO_LAG);
    pair.wait_until_searched("replica.pdf").await;
    // The replica finds the words, but its chunks cannot be read.
    pair.replica.query("ALTER TABLE corbie.chunks RENAME TO gone");
    assert_eq!(pair.searched_database().await, "primary.pdf");
    pair.replica.query("ALTER TABLE corbie.gone RENAME TO chunks");
    pair.wait_until_searched("replica.pdf").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_is_empty_only_if_the_primary_says_so() {
    let Some(pair) = PrimaryAndReplica::new().await else { return };
    pair.set_replica_lag(NO_LAG);
    pair.wait_until_searched("replica.pdf").await;
    pair.replica.query("DELETE FROM corbie.sums");
    assert!(!pair.primary.is_empty(&default_base()).await.unwrap());
    let other = "another".parse().unwrap();
    assert!(pair.primary.is_empty(&other).await.unwrap());
}
