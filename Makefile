# Two commands do everything: `make` derives, proves and generates; `make test` tests.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := generate
OF_VALUES := $(wildcard tests/test_gallery_*.py) $(addprefix tests/test_,formats.py edges_of_sizes.py \
    ignored_labels.py masked_scores.py kinks.py optional.py batch_norm.py softmax_nll.py mlp.py \
    second_derivatives.py numbers_held.py)

# Also the tests marked slow, and those of names.
WHOLE := not browser and not engine and not gpu and not triton and not coq and not thorough

.PHONY: help generate certificates certificates-sample check test test-fast fuzz fuzz-functions mutants record test-all test-names test-thorough test-gpu test-browser test-latex test-kernels triton test-triton moves test-sanitizers site playground lint format exercises bench bench-gpu package clean

# What is compiled is kept for the many processes of a run, also where the environment says not to.
unexport PYTHONDONTWRITEBYTECODE

# Kernels are built and compared before they are written; installs Debian's compiler where there is none.
COMPILER = @set -- $${CXX:-g++}; command -v "$$1" >/dev/null || command -v clang++ >/dev/null || (apt-get update -qq && apt-get install -y -qq g++ >/dev/null)

# Whether Triton is there: what is written for it is compared on its interpreter.
TRITON = $(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("triton") is None)'

# The virtual environment stands when this file is newer than pyproject.toml.
$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gradform needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(firstword $(MAKEFILE_LIST)) | \
	    while IFS='|' read -r target words; do printf '%-16s %s\n' "$$target" "$$words"; done

# What stands in generated/ is in git: a file that was edited or merged there is replaced.
generate: $(READY)  ## derive, prove, write generated/ and its report, compare with autograd
	@echo "Deriving and proving every forward, and writing generated/: minutes the first time, seconds when nothing changed."
	$(COMPILER)
	$(BIN)/python -m codegen --force
	$(BIN)/python -m codegen --target cpp --force
	@! $(TRITON) || $(BIN)/python -m codegen --target triton --force
	$(BIN)/python -m codegen report --force

check: $(READY)  ## say whether generated/ is up to date; writes nothing
	$(COMPILER)
	$(BIN)/python -m codegen --check
	$(BIN)/python -m codegen --target cpp --check
	$(BIN)/python -m codegen report --check

# Minutes: every file that was accepted is checked once more.
certificates: $(READY) certificates-sample  ## the proofs for Coq: up to date, accepted, and wrong closed forms refused; installs Coq
	command -v coqc >/dev/null || (apt-get update -qq && apt-get install -y -qq coq libcoq-coquelicot >/dev/null)
	$(BIN)/gradform certificate --check
	rm -rf build/certificates && mkdir -p build && cp -r certificates build/certificates
	cd build/certificates && for file in Grad.v *.v; do \
	    echo $$file; timeout 300 coqc -q -w -all $$file >/dev/null || exit 1; done
	PYTHONPATH=. $(BIN)/python tests/certificate_mutants.py

certificates-sample: $(READY)  ## a few certificates, where Coq is installed
	$(BIN)/python -m pytest -m coq tests/test_certificate.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint check  ## everything that must hold before a commit, in seven minutes
	$(BIN)/python -m pytest -n 2 --dist loadgroup

test-all: lint check  ## the same with the whole gallery, of which `make test` has a sample, and whole programs
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "$(WHOLE)"

test-names: $(READY)  ## makemore, its lessons and the network of names, which learn
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m names

test-fast: $(READY)  ## lint, and the tests nearest to what differs from AGAINST=HEAD: a minute and a half
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -n 2 --dist loadgroup $$($(BIN)/python tests/touched.py $(AGAINST))

# make fuzz SECONDS=1800 SEED=0; one of them again, with its text: make fuzz CASE=1234
SECONDS ?= 600
SEED ?= 0
MOST ?= 6
fuzz: $(READY)  ## random forwards beside plain torch, for as long as one likes
	cd tests && $(abspath $(BIN))/python -m random_forwards --most $(MOST) \
	    $(if $(CASE),--case $(CASE),--seconds $(SECONDS) --seed $(SEED))

fuzz-functions: $(READY)  ## verdicts on random Functions beside torch's runs of them; takes SECONDS, SEED, CASE
	cd tests && $(abspath $(BIN))/python -m random_functions \
	    $(if $(CASE),--case $(CASE),--seconds $(SECONDS) --seed $(SEED))

test-thorough: $(READY)  ## all random cases of which `make test` takes samples
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m thorough

test-gpu: $(READY)  ## the checks that need a GPU
	$(BIN)/python -m pytest -m gpu

mutants: $(READY)  ## breaks every rule and says which test notices; MUTANTS="derive.proof.zero.cases": one room
	$(BIN)/python tests/mutants/driver.py --slow $(MUTANTS)

record: $(READY)  ## write tests/respelling/counts.json anew: the counts of every forward, in all spellings
	cd tests && $(abspath $(BIN))/python -m respelling

