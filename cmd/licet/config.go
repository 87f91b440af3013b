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
)

// config is the settings that every service has. A line each says what its flag
// is called, what it is without one, and what it means; the environment variable
// follows from the flag. A flag beats the environment, and that beats the
// default.
type config struct {
	Listen        string
	MetricsListen string
	Profiles      bool // at MetricsListen
	PublicURL     string
	OrderLifetime time.Duration
	TestOrders    time.Duration // 0: OrderLifetime
	Remember      int
	QueueDelay    time.Duration
	// RecordActivations has the events of activations recorded for everybody.
	RecordActivations bool
	eventsConfig
	tracingConfig
	LogLevel        string
	LogFormat       string
	ShutdownTimeout time.Duration

	AddressLimit, APIKeyLimit, LicenseLimit limits.Rate

	TrustedProxies []string
}

// addFlags adds the flags, with the values of c as defaults where services
// differ.
func (c *config) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Listen, "listen", c.Listen, "`address` to serve on; port 0 takes a free one")
	fs.StringVar(&c.MetricsListen, "metrics-listen", "", "`address` to serve /metrics and the probes on; empty: off")
	fs.BoolVar(&c.Profiles, "pprof", false, "serve Go's profiles at /debug/pprof/ on --metrics-listen")
	fs.StringVar(&c.PublicURL, "public-url", "", "`URL` that buyers and shops reach this service at, for pay links and signed requests; empty: the address served on")
	fs.DurationVar(&c.OrderLifetime, "order-lifetime", 24*time.Hour, "how long an order can be paid, 30m to 24h")
	fs.DurationVar(&c.TestOrders, "test-order-lifetime", 0, "the same of orders in test mode, 1s to 24h; 0: as --order-lifetime")
	fs.IntVar(&c.Remember, "remember-licenses", kv.DefaultRemembered, "how many licenses are remembered, so that a change of one is a single request to etcd; about 400 bytes each")
	fs.DurationVar(&c.QueueDelay, "queue-delay", 100*time.Millisecond, "how long what comes under load may wait to be served, 10ms to 1s; the rest is refused at once")
	fs.TextVar(&c.AddressLimit, "rate-limit-address", limits.Rate{Count: 60, Per: time.Minute}, "at what `rate` each client address is answered 40000, 40001 and 40401 on the routes without API key; 0: no limit")
	fs.TextVar(&c.APIKeyLimit, "rate-limit-api-key", limits.Rate{Count: 500, Per: time.Second}, "at what `rate` requests are taken with each API key; 0: no limit")
	fs.TextVar(&c.LicenseLimit, "rate-limit-license", limits.Rate{}, "at what `rate` activations and validations are taken for each license, such as 10/m; 0: no limit")
	fs.StringSliceVar(&c.TrustedProxies, "trusted-proxies", nil, "`networks` of the proxies whose X-Forwarded-For tells a client's address, such as 10.0.0.0/8,192.0.2.7")
	fs.BoolVar(&c.RecordActivations, "record-activations", c.RecordActivations, "record the events of activations and devices, too, for all accounts; each costs a key in etcd")
	c.eventsConfig.addFlags(fs)
	c.tracingConfig.addFlags(fs)
	fs.StringVar(&c.LogLevel, "log-level", "info", "least `level` to log: debug, info, warn or error")
	fs.StringVar(&c.LogFormat, "log-format", c.LogFormat, "`format` of the log on stderr: console or json")
	fs.DurationVar(&c.ShutdownTimeout, "shutdown-timeout", c.ShutdownTimeout, "how long a stop may take until what is left is cut off")
}

// devConfig is the settings of licet dev.
type devConfig struct {
	config
	DataDir     string
	AllowRemote bool
}

func (c *devConfig) addFlags(fs *pflag.FlagSet) {
	c.config = config{Listen: "127.0.0.1:8080", RecordActivations: true, LogFormat: "console", ShutdownTimeout: 10 * time.Second}
	c.Loopback = true
	fs.SortFlags = false
	c.config.addFlags(fs)
	fs.StringVar(&c.DataDir, "data-dir", "./licet-data", "`directory` of the store and the keys; made if there is none")
	fs.BoolVar(&c.AllowRemote, "allow-remote", false, "let other machines in: allow addresses that are not loopback")
	nameVariables(fs)
}

func (c *devConfig) validate() error {
	if c.DataDir == "" {
		return badUsage("--data-dir must name a directory")
	}
	return c.config.validate()
}

// nameVariables adds to what flags mean the names of their variables.
func nameVariables(fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) { f.Usage += " ($" + variable(f) + ")" })
}

// variable is the environment variable of a flag.
func variable(f *pflag.Flag) string {
	return "LICET_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// fromEnvironment sets the flags that the command line did not. A variable
// that is empty counts as not there.
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
	maxQueueDelay = time.Second // well within the time that a request has
)

func (c *config) validate() error {
	if _, err := c.level(); err != nil {
		return err
	}
	if c.Profiles && c.MetricsListen == "" {
		return badUsage("--pprof needs --metrics-listen: profiles are never served to the public")
	}
	if c.LogFormat != "console" && c.LogFormat != "json" {
		return badUsage("--log-format is %q: it must be console or json", c.LogFormat)
	}
	if c.OrderLifetime < minOrderLifetime || c.OrderLifetime > maxOrderLifetime {
		return badUsage("--order-lifetime is %v: it must be from 30m to 24h (--test-order-lifetime from 1s)", c.OrderLifetime)
	}
	if c.TestOrders != 0 && (c.TestOrders < minTestOrderLifetime || c.TestOrders > maxOrderLifetime) {
		return badUsage("--test-order-lifetime is %v: it must be from 1s to 24h, or 0", c.TestOrders)
	}
	if c.Remember < 1 {
		return badUsage("--remember-licenses is %d: it must be at least 1", c.Remember)
	}
	if c.QueueDelay < minQueueDelay || c.QueueDelay > maxQueueDelay {
		return badUsage("--queue-delay is %v: it must be from 10ms to 1s", c.QueueDelay)
	}
	if _, err := parseNetworks(c.TrustedProxies); err != nil {
		return badUsage("--trusted-proxies: %w", err)
	}
	if err := c.eventsConfig.validate(); err != nil {
		return err
	}
	if err := c.tracingConfig.validate(); err != nil {
		return err
	}
	if c.ShutdownTimeout <= 0 {
		return badUsage("--shutdown-timeout is %v: it must be more than 0s", c.ShutdownTimeout)
	}
	return c.validatePublicURL()
}

func (c *config) validatePublicURL() error {
	if c.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return badUsage("--public-url is %q: it must be like https://licenses.example.com", c.PublicURL)
	}
	return nil
}

func (c *config) level() (zerolog.Level, error) {
	switch c.LogLevel {
	case "debug", "info", "warn", "error":
		return zerolog.ParseLevel(c.LogLevel)
	default:
		return zerolog.NoLevel, badUsage("--log-level is %q: it must be debug, info, warn or error", c.LogLevel)
	}
}

// newLog makes the log. The settings must have been validated.
func (c *config) newLog(stderr io.Writer) (zerolog.Logger, error) {
	level, err := c.level()
	if err != nil {
		return zerolog.Nop(), err
	}
	if c.LogFormat == "console" {
		stderr = zerolog.ConsoleWriter{Out: stderr, NoColor: !isTerminal(stderr), TimeFormat: "15:04:05.000"}
	}
	return zerolog.New(stderr).Level(level).With().Timestamp().Logger(), nil
}

func isTerminal(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && terminal.Is(w)
}
