#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The judge of MLflow databases: Python's own sqlite3, which shares no code with copper.

    mlflow_judge.py make FILE [REVISION]    a database as a later MLflow leaves it, with all that
                                            its tables may hold
    mlflow_judge.py many FILE RUNS METRICS  one with many runs
    mlflow_judge.py same FILE FILE          'same', or the rows in which the two databases differ
    mlflow_judge.py stores STORE STORE      the same for two run stores; times to the millisecond,
                                            which is what MLflow keeps
    mlflow_judge.py ask FILE EXPERIMENT     what MLflow's page asks of an experiment
    mlflow_judge.py sql FILE SQL            executes it; rows are printed, separated by '|'
"""
import sqlite3
import sys

TABLES = {
    "experiments": "experiment_id name artifact_location lifecycle_stage creation_time"
                   " last_update_time",
    "experiment_tags": "key value experiment_id",
    "runs": "run_uuid name source_type source_name entry_point_name user_id status start_time"
            " end_time source_version lifecycle_stage artifact_uri experiment_id deleted_time",
    "params": "key value run_uuid",
    "tags": "key value run_uuid",
    "metrics": "key value timestamp step is_nan run_uuid",
    "latest_metrics": "key value timestamp step is_nan run_uuid",
}
MOST = 1.7976931348623157e308

SCHEMA = """
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
CREATE TABLE experiments (experiment_id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(256) NOT NULL,
    artifact_location VARCHAR(256), lifecycle_stage VARCHAR(32), creation_time BIGINT,
    last_update_time BIGINT, workspace VARCHAR(63) DEFAULT 'default' NOT NULL,
    UNIQUE (workspace, name));
CREATE TABLE experiment_tags (key VARCHAR(250) NOT NULL, value VARCHAR(5000),
    experiment_id INTEGER NOT NULL REFERENCES experiments, PRIMARY KEY (key, experiment_id));
CREATE TABLE runs (run_uuid VARCHAR(32) NOT NULL PRIMARY KEY, name VARCHAR(250),
    source_type VARCHAR(20), source_name VARCHAR(500), entry_point_name VARCHAR(50),
    user_id VARCHAR(256), status VARCHAR(9), start_time BIGINT, end_time BIGINT,
    source_version VARCHAR(50), lifecycle_stage VARCHAR(20), artifact_uri VARCHAR(200),
    experiment_id INTEGER REFERENCES experiments, deleted_time BIGINT);
CREATE TABLE params (key VARCHAR(250) NOT NULL, value VARCHAR(8000) NOT NULL,
    run_uuid VARCHAR(32) NOT NULL REFERENCES runs, PRIMARY KEY (key, run_uuid));
CREATE TABLE tags (key VARCHAR(250) NOT NULL, value VARCHAR(8000),
    run_uuid VARCHAR(32) NOT NULL REFERENCES runs, PRIMARY KEY (key, run_uuid));
CREATE TABLE metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL,
    run_uuid VARCHAR(32) NOT NULL REFERENCES runs, step BIGINT DEFAULT '0' NOT NULL,
    is_nan BOOLEAN DEFAULT '0' NOT NULL CHECK (is_nan IN (0, 1)),
    PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan));
CREATE TABLE latest_metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT,
    step BIGINT NOT NULL, is_nan BOOLEAN NOT NULL, run_uuid VARCHAR(32) NOT NULL REFERENCES runs,
    PRIMARY KEY (key, run_uuid));
