"""How fast a dump of accounting comes into the store, and the same rows with slurm2sql.

    python tests/bench/bench_ingest.py [--rows 1000000]

Rows are a real trace, repeated with new ids. slurm2sql is installed into a throw-away
environment; where that cannot be done the line says so.
"""

import argparse
import csv
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

TRACE = Path(__file__).resolve().parents[3] / "shared" / "traces" / "xdmod_phillips.sacct.psv.gz"
ZONE = "America/New_York"
PEER = "slurm2sql==0.9.9"
GOAL = 5
FEW = 100_000
# slurm2sql reads memory without the letter that says "a node" or "a core".
_A_NODE = re.compile(r"[nc]$")


def ingest(folder: Path, *, rows: int = 1_000_000) -> Iterator[dict[str, object]]:
    if not TRACE.exists():
        yield {"bench": "ingest/sacct_dump", "skipped": f"no {TRACE.name} beside this checkout"}
        return
    before = os.getloadavg()[0]
    seconds, memory = ours(folder, dump(folder, rows), rows)
    _, memory_of_few = ours(folder, dump(folder, FEW), FEW)
    peer = slurm2sql(folder, rows)
    line: dict[str, object] = {
        "bench": "ingest/sacct_dump",
        "rows": rows,
        "rows_per_second": round(rows / seconds),
        "peak_mb": memory,
        f"peak_mb_at_{FEW}": memory_of_few,
        "goal_ratio": GOAL,
        "load": [round(before, 1), round(os.getloadavg()[0], 1)],
    }
    if peer is None:
        yield line | {"peer": f"{PEER} could not be installed"}
    else:
        yield line | {"peer_rows_per_second": round(rows / peer), "ratio": round(peer / seconds, 1)}


def dump(folder: Path, rows: int) -> Path:
    """The trace again and again, each job with an id of its own."""
    path = folder / f"{rows}.psv"
    with path.open("w") as file:
        for fields in repeated(rows):
            file.write("|".join(fields) + "\n")
    return path


def repeated(rows: int) -> Iterator[list[str]]:
    with gzip.open(TRACE, "rt") as file:
        header, *records = [line.rstrip("\n").split("|") for line in file]
    yield header
    ids = header.index("JobID"), header.index("JobIDRaw")
    for number in range(rows):
        fields = list(records[number % len(records)])
        for place in ids:
            fields[place] = str(1_000_000 + number)
        yield fields


def ours(folder: Path, path: Path, rows: int) -> tuple[float, float]:
    """Seconds of the whole command, and the larger one of its processes at its largest."""
    home = folder / f"home-{rows}"
    environment = {**os.environ, "SLUICE_HOME": str(home)}
    sluice = str(Path(sys.executable).parent / "sluice")
    subprocess.run([sluice, "db", "upgrade"], check=True, env=environment, capture_output=True)
    argv = [sluice, "history", "import", str(path), "--format", "sacct", "--timezone", ZONE]
    began = time.perf_counter()
    with open(os.devnull, "w") as nowhere, (folder / "answer").open("w+") as answer:
        child = subprocess.Popen([*argv, "--json"], env=environment, stdout=answer, stderr=nowhere)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        answer.seek(0)
        report = json.loads(answer.read() or "{}")
    if child.returncode or report["stored"] != rows or not report["ties"]:
        raise RuntimeError(f"sluice history import: {child.returncode} {report}")
    return seconds, round(usage.ru_maxrss / 1024, 1)


def slurm2sql(folder: Path, rows: int) -> float | None:
    """Seconds for the same rows; None where it cannot be had."""
    environment = folder / "peer"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, capture_output=True)
    pip = [environment / "bin" / "python", "-m", "pip", "--quiet", "install", PEER]
    if subprocess.run(pip, check=False, capture_output=True).returncode:
        return None
    path = folder / "peer.csv"
    with path.open("w", newline="") as file:
        write = csv.writer(file)
        given = repeated(rows)
        header = next(given)
        write.writerow(header)
        memory = header.index("ReqMem")
        for fields in given:
            fields[memory] = _A_NODE.sub("", fields[memory])
            write.writerow(fields)
    argv = [environment / "bin" / "slurm2sql", "--csv-input", path, folder / "peer.db", "-q"]
    began = time.perf_counter()
    subprocess.run(argv, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        for line in ingest(Path(folder), rows=given.rows):
            sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
