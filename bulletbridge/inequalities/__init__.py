"""Motors, limits, contacts and force limits, solved in the subspace that the loops leave free."""
