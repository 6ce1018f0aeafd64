-- Which pods died of the same thing?
-- Runs of one cause whose blamed stack is the same, without lines and builds.
SELECT cause, blame_function, count(*) AS crashes, count(DISTINCT pod) AS pods,
       count(DISTINCT version) AS versions, min(started) AS first_seen, max(started) AS last_seen,
       max(run) AS example, stack
FROM crash
WHERE error IS NULL AND cause <> 'healthy'
GROUP BY cause, blame_function, stack
ORDER BY crashes DESC, last_seen DESC, cause, stack
