-- Which forecasts came true?
-- Of what was foretold while a run lived: within, the run ended for want of memory between the
-- lower and the upper bound.
SELECT c.cause, count(*) AS forecasts,
       sum(CASE WHEN c.failure <> 'none' THEN 1 ELSE 0 END) AS ran_out,
       sum(CASE WHEN c.failure <> 'none'
                     AND c.failure_seconds - f.at_seconds BETWEEN f.low_seconds AND f.high_seconds
                THEN 1 ELSE 0 END) AS within,
       round(avg(CASE WHEN c.failure <> 'none'
                      THEN abs(c.failure_seconds - f.at_seconds - f.seconds) END), 1)
           AS mean_error_seconds
FROM forecast f JOIN crash c ON c.id = f.crash
WHERE c.error IS NULL AND c.ended <> 'unknown'
GROUP BY c.cause
ORDER BY forecasts DESC, c.cause
