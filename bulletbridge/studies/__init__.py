"""Parameter studies: many runs of a model or a function, over processes or a cluster."""
