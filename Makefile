# Everything from a fresh machine with Python and make: each target sets up what it needs.

VENV := .venv
BIN := $(VENV)/bin
# PyBullet's wheels end with Python 3.11; the first of these that exists is used
CANDIDATES := python3.11 python3.10 python3 python
SUPPORTED := import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 11))
FIND_PYTHON = for p in $(PYTHON) $(CANDIDATES); do \
	if command -v $$p >/dev/null 2>&1 && $$p -c '$(SUPPORTED)' 2>/dev/null; then echo $$p; break; fi; done

DEMO_MODELS := four_bar stewart two_arms

.PHONY: demo docs papers test test-portable test-plain lint format types wheel clean

demo: $(VENV)/run
	$(BIN)/bulletbridge compare $(DEMO_MODELS) --duration 4 --report report
	@echo "Open report/index.html"

test: $(VENV)/dev
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

# the site of the documentation, with its links checked; from files, without network
docs: $(VENV)/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "Open build/site/index.html"

# every figure and table of the papers anew: some minutes
papers: $(VENV)/run
	$(BIN)/bulletbridge paper all --output docs/papers

# the numeric tests as a processor without fused operations, as an older one, and as this one
test-portable: $(VENV)/dev
	$(BIN)/python tests/processors.py

# steps without the private parts of numba; minutes of compilation
test-plain: $(VENV)/dev
	$(BIN)/python tests/plain_numba.py

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/dev
	$(BIN)/basedpyright

# with machine code of the kernels for these levels of processors; takes a C compiler to link
LEVELS := x86-64-v2 x86-64-v3 x86-64-v4
wheel: $(VENV)/dev
	rm -rf dist build
	$(BIN)/python release/make_objects.py build/objects --levels $(LEVELS)
	BULLETBRIDGE_OBJECTS=$$(ls -d build/objects 2>/dev/null) $(BIN)/python -m build --wheel

$(VENV)/run: pyproject.toml
	@test -n "$$($(FIND_PYTHON))" || { echo "No Python 3.10 or 3.11 found. PyBullet has wheels for"; \
		echo "these only: install one of them, or name it with 'make PYTHON=/path/to/python3.11'."; exit 1; }
	test -x $(BIN)/python || $$($(FIND_PYTHON)) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# what came with Python 3.10 looks for versions that fit for more than ten minutes, and finds none
$(VENV)/dev: $(VENV)/run
	$(BIN)/python -m pip install --quiet 'pip>=24'
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist report .pytest_cache .ruff_cache .hypothesis
