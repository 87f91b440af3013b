package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"licet/cmd/licet/internal/cli"
	"licet/cmd/licet/internal/doctor"
	"licet/cmd/licet/internal/terminal"
	"licet/kv"
	"licet/kv/survey"
)

// doctorConfig contains the settings of licet doctor.
type doctorConfig struct {
	storeConfig
	Service cli.Service
	Output  string
}

func newDoctorCommand(setup cli.Setup, stdout, stderr io.Writer) *cobra.Command {
	var cfg doctorConfig
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a service, its etcd and the settings, and say what to do",
		Long: `Check a service, its etcd and the settings, and say what to do about each finding: etcd members,
versions, alarms, quota, latency and access; clocks; TLS certificates; master keys, API keys,
nodes and backups of the store; the environment.

The command checks the service that other commands would call, and the store that
--etcd-endpoints or --data-dir names. It changes no data: to measure a put, it writes a small
key of its own, licet-doctor/…, under a lease of ten seconds, and removes the key at once.

Exit code 1 means that the command found a problem; warnings alone leave it 0.`,
		Example: `  licet doctor                                       the service of licet dev in this directory, or of a profile
  licet doctor --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379
  licet doctor --data-dir ./licet-data               a stopped licet dev
  licet doctor --output json`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cfg.examine(cmd, setup, stdout, stderr)
		},
	}
	cfg.addFlags(cmd.Flags())
	nameVariables(cmd.Flags())
	cfg.Service.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&cfg.Output, "output", "o", "table", "output `format`: table or json")
	cli.Complete(cmd, "output", "table", "json")
	return cmd
}

// errProblems ends a command that found problems.
var errProblems = errors.New("the checks found problems")

func (c *doctorConfig) examine(cmd *cobra.Command, setup cli.Setup, stdout, stderr io.Writer) error {
	if c.Output != "table" && c.Output != "json" {
		return badUsage("--output is %q: write table or json", c.Output)
	}
	var report doctor.Report
	now := time.Now()
	service, err := setup.Locate(&c.Service, cmd.Flags()) // before namesStore sets flags from the environment
	store, wrong := c.namesStore(cmd.Flags())
	c.checkSettings(&report, cmd.Root(), now)
	switch {
	case err != nil:
		report.Fail("settings of the service", err, "correct the settings: licet profile list shows the profiles, "+
			"and licet orders list --help shows the flags and variables")
	case service.URL != "":
		report.Service(cmd.Context(), service, now)
	}
	switch {
	case wrong != nil:
		report.Fail("settings of the store", wrong, "correct the settings: licet doctor --help")
	case store:
		if err := c.checkStore(cmd.Context(), &report, now, stderr); err != nil {
			report.Fail("store", err, "correct --etcd-endpoints, the TLS files or --data-dir; for a running licet "+
				"dev, set --etcd-endpoints to unix://DATA-DIR/run/etcd.sock with an absolute DATA-DIR")
		}
	case err == nil && service.URL == "":
		report.Nothing()
	}
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	if c.Output == "json" {
		err = report.JSON(stdout)
	} else {
		err = report.Text(stdout, terminal.Colors(stdout, os.Getenv))
	}
	if n := report.Count(doctor.Problem); err == nil && n > 0 {
		return fmt.Errorf("%w: %d", errProblems, n)
	}
	return err
}

// namesStore completes the settings of the store and reports whether they name one.
func (c *doctorConfig) namesStore(fs *pflag.FlagSet) (named bool, err error) {
	err = c.complete(fs, func() error {
		if c.DataDir == "" && len(c.Etcd.Endpoints) == 0 {
			return nil
		}
		named = true
		return c.storeConfig.validate()
	})
	return named, err
}

// checkSettings checks the environment, and the certificates that settings name.
func (c *doctorConfig) checkSettings(report *doctor.Report, root *cobra.Command, now time.Time) {
	report.Environment(os.Environ(), knownVariables(root))
	var serve serveConfig
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	serve.addFlags(fs)
	if err := fromEnvironment(fs, os.LookupEnv); err != nil {
		report.Fail("environment", err, "correct the variable: licet serve --help")
	} else if serve.MasterKeyFile != "" { // the environment is that of a node
		if err := serve.validate(); err != nil {
			report.Fail("settings of licet serve", err, "correct the environment: licet serve --help")
		} else {
			report.Node(doctor.Node{PublicURL: serve.PublicURL, MetricsListen: serve.MetricsListen,
				TLSCertFile: serve.TLSCertFile, TrustedProxies: serve.TrustedProxies})
		}
	}
	report.CertificateFile("LICET_TLS_CERT", serve.TLSCertFile, now)
	report.CertificateFile("--etcd-cert", c.Etcd.CertFile, now)
	report.CertificateFile("--etcd-ca", c.Etcd.CAFile, now)
}

// knownVariables returns the names of the environment variables that licet reads. The help of a flag names the
// variable of the flag.
func knownVariables(cmd *cobra.Command) []string {
	names := []string{"LICET_API_KEY_ID", "LICET_API_SECRET"} // no flag takes them
	between := func(r rune) bool { return strings.ContainsRune(" ()$,;", r) }
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		for word := range strings.FieldsFuncSeq(f.Usage, between) {
			if strings.HasPrefix(word, "LICET_") {
				names = append(names, word)
			}
		}
	})
	for _, below := range cmd.Commands() {
		names = append(names, knownVariables(below)...)
	}
	return names
}

// checkStore checks etcd and the content of the store.
func (c *doctorConfig) checkStore(
	ctx context.Context, report *doctor.Report, now time.Time, stderr io.Writer,
) error {
	return c.use(ctx, stderr, func(ctx context.Context, cfg kv.Config) error {
		facts, err := survey.Cluster(ctx, cfg.Etcd())
		if err != nil {
			return err
		}
		dev := c.DataDir != "" || strings.HasSuffix(cfg.Endpoints[0], "/etcd.sock")
		report.Etcd(facts, dev, now)
		report.Store(facts.Content, dev, now)
		report.Versions(facts.Content.Nodes, readBuild().version)
		return nil
	})
}
