package bulk_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"licet/client"
	"licet/cmd/licet/internal/bulk"
	"licet/internal/servicetest"
)

// service is the service that all tests of this package share. Each test has an account of its own.
var service *servicetest.Service

func TestMain(m *testing.M) { os.Exit(servicetest.Run(m, &service)) }

// shop is an account of its own, with a client.
func shop(t *testing.T, options ...client.Option) *client.Client {
	t.Helper()
	key, err := service.Key(servicetest.NewAccount())
	if err != nil {
		t.Fatal(err)
	}
	return caller(t, key.Text, options...)
}

func caller(t *testing.T, apiKey string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(service.URL, apiKey, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// wire is a connection to the service that can be made to fail.
type wire struct {
	http.RoundTripper
	lose   func(*http.Request) bool // whether the answer to a request is lost, once it has come
	grants atomic.Int64             // how many were sent
}

var errLost = errors.New("the answer was lost")

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPost && request.URL.Path == "/v1/licenses" {
		w.grants.Add(1)
	}
	response, err := w.RoundTripper.RoundTrip(request)
	if err == nil && w.lose != nil && w.lose(request) {
		_ = response.Body.Close()
		return nil, errLost
	}
	return response, err
}

func newWire(t *testing.T, lose func(*http.Request) bool) (*wire, client.Option) {
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	w := &wire{RoundTripper: transport, lose: lose}
	return w, client.WithHTTPClient(&http.Client{Transport: w})
}

// listed are all licenses that the service has for a client, by key.
func listed(t *testing.T, c *client.Client) map[string]client.License {
	t.Helper()
	all := map[string]client.License{}
	for l, err := range c.Licenses.All(t.Context(), client.LicenseFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := all[l.LicenseKey]; twice {
			t.Errorf("%s is listed twice", l.LicenseKey)
		}
		all[l.LicenseKey] = l
	}
	return all
}

func grant(t *testing.T, c *client.Client, product string, quantity int) []client.License {
	t.Helper()
	made, err := c.Licenses.Grant(t.Context(), client.Grant{ProductID: product, Quantity: quantity})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// readCSV reads a file as rows of cells by column.
func readCSV(t *testing.T, text string) []map[string]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%v in %q", err, text)
	}
	var all []map[string]string
	for _, cells := range rows[1:] {
		row := map[string]string{}
		for i, cell := range cells {
			row[rows[0][i]] = cell
		}
		all = append(all, row)
	}
	return all
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wantFiles checks that a folder has exactly these files, and that other users can't read the created files.
func wantFiles(t *testing.T, dir string, given []string, made ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); slices.Contains(made, entry.Name()) && mode != 0o600 {
			t.Errorf("%s has mode %o", entry.Name(), mode)
		}
	}
	want := slices.Sorted(slices.Values(append(slices.Clone(given), made...)))
	if !slices.Equal(names, want) {
		t.Errorf("there are the files %q, want %q", names, want)
	}
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %q, want %q in it", err, part)
		}
	}
}

// importer is an import of a file, with what it reports.
type importer struct {
	bulk.Import
	problems []string
	failures []string
}

func newImport(t *testing.T, c *client.Client, text string) *importer {
	t.Helper()
	im := &importer{}
	im.Import = bulk.Import{
		Service: c, Input: filepath.Join(t.TempDir(), "in.csv"), Separator: ',', Parallel: 4,
		Now: time.Now, NewID: func() string { return fmt.Sprintf("%s-%d", t.Name(), time.Now().UnixNano()) },
		Problem: func(p bulk.Problem) { im.problems = append(im.problems, p.String()) },
		Failure: func(f bulk.Failure) { im.failures = append(im.failures, fmt.Sprintf("line %d: %s", f.Line, f.Text)) },
	}
	writeFile(t, im.Input, text)
	return im
}

// again is the same import in another process.
func (im *importer) again(c *client.Client) *importer {
	next := &importer{Import: im.Import}
	next.Service = c
	next.Problem = func(p bulk.Problem) { next.problems = append(next.problems, p.String()) }
	next.Failure = func(f bulk.Failure) {
		next.failures = append(next.failures, fmt.Sprintf("line %d: %s", f.Line, f.Text))
	}
	return next
}

func (im *importer) want(t *testing.T, want bulk.ImportSummary) {
	t.Helper()
	sum, err := im.Run(t.Context())
	if err != nil {
		t.Fatal(err, im.problems)
	}
	if want.Results == "" {
		want.Results = im.Input + ".results.csv"
	}
	if sum != want {
		t.Fatalf("%+v, want %+v; %q", sum, want, im.failures)
	}
}

func (im *importer) results(t *testing.T) []map[string]string {
	t.Helper()
	return readCSV(t, readFile(t, im.Input+".results.csv"))
}
