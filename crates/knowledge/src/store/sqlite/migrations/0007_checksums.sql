-- CRC-32 of the other columns of a row. NULL in rows of older versions, until the background maintenance has read them.
ALTER TABLE documents ADD COLUMN checksum INTEGER;
ALTER TABLE pages ADD COLUMN checksum INTEGER;
ALTER TABLE chunks ADD COLUMN checksum INTEGER;
ALTER TABLE vectors ADD COLUMN checksum INTEGER;

-- Tables with rows that may have no checksum yet, and the last of these rows. Reading all rows here would make the first
-- start of a large knowledge base take minutes.
CREATE TABLE unchecked (
    name TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT;
INSERT INTO unchecked (name, last) SELECT * FROM (SELECT 'documents', rowid FROM documents ORDER BY rowid DESC LIMIT 1);
INSERT INTO unchecked (name, last) SELECT * FROM (SELECT 'pages', rowid FROM pages ORDER BY rowid DESC LIMIT 1);
INSERT INTO unchecked (name, last) SELECT * FROM (SELECT 'chunks', rowid FROM chunks ORDER BY rowid DESC LIMIT 1);
INSERT INTO unchecked (name, last) SELECT * FROM (SELECT 'vectors', rowid FROM vectors ORDER BY rowid DESC LIMIT 1);
