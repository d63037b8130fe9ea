"""CACHEJOIN-L: CACHEJOIN that looks up a tuple from the middle of the queue.

Naeem et al., DaWaK 2014; described in section 3.1 of their paper on a queue of frequent pages (see hybridjoin_pq.py).

The cache answers tuples of hot keys before they wait; what is left still has keys that are asked for more than others. As in
HYBRIDJOIN-L, a tuple at a fixed share of the queue, counted from the young end, needs such a key's page more often than the oldest
does. With most of the skew gone there is less to gain.

    stream -> hot cache -- hit -> leaves at once
                  | miss      ^ rows that many tuples wait for
                  v           |
              stream table + arrival queue  [oldest .... mark ..... newest] -> leaves at its match        (HYBRIDJOIN-L)

Next page: that of the marked tuple, or of the oldest one when that has waited too long. Leaves: tuples whose key is cached, at once;
others when their key is complete. Stays in memory: the rows of hot keys, and keys that are hot and absent from the master.

Departures from the print. Those of CACHEJOIN and of HYBRIDJOIN-L: the age limit, and 70 % instead of 30 %. Preset "published": 30 %, no age
limit, the sizes of the published CACHEJOIN.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="cachejoin_l", memory="1MB")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [3, 1, 9]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 3, 'colour': 'blue'}]
"""

from __future__ import annotations

from dataclasses import replace

from semistream.algorithms import cachejoin, hybridjoin_l

ALGORITHM = replace(
    cachejoin.in_front_of(hybridjoin_l.ALGORITHM, hybridjoin_l.choice),
    name="cachejoin_l",
    title="CACHEJOIN-L",
    paper="Naeem et al. 2014",
)
