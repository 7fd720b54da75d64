-- One night at a time in a database, for as long as this session lasts. out: taken
SELECT pg_try_advisory_lock(hashtextextended('nightly', 0)) AS taken
