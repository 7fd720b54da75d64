-- Give back every lock that this session holds for itself: a closed one keeps them until its server process has ended.
SELECT pg_advisory_unlock_all()
