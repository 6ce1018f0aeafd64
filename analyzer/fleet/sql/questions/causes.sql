-- Which cause costs most pods and hours?
-- hours: how long the processes that it ended had run.
SELECT cause, count(*) AS crashes, count(DISTINCT pod) AS pods,
       round(sum(seconds) / 3600.0, 1) AS hours,
       round(100.0 * count(*) / (SELECT count(*) FROM crash
                                 WHERE error IS NULL AND cause <> 'healthy'), 1) AS percent
FROM crash
WHERE error IS NULL AND cause <> 'healthy'
GROUP BY cause
ORDER BY crashes DESC, hours DESC, cause
