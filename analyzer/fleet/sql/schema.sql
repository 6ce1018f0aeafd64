-- The tables of a fleet's database. A change of a column's meaning raises user_version; columns may
-- be added. Sizes are bytes, times UTC.
PRAGMA application_id=0x7768794f;
PRAGMA user_version=1;
CREATE TABLE crash(
    id TEXT PRIMARY KEY,          -- host/pid/start: the same run judged again replaces its row
    run TEXT, run_bytes INTEGER, run_changed_ns INTEGER, judge TEXT,
    host TEXT, image TEXT, version TEXT, pod TEXT, namespace TEXT, node TEXT, model TEXT,
    labels TEXT,                  -- a JSON object
    started TEXT, day TEXT, seconds REAL, pid INTEGER, command TEXT, ended TEXT, end_code INTEGER,
    failure TEXT, failure_seconds REAL, space TEXT, requested_bytes INTEGER,
    limit_kind TEXT, limit_bytes INTEGER, free_bytes INTEGER,
    cause TEXT, confidence REAL, runner_up TEXT, sentence TEXT, fix TEXT,
    blame_function TEXT, blame_file TEXT, blame_line INTEGER, blame_bytes INTEGER, stack TEXT,
    forecast_seconds REAL, forecast_low_seconds REAL, forecast_high_seconds REAL,
    lost_events INTEGER,
    error TEXT                    -- why the run could not be judged; then the rest is NULL
) WITHOUT ROWID;
CREATE INDEX crash_run ON crash(run);
CREATE TABLE ledger(crash TEXT, space TEXT, class TEXT, bytes INTEGER);
CREATE INDEX ledger_crash ON ledger(crash);
-- The call sites that held most when it ended, or at the peak.
CREATE TABLE site(crash TEXT, function TEXT, file TEXT, line INTEGER,
    live_bytes INTEGER, live_blocks INTEGER);
CREATE INDEX site_crash ON site(crash);
-- What was foretold while a run still lived; its row in `crash` says what became of it.
CREATE TABLE forecast(crash TEXT, at_seconds REAL, seconds REAL, low_seconds REAL,
    high_seconds REAL, PRIMARY KEY(crash, at_seconds)) WITHOUT ROWID;
