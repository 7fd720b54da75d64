-- Files of which the model has refused a passage. in: sources, reasons (same order)
UPDATE files f SET status = 'partial', reason = p.reason
FROM unnest(:'sources'::text[], :'reasons'::text[]) AS p(source, reason)
WHERE f.source = p.source AND f.status = 'indexed'
