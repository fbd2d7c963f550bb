"""A model under several solvers: runs, native twin, evaluation, plots, report, window."""
