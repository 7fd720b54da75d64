-- Choose the leading evidence of some claims and turn those that have lost or found it. in: ids, who, why
SELECT claims_settle(:'ids'::bigint[], :'who'::text, :'why'::text) AS changed
