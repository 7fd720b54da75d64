-- Forget what contradicts some claims, to find it anew. in: ids. uses: claim_conflicts_pkey, claim_conflicts_other
DELETE FROM claim_conflicts WHERE claim = ANY (:'ids'::bigint[]) OR other = ANY (:'ids'::bigint[])
