-- How far a running task is, for those who ask in another process.
ALTER TABLE tasks ADD COLUMN step TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN done INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN total INTEGER NOT NULL DEFAULT 0;
