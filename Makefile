# make help lists the targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VERSION  ?= $(shell git describe --tags --dirty 2>/dev/null || echo dev)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS  := -X main.version=$(VERSION) -X main.revision=$(REVISION)

CREATED  ?= $(shell git log -1 --format=%cI 2>/dev/null)

# The image of make image. Versions may have a plus sign, and tags of images may not.
IMAGE      ?= licet:$(subst +,-,$(VERSION))
IMAGE_ARCH ?= $(shell go env GOARCH)

# The platforms of make release, such as linux/amd64,darwin/arm64. Empty: all.
PLATFORMS ?=

# The settings to build the programs of the image and of Kubernetes. They are the same, so Go compiles
# the packages that both need only once.
STATIC := CGO_ENABLED=0 GOFLAGS="$${GOFLAGS:-} -trimpath"

ARGS     ?=
BENCH    ?= .
FUZZTIME ?= 30s
SEEDS    ?= 200

# The scenario of make load, and settings that replace those of the scenario. Empty: the scenario decides.
SCENARIO ?= mixed
RATE     ?=
DURATION ?=
NODES    ?=
TARGET   ?=

# The packages whose tests have the flag -update.
GOLDEN_PKGS ?= $(shell grep -rl --include='*_test.go' 'flag[.]Bool."update"' . | xargs -r -n1 dirname | sort -u)

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the binary into bin/, stamped with version and revision.
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: image
image: ## Make the container image, without an engine, and its SBOM: make image IMAGE=registry.example.com/licet:1.2.3
	rm -rf bin/image
	CGO_ENABLED=0 GOOS=linux GOARCH=$(IMAGE_ARCH) go build -trimpath -buildvcs=false -ldflags '-s -w $(LDFLAGS)' -o bin/image/programs/ ./cmd/...
	cd deploy/image && go run . tar --programs ../../bin/image/programs --out ../../bin/image --image '$(IMAGE)' \
		--version '$(VERSION)' --revision '$(REVISION)' --created '$(CREATED)'

.PHONY: release
release: ## Build the files of a release into bin/release, the same bytes each time: make release VERSION=1.2.3
	cd deploy/release && go run . --source ../.. --out ../../bin/release --version '$(VERSION)' --revision '$(REVISION)' --created '$(CREATED)'$(if $(PLATFORMS), --platforms '$(PLATFORMS)')

.PHONY: release-check
release-check: ## Build a release twice, compare, install its package. All platforms, no build cache: LICET_RELEASE=full make release-check
	programs=$$(deploy/k8s/tools/build etcd) && cd deploy/release && LICET_KUBE=$$programs $(STATIC) go test -count=1 -timeout=2h ./...

.PHONY: module-path
module-path: ## Change the path of all modules, such as before you publish them: make module-path TO=git.example.com/team/licet
	tools/module-path '$(TO)'

.PHONY: image-check
image-check: ## Run the steps of the Dockerfile without an engine, and compare the result with make image.
	cd deploy/image && $(STATIC) go test -count=1 -timeout=30m ./...

.PHONY: openapi
openapi: ## Write docs/reference/openapi.yaml, and the tables of api.md, from the routes and types of handlers.
	go test ./internal/apidoc -run IsCurrent -update

.PHONY: released
released: ## For a release: keep the API document, so that no later change breaks its clients. BREAKING=1 keeps one that does.
	go test ./internal/apidoc -count=1 -v -run TestReleasedDocumentStillHolds -release $(if $(BREAKING),-breaking)

.PHONY: typescript-check
typescript-check: ## Compile and run examples/typescript, whose client is made from the API document. Needs npm.
	examples/typescript/check

.PHONY: clients-check
clients-check: ## Build the packages of clients, install them in clean folders, and run their tests and guides. Needs npm and Python.
	clients/typescript/check
	clients/python/check
	clients/c/check

.PHONY: browser-check
browser-check: ## Open every page in Chromium, narrow and wide, light and dark, and check it with axe-core. Needs npm.
	tools/browser/check

.PHONY: pictures
pictures: ## Make the pictures of docs/images from running services, in four minutes. Needs npm. Look at each picture.
	tools/browser/pictures

.PHONY: manifests
manifests: ## Write the Prometheus operator's rules into deploy/k8s.
	cd deploy/k8s/check && go test . -run TestRules -write

.PHONY: k8s-check
k8s-check: ## Build an API server of Kubernetes, and check that it accepts the manifests and refuses broken ones.
	programs=$$(deploy/k8s/tools/build --quick kube-apiserver etcd etcdutl) && cd deploy/k8s/check && LICET_KUBE=$$programs $(STATIC) go test -count=1 -timeout=30m ./...

