-- Whose bytes grow from version to version?
-- The median of what a call site's function held in the runs of a version, against the version
-- before it; versions follow each other by their first run.
WITH versions AS (
    SELECT version, row_number() OVER (ORDER BY min(started), version) AS nth
    FROM crash WHERE error IS NULL AND version IS NOT NULL GROUP BY version),
held AS (
    SELECT c.version, s.function, c.id, sum(s.live_bytes) AS bytes
    FROM site s JOIN crash c ON c.id = s.crash
    WHERE c.version IS NOT NULL GROUP BY c.version, s.function, c.id),
ranked AS (
    SELECT version, function, bytes,
           row_number() OVER (PARTITION BY version, function ORDER BY bytes) AS nth,
           count(*) OVER (PARTITION BY version, function) AS runs
    FROM held),
medians AS (
    SELECT version, function, avg(bytes) AS bytes, max(runs) AS runs
    FROM ranked WHERE 2 * nth BETWEEN runs AND runs + 2 GROUP BY version, function)
SELECT b.function, v.version AS before, w.version AS version,
       round(a.bytes) AS bytes_before, round(b.bytes) AS bytes,
       round(100.0 * (b.bytes - a.bytes) / a.bytes, 1) AS percent, b.runs
FROM versions v JOIN versions w ON w.nth = v.nth + 1
     JOIN medians a ON a.version = v.version
     JOIN medians b ON b.version = w.version AND b.function = a.function
WHERE b.bytes > a.bytes AND a.bytes > 0
ORDER BY b.bytes - a.bytes DESC, b.function, w.nth
