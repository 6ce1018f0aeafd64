-- In which version does a cause at a function appear first?
WITH ranked AS (
    SELECT cause, blame_function, version, started,
           row_number() OVER (PARTITION BY cause, blame_function ORDER BY started, id) AS nth,
           count(*) OVER (PARTITION BY cause, blame_function) AS crashes,
           max(started) OVER (PARTITION BY cause, blame_function) AS last_seen
    FROM crash
    WHERE error IS NULL AND cause <> 'healthy' AND blame_function IS NOT NULL)
SELECT cause, blame_function, version AS first_version, started AS first_seen, last_seen, crashes
FROM ranked
WHERE nth = 1
ORDER BY first_seen DESC, crashes DESC, cause, blame_function
