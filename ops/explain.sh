#!/usr/bin/env bash
# What Postgres does for one question: the search runs once and is recorded; then hybrid.sql runs again in psql,
# unchanged, with the recorded variables, under EXPLAIN.
#
#     ops/explain.sh COLLECTION "question"
#
# KB names the program (default: kb). EXPLAIN_OPTIONS changes what is explained (default: ANALYZE, BUFFERS).
set -euo pipefail

if [ $# -ne 2 ]; then
    echo "usage: $0 COLLECTION \"question\"" >&2
    exit 2
fi
collection=$1
question=$2
read -r -a kb <<<"${KB:-kb}"
sql=$(cd "$(dirname "$0")/.." && pwd)/agent_server/sql/hybrid.sql

if ! result=$("${kb[@]}" search --json --top-k 6 -- "$collection" "$question" 2>/dev/null); then
    "${kb[@]}" search -- "$collection" "$question" >/dev/null # says in words what is wrong
    exit 1
fi
trace=$(sed -n 's/^  "trace_id": "\([0-9a-f-]*\)".*/\1/p' <<<"$result")

{
    "${kb[@]}" trace show --psql -- "$collection" "$trace"
    echo "EXPLAIN (${EXPLAIN_OPTIONS:-ANALYZE, BUFFERS})"
    cat "$sql"
    echo ';'
    echo 'ROLLBACK;'
} | "${kb[@]}" db psql "$collection" --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 |
    sed -E "s/'\\[[-+0-9.,e]{60,}\\]'/'[…]'/g"
