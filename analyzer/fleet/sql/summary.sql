-- The line at the top of the page.
SELECT count(CASE WHEN error IS NULL THEN 1 END) AS runs,
       count(CASE WHEN error IS NULL AND cause <> 'healthy' THEN 1 END) AS crashes,
       count(DISTINCT CASE WHEN cause <> 'healthy' THEN pod END) AS pods,
       count(error) AS unreadable, min(day) AS first_day, max(day) AS last_day
FROM crash