test-browser: $(READY) playground  ## the pages in a headless Chromium; installs Debian's where there is none
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium >/dev/null)
	$(BIN)/python -m pytest -m browser

test-latex: $(READY)  ## the papers compile; installs Debian's pdflatex where there is none
	command -v pdflatex >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends texlive-latex-base >/dev/null)
	$(BIN)/python -m pytest -m engine

site: $(READY) playground  ## a page for every forward and every lesson, and the playground, in site/
	$(BIN)/python -m derive site --playground play/index.html --lessons lessons/index.html --docs docs
	$(BIN)/python examples/lessons/write.py --html site/lessons --home ../index.html --playground ../play/index.html

playground: $(READY)  ## derive and check in a browser, in site/play/; installs Debian's npm where there is none
	command -v npm >/dev/null || (apt-get update -qq && apt-get install -y -qq nodejs npm >/dev/null)
	$(BIN)/python playground/build.py

exercises: $(READY)  ## the 26 gradients of the network of names, beside autograd
	$(BIN)/python examples/exercises.py

test-kernels: $(READY)  ## the tests of what is generated, on kernels in the place of lines of torch
	$(COMPILER)
	GRADFORM_TARGET=cpp GRADFORM_NODE=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m "$(WHOLE)" $(OF_VALUES)

triton: $(READY)  ## install Triton (200 MB): `make test` then runs a sample of its kernels, interpreted
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[triton]'

# A process either interprets kernels in Triton or compiles them.
test-triton: triton  ## kernels in Triton, on its interpreter and compiled for GPUs; installs Triton
	$(BIN)/python -m codegen --target triton --check
	TRITON_INTERPRET=1 $(BIN)/python -m pytest -n 2 -m triton tests/test_tiles.py tests/test_chunks_in_kernels.py tests/test_triton_values.py tests/test_triton_own.py tests/test_triton_in_torch.py tests/test_triton_launches.py tests/test_gpu.py tests/test_benchmark_gpu.py
	$(BIN)/python -m pytest -n 2 -m triton tests/test_triton_compiled.py tests/test_tiles_compiled.py tests/test_triton_moves.py tests/test_triton_traced.py

moves: triton  ## count what kernels in Triton move, for the report; installs Triton
	PYTHONPATH=. $(BIN)/python tests/test_triton_moves.py
	$(BIN)/python -m codegen report --force

# A fault of the sanitizers ends the process of a worker, which the run names with its test.
test-sanitizers: $(READY)  ## the kernels built with gcc's sanitizers of addresses and of undefined behaviour
	$(COMPILER)
	GRADFORM_TARGET=cpp GRADFORM_KERNELS=$(abspath $(VENV))/sanitized \
	    CXX="g++ -g -fsanitize=address,undefined -fno-sanitize-recover=all" \
	    LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" \
	    ASAN_OPTIONS=detect_leaks=0 \
	    $(BIN)/python -m pytest -n 2 --dist loadgroup -m "$(WHOLE)" tests/test_kernels.py $(OF_VALUES)

# With Python 3.11 or 3.12, for which the lowest NumPy is made. On Linux a torch of that age comes with
# CUDA: a download of 3 GB.
LOWEST := build/minimums
OF_LOWEST := $(addprefix tests/test_,gradform.py derivation.py formats.py softmax_nll.py mlp.py import.py \
    progress.py pages.py)
.PHONY: minimums
minimums:  ## a sample of the tests on the lowest versions that pyproject.toml says to work
	$(COMPILER)
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) tests/minimums.py > $(LOWEST)/pins.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(LOWEST)/pins.txt
	$(LOWEST)/bin/python -m pytest $(OF_LOWEST)

bench: $(READY)  ## ratios against torch, side by side in one run
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/kernels.py --rows 32 --columns 64 --rounds 300
	$(BIN)/python benchmarks/closed_forms.py
	$(BIN)/python benchmarks/training_step.py
	$(BIN)/python benchmarks/ranks.py

bench-gpu: $(READY)  ## kernels in Triton beside torch's, torch.compile's and Liger's; installs Triton and Liger's
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[triton]' liger-kernel==0.8.5
	PYTHONPATH=.:tests $(BIN)/python benchmarks/gpu.py

# Built from a copy of what git knows, so that nothing of a run is in it.
package: $(READY)  ## build the wheel and the sources in build/dist/, and check them; uploads nothing
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	rm -rf build/package build/dist && mkdir -p build/package
	git ls-files -z | tar --null --files-from=- --create | tar --extract --directory build/package
	$(BIN)/python -m build --outdir build/dist build/package
	$(BIN)/python -m twine check --strict build/dist/*
	test "$$(stat --format=%s build/dist/*.whl)" -lt 3000000

clean:
	rm -rf $(VENV) build playground/node_modules *.egg-info .pytest_cache .ruff_cache .hypothesis .gradform_cache
