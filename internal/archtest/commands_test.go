package archtest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runners names the test that runs the commands of each page, by its folder and name, or the script that does.
var runners = map[string]string{
	"README.md":                                 "cmd/licet TestReadme",
	"clients/python/README.md":                  "clients/python/check",
	"clients/typescript/README.md":              "clients/typescript/check",
	"clients/c/README.md":                       "clients/c/check",
	"deploy/k8s/README.md":                      "deploy/k8s/check TestReadmeOfManifests",
	"docs/guides/books.md":                      "cmd/licet TestDocumentedBooksRun",
	"docs/guides/backup.md":                     "cmd/licet TestDocumentedBackupRuns",
	"docs/guides/compose.md":                    "deploy/k8s/check TestComposeGuide",
	"docs/guides/csv.md":                        "cmd/licet TestDocumentedImportRuns",
	"docs/guides/dashboards.md":                 "cmd/licet TestDocumentedClusterRuns",
	"docs/guides/entitlements.md":               "cmd/licet TestDocumentedEntitlementsRun",
	"docs/guides/trials.md":                     "cmd/licet TestDocumentedTrialsRun",
	"docs/guides/changing-devices.md":           "cmd/licet TestDocumentedDeviceChangesRun",
	"docs/guides/expiry.md":                     "cmd/licet TestDocumentedExpiryRuns",
	"docs/guides/receipts.md":                   "cmd/licet TestDocumentedReceiptsRun",
	"docs/guides/floating.md":                   "cmd/licet TestDocumentedLeasesRun",
	"docs/guides/offline.md":                    "cmd/licet TestDocumentedOfflineRun",
	"docs/guides/events.md":                     "cmd/licet TestDocumentedEventsRun",
	"docs/guides/helm.md":                       "deploy/k8s/check TestChartGuide",
	"docs/guides/import-gumroad.md":             "cmd/licet TestDocumentedForeignImportsRun",
	"docs/guides/import-keygen.md":              "cmd/licet TestDocumentedForeignImportsRun",
	"docs/guides/import-lemonsqueezy.md":        "cmd/licet TestDocumentedForeignImportsRun",
	"docs/guides/import-polar.md":               "cmd/licet TestDocumentedForeignImportsRun",
	"docs/guides/install.md":                    "deploy/release TestPackage",
	"docs/guides/keys.md":                       "cmd/licet TestDocumentedKeysRun",
	"docs/guides/kubernetes.md":                 "deploy/k8s/e2e TestPageIsRun",
	"docs/guides/operations.md":                 "cmd/licet TestDocumentedClusterRuns",
	"docs/guides/payments.md":                   "cmd/licet TestDocumentedPaymentsRun",
	"docs/guides/personal-data.md":              "cmd/licet TestDocumentedPersonalDataRuns",
	"docs/guides/sandbox.md":                    "cmd/licet TestDocumentedSandboxRuns",
	"docs/guides/signing.md":                    "cmd/licet TestSigningInAShell",
	"docs/guides/sizing.md":                     "cmd/licet TestDocumentedClusterRuns",
	"docs/guides/stripe.md":                     "cmd/licet TestDocumentedStripeRuns",
	"docs/guides/subscriptions.md":              "cmd/licet TestDocumentedSubscriptionsRun",
	"docs/guides/tracing.md":                    "cmd/licet TestDocumentedTracesRun",
	"docs/guides/upgrade.md":                    "cmd/licet TestDocumentedClusterRuns",
	"docs/guides/webhooks.md":                   "cmd/licet TestDocumentedWebhooksRun",
	"docs/reference/api.md":                     "cmd/licet TestDocumentedRoutesRun",
	"docs/reference/cli.md":                     "cmd/licet TestDocumentedCommandsRun",
	"docs/runbooks/LicetEtcdAlarm.md":           "cmd/licet TestDocumentedClusterRuns",
	"docs/runbooks/LicetEtcdDatabaseFilling.md": "cmd/licet TestDocumentedClusterRuns",
	"docs/runbooks/LicetStoreSpace.md":          "cmd/licet TestDocumentedClusterRuns",
	"docs/tutorials/curl.md":                    "cmd/licet TestCurlPageHasTheSameCommands",
	"docs/tutorials/first-license.md":           "cmd/licet TestTutorialRuns",
	"docs/tutorials/license-your-program.md":    "cmd/licet TestTutorialOfAProgramRuns",
	"examples/typescript/README.md":             "examples/typescript/check",
	"examples/webhook-receiver/README.md":       "cmd/licet TestDocumentedReceiverRuns",
	"loadtest/README.md":                        "loadtest/run TestScriptAlone",
}

