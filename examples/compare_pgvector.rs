//! Benchmarks nearest-neighbour queries of a filled database against a plain pgvector table with the same vectors:
//! `compare_pgvector ADDRESS CHUNKS`.
//!
//! ADDRESS is a database filled by `fill_store` and `corbie knowledge migrate`, CHUNKS the directory with
//! `queries.f32`, the query vectors. The plain table follows the pgvector documentation: one table with one index,
//! created with the store's index options. Recall is measured against an exhaustive comparison. Prints one line of
//! JSON.

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use corbie::knowledge::document::BaseName;
use corbie::knowledge::store::Options;
use corbie::knowledge::store::postgres::{Address, Store};
use corbie_index::{Filter, external};
use pgvector::HalfVector;
use serde_json::{Value, json};
use tokio_postgres::{Client, NoTls, Statement};

/// A chunk, by document version and position.
type ChunkKey = (i64, i32);
type BoxError = Box<dyn Error>;

/// Number of results.
const TOP_K: usize = 10;
/// The setting of the store's connections.
const EF_SEARCH: usize = 40;
/// `ef_search` values for the plain table, to find its lowest latency at the same recall.
const EF_SEARCH_VALUES: [usize; 5] = [40, 100, 125, 200, 400];
/// Recall differences below this are ignored.
const RECALL_TOLERANCE: f64 = 0.002;
/// Percentages of documents that a filter allows.
const FILTER_PERCENTS: [usize; 3] = [1, 10, 50];
const WARM_UP: usize = 20;

/// The store of a knowledge base.
struct CorbieStore<'a> {
    store: Store,
    name: &'a str,
    dimension: usize,
}

/// The same vectors in one table.
struct PgvectorTable {
    client: Client,
    index_s: f64,
}

/// Results of all queries, and their latencies.
#[derive(Default)]
struct QueryResults {
    neighbours: Vec<Vec<ChunkKey>>,
    times_ms: Vec<f64>,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, folder] = &words[..] else { return Err("use `compare_pgvector ADDRESS CHUNKS`".into()) };
    let model = &corbie_infer::builtin_models()[0];
    let questions = questions(Path::new(folder), model.dimension)?;
    let store = Store::connect(&Address::parse(address)?, &[], Options::default()).await?;
    let own = CorbieStore { store, name: model.id.as_str(), dimension: model.dimension };
    // Creates the index if it does not exist.
    let began = Instant::now();
    own.ask(&questions[..1], None).await?;
    let index_s = began.elapsed().as_secs_f64();
    let plain = PgvectorTable::make(address, model.dimension).await?;

    let exact = plain.exact(&questions, None).await?;
    // With the limit of the store, and with the number of results.
    let wanted = external::depth(TOP_K) + external::depth(TOP_K) / 4;
    own.ask(&questions[..WARM_UP], None).await?;
    let recall = own.ask(&questions, None).await?.recall(&exact);
    let (mut efforts, mut best) = (Vec::new(), (f64::INFINITY, EF_SEARCH));
    for ef_search in EF_SEARCH_VALUES {
        for limit in [TOP_K, wanted] {
            let answers = plain.ask(&questions, ef_search, limit).await?;
            if limit == wanted && answers.recall(&exact) >= recall - RECALL_TOLERANCE && answers.p50_ms() < best.0 {
                best = (answers.p50_ms(), ef_search);
            }
            efforts.push(merge(answers.to_json(&exact), json!({ "ef_search": ef_search, "limit": limit })));
        }
    }
    let (_, effort) = best;
    let (corbie, same) = plain.compare_with(&own, &questions, effort, wanted).await?;
    let mut filtered = Vec::new();
    for share in FILTER_PERCENTS {
        let tags = (0..share).map(|shelf| format!("\"s{shelf}\"")).collect();
        let filter = Filter { all: vec![("tags".into(), tags)], ..Filter::default() };
        let exact = plain.exact(&questions, Some(share)).await?;
        let answers = own.ask(&questions, Some(&filter)).await?;
        filtered.push(merge(answers.to_json(&exact), json!({ "percent": share })));
    }
    let told = json!({
        "corbie": merge(corbie.to_json(&exact), json!({ "ef_search": EF_SEARCH, "limit": wanted })),
        "plain": merge(same.to_json(&exact), json!({ "ef_search": effort, "limit": wanted })),
        "efforts": efforts, "filtered": filtered, "index_s": index_s, "plain_index_s": plain.index_s,
    });
    writeln!(std::io::stdout(), "{told}")?;
    plain.client.batch_execute("DROP SCHEMA plain CASCADE").await?;
    Ok(())
}

