"""The demo: a warehouse fed from a stream of orders by Spark, enriched from a product master on disk, and proved correct.

    result = run_demo()            # prints what it does and ends by itself

`result.verified` says whether the proof held.
"""

from __future__ import annotations

from semistream.demo.result import DemoResult
from semistream.demo.running import run_demo

__all__ = ["DemoResult", "run_demo"]
