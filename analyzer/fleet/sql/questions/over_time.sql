-- How many crashes were there each day, by cause?
-- Each month, beyond sixty days.
WITH span AS (
    SELECT count(DISTINCT day) AS days FROM crash WHERE error IS NULL AND cause <> 'healthy')
SELECT CASE WHEN span.days > 60 THEN substr(day, 1, 7) ELSE day END AS period, cause,
       count(*) AS crashes
FROM crash CROSS JOIN span
WHERE error IS NULL AND cause <> 'healthy' AND day IS NOT NULL
GROUP BY 1, 2
ORDER BY 1, 2
