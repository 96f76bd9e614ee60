# Thin names over CMake and pytest. `make demo` and `make test` do all of a fresh machine's set-up themselves.
BUILD := build
VENV  := .venv
PY    := $(VENV)/bin/python
JOBS  := $(shell nproc)
APT   := cmake ninja-build gcc g++ pkg-config libffi-dev libsodium-dev libxxhash-dev libcmocka-dev valgrind python3-venv
# NVRTC for the C tests, when the environment has it
export JITNEY_TEST_SEARCH_PATH = $(abspath $(wildcard $(VENV)/lib/python3*/site-packages))
RUN   := PYTHONPATH=python JITNEY_LIBRARY=$(BUILD)/libjitney.so

.PHONY: demo test build setup test-c test-python asan tsan valgrind bench size format clean

demo: build $(VENV)/demo
	$(RUN) $(PY) docs/examples/demo.py

test: build $(VENV)/test test-c asan tsan valgrind test-python

# ---- set-up: what a fresh Debian machine lacks; nothing when it is all there
setup: $(BUILD)/setup
$(BUILD)/setup:
	@mkdir -p $(BUILD)
	@if ! (command -v cmake ninja g++ valgrind pkg-config && pkg-config --exists libffi libsodium libxxhash cmocka \
	       && python3 -c 'import ensurepip, venv') >/dev/null 2>&1; then \
	    if [ "$$(id -u)" = 0 ]; then S=; else S=sudo; fi; \
	    if command -v apt-get >/dev/null; then $$S apt-get update -q && $$S apt-get install -y -q $(APT); \
	    else echo "install the equivalents of these Debian packages, then run make again: $(APT)"; exit 1; fi; fi
	@touch $@

build: setup
	cmake --preset release -G Ninja >/dev/null
	cmake --build $(BUILD) -j $(JOBS)

# An environment that sees the machine's own packages where torch is one of them
$(VENV)/made: | setup
	@python3 -c 'import sys, importlib.util as u; sys.exit(0 if u.find_spec("torch") else 1)' \
	    && python3 -m venv --system-site-packages $(VENV) || python3 -m venv $(VENV)
	@touch $@
$(VENV)/demo: $(VENV)/made
	$(PY) -m pip install -q --disable-pip-version-check numpy "nvidia-cuda-nvrtc==13.0.*" "nvidia-cuda-runtime==13.0.*" "nvidia-cuda-cccl==13.0.*" "nvidia-cuda-crt==13.0.*"
	@touch $@
$(VENV)/test: $(VENV)/demo tests/requirements.txt
	$(PY) -m pip install -q --disable-pip-version-check -r tests/requirements.txt
	@touch $@

# ---- tests
test-c: build
	ctest --preset release -j $(JOBS)

asan tsan: setup
	cmake --preset $@ -G Ninja >/dev/null
	cmake --build $(BUILD)/$@ -j $(JOBS)
	ctest --preset $@ -j $(JOBS)

valgrind: build
	tests/valgrind.sh $(BUILD)

test-python: build $(VENV)/test
	$(RUN) $(PY) -m pytest tests/python tests/layout -q

# ---- the rest
bench: build $(VENV)/demo
	$(RUN) $(PY) -m bench

size:
	@python3 tests/layout/size.py

format:
	clang-format -i $$(git ls-files 'src/*.[ch]' 'include/jitney/*.h')

clean:
	rm -rf $(BUILD)
