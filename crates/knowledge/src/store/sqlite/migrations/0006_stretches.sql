-- Where a chunk stands on its pages, so that a reader can be shown the place. Documents from before have none.
ALTER TABLE chunks ADD COLUMN stretches TEXT NOT NULL DEFAULT '[]';
