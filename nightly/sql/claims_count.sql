-- How many claims there are of each status. uses: claims_status
SELECT status, count(*) AS claims FROM claims GROUP BY status ORDER BY status
