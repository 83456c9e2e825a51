-- The documents that an unfinished import has stored, so that it can tell after a restart what became of its files.
CREATE TABLE imported (
    task INTEGER NOT NULL REFERENCES tasks (key) ON DELETE CASCADE,
    document BLOB NOT NULL,
    replaced INTEGER NOT NULL,
    PRIMARY KEY (task, document)
) STRICT;
