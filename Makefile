# Tests and demo-postgres bring their own PostgreSQL; CONTRIBUTING.md says how to choose another.
# FENCEPOST_FULL=1 gives the tests their full sizes; unset, big data is at a tenth.

GO           ?= go
FUZZTIME     ?= 20s
EFFECTS      ?= 2000
RAPID_CHECKS ?= 100
WORKLOADS    ?= W1 W2 W3
SHARE        ?= 0.1
BASE         ?= origin/main

SQLC        := CGO_ENABLED=0 $(GO) tool -modfile=tools/go.mod sqlc
MODULES     := $(dir $(wildcard go.mod tools/go.mod bench/go.mod proof/go.mod publish/*/go.mod))
TESTED      := ./ $(filter publish/%,$(MODULES))

# For each tested module, one go after the other.
each = @for module in $(TESTED); do echo "go -C $$module $(1)"; $(2) $(GO) -C $$module $(1) || exit 1; done

.DEFAULT_GOAL := help
.PHONY: help generate freeze verify test test-full race property fuzz bench bench-drivers bench-check bench-docs demo demo-postgres ci

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

generate: ## Regenerate code from queries/ and schema/
	$(GO) generate ./...

freeze: ## Record the checksums of the migrations after adding one
	$(GO) test ./internal/rules -run TestMigrationsAreFrozen -freeze

verify: ## Check generated code, format, modules, vet, staticcheck and the project's own rules
	$(SQLC) diff
	.ci/generated
	@files=$$(gofmt -l .); test -z "$$files" || { echo "gofmt would change: $$files"; exit 1; }
	@for module in $(MODULES); do echo "go -C $$module mod tidy -diff"; $(GO) -C $$module mod tidy -diff || exit 1; done
	@for module in $(filter-out tools/,$(MODULES)); do echo "go -C $$module vet ./..."; $(GO) -C $$module vet ./... || exit 1; done
	$(call each,tool -modfile=$(CURDIR)/tools/go.mod staticcheck ./...)
	$(GO) test -count=1 ./internal/rules

# Tests make much garbage in little memory: to collect it less often saves the command's an eighth of the processor.
test test-full race: export GOGC ?= 400

test: ## Run all tests, big data at a tenth (at most 5 minutes)
	$(call each,test -vet=off -timeout 5m ./...)
	$(GO) test -C bench -vet=off ./cmd/... ./floor ./load ./peers

test-full: ## Run all tests at their full sizes
	$(call each,test -count=1 -timeout 60m ./...,FENCEPOST_FULL=1)

# Of the command only what runs several goroutines: its other verbs are one call after another, and slow under the detector.
race: ## Run tests under the race detector
	$(call each,test -race -timeout 15m $$($(GO) -C $$module list ./... | grep -v /cmd/fencepost))
	$(GO) test -race -timeout 15m -run 'Work|Batch|Demo|Tail|Move|Canar|CtrlC|Bulk|Operation|Watch' ./cmd/fencepost

property: ## Run the state machine and the laws at length (RAPID_CHECKS=100)
	RAPID_CHECKS=$(RAPID_CHECKS) $(GO) test -count=1 -timeout 15m ./property_test/...

fuzz: ## Run each fuzz target for FUZZTIME (20s)
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's|/[^/]*:func | |' | while read -r dir target; do \
		echo "fuzz $$dir $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; \
	done

bench: ## Run workloads beside other products, at a tenth of their sizes (WORKLOADS="W1 W2 W3" SHARE=0.1; WORKLOADS= for all)
	$(GO) -C bench run ./cmd/bench $(WORKLOADS) --share $(SHARE)

bench-drivers: ## Run the Go benchmarks of the drivers, against the floor
	$(GO) test -C bench -run '^$$' -bench . .
	$(GO) test -run '^$$' -bench . ./db/sqlitedb

bench-check: ## Compare the speed with that of a commit, and fail where it has become worse (BASE=origin/main)
	$(GO) -C bench run ./cmd/check $(BASE)

bench-docs: ## Draw the plots and write the tables of docs/benchmarks.md from the runs of bench/results
	$(GO) -C bench run ./cmd/docs

demo: ## Run the demo: a shop, its effects, and everything that can go wrong (EFFECTS=2000)
	$(GO) run ./cmd/fencepost demo --effects $(EFFECTS)

demo-postgres: ## Run the demo on a throwaway PostgreSQL
	$(GO) run ./cmd/fencepost demo --postgres --effects $(EFFECTS)

ci: verify test race property demo demo-postgres ## Run what the gate runs
