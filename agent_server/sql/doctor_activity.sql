-- Rows of the passages that are gone and not cleaned up yet: searches walk through them in the dense index.
-- out: live, dead
SELECT coalesce(sum(n_live_tup), 0)::bigint AS live, coalesce(sum(n_dead_tup), 0)::bigint AS dead
FROM pg_stat_user_tables WHERE relid = 'chunks'::regclass
