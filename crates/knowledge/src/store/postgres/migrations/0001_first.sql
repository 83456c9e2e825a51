-- What is known about the store itself.
CREATE TABLE meta (
    name text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE bases (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    created bigint NOT NULL
);

-- What the bases hold in all. Every write adds a row with what it changed, so that no two writers wait for each other; the
-- rows of a base are summed up when it is asked, and joined now and then.
CREATE TABLE sums (
    base bigint NOT NULL REFERENCES bases (key),
    documents bigint NOT NULL,
    chunks bigint NOT NULL,
    vectors bigint NOT NULL,
    size_bytes bigint NOT NULL,
    -- Halves of words, over all chunks.
    length bigint NOT NULL,
    -- Chunks by the number of their language.
    languages jsonb NOT NULL,
    updated bigint NOT NULL
);
CREATE INDEX sums_base ON sums (base);

-- Numbers of the contents of documents. One that is replaced gets another, so that what was derived from the old one stays
-- true of it, and is of no use. The key of a chunk is the number of its writing, shifted by twenty bits, and its place.
CREATE SEQUENCE writing;

CREATE TABLE documents (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    base bigint NOT NULL REFERENCES bases (key),
    writing bigint NOT NULL UNIQUE,
    filename text NOT NULL,
    path text,
    origin text NOT NULL,
    title text,
    format text NOT NULL,
    size_bytes bigint NOT NULL,
    sha256 bytea NOT NULL,
    date_added bigint NOT NULL,
    updated bigint NOT NULL,
    status text NOT NULL,
    method text NOT NULL,
    -- JSON, as text: the order of its members is the user's.
    metadata text NOT NULL,
    -- What filters look at: a number for each key with its value, as these may be longer than an entry of an index.
    facets bigint[] NOT NULL,
    model integer NOT NULL,
    page_count integer NOT NULL,
    chunk_count integer NOT NULL,
    vector_count integer NOT NULL,
    -- What its chunks add to the sums of the base.
    length bigint NOT NULL,
    languages jsonb NOT NULL,
    warning text
);
-- A path may be longer than an entry of an index.
CREATE UNIQUE INDEX documents_path ON documents (base, md5(path)) WHERE path IS NOT NULL;
CREATE INDEX documents_content ON documents (base, sha256);
CREATE INDEX documents_added ON documents (base, date_added);
CREATE INDEX documents_facets ON documents USING gin (facets);

-- The models that vectors are of. Each has an index of its own.
CREATE TABLE models (
    key integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    dimensions integer NOT NULL,
    UNIQUE (name, dimensions)
);

CREATE TABLE pages (
    writing bigint NOT NULL,
    number integer NOT NULL,
    label text,
    text text NOT NULL,
    PRIMARY KEY (writing, number)
) PARTITION BY HASH (writing);

CREATE TABLE chunks (
    writing bigint NOT NULL,
    ordinal integer NOT NULL,
    id uuid NOT NULL,
    page_first integer NOT NULL,
    page_last integer NOT NULL,
    tokens integer NOT NULL,
    path text NOT NULL,
    text text NOT NULL,
    stretches text NOT NULL,
    PRIMARY KEY (writing, ordinal)
) PARTITION BY HASH (writing);
CREATE INDEX chunks_id ON chunks (id);

-- One row for each window of a chunk. A half is as good as a float for comparing directions, at half the size.
CREATE TABLE vectors (
    writing bigint NOT NULL,
    ordinal integer NOT NULL,
    place integer NOT NULL,
    base bigint NOT NULL,
    model integer NOT NULL,
    direction halfvec NOT NULL,
    PRIMARY KEY (writing, ordinal, place)
) PARTITION BY HASH (writing);
CREATE INDEX vectors_base ON vectors (base, model);

-- Which chunks have a word. Each writing brings a batch of lists, one for each of its words; batches are joined aside, so that a word has few lists, however many documents there are.
CREATE TABLE postings (
    base bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    batch bigint NOT NULL,
    -- Which letters the word has, so that a misspelt one is compared with few others.
    signs bigint NOT NULL,
    list bytea NOT NULL,
    PRIMARY KEY (base, term, batch) INCLUDE (signs)
) PARTITION BY HASH (base, term);
CREATE INDEX postings_batch ON postings (batch);

-- Batches are numbered with writings: one of a single writing has its number.
CREATE TABLE batches (
    key bigint PRIMARY KEY,
    base bigint NOT NULL,
    level smallint NOT NULL,
    postings bigint NOT NULL
);
CREATE INDEX batches_level ON batches (base, level);

-- In which batch a writing lies. Of a dead one the words are still in its batch, and are left out.
CREATE TABLE writings (
    key bigint PRIMARY KEY,
    base bigint NOT NULL,
    batch bigint NOT NULL,
    dead bigint
);
CREATE INDEX writings_batch ON writings (batch);
CREATE INDEX writings_dead ON writings (base) WHERE dead IS NOT NULL;

-- Tables that grow with the documents are in four, so that no index of theirs is deep, and vacuum has smaller pieces.
DO $$
DECLARE
    parent text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['pages', 'chunks', 'vectors', 'postings'] LOOP
        FOR part IN 0..3 LOOP
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 4, REMAINDER %s)',
                parent || '_' || part, parent, part);
        END LOOP;
    END LOOP;
    FOR part IN 0..3 LOOP
        -- Lists are compact already.
        EXECUTE format('ALTER TABLE %I ALTER list SET STORAGE EXTERNAL', 'postings_' || part);
        EXECUTE format('ALTER TABLE %I ALTER direction SET STORAGE PLAIN', 'vectors_' || part);
        EXECUTE format('ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0.05)', 'postings_' || part);
    END LOOP;
