-- A source without passages has no names, and looks for nothing. in: source
UPDATE edge_sources SET names = '{}', wants = '{}', citations_version = '' WHERE source = :'source'::text
