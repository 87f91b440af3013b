package main

import (
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"licet/cmd/licet/internal/terminal"
	"licet/handlers/limits"
	"licet/kv"
	"licet/licensing"
	"licet/node/clocks"
)

// config contains the settings that licet dev and licet serve share. addFlags has one line for each setting, with its
// flag, default and meaning. The name of the environment variable follows from the flag. A flag takes precedence over
// the environment, and the environment over the default.
type config struct {
	Listen        string
	MetricsListen string
	Profiles      bool // serve profiles on MetricsListen
	PublicURL     string
	OrderLifetime time.Duration
	TestOrders    time.Duration // 0: OrderLifetime
	Remember      int
	CompactEarly  bool // compact etcd's history early while the store is almost full
	QueueDelay    time.Duration
	// RecordActivations records the events of activations for all accounts.
	RecordActivations bool
	Budget            licensing.Budget
	eventsConfig
	paymentsConfig
	tracingConfig
	LogLevel        string
	LogFormat       string
	ShutdownTimeout time.Duration
	ClockTolerance  time.Duration // see package clocks

	AddressLimit, AuthenticationLimit, AccountLimit, LicenseLimit limits.Rate
	NewDevicesLimit, LicenseKiB, AccountKiB, DocumentsKiB         limits.Rate
	MaxAPIKeys                                                    int

	TrustedProxies []string
}

// addFlags adds the flags. Where licet dev and licet serve differ, the values of c are the defaults.
func (c *config) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Listen, "listen", c.Listen, "`address` to serve the API on; port 0 takes a free port")
	fs.StringVar(&c.MetricsListen, "metrics-listen", "", "`address` to serve /metrics and the probes on (default: off)")
	fs.BoolVar(&c.Profiles, "pprof", false, "serve Go profiles at /debug/pprof/ on --metrics-listen")
	fs.StringVar(&c.PublicURL, "public-url", "",
		"public `URL` of the service, for pay links and signed requests (default: the address of --listen)")
	fs.DurationVar(&c.OrderLifetime, "order-lifetime", 24*time.Hour, "how long an order can be paid, 30m to 24h")
	fs.DurationVar(&c.TestOrders, "test-order-lifetime", 0,
		"how long an order in test mode can be paid, 1s to 24h; 0: the value of --order-lifetime")
	fs.IntVar(&c.Remember, "remember-licenses", kv.DefaultRemembered, "how many licenses to keep in memory, about "+
		"400 bytes each; changing such a license takes a single request to etcd")
	fs.BoolVar(&c.CompactEarly, "compact-history-early", false,
		"while etcd's data keep the store almost full, compact etcd's history about once a minute")
	fs.DurationVar(&c.QueueDelay, "queue-delay", 100*time.Millisecond,
		"how long requests may wait under load, 10ms to 1s; the node refuses further requests at once")
	fs.TextVar(&c.AddressLimit, "rate-limit-address", limits.Rate{Count: 60, Per: time.Minute},
		"`rate` of requests for trials and of the errors 40000, 40001 and 40401 for each client address on "+
			"routes without API key; 0: no limit")
	fs.TextVar(&c.AuthenticationLimit, "rate-limit-authentication", limits.Rate{Count: 300, Per: time.Minute},
		"`rate` of bad API keys, signatures and payment links for each client address; 0: no limit")
	fs.TextVar(&c.AccountLimit, "rate-limit-account", limits.Rate{Count: 500, Per: time.Second},
		"`rate` of requests with the API keys of each account and mode; 0: no limit")
	fs.TextVar(&c.LicenseLimit, "rate-limit-license", limits.Rate{},
		"`rate` of activations and validations for each license, such as 10/m; 0: no limit")
	fs.TextVar(&c.NewDevicesLimit, "rate-limit-new-devices", limits.Rate{Count: 1000, Per: 100 * time.Second},
		"`rate` of new devices and new device names stored for each license; 0: no limit")
	fs.TextVar(&c.DocumentsKiB, "rate-limit-documents-kib", limits.Rate{Count: 200 << 10, Per: time.Minute},
		"`rate` of KiB of lists of revocations and sets of receipt keys for each client address without an API key; "+
			"0: no limit")
	fs.TextVar(&c.LicenseKiB, "rate-limit-license-kib", limits.Rate{Count: 10 << 10, Per: 10 * time.Second},
		"`rate` of KiB written for each license; 0: no limit")
	fs.TextVar(&c.AccountKiB, "rate-limit-account-kib", limits.Rate{Count: 8 << 10, Per: time.Second},
		"`rate` of KiB written for each account and mode; 0: no limit")
	fs.IntVar(&c.MaxAPIKeys, "max-api-keys", 1000,
		"how many API keys each account may have in each mode, except revoked and expired ones; 0: no maximum")
	fs.StringSliceVar(&c.TrustedProxies, "trusted-proxies", nil,
		"`networks` of proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8,192.0.2.7")
	fs.Int64Var(&c.Budget.Bytes, "account-budget-bytes", defaultBudgetBytes,
		"how many `bytes` an account may store in each mode, not counting events; at four fifths the service "+
			"refuses ordinary growth with 40309; 0: no limit")
	fs.Int64Var(&c.Budget.Keys, "account-budget-keys", defaultBudgetKeys,
		"how many `keys` an account may store in each mode, not counting events; at four fifths the service "+
			"refuses ordinary growth with 40309; 0: no limit")
	fs.BoolVar(&c.RecordActivations, "record-activations", c.RecordActivations,
		"also record the events of activations and devices, for all accounts; each event takes a key in etcd")
	c.eventsConfig.addFlags(fs)
	c.paymentsConfig.addFlags(fs)
	c.tracingConfig.addFlags(fs)
	fs.StringVar(&c.LogLevel, "log-level", "info", "lowest `level` to log: debug, info, warn or error")
	fs.StringVar(&c.LogFormat, "log-format", c.LogFormat, "`format` of the log on stderr: console or json")
	fs.DurationVar(&c.ClockTolerance, "clock-tolerance", clocks.DefaultTolerance,
		"how far the clocks of nodes may be apart, 500ms to 2.4s; a node whose clock differs from most nodes' clocks "+
			"refuses requests")
	fs.DurationVar(&c.ShutdownTimeout, "shutdown-timeout", c.ShutdownTimeout,
		"how long a stop may take; after that the node cuts off the remaining requests")
}