END $$;

CREATE TABLE copies (
    document bigint NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    path text NOT NULL
);
CREATE UNIQUE INDEX copies_path ON copies (document, md5(path));

CREATE TABLE instances (
    name uuid PRIMARY KEY,
    -- Which machine, for people.
    host text NOT NULL,
    started timestamptz NOT NULL DEFAULT now(),
    beat timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE tasks (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    base bigint NOT NULL REFERENCES bases (key),
    owner text NOT NULL,
    kind text NOT NULL,
    -- JSON, as text: what it says may have zeros in it, escaped.
    request text NOT NULL,
    document uuid,
    filename text,
    format text,
    size_bytes bigint,
    state text NOT NULL,
    step text NOT NULL DEFAULT '',
    done integer NOT NULL DEFAULT 0,
    total integer NOT NULL DEFAULT 0,
    share integer NOT NULL DEFAULT 0,
    created bigint NOT NULL,
    started bigint,
    ended bigint,
    updated bigint NOT NULL,
    attempts integer NOT NULL,
    runner uuid,
    result text,
    -- The same without what became of each file.
    result_brief text,
    error_code text,
    error_message text
);
CREATE INDEX tasks_unfinished ON tasks (key) WHERE state IN ('queued', 'running');
CREATE INDEX tasks_listed ON tasks (base, key) WHERE state IN ('queued', 'running', 'failed');
CREATE INDEX tasks_document ON tasks (document) WHERE document IS NOT NULL;
CREATE INDEX tasks_ended ON tasks (ended) WHERE ended IS NOT NULL;
CREATE INDEX tasks_uploaded ON tasks (key) WHERE state IN ('completed', 'cancelled') AND request <> '{}';

CREATE TABLE imported (
    task bigint NOT NULL REFERENCES tasks (key) ON DELETE CASCADE,
    document uuid NOT NULL,
    replaced boolean NOT NULL,
    PRIMARY KEY (task, document)
);

-- Files of watched folders are those of one machine; so is what is remembered of them.
CREATE TABLE watched (
    base bigint NOT NULL REFERENCES bases (key),
    path text NOT NULL,
    modified bigint,
    size_bytes bigint NOT NULL,
    device bigint NOT NULL,
    inode bigint NOT NULL,
    changed bigint,
    state text NOT NULL,
    task uuid,
    document uuid
);
CREATE UNIQUE INDEX watched_path ON watched (base, md5(path));
CREATE INDEX watched_document ON watched (document) WHERE document IS NOT NULL;
CREATE INDEX watched_task ON watched (task) WHERE task IS NOT NULL;

CREATE TABLE watched_folders (
    path text NOT NULL,
    device bigint NOT NULL,
    inode bigint NOT NULL
);
CREATE UNIQUE INDEX watched_folders_path ON watched_folders (md5(path));

-- Files that came with a request, until their task has read them. Each has a folder of its own, by which it is known.
CREATE TABLE uploads (
    folder text PRIMARY KEY,
    -- As its caller was told.
    path text NOT NULL,
    size_bytes bigint NOT NULL,
    created timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE upload_pieces (
    folder text NOT NULL REFERENCES uploads (folder) ON DELETE CASCADE,
    place integer NOT NULL,
    piece bytea NOT NULL,
    PRIMARY KEY (folder, place)
);
-- What is uploaded is compressed already, more often than not.
ALTER TABLE upload_pieces ALTER piece SET STORAGE EXTERNAL;