impl CorbieStore<'_> {
    async fn ask(&self, questions: &[Vec<f32>], filter: Option<&Filter>) -> Result<QueryResults, BoxError> {
        let mut answers = QueryResults::default();
        for question in questions {
            self.ask_one(question, filter, &mut answers).await?;
        }
        Ok(answers)
    }

    async fn ask_one(
        &self,
        question: &[f32],
        filter: Option<&Filter>,
        answers: &mut QueryResults,
    ) -> Result<(), BoxError> {
        let model = (self.name, self.dimension);
        let (found, took) = self.store.nearest_only(&BaseName::default(), model, question, filter, TOP_K).await?;
        answers.neighbours.push(found);
        answers.times_ms.push(took.as_secs_f64() * 1e3);
        Ok(())
    }
}

impl PgvectorTable {
    async fn make(address: &str, dimension: usize) -> Result<PgvectorTable, BoxError> {
        let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
        tokio::spawn(connection);
        let make = format!(
            "SET search_path = public; DROP SCHEMA IF EXISTS plain CASCADE; CREATE SCHEMA plain; \
             CREATE TABLE plain.vectors AS SELECT writing, ordinal, direction::halfvec({dimension}) AS direction \
             FROM corbie.vectors ORDER BY writing, ordinal; \
             ALTER TABLE plain.vectors ADD PRIMARY KEY (writing, ordinal)"
        );
        client.batch_execute(&make).await?;
        // With the index options of the store.
        let options = "SELECT array_to_string(c.reloptions, ', ') FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam \
                       WHERE c.relnamespace = 'corbie'::regnamespace AND a.amname = 'hnsw' AND c.relkind = 'i' LIMIT 1";
        let options: String = client.query_one(options, &[]).await?.try_get(0)?;
        let began = Instant::now();
        let index = format!("CREATE INDEX ON plain.vectors USING hnsw (direction halfvec_cosine_ops) WITH ({options})");
        client.batch_execute(&index).await?;
        let index_s = began.elapsed().as_secs_f64();
        client.batch_execute("VACUUM ANALYZE plain.vectors").await?;
        client.batch_execute("SET hnsw.iterative_scan = strict_order; SET jit = off").await?;
        Ok(PgvectorTable { client, index_s })
    }

    /// Exact nearest neighbours over all vectors, or over those in the first `share` percent of the documents.
    async fn exact(&self, questions: &[Vec<f32>], share: Option<usize>) -> Result<Vec<Vec<ChunkKey>>, BoxError> {
        let narrowed = match share {
            None => String::new(),
            Some(share) => {
                let allowed = "substring(filename FROM '[0-9]+')::int % 100";
                format!("WHERE writing IN (SELECT writing FROM corbie.documents WHERE {allowed} < {share})")
            }
        };
        let sql = format!(
            "SELECT writing, ordinal FROM plain.vectors {narrowed} ORDER BY (direction <=> $1) + 0, writing LIMIT {TOP_K}"
        );
        let statement = self.client.prepare(&sql).await?;
        let mut all = Vec::with_capacity(questions.len());
        for question in questions {
            all.push(self.nearest(&statement, question).await?);
        }
        Ok(all)
    }

