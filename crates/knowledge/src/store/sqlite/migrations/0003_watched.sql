-- Files of watched folders, as they looked when they were last taken up. What nobody remembers would come back after it was
-- removed, or go with a disk that is not mounted.
CREATE TABLE watched (
    key INTEGER PRIMARY KEY,
    base INTEGER NOT NULL REFERENCES bases (key),
    path TEXT NOT NULL,
    -- Nanoseconds since 1970.
    modified INTEGER,
    size_bytes INTEGER NOT NULL,
    -- The device that its folder was on.
    device INTEGER NOT NULL,
    -- Its inode, or 0, and when anything about it last changed, in nanoseconds since 1970. Nobody can set that, so a copy of
    -- the file differs.
    inode INTEGER NOT NULL,
    changed INTEGER,
    state TEXT NOT NULL,
    task BLOB,
    document BLOB,
    UNIQUE (base, path)
) STRICT;
CREATE INDEX watched_document ON watched (document) WHERE document IS NOT NULL;
CREATE INDEX watched_task ON watched (task) WHERE task IS NOT NULL;

-- Which folders they were, when they last had files in them.
CREATE TABLE watched_folders (
    path TEXT PRIMARY KEY,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL
) STRICT;
