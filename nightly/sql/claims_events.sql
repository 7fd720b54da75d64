-- What happened to a claim, in order. in: id. uses: claim_events_claim
SELECT at, who, what, why FROM claim_events WHERE claim = :'id'::bigint ORDER BY id
