-- What else says the same as a document: files at other paths, and '' for an upload. When a document's own file changes, it
-- stays with one of these.
CREATE TABLE copies (
    document INTEGER NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    path TEXT NOT NULL,
    PRIMARY KEY (document, path)
) STRICT;

-- How much of a running task is done, in thousandths: its steps do not all take as long.
ALTER TABLE tasks ADD COLUMN share INTEGER NOT NULL DEFAULT 0;
