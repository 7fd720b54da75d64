-- Have read again all sources that look for one of these names elsewhere: it may lead to something else now.
-- in: names. uses: edge_sources_wants
UPDATE edge_sources SET citations_version = '' WHERE wants && :'names'::text[] AND citations_version <> ''