CREATE INDEX index_metrics_run_uuid ON metrics (run_uuid);
CREATE INDEX index_params_run_uuid ON params (run_uuid);
CREATE INDEX index_tags_run_uuid ON tags (run_uuid);
CREATE INDEX index_latest_metrics_run_uuid ON latest_metrics (run_uuid);
CREATE TABLE spans (trace_id VARCHAR(50) PRIMARY KEY);
"""


def put(db, table, *rows):
    names = TABLES[table].split()
    db.executemany("INSERT INTO %s (%s) VALUES (%s)" % (
        table, ", ".join(names), ", ".join("?" * len(names))), rows)


def put_metrics(db, run, key, *points):
    """Points are (value, timestamp, step); a value of None is not a number."""
    rows = [(key, 0 if v is None else v, t, s, v is None, run) for v, t, s in points]
    put(db, "metrics", *rows)
    put(db, "latest_metrics", max(rows, key=lambda r: (r[3], r[2], r[1])))


def put_run(db, run, experiment, name, status="FINISHED", stage="active", **more):
    put(db, "runs", (run, name, "UNKNOWN", "", "", more.get("user", "ada"), status, 1700000000123,
                     None if status in ("RUNNING", "SCHEDULED") else 1700000999456,
                     more.get("version", ""), stage, "s3://bucket/%s/artifacts" % run, experiment,
                     1700001000000 if stage == "deleted" else None))
    put(db, "tags", ("mlflow.runName", name or "named by its tag", run),
        ("mlflow.source.name", "train.py", run), ("mlflow.user", "ada", run))


def fresh(path, revision):
    db = sqlite3.connect(path)
    db.executescript(SCHEMA)
    db.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
    return db


def make(path, revision="c3d6457b6d8a"):
    db = fresh(path, revision)
    put(db, "experiments", (0, "Default", "mlflow-artifacts:/0", "active", 1, 2),
        (7, "image 'net'", "s3://bucket/7", "active", 3, 4),
        (12, "trash", "s3://bucket/12", "deleted", None, None))
    put(db, "experiment_tags", ("mlflow.note.content", "what\nit is", 7), ("empty", "", 0))
    a, b, c, d, e = ("%032x" % (0xa1b2c3d4e5f60718293a4b5c6d7e8f90 + (i << 64)) for i in range(5))
    put_run(db, a, 7, "first", version="ab12cd")
    put(db, "params", ("lr", "0.01", a), ("long", "x" * 8000, a), ("\u00fc \"q\"", "100%", a))
    put(db, "tags", ("note", "", a), ("nan.mine", "step by step", a), ("copper.other", "1", a))
    put_metrics(db, a, "loss", (3.5, 1700000000200, 0), (2.25, 1700000001200, 1),
                (0.1, 1700000002201, 2))
    # All of one step, as of a program that gives none; two of them at one moment.
    put_metrics(db, a, "acc", (0.5, 1700000000300, 0), (0.75, 1700000000400, 0),
                (0.625, 1700000000400, 0), (0.25, 1700000000100, 0))
    put_metrics(db, a, "odd", (MOST, 1700000000300, 0), (-MOST, 1700000000301, 1),
                (None, 1700000000302, 2), (1e-310, 1700000000303, 3), (None, 1700000000304, 5))
    put_metrics(db, a, "below", (1, 1700000000300, -1), (2, 1700000000301, -2))
    put_metrics(db, a, "only nan", (None, 1700000000300, 4))
    put_metrics(db, a, "system/cpu_utilization_percentage", (91.5, 1700000000300, 0),
                (93.25, 1700000010300, 1))
    put_run(db, b, 7, "killed", "KILLED", user=None)
    put_run(db, c, 0, "waits", "SCHEDULED")
    put_run(db, d, 12, "in the bin", "FAILED", "deleted")
    put_run(db, e, 0, None, "RUNNING")
    put_run(db, "no-uuid", 0, "", "FINISHED")
    put_metrics(db, "no-uuid", "loss", (1, 1700000000200, 1 << 40))
    db.commit()


def many(path, runs, metrics):
    db = fresh(path, "97727af70f4d")
    put(db, "experiments", (0, "Default", "mlflow-artifacts:/0", "active", 1, 2))
    for i in range(runs):
        run = "%032x" % (i << 64 | i)
        put_run(db, run, 0, "run%d" % i)
        put(db, "params", ("lr", str(i / 1e4), run))
        rows = [("m%d" % m, i / (m + 1), 1700000000000 + i, 0, 0, run) for m in range(metrics)]
        put(db, "metrics", *rows)
        put(db, "latest_metrics", *rows)
    db.commit()


def rows_of(path, sql):
    return sqlite3.connect(path, timeout=60).execute(sql).fetchall()


def compare(named):
    found = 0
    for name, one, two in named:
        for sign, left, right in (("-", one, two), ("+", two, one)):
            rest = list(right)
            for row in left:
                if row in rest:
                    rest.remove(row)
                else:
                    found += 1
                    print(sign, name, *(repr(v)[:80] for v in row))
    print("differ" if found else "same")


def same(one, two):
    compare((t, rows_of(one, "SELECT %s FROM %s" % (", ".join(c.split()), t)),
             rows_of(two, "SELECT %s FROM %s" % (", ".join(c.split()), t)))
            for t, c in TABLES.items())


def stores(one, two):
    sql = {t: "SELECT * FROM " + t for t in ("run", "param", "tag", "resource")}
    sql["metric"] = "SELECT run, key, value, step, CAST(round(time * 1000) AS INT) FROM metric"
    compare((t, rows_of(one, s), rows_of(two, s)) for t, s in sql.items())


def ask(path, name):
    db = sqlite3.connect(path, timeout=60)
    (experiment,) = db.execute("SELECT experiment_id FROM experiments WHERE name = ?"
                               " AND lifecycle_stage = 'active'", (name,)).fetchone()
    for run, status, name, end in db.execute(
            "SELECT run_uuid, status, name, end_time >= start_time FROM runs WHERE experiment_id = ?"
            " AND lifecycle_stage = 'active' ORDER BY start_time DESC, run_uuid", (experiment,)):
        tags = dict(db.execute("SELECT key, value FROM tags WHERE run_uuid = ?", (run,)))
        params = dict(db.execute("SELECT key, value FROM params WHERE run_uuid = ?", (run,)))
        print(status, name, end, tags["mlflow.runName"], tags["mlflow.source.name"],
              tags.get("sha256"), params.get("lr"), run[:16] == run[16:])
        for key, value, step, is_nan in db.execute(
                "SELECT key, value, step, is_nan FROM latest_metrics WHERE run_uuid = ?"
                " AND key NOT LIKE '%.%' ORDER BY key", (run,)):
            history = [None if nan else v for v, nan in db.execute(
                "SELECT value, is_nan FROM metrics WHERE run_uuid = ? AND key = ?"
                " ORDER BY step, timestamp, value", (run, key))]
            print(" ", key, "nan" if is_nan else value, "at", step, history)


def sql(path, text):
    db = sqlite3.connect(path, timeout=60)
    with db:
        for row in db.execute(text):
            print("|".join("" if v is None else str(v) for v in row))


if __name__ == "__main__":
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "many":
        many(arguments[0], *map(int, arguments[1:]))
    else:
        {"make": make, "same": same, "stores": stores, "ask": ask, "sql": sql}[command](*arguments)
