-- How many candidates a walk through a collection's HNSW graph keeps at least.
-- in: name, ef_search (NULL: twice those that a search asks for)
UPDATE kb.collections SET ef_search = :'ef_search'::integer WHERE name = :'name'::text
