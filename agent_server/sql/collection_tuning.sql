-- What was measured when a collection's fusion was chosen. in: name. out: tuning (json), NULL where nobody tuned it
SELECT tuning FROM kb.collections WHERE lower(name) = lower(:'name'::text)
