-- How much of its limit does each model leave free, by node?
-- low_percent: one run in twenty leaves less.
WITH ranked AS (
    SELECT model, node, space, 100.0 * free_bytes / limit_bytes AS percent,
           row_number() OVER (PARTITION BY model, node, space
                              ORDER BY 1.0 * free_bytes / limit_bytes) AS nth,
           count(*) OVER (PARTITION BY model, node, space) AS runs
    FROM crash
    WHERE error IS NULL AND limit_bytes > 0 AND free_bytes IS NOT NULL)
SELECT model, node, space, max(runs) AS runs,
       round(max(CASE WHEN 20 * (nth - 1) <= runs - 1 THEN percent END), 1) AS low_percent,
       round(avg(CASE WHEN 2 * nth BETWEEN runs AND runs + 2 THEN percent END), 1)
           AS median_percent
FROM ranked
GROUP BY model, node, space
ORDER BY low_percent, median_percent, model, node, space
