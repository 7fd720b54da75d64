-- Forget a collection; its schema and role are dropped by collection_drop.sql in the same transaction.
DELETE FROM kb.collections WHERE name = :'name'::text
