package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSandboxBuy: the command prints a license key that activates a device.
func TestSandboxBuy(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	got := u.run("sandbox", "buy", "editor")
	key, one := strings.CutSuffix(got.stdout, "\n")
	if got.err != nil || !one || !strings.Contains(got.stderr, "licet licenses activate "+key+" laptop-1\n") {
		t.Fatalf("bought %+v", got)
	}
	u.must("licenses", "activate", key, "laptop-1")
	order := u.asJSON("sandbox", "buy", "editor", "--price", "19.5", "--currency", "eur", "--buyer-email",
		"anna@example.com")
	if order["status"] != "paid" || order["amount"] != 1950.0 || order["currency"] != "EUR" ||
		order["buyer_email"] != "anna@example.com" || order["license_key"] == nil {
		t.Errorf("bought %v", order)
	}
	if yen := u.asJSON("sandbox", "buy", "editor", "--currency", "JPY"); yen["amount"] != 4900.0 {
		t.Errorf("bought %v", yen)
	}
	u.refuses(true, []string{"PRODUCT_ID"}, "sandbox", "buy", "no product")
}

// TestSandboxBuyNamesUnpaidOrder: if the payment is refused, the command names the order that it has made.
func TestSandboxBuyNamesUnpaidOrder(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	behind, err := url.Parse(u.env["LICET_URL"])
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/sandbox_payment") {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"code":40902,"message":"not in the sandbox","error":{"reason":"invalid_order_state"}}`)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	u.env["LICET_URL"] = front.URL
	u.refuses(false, []string{"not in the sandbox", "the order is ord_"}, "sandbox", "buy", "editor")
}

// TestSandboxBuyRefusesLiveMode: with a live API key, the command sends no request.
func TestSandboxBuyRefusesLiveMode(t *testing.T) {
	t.Parallel()
	u := newStranger(t)
	u.env["LICET_URL"], u.env["LICET_API_KEY"] = "http://192.0.2.1", "lk_live_0123"
	u.refuses(false, []string{"live mode", "$LICET_API_KEY"}, "sandbox", "buy", "editor")
}

// TestPrices: --price has the decimals of the currency, and a decimal in --amount leads to --price.
func TestPrices(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	create := func(currency string, amount ...string) []string {
		return append([]string{"orders", "create", "--product-id", "editor", "--currency", currency}, amount...)
	}
	for _, c := range []struct {
		currency, price string
		minor           float64
	}{
		{"USD", "49.00", 4900}, {"USD", "49", 4900}, {"USD", "0.05", 5}, {"usd", "0", 0}, {"JPY", "4900", 4900},
		{"BHD", "1.234", 1234}, {"BHD", "1.2", 1200},
	} {
		if o := u.asJSON(create(c.currency, "--price", c.price)...); o["amount"] != c.minor {
			t.Errorf("%s %s: %v", c.price, c.currency, o["amount"])
		}
	}
	for _, bad := range []string{"49.005", "49,00", "-1", "", ".5", "5.", "1e3", "$49", "99999999999999999999"} {
		u.refuses(true, []string{"--price is \"" + bad + "\""}, create("USD", "--price", bad)...)
	}
	u.refuses(true, []string{`--price is "10000000000.01": write at most 10000000000.00 USD`},
		create("USD", "--price", "10000000000.01")...)
	if o := u.asJSON(create("USD", "--price", "10000000000")...); o["amount"] != 1e12 {
		t.Errorf("the maximum amount: %v", o)
	}
	u.refuses(true, []string{"0 decimals for JPY", "4900"}, create("JPY", "--price", "49.00")...)
	u.refuses(true, []string{"--currency", "ISO 4217"}, create("dollars", "--price", "49.00")...)
	for _, decimal := range []string{"49.00", "49,00"} {
		u.refuses(true, []string{"--amount", "--price 49.00"}, create("USD", "--amount", decimal)...)
	}
	u.refuses(true, []string{"--price 49.5"}, create("USD", "--amount", "49,5")...)
	for _, thousands := range []string{"4,900", "4,900.00"} {
		u.refuses(true, []string{": write an amount in minor units, such as 4900 for 49.00"},
			create("USD", "--amount", thousands)...)
	}
	u.refuses(true, []string{"--amount", "4900"}, create("USD", "--amount", "much")...)
	u.refuses(true, []string{"price", "amount"}, create("USD", "--amount", "4900", "--price", "49.00")...)
	u.refuses(true, []string{"price", "amount"}, create("USD")...)
}

// TestDevServiceOfTheDirectory: without settings, commands call the licet dev of the working directory. Other settings
// come first, and only an address of this machine counts.
func TestDevServiceOfTheDirectory(t *testing.T) {
	t.Parallel()
	known := newUser(t)
	u := newStranger(t)
	u.setup.DevEnv = filepath.Join(u.dir, "dev.env")
	write := func(url string) {
		t.Helper()
		text := "LICET_URL=" + url + "\nLICET_API_KEY=" + known.env["LICET_API_KEY"] +
			"\nexport LICET_URL LICET_API_KEY\n"
		if err := os.WriteFile(u.setup.DevEnv, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u.refuses(true, []string{"no service"}, "sandbox", "buy", "editor")
	write(known.env["LICET_URL"])
	bought := u.run("sandbox", "buy", "editor")
	u.must("licenses", "activate", strings.TrimSpace(bought.stdout), "laptop-1")
	if strings.Contains(bought.stderr, "(from ") {
		t.Errorf("in the directory of the service: %s", bought.stderr)
	}
	if said := known.run("sandbox", "buy", "editor").stderr; !strings.Contains(said,
		"\nThe service is "+known.env["LICET_URL"]+" (from $LICET_URL).\n") {
		t.Errorf("with another service: %s", said)
	}
	if u.setup.ProfileInUse() {
		t.Error("without profiles, one is in use")
	}
	u.must("profile", "set", "dev", "--from-env", u.setup.DevEnv)
	if !u.setup.ProfileInUse() {
		t.Error("the first profile is not in use")
	}
	u.must("profile", "remove", "dev")
	u.refuses(true, []string{"no API key"}, "orders", "list", "--url", "http://127.0.0.1:1")
	for _, foreign := range []string{"http://192.0.2.1", "https://licenses.example.com", "", ":"} {
		write(foreign)
		u.refuses(true, []string{"no service"}, "sandbox", "buy", "editor")
	}
}