.PHONY: run
run: ## Run a development server with everything inside: make run ARGS='--listen 127.0.0.1:9000'
	go run ./cmd/licet dev $(ARGS)

.PHONY: test
test: ## Run all tests.
	go test ./...

.PHONY: race
race: ## Run all tests with the race detector.
	go test -race ./...

.PHONY: histories
histories: ## Check SEEDS (200) histories of clients under faults, with the race detector.
	go test -race ./internal/history -count=1 -timeout=2h -run TestHistories -v -history.seeds=$(SEEDS) | grep -v '^=== '

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (30s).
	@go test -list '^Fuzz' ./... | \
	awk '/^Fuzz/ {names[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, names[i]; n = 0}' | \
	while read -r package name; do \
		echo "== $$package $$name"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$package" </dev/null; \
	done

.PHONY: bench
bench: ## Run the benchmarks that match BENCH (all).
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

.PHONY: compare
compare: ## Measure against plain etcd puts and gets, 30 minutes: make compare ARGS='--only cold,idle'
	go run ./loadtest/compare $(ARGS)

.PHONY: capacity
capacity: ## Fill a store with 5,000,000 devices and measure it: make capacity ARGS='--devices 100000'
	go run ./loadtest/compare --only capacity $(ARGS)

.PHONY: load
load: ## Load nodes and prove that nothing is lost: make load SCENARIO=mixed [RATE= DURATION= NODES= ACCOUNTS= TARGET=]
	go run ./loadtest/run --scenario $(SCENARIO) $(if $(RATE),--rate $(RATE)) $(if $(DURATION),--duration $(DURATION)) $(if $(NODES),--nodes $(NODES)) $(if $(ACCOUNTS),--accounts $(ACCOUNTS)) $(if $(TARGET),--target $(TARGET)) $(ARGS)

.PHONY: load-smoke
load-smoke: ## Run three scenarios for twelve seconds each, with the race detector.
	for scenario in hot mixed node-loss; do \
		go run -race ./loadtest/run --scenario $$scenario --rate 30 --duration 12s --slack 10 \
			--build-flags -race --out "load-results/smoke/$$scenario"; \
	done

.PHONY: webhook-run
webhook-run: ## Deliver webhooks while nodes are killed, and prove that none is missing: make webhook-run ARGS='--seed 2'
	go run ./loadtest/run --scenario webhooks $(ARGS)

.PHONY: money
money: ## Sell through a stand-in for Stripe while nodes are killed, and account for every cent: make money ARGS='--seed 2'
	go run ./loadtest/money $(ARGS)

.PHONY: observability
observability: ## Run every query of dashboards and rules on a real Prometheus that scrapes a service under load.
	programs=$$(deploy/observability/install-prometheus) && cd deploy/observability && LICET_PROMETHEUS=$$programs go test -count=1 -timeout=30m ./...

.PHONY: lab
lab: ## Run the service and the Prometheus of make observability until Ctrl-C, to look at real series.
	programs=$$(deploy/observability/install-prometheus) && cd deploy/observability && go run ./cmd/lab ../.. "$$programs"

.PHONY: k8s-e2e
k8s-e2e: ## Run deploy/k8s in a Kubernetes of its own, and every command of docs/guides/kubernetes.md: sudo make k8s-e2e [ARGS=--keep]
	cd deploy/k8s/e2e && go build -o ../../../bin/k8s-e2e .
	bin/k8s-e2e $(ARGS)

.PHONY: golden
golden: ## Rewrite the golden files; read the diff before you commit it.
	@test -n "$(strip $(GOLDEN_PKGS))" || { echo 'no test has the flag -update' >&2; exit 1; }
	go test $(GOLDEN_PKGS) -run Golden -update

.PHONY: dashboards
dashboards: ## Write Grafana's dashboards and the linter's exceptions into deploy/grafana.
	cd deploy/observability && go test ./dashboards -run TestCommitted -write

.PHONY: dashboards-lint
dashboards-lint: ## Run Grafana's linter over the dashboards.
	cd deploy/observability/linter && go test -count=1 ./...

.PHONY: fmt
fmt: ## Format the code.
	gofmt -l -s -w $$(git ls-files --cached --others --exclude-standard '*.go')

.PHONY: lint
lint: ## Run go vet and staticcheck.
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...

.PHONY: ci
ci: ## Run everything that a change must pass.
	.ci/run

.PHONY: clean
clean: ## Remove what was built; data of a development server stays.
	rm -rf bin load-results coverage.*
	find . -path ./.git -prune -o -type f \( -name '*.test' -o -name '*.prof' \) -print0 | xargs -0 -r rm -f
