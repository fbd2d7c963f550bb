"""BLAS and LAPACK in one thread, for matrices too small to be shared."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Keep BLAS and LAPACK from sharing their work among threads meanwhile.

    A singular value decomposition of a hundred rows takes 2 ms in one thread. OpenBLAS shares its
    products, and waits for each of them: several times as long, and a second where processors are
    busy. The limit holds for the whole process, which does no harm but to large matrices of other
    threads; of several threads that ask for it, the first to do so takes it back.
    """
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(1)
def _libraries(_imported: int) -> Any:
    """The libraries that are loaded; looked for again once more modules are, which bring others."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
