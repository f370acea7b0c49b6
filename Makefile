# The same flags for build, test and vet: Go keeps compiled packages for each
# set of them, and a second set would cost minutes.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

BIN   := bin
TOOLS := .cache/tools

.DEFAULT_GOAL := help

##@ Use

.PHONY: dev
dev: build ## Start the whole stack with the samples, until Ctrl-C; ARGS="--exit-when-ready" (bin/devstack up --help lists them)
	@$(BIN)/devstack up $(ARGS)

.PHONY: build
build: ## Build the binaries into bin/; the first time takes minutes
	@hack/build devstack temporaldev bridge worker infractl

.PHONY: clean
clean: ## Remove what was built (caches of Go and of the AWS emulator stay)
	rm -rf $(BIN) $(TOOLS)

##@ Test

.PHONY: test
test: test-unit test-e2e ## All tests

# go vet is part of make lint. Here it would look at every dependency first,
# which takes longer than the tests.
.PHONY: test-unit
test-unit: ## Unit, workflow and replay tests, and those of the devstack
	go test -vet=off ./...
	cd dev && go test -vet=off ./...
	cd dev/temporal && go test -vet=off ./...
	cd test/bench && go test -vet=off ./...
	CGO_ENABLED=1 go test -race -vet=off ./scaling/...
	@hack/oracles

.PHONY: oracles
oracles: ## Cases of the original programs, with passes and exceptions; ORACLE_DIR=folder for other files
	@hack/oracles

# One package at a time: each starts a devstack, and two cores serve one well.
.PHONY: test-e2e
test-e2e: build ## End to end on a devstack: through the Kubernetes API, up and down, with the worker killed
	cd test && go test -vet=off -count=1 -p 1 -timeout 40m ./...

.PHONY: bench
bench: build ## Measure against a plain reconciler and bare Temporal (test/bench); ARGS="-n 200 -json" (-help lists them)
	cd test/bench && go build -o ../../$(BIN)/bench . && ../../$(BIN)/bench $(ARGS)

.PHONY: chaos
chaos: build ## Everything that may go wrong, at every step; about two hours. CHAOS_LANES=5, CHAOS_SEED=1, ARGS="-run TestKill"
	cd test && CHAOS=full go test -vet=off -count=1 -timeout 150m -v ./chaos $(ARGS)

.PHONY: fairness
fairness: build ## Measure one Network beside 200 of an account that the cloud throttles; about 15 minutes. FAIRNESS_CROWD=200, FAIRNESS_RUNS=5
	cd test && FAIRNESS=1 go test -vet=off -count=1 -timeout 60m -v ./fairness

.PHONY: ui-check
ui-check: build ## Start a stack, look at the Temporal UI in a headless browser; screenshots go to .cache/ui
	hack/ui-check

.PHONY: golden
golden: build ## Record the golden histories that replay tests use, on a devstack
	hack/golden

##@ Check

.PHONY: lint
lint: $(TOOLS)/golangci-lint workflowcheck ## Linters
	$(TOOLS)/golangci-lint run ./...
	cd test && ../$(TOOLS)/golangci-lint run ./...
	cd test/bench && ../../$(TOOLS)/golangci-lint run ./...

.PHONY: workflowcheck
workflowcheck: $(TOOLS)/workflowcheck ## Workflow code must be deterministic
	$(TOOLS)/workflowcheck -config workflows/workflowcheck.yaml ./workflows/...

.PHONY: generate
generate: $(TOOLS)/controller-gen $(TOOLS)/crd-ref-docs ## Write deep copies, custom resource definitions and docs/api.md anew
	$(TOOLS)/controller-gen object paths=./api/...
	$(TOOLS)/controller-gen crd paths=./api/... output:crd:dir=config/crd
	hack/api-docs

.PHONY: generate-check
generate-check: generate ## Fail when generated files are not those that are committed
	@git diff --exit-code --stat -- api config/crd docs/api.md || { echo "generated files are out of date: make generate, and commit"; exit 1; }

$(TOOLS)/controller-gen: tools/go.mod
	cd tools && go build -o ../$@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(TOOLS)/crd-ref-docs: tools/go.mod
	cd tools && go build -o ../$@ github.com/elastic/crd-ref-docs

$(TOOLS)/workflowcheck: tools/go.mod
	cd tools && go build -o ../$@ go.temporal.io/sdk/contrib/tools/workflowcheck

$(TOOLS)/golangci-lint: tools/lint/go.mod
	cd tools/lint && go build -ldflags "-s -w" -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

##@ Help

.PHONY: help
help: ## Print this
	@awk 'BEGIN { FS = ":.*##" } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*##/ { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
