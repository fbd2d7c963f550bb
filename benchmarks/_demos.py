"""Finds modules of the demos for benchmarks that take them, and keeps BLAS to one thread."""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a thread takes longer to wake than to solve
sys.path.insert(0, str(Path(__file__).parents[1] / "demos"))
