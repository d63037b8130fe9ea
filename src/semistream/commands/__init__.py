"""The subcommands of `semistream`, and what they print."""
