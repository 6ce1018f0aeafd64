-- One line of JSON becomes rows. Statements end with a line of one semicolon.
DELETE FROM ledger WHERE crash = :row ->> '$.id'
;
DELETE FROM site WHERE crash = :row ->> '$.id'
;
-- A run that failed to be judged has its path for an id: its row goes when it has one of its own.
DELETE FROM crash WHERE error IS NOT NULL AND run = :row ->> '$.run'
;
INSERT OR REPLACE INTO crash SELECT
    :row ->> '$.id', :row ->> '$.run', :row ->> '$.run_bytes', :row ->> '$.run_changed_ns',
    :row ->> '$.judge', :row ->> '$.host', :row ->> '$.image', :row ->> '$.version',
    :row ->> '$.pod', :row ->> '$.namespace', :row ->> '$.node', :row ->> '$.model',
    coalesce(:row -> '$.labels', '{}'), :row ->> '$.started', :row ->> '$.day',
    :row ->> '$.seconds', :row ->> '$.pid', :row ->> '$.command', :row ->> '$.ended',
    :row ->> '$.end_code', :row ->> '$.failure', :row ->> '$.failure_seconds',
    :row ->> '$.space', :row ->> '$.requested_bytes', :row ->> '$.limit_kind',
    :row ->> '$.limit_bytes', :row ->> '$.free_bytes', :row ->> '$.cause',
    :row ->> '$.confidence', :row ->> '$.runner_up', :row ->> '$.sentence', :row ->> '$.fix',
    :row ->> '$.blame_function', :row ->> '$.blame_file', :row ->> '$.blame_line',
    :row ->> '$.blame_bytes', :row ->> '$.stack', :row ->> '$.forecast_seconds',
    :row ->> '$.forecast_low_seconds', :row ->> '$.forecast_high_seconds',
    :row ->> '$.lost_events', :row ->> '$.error'
;
INSERT INTO ledger SELECT :row ->> '$.id', value ->> '$.space', value ->> '$.class',
    value ->> '$.bytes' FROM json_each(:row, '$.ledger')
;
INSERT INTO site SELECT :row ->> '$.id', value ->> '$.function', value ->> '$.file',
    value ->> '$.line', value ->> '$.live_bytes', value ->> '$.live_blocks'
    FROM json_each(:row, '$.sites')
;
INSERT OR REPLACE INTO forecast SELECT :row ->> '$.id', :row ->> '$.seconds',
    :row ->> '$.forecast_seconds', :row ->> '$.forecast_low_seconds',
    :row ->> '$.forecast_high_seconds' WHERE :row ->> '$.forecast_seconds' IS NOT NULL
;
