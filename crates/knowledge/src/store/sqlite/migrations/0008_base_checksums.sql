-- CRC-32 of the other columns of a base, as for the tables of migration 7.
ALTER TABLE bases ADD COLUMN checksum INTEGER;
INSERT INTO unchecked (name, last) SELECT * FROM (SELECT 'bases', rowid FROM bases ORDER BY rowid DESC LIMIT 1);