    /// Alternates between both, so that they run under the same conditions.
    async fn compare_with(
        &self,
        own: &CorbieStore<'_>,
        questions: &[Vec<f32>],
        ef_search: usize,
        limit: usize,
    ) -> Result<(QueryResults, QueryResults), BoxError> {
        let statement = self.prepared(ef_search, limit).await?;
        for question in &questions[..WARM_UP] {
            self.nearest(&statement, question).await?;
        }
        let (mut corbie, mut plain) = (QueryResults::default(), QueryResults::default());
        for question in questions {
            own.ask_one(question, None, &mut corbie).await?;
            self.ask_one(&statement, question, &mut plain).await?;
        }
        Ok((corbie, plain))
    }

    async fn ask(&self, questions: &[Vec<f32>], ef_search: usize, limit: usize) -> Result<QueryResults, BoxError> {
        let statement = self.prepared(ef_search, limit).await?;
        let mut answers = QueryResults::default();
        for question in questions {
            self.ask_one(&statement, question, &mut answers).await?;
        }
        Ok(answers)
    }

    async fn prepared(&self, ef_search: usize, limit: usize) -> Result<Statement, BoxError> {
        self.client.batch_execute(&format!("SET hnsw.ef_search = {ef_search}")).await?;
        let sql = format!(
            "SELECT writing, ordinal, (1 - (direction <=> $1))::real FROM plain.vectors ORDER BY direction <=> $1 LIMIT {limit}"
        );
        Ok(self.client.prepare(&sql).await?)
    }

    async fn ask_one(
        &self,
        statement: &Statement,
        question: &[f32],
        answers: &mut QueryResults,
    ) -> Result<(), BoxError> {
        let began = Instant::now();
        let found = self.nearest(statement, question).await?;
        answers.times_ms.push(began.elapsed().as_secs_f64() * 1e3);
        answers.neighbours.push(found);
        Ok(())
    }

    async fn nearest(&self, statement: &Statement, question: &[f32]) -> Result<Vec<ChunkKey>, BoxError> {
        let rows = self.client.query(statement, &[&HalfVector::from_f32_slice(question)]).await?;
        Ok(rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, tokio_postgres::Error>>()?)
    }
}

impl QueryResults {
    fn to_json(&self, exact: &[Vec<ChunkKey>]) -> Value {
        json!({ "p50_ms": self.p50_ms(), "p99_ms": self.percentile(0.99), "recall": self.recall(exact) })
    }

    fn p50_ms(&self) -> f64 {
        self.percentile(0.5)
    }

    fn percentile(&self, share: f64) -> f64 {
        let mut times = self.times_ms.clone();
        times.sort_by(f64::total_cmp);
        times[(times.len() as f64 * share) as usize]
    }

    /// Recall: the share of the exact neighbours that was found.
    fn recall(&self, exact: &[Vec<ChunkKey>]) -> f64 {
        let shares = self.neighbours.iter().zip(exact).map(|(found, exact)| {
            let found: HashSet<&ChunkKey> = found.iter().take(TOP_K).collect();
            exact.iter().filter(|key| found.contains(key)).count() as f64 / exact.len().max(1) as f64
        });
        shares.sum::<f64>() / exact.len().max(1) as f64
    }
}

fn merge(mut told: Value, more: Value) -> Value {
    if let (Some(told), Some(more)) = (told.as_object_mut(), more.as_object()) {
        told.extend(more.clone());
    }
    told
}

fn questions(folder: &Path, dimension: usize) -> Result<Vec<Vec<f32>>, BoxError> {
    let bytes = fs::read(folder.join("queries.f32"))?;
    let numbers: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let questions: Vec<Vec<f32>> = numbers.chunks_exact(dimension).map(<[f32]>::to_vec).collect();
    if questions.len() < WARM_UP {
        return Err(format!("fewer than {WARM_UP} questions are there").into());
    }
    Ok(questions)
}
