-- Edges that a collection's searches follow, as the evaluation of each relation says.
ALTER TABLE kb.collections
    ADD COLUMN IF NOT EXISTS expand_cites boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS expand_defines boolean NOT NULL DEFAULT true;
