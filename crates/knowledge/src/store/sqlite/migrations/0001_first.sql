-- What is known about the store itself.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE bases (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) STRICT;

CREATE TABLE documents (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    base INTEGER NOT NULL REFERENCES bases (key),
    filename TEXT NOT NULL,
    path TEXT,
    origin TEXT NOT NULL,
    title TEXT,
    format TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    date_added INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    status TEXT NOT NULL,
    method TEXT NOT NULL,
    metadata TEXT NOT NULL,
    model TEXT NOT NULL,
    page_count INTEGER NOT NULL,
    chunk_count INTEGER NOT NULL,
    vector_count INTEGER NOT NULL,
    warning TEXT
) STRICT;
CREATE UNIQUE INDEX documents_path ON documents (base, path) WHERE path IS NOT NULL;
CREATE INDEX documents_content ON documents (base, sha256);

CREATE TABLE pages (
    document INTEGER NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    label TEXT,
    text TEXT NOT NULL,
    PRIMARY KEY (document, number)
) STRICT;

CREATE TABLE chunks (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    document INTEGER NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    page_first INTEGER NOT NULL,
    page_last INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    path TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (document, ordinal)
) STRICT;

-- All windows of a chunk in one row, one after the other.
CREATE TABLE vectors (
    chunk INTEGER PRIMARY KEY REFERENCES chunks (key) ON DELETE CASCADE,
    dimensions INTEGER NOT NULL,
    windows INTEGER NOT NULL,
    codes BLOB NOT NULL
) STRICT;

-- What was written, in order. The last ones are kept, for those who follow.
CREATE TABLE changes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    base INTEGER NOT NULL,
    document INTEGER,
    kind TEXT NOT NULL,
    writer TEXT NOT NULL
) STRICT;

CREATE TABLE tasks (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    base INTEGER NOT NULL REFERENCES bases (key),
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    request TEXT NOT NULL,
    document BLOB,
    filename TEXT,
    format TEXT,
    size_bytes INTEGER,
    state TEXT NOT NULL,
    created INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER,
    updated INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    runner TEXT,
    result TEXT,
    error_code TEXT,
    error_message TEXT
) STRICT;
CREATE INDEX tasks_state ON tasks (state, base);
