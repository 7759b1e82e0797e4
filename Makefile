# `make test` is all that a change must pass; see CONTRIBUTING.md.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
STEP := .ci/step
MODULE := github.com/fencedkv/fencedkv
LINT := go tool -modfile=$(CURDIR)/tests/lint/go.mod golangci-lint
REPORT := go -C tests run ./cmd/testreport --allow-skips allowed-skips.txt
COVERED := $(MODULE)/fencedkv/fence $(MODULE)/fencedkv $(MODULE)/locks

.PHONY: test services fmt vet lint unit servers demo race kit-soak mutate fuzz

test: ## everything
	@$(STEP) services $(MAKE) -s services
	@$(STEP) gofmt $(MAKE) -s fmt
	@$(STEP) vet $(MAKE) -s vet
	@$(STEP) lint $(MAKE) -s lint
	@$(STEP) unit $(MAKE) -s unit
	@$(STEP) servers $(MAKE) -s servers
	@$(STEP) demo $(MAKE) -s demo
	@$(STEP) mutate $(MAKE) -s mutate MUTATE_ONLY=store-

services: ## installs Redis, ZooKeeper and etcd, where they are missing
	cd tests && go run ./servers/install

fmt: ## fails if a file is not as gofmt writes it
	files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt would change:" $$files; exit 1; fi

vet: ## vet, and a build for each platform
	go vet ./... && (cd tests && go vet ./...) && (cd tests/benchstore && go vet ./...) && (cd tests/benchlocks && go vet ./...)
	for platform in linux/386 darwin/arm64 windows/amd64; do \
		echo "$$platform"; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} CGO_ENABLED=0 go build ./... ; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} CGO_ENABLED=0 go vet ./... ; \
	done

lint: ## golangci-lint, pinned by tests/lint/go.mod
	$(LINT) run --allow-parallel-runners ./...
	cd tests && $(LINT) run --allow-parallel-runners ./...
	cd tests/benchstore && $(LINT) run --allow-parallel-runners ./...
	cd tests/benchlocks && $(LINT) run --allow-parallel-runners ./...

unit: ## tests that need no server, under the race detector, and their coverage
	profile=$$(mktemp); trap 'rm -f "$$profile"' EXIT; \
	go test -race -json -count=1 -coverpkg=./fencedkv/...,./locks/... -coverprofile="$$profile" ./... | $(REPORT); \
	go -C tests run ./cmd/coverage -profile "$$profile" -min 90 $(COVERED)

servers: ## tests on real servers, under the race detector
	cd tests && go test -race -json -count=1 -timeout 20m ./... | go run ./cmd/testreport --allow-skips allowed-skips.txt

race: unit servers ## every test under the race detector

demo: ## the demonstration, as the README shows it
	go run ./cmd/fencedkv-demo

kit-soak: ## the lock kit twenty times on each real server
	cd tests && go test -race -count 20 -timeout 60m -run '^TestKit' ./redislock ./redlock ./etcdlock ./zklock

MUTATE_SAMPLE ?= 0
MUTATE_ONLY ?=
mutate: ## breaks one promise at a time (MUTATE_SAMPLE of them, MUTATE_ONLY with that in their names) and wants a red test for each
	cd tests && go run ./cmd/mutate -sample $(MUTATE_SAMPLE) -run "$(MUTATE_ONLY)"

FUZZTIME ?= 30s
fuzz: ## each fuzz test for FUZZTIME
	for package in $$(go list ./...); do \
		for test in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			go test -run '^$$' -fuzz "^$$test\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

HISTORIES ?= 1000
.PHONY: histories
histories: ## concurrent histories of the store, HISTORIES of them, checked for linearizability
	cd tests && HISTORIES=$(HISTORIES) go test -v -timeout 60m -run 'Linearizable|Rejected' ./linear

.PHONY: bench-store bench-scale bench-locks

bench-store: ## the store beside its rivals, in BENCH_TIME (8m); draws tests/benchstore/put.svg
	go -C tests/benchstore run . rivals --plot put.svg

bench-locks: ## the Lockers beside their rivals, in BENCH_TIME (6m)
	go -C tests/benchlocks run .

bench-scale: ## the store as it grows, to BENCH_SHARE (1) of 10,000,000 keys; draws tests/benchstore/scale.svg
	go -C tests/benchstore run . scale --plot scale.svg

CRASH_TIME ?= 30m
.PHONY: crash
crash: ## kills and power failures for CRASH_TIME, and the flaws that they must find
	cd tests && CRASH_TIME=$(CRASH_TIME) go test -v -timeout 0 ./crash

.PHONY: device
device: ## every operation of a device fails, with every error
	cd tests && DEVICE_FULL=1 go test -v -timeout 20m ./device

.PHONY: damage
damage: ## every bit of two small stores flipped, every two pages swapped; 25 minutes on two cores
	cd tests && DAMAGE=full go test -v -timeout 0 ./damage

.PHONY: faults
faults: ## every fault at every moment for every Locker, as a matrix; 3 minutes
	cd tests && FAULTS=all go test -v -count=1 -timeout 20m ./faults

PROVE_TIME ?= 1m
.PHONY: prove
prove: ## processes that are stopped lose updates, and none with fencing: PROVE_TIME each; draws tests/prove/prove.svg
	result=$$(mktemp); trap 'rm -f "$$result"' EXIT; \
	(cd tests && PROVE_TIME=$(PROVE_TIME) PROVE_RESULT="$$result" go test -v -count=1 -timeout 0 -parallel 4 ./prove); \
	go -C tests/benchstore run ./chart/bars "$$result" ../prove/prove.svg

.PHONY: model
model: ## every behaviour of Redlock with doubled takes, and with three clients: 26 million states and more
	cd tests && MODEL=full go test -count=1 -v -timeout 60m ./redlock/model
