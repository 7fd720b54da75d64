-- Set how a collection fuses its lists, with the measurements that speak for it.
-- in: name, fusion, fusion_weight ('' leaves it as it is), tuning (json)
UPDATE kb.collections
SET fusion = :'fusion'::text,
    fusion_weight = coalesce(nullif(:'fusion_weight'::text, '')::double precision, fusion_weight),
    tuning = :'tuning'::jsonb
WHERE lower(name) = lower(:'name'::text)
