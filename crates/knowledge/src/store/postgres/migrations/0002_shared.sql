-- What instances share beside documents.

-- Files that every instance follows: the taxonomy, the tokens. Each change is a version of its own; the newest counts.
CREATE TABLE files (
    name text NOT NULL,
    version bigint NOT NULL,
    content bytea NOT NULL CHECK (octet_length(content) <= 16777216),
    -- Of a taxonomy: the names of its categories in the order of their numbers, those that are gone included.
    places text[] NOT NULL,
    changed timestamptz NOT NULL DEFAULT now(),
    -- Which machine brought it, for people.
    host text NOT NULL,
    PRIMARY KEY (name, version)
);

-- What became of prompts, whichever instance they came to. Each instance has a number of its own, in the upper bits of
-- the numbers of its records.
CREATE SEQUENCE decider AS integer CYCLE MAXVALUE 2097151;
CREATE TABLE decisions (
    id bigint PRIMARY KEY,
    at bigint NOT NULL,
    caller text,
    -- JSON, as text: what it says may have zeros in it, escaped.
    record text NOT NULL,
    -- By the clock of the database: the oldest of these are forgotten, whatever instances take for the time.
    kept timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX decisions_at ON decisions (at);
CREATE INDEX decisions_caller ON decisions (caller, at);
CREATE INDEX decisions_kept ON decisions (kept);

-- When the allowance of a caller is whole again. Not worth a log: after a crash everybody begins anew. Rows change several
-- times a second, in place as long as no index has what changes; what is swept once a minute is found without one.
CREATE UNLOGGED TABLE rates (
    caller text PRIMARY KEY,
    whole timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Tells that the sums have changed, whoever's clock is ahead, and in whatever order writers came to their end: the marks of
-- all rows together (xor), as rows that are joined keep them.
ALTER TABLE sums ADD COLUMN mark bigint NOT NULL DEFAULT floor(random() * 9e18)::bigint;
