-- The line for a run that could not be judged.
SELECT json_object('schema', 1, 'id', :run, 'run', :run, 'run_bytes', :bytes,
    'run_changed_ns', :changed, 'judge', :judge, 'labels', json('{}'), 'error', :error,
    'ledger', json('[]'), 'sites', json('[]'));
