"""What a user waits for before the first row: the import, and the first small join, kernels compiled already or not.

Importing semistream loads next to nothing; what it will need is loaded at first use. So two imports are timed: the bare
one, and one that touches the join and the masters. A first join is timed from before the import to its last row.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from semistream.bench.cases import Preset
from semistream.bench.data import Dataset
from semistream.bench.launch import run_python

IMPORT_RUNS = 5
FIRST_ROWS = 1000
TOUCHED = "semistream.Join, semistream.build_master, semistream.open_master"
LIMITS_S = {"import": 0.5, "import-all": 0.5, "first-join-warm": 1.5, "first-join-cold": 20.0}

_IMPORT = """
import json, time
start = time.perf_counter()
import semistream
{touch}
print(json.dumps({{"seconds": time.perf_counter() - start}}))
"""

_JOIN = """
import json, sys, time
start = time.perf_counter()
import semistream as ss
import pyarrow as pa
imported = time.perf_counter()
master = ss.open_master({master!r})
with pa.OSFile({stream!r}) as file, pa.ipc.open_file(file) as reader:
    batch = reader.get_batch(0).slice(0, {rows})
rows = sum(out.num_rows for out in ss.Join(master, on={on!r}, memory="16MB")([batch]))
end = time.perf_counter()
print(json.dumps({{"seconds": end - start, "import_seconds": imported - start, "rows": rows}}))
"""


def measure_startup(data: Path, preset: Preset) -> list[dict[str, Any]]:
    """One row per figure; medians of several processes, except for the cold join, which is run once."""
    dataset = Dataset(data, "fixed", preset.master_rows)
    stream, _ = dataset.stream(1.0, preset.pool_batches, preset.batch_rows)
    join = _JOIN.format(master=str(dataset.small_master()), stream=str(stream), rows=FIRST_ROWS, on=dataset.on)
    _run(join)  # whoever is first compiles
    with tempfile.TemporaryDirectory() as empty:
        return [
            *measure_imports(IMPORT_RUNS),
            _figure("first-join-warm", join, preset.repeats),
            _figure("first-join-cold", join, 1, {"SEMISTREAM_KERNEL_CACHE": empty}),
        ]


def measure_imports(runs: int) -> list[dict[str, Any]]:
    """Rows for the bare import and for all that a join needs."""
    programs = {"import": _IMPORT.format(touch=""), "import-all": _IMPORT.format(touch=TOUCHED)}
    return [_figure(case, program, runs) for case, program in programs.items()]


def _figure(case: str, program: str, runs: int, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """The median run as a row of results."""
    found = [_run(program, environment) for _ in range(runs)]
    row: dict[str, Any] = {"system": "startup", "case": case, "rows": 0, "error": None, "limit_s": LIMITS_S[case]}
    failed = [one for one in found if one.get("error")]
    if failed:
        return row | failed[0] | {"seconds": None}
    median = statistics.median_low(one["seconds"] for one in found)
    return row | next(one for one in found if one["seconds"] == median)


def _run(program: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """What the program printed as JSON, and what it told the user meanwhile."""
    done = run_python(["-c", program], threads=2, timeout_s=120, environment=environment)
    if done["error"]:
        return {"error": done["error"]}
    told: dict[str, Any] = json.loads(done["out"].splitlines()[-1])
    return told | {"said": done["err"].strip() or None}
