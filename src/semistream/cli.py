"""The command `semistream`: each subcommand is a thin cover over one function of the library.

    semistream demo                                  a stream enriched on Spark, and proved correct
    semistream master build|info|verify|export|vacuum
    semistream join                                  files in, files out, without Spark
    semistream explain                               what a join will do, before it runs
    semistream calibrate                             the unit costs of this machine, for explain
    semistream algorithms                            what there is and what each can do
    semistream bench core|pages|spark                measured against DuckDB, Polars, Spark

Results go to standard output, progress and notes to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage. The
library is imported inside the commands, so that `semistream --help` answers at once.
"""

from __future__ import annotations

import click

from semistream.commands.explain import calibrate, explain
from semistream.commands.join import join
from semistream.commands.master import master
from semistream.commands.run import algorithms, bench, demo
from semistream.commands.terminal import Commands


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="semistream", message="%(prog)s %(version)s", help="Print the version and leave.")
def main() -> None:
    """Lookup joins: enrich a fast stream with a master table far bigger than memory, within a byte budget, exactly.

    Exit codes: 0 done, 1 failed, 2 wrong usage. Every command has --help with an example, and --json for machines.
    """


main.add_command(demo)
main.add_command(master)
main.add_command(join)
main.add_command(explain)
main.add_command(calibrate)
main.add_command(algorithms)
main.add_command(bench)
