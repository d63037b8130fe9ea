"""Tuning: unit costs of this machine, and what a join will do before it runs.

    experiments.py   small joins that each show one unit cost; part_experiments.py does without joins
    calibration.py   the costs, kept in a file with the machine and the version they belong to
    calibrate.py     `ss.calibrate()`
    demand.py        what a stream asks of a master
    sizes.py         what the parts of a join get of a budget
    explaining.py    `ss.explain()`
    explanation.py   its answer

The models themselves know no join and no machine: they are in `semistream.models`.
"""