// devConfig contains the settings of licet dev.
type devConfig struct {
	config
	DataDir      string
	AllowRemote  bool
	ProfileInUse bool // whether commands of this user call the service of a profile; no flag
}

func (c *devConfig) addFlags(fs *pflag.FlagSet) {
	c.config = config{Listen: "127.0.0.1:8080", RecordActivations: true, LogFormat: "console",
		ShutdownTimeout: 10 * time.Second}
	c.Loopback = true
	fs.SortFlags = false
	c.config.addFlags(fs)
	fs.StringVar(&c.DataDir, "data-dir", defaultDataDir, "`directory` of the store and the keys; created if missing")
	fs.BoolVar(&c.AllowRemote, "allow-remote", false, "allow addresses that other machines can reach")
	nameVariables(fs)
}

func (c *devConfig) validate() error {
	if c.DataDir == "" {
		return badUsage("--data-dir must name a directory")
	}
	return c.config.validate()
}

// nameVariables adds the name of the environment variable to the usage text of each flag.
func nameVariables(fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) { f.Usage += " ($" + variable(f) + ")" })
}

// variable returns the name of the environment variable of a flag.
func variable(f *pflag.Flag) string {
	return "LICET_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// fromEnvironment sets the flags that the command line left unset from the environment. An empty variable counts as
// unset.
func fromEnvironment(fs *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var problem error
	fs.VisitAll(func(f *pflag.Flag) {
		value, _ := lookup(variable(f))
		if f.Changed || value == "" || problem != nil || f.Name == "help" {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			problem = badUsage("environment variable %s: %w", variable(f), err)
		}
	})
	return problem
}

const (
	minOrderLifetime     = 30 * time.Minute
	minTestOrderLifetime = time.Second
	maxOrderLifetime     = 24 * time.Hour

	minQueueDelay = 10 * time.Millisecond
	maxQueueDelay = time.Second // well below the deadline of a request

	// An account with these budgets uses a quarter of the 8 GiB that etcd suggests as its largest quota.
	defaultBudgetBytes = 2 << 30
	defaultBudgetKeys  = 10_000_000
	minClockTolerance  = 500 * time.Millisecond // clocks that are set right jump by less
	// maxClockTolerance: a node whose clock differs from most nodes' clocks by more than this gives no leases and does
	// nothing by time. So the node had better refuse all requests.
	maxClockTolerance = clocks.MaxApart
)

func (c *config) validate() error {
	if _, err := c.level(); err != nil {
		return err
	}
	if _, _, err := splitAddress("listen", c.Listen); err != nil {
		return err
	}
	if c.Profiles && c.MetricsListen == "" {
		return badUsage("--pprof needs --metrics-listen: the public address never serves profiles")
	}
	if c.LogFormat != "console" && c.LogFormat != "json" {
		return badUsage("--log-format is %q: write console or json", c.LogFormat)
	}
	if c.OrderLifetime < minOrderLifetime || c.OrderLifetime > maxOrderLifetime {
		return badUsage("--order-lifetime is %v: write a duration from 30m to 24h (for test mode, "+
			"--test-order-lifetime allows 1s)", c.OrderLifetime)
	}
	if c.TestOrders != 0 && (c.TestOrders < minTestOrderLifetime || c.TestOrders > maxOrderLifetime) {
		return badUsage("--test-order-lifetime is %v: write a duration from 1s to 24h, or 0", c.TestOrders)
	}
	if c.Remember < 1 {
		return badUsage("--remember-licenses is %d: write at least 1", c.Remember)
	}
	if c.QueueDelay < minQueueDelay || c.QueueDelay > maxQueueDelay {
		return badUsage("--queue-delay is %v: write a duration from 10ms to 1s", c.QueueDelay)
	}
	if c.MaxAPIKeys < 0 {
		return badUsage("--max-api-keys is %d: write a number of API keys, or 0 for no maximum", c.MaxAPIKeys)
	}
	if c.ClockTolerance < minClockTolerance || c.ClockTolerance > maxClockTolerance {
		return badUsage("--clock-tolerance is %v: write a duration from 500ms to 2.4s", c.ClockTolerance)
	}
	if c.Budget.Bytes < 0 {
		return badUsage("--account-budget-bytes is %d: write at least 0", c.Budget.Bytes)
	}
	if c.Budget.Keys < 0 {
		return badUsage("--account-budget-keys is %d: write at least 0", c.Budget.Keys)
	}
	if _, err := parseNetworks(c.TrustedProxies); err != nil {
		return badUsage("--trusted-proxies: %w", err)
	}
	if err := c.eventsConfig.validate(); err != nil {
		return err
	}
	if err := c.paymentsConfig.validate(); err != nil {
		return err
	}
	if err := c.tracingConfig.validate(); err != nil {
		return err
	}
	if c.ShutdownTimeout <= 0 {
		return badUsage("--shutdown-timeout is %v: write a duration above 0s", c.ShutdownTimeout)
	}
	return c.validatePublicURL()
}

// validatePublicURL checks PublicURL.
func (c *config) validatePublicURL() error {
	if c.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return badUsage("--public-url is %q: write a URL such as https://licenses.example.com", c.PublicURL)
	}
	return nil
}

// level returns the lowest level to log.
func (c *config) level() (zerolog.Level, error) {
	switch c.LogLevel {
	case "debug", "info", "warn", "error":
		return zerolog.ParseLevel(c.LogLevel)
	default:
		return zerolog.NoLevel, badUsage("--log-level is %q: write debug, info, warn or error", c.LogLevel)
	}
}

// newLog returns the log. The settings must be valid.
func (c *config) newLog(stderr io.Writer) (zerolog.Logger, error) {
	level, err := c.level()
	if err != nil {
		return zerolog.Nop(), err
	}
	colors := isTerminal(stderr)
	if supervised() {
		stderr = markedLog{stderr}
	}
	if c.LogFormat == "console" {
		stderr = zerolog.ConsoleWriter{Out: stderr, NoColor: !colors, TimeFormat: "15:04:05.000"}
	}
	return zerolog.New(stderr).Level(level).With().Timestamp().Logger(), nil
}

// isTerminal reports whether w, or the standard error of a parent that w leads to, is a terminal that shows colors.
func isTerminal(w io.Writer) bool {
	return terminal.Colors(w, os.Getenv) || os.Getenv(childVariable) == toTerminal
}
