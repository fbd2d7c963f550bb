"""Python's collector of garbage, put off while there is much to make and nothing to collect."""

import gc


class Uncollected:
    """Context in which a package is imported: objects by the hundred thousand, hardly any garbage.

    What was made meanwhile is taken for old: whoever comes next would else look through all of it.
    """

    def __enter__(self) -> None:
        """Stop it."""
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_error: object) -> None:
        """Let it go on, if it did before."""
        if not self._was_on:
            return
        if gc.get_freeze_count() == 0:  # else somebody has put objects aside, to stay there
            gc.freeze()
            gc.unfreeze()
        gc.enable()
