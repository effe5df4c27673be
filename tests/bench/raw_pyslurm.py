"""The peer inside the cluster: pyslurm's own submit, one JSON list of milliseconds.

/opt/sluice-broker/bin/python raw_pyslurm.py COUNT UID GID FOLDER
"""

import json
import sys
import time

import pyslurm

count, uid, gid, folder = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
times = []
for _ in range(count):
    job = pyslurm.JobSubmitDescription(
        name="raw",
        user_id=uid,
        group_id=gid,
        account="nlp",
        partitions="a100",
        nodes=1,
        time_limit=5,
        environment={"PATH": "/usr/bin:/bin"},
        working_directory=folder,
        standard_output="/dev/null",
        script="#!/bin/bash\ntrue\n",
    )
    started = time.perf_counter()
    job.submit()
    times.append((time.perf_counter() - started) * 1000)
    time.sleep(0.05)
print(json.dumps(times))
