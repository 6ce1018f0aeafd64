-- A report, as `whyoom report --format json` writes it, and the call sites of the same moment, as
-- `whyoom sites --format json` writes them, become one line of JSON: docs/fleet.md has its members.
-- frame_name() is whyoom's: a function's name as it is the same in another build.
SELECT json_object(
    'schema', 1,
    'id', printf('%s/%d/%s', coalesce(:report ->> '$.host', ''), p ->> '$.pid', p ->> '$.started'),
    'run', :run,
    'run_bytes', :bytes,
    'run_changed_ns', :changed,
    'judge', :judge,
    'host', :report ->> '$.host',
    'image', :report ->> '$.labels.image',
    'version', coalesce(:report ->> '$.labels.version', :report ->> '$.labels.image'),
    'pod', :report ->> '$.labels.pod',
    'namespace', :report ->> '$.labels.namespace',
    'node', coalesce(:report ->> '$.labels.node', :report ->> '$.host'),
    'model', :report ->> '$.labels.model',
    'labels', json(coalesce(:report -> '$.labels', '{}')),
    'started', p ->> '$.started',
    'day', substr(p ->> '$.started', 1, 10),
    'seconds', p ->> '$.seconds',
    'pid', p ->> '$.pid',
    'command', p ->> '$.cmdline',
    'ended', p ->> '$.end.how',
    'end_code', p ->> '$.end.code',
    'failure', :report ->> '$.failure.kind',
    'failure_seconds', :report ->> '$.failure.seconds',
    'space', coalesce(:report ->> '$.failure.space', :report ->> '$.verdict.space', 'host'),
    'requested_bytes', :report ->> '$.failure.requested_bytes',
    'limit_kind', :report ->> '$.ledger[0].limit_kind',
    'limit_bytes', :report ->> '$.ledger[0].limit_bytes',
    'free_bytes', (SELECT sum(r.value ->> '$.bytes') FROM json_each(:report, '$.ledger[0].rows') r
                   WHERE r.value ->> '$.class' = 'free'),
    'cause', :report ->> '$.verdict.cause',
    'confidence', :report ->> '$.verdict.confidence',
    'runner_up', :report ->> '$.verdict.runner_up.cause',
    'sentence', :report ->> '$.verdict.summary',
    'fix', :report ->> '$.verdict.fixes[0].text',
    'blame_function', frame_name(:report ->> '$.verdict.blame.function'),
    'blame_file', :report ->> '$.verdict.blame.file',
    'blame_line', :report ->> '$.verdict.blame.line',
    'blame_bytes', :report ->> '$.verdict.blame.bytes',
    'stack', (SELECT group_concat(name, ' < ') FROM (
        SELECT frame_name(f.value ->> '$.function') AS name
        FROM json_each(coalesce(:report -> '$.verdict.blame.stack', :report -> '$.failure.stack',
                                '[]')) f
        -- "libx.so+0x12ab" names no function, and is another in the next build
        WHERE f.value ->> '$.function' NOT LIKE '%+0x%' ORDER BY f.key LIMIT 12)),
    'forecast_seconds', next ->> '$.expected_seconds',
    'forecast_low_seconds', next ->> '$.soonest_seconds',
    'forecast_high_seconds', next ->> '$.latest_seconds',
    'lost_events', :report ->> '$.coverage.lost_events',
    'error', NULL,
    'ledger', (SELECT json_group_array(json_object('space', l.value ->> '$.space',
                   'class', r.value ->> '$.class', 'bytes', r.value ->> '$.bytes'))
               FROM json_each(:report, '$.ledger') l, json_each(l.value, '$.rows') r),
    'sites', (SELECT json_group_array(json_object('function', frame_name(s.value ->> '$.function'),
                  'file', s.value ->> '$.file', 'line', s.value ->> '$.line',
                  'live_bytes', s.value ->> '$.live_bytes',
                  'live_blocks', s.value ->> '$.live_blocks'))
              FROM json_each(:sites, '$.sites') s WHERE s.value ->> '$.function' IS NOT NULL))
FROM (SELECT coalesce(
    (SELECT value FROM json_each(:report, '$.processes')
     WHERE value ->> '$.pid' = coalesce(:report ->> '$.failure.pid', :report ->> '$.ledger[0].pid')
     ORDER BY key DESC LIMIT 1),
    :report -> '$.processes[0]') AS p,
    (SELECT value FROM json_each(:report, '$.prospect.spaces')
     WHERE value ->> '$.expected_seconds' IS NOT NULL
     ORDER BY value ->> '$.expected_seconds' LIMIT 1) AS next);