// TestCommandsOfPagesRun fails on a page that runners does not name although it has sh blocks, or indented commands of
// other programs than make, go and licet: the tests below check those. It also fails on a runner that does not exist or
// whose folder does not read the page.
func TestCommandsOfPagesRun(t *testing.T) {
	tree := os.DirFS("../..")
	command := regexp.MustCompile("(?m)^ *```sh|^ {4,}(?:sudo |[A-Za-z_]+=\\$\\(|[A-Za-z_]+=\\S* )*" +
		"(?:apt|curl|docker|etcdctl|etcdutl|helm|k6|kubectl|kustomize|node|npm|podman|python3|sha256sum|ssh|" +
		"systemctl|tar) [a-z./-]")
	found := map[string]bool{}
	eachPage(t, tree, func(page, text string) {
		if !command.MatchString(text) {
			return
		}
		found[page] = true
		if runners[page] == "" {
			t.Errorf("no test runs the commands of %s", page)
		}
	})
	for page, runner := range runners {
		folder, name, isTest := strings.Cut(runner, " ")
		if !found[page] {
			t.Errorf("%s has no commands", page)
		}
		pattern, start := folder, ""
		if isTest {
			pattern, start = folder+"/*.go", "func "+name+"(t *testing.T)"
		}
		files, err := fs.Glob(tree, pattern)
		if err != nil {
			t.Fatal(err)
		}
		var code strings.Builder
		for _, file := range files {
			text, err := fs.ReadFile(tree, file)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
		if !strings.Contains(code.String(), start) ||
			!strings.Contains(code.String(), path.Base(page)) {
			t.Errorf("%s has no %s, or does not read %s", folder, name, page)
		}
	}
}

// TestTargetsOfPages fails on a page that names a target of make that the Makefile does not have.
func TestTargetsOfPages(t *testing.T) {
	tree := os.DirFS("../..")
	makefile, err := fs.ReadFile(tree, "Makefile")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("(?:(?m)^ *(?:sudo )?|`(?:sudo )?)make ([a-z][a-z0-9-]*)")
	var targets []string
	eachPage(t, tree, func(page, text string) {
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			targets = append(targets, match[1])
			if !strings.Contains(string(makefile), "\n"+match[1]+":") {
				t.Errorf("%s names make %s, which the Makefile lacks", page, match[1])
			}
		}
	})
	slices.Sort(targets)
	if len(slices.Compact(targets)) < 20 {
		t.Errorf("the pages name %q only", targets)
	}
}

// TestPackagesOfPages fails on a page with a go command, indented or in a block, for a package that does not exist.
// Packages are named from the root of the repository.
func TestPackagesOfPages(t *testing.T) {
	tree := os.DirFS("../..")
	command := regexp.MustCompile("(?m)(?:^ *|`)(?:[A-Z_]+=\\S+ )*go (?:run|test|build|install|vet) ([^#`\n]*)")
	named := 0
	eachPage(t, tree, func(page, text string) {
		for _, match := range command.FindAllStringSubmatch(text, -1) {
			for word := range strings.FieldsSeq(match[1]) {
				folder, local := strings.CutPrefix(word, "./")
				folder, all := strings.CutSuffix(folder, "...")
				if !local {
					continue
				}
				named++
				code, err := fs.Glob(tree, path.Join(folder, "*.go"))
				if _, missing := fs.Stat(tree, path.Clean(folder)); err != nil || missing != nil ||
					len(code) == 0 && !all {
					t.Errorf("%s names the package %s in %q", page, word, match[0])
				}
			}
		}
	})
	if named < 15 {
		t.Errorf("the pages name %d packages only", named)
	}
}

// eachPage calls f for every page of a repository but the changelog and the decisions, which describe the past.
func eachPage(t *testing.T, tree fs.FS, f func(page, text string)) {
	t.Helper()
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if hasNoPages(entry) || name == "docs/decisions" {
			return fs.SkipDir
		}
		if path.Ext(name) != ".md" || name == "CHANGELOG.md" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		f(name, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
