package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"licet/internal/process"
)

// Setup says which program to run, and where.
type Setup struct {
	Dir          string
	Source       string // folder of the service's module, which is built; empty: the working directory
	Binary       string
	BuildFlags   string
	NodeLogLevel string
}

// AddFlags adds the flags that fill s.
func (s *Setup) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Dir, "dir", "",
		"directory for the stores; it should be on a real disk (default: the system's for temporary files)")
	flags.StringVar(&s.Binary, "licet", "",
		"program to measure (default: built from the module of the working directory)")
	flags.StringVar(&s.BuildFlags, "build-flags", "", "flags for go build, with spaces between")
	flags.StringVar(&s.NodeLogLevel, "node-log-level", "warn",
		"log level of the nodes; info writes a line for each request")
}

// Licet is the program under load, with the master keys that its nodes share.
type Licet struct {
	Binary   string
	dir      string
	logLevel string
}

// BuildLicet builds the program, unless a binary is given. The program's files and its nodes' logs go to dir.
func BuildLicet(ctx context.Context, dir string, s *Setup) (*Licet, error) {
	l := &Licet{Binary: s.Binary, dir: dir, logLevel: s.NodeLogLevel}
	if l.Binary == "" {
		l.Binary = filepath.Join(dir, "licet")
		if err := process.BuildLicet(ctx, s.Source, l.Binary, strings.Fields(s.BuildFlags)...); err != nil {
			return nil, err
		}
	}
	if _, err := l.Command(ctx, "store", "master-key", "add", "--master-key-file", l.Ring()); err != nil {
		return nil, err
	}
	return l, nil
}

// Ring returns the file with the master keys of all nodes.
func (l *Licet) Ring() string { return filepath.Join(l.dir, "master.keys") }

// Command runs a subcommand and returns its output, also if the subcommand fails.
func (l *Licet) Command(ctx context.Context, args ...string) ([]byte, error) {
	out, _, err := l.Measured(ctx, args...)
	return out, err
}

// Measured does what Command does, and returns what the subcommand has used; nil if the subcommand did not start.
func (l *Licet) Measured(ctx context.Context, args ...string) ([]byte, *os.ProcessState, error) {
	cmd := exec.CommandContext(ctx, l.Binary, args...)
	cmd.Env = plainEnvironment()
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("licet %s: %w: %s", strings.Join(args[:min(2, len(args))], " "), err, failed.Stderr)
	}
	return out, cmd.ProcessState, err
}

// plainEnvironment returns this process's environment without variables that configure a node.
func plainEnvironment() []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "LICET_") && !strings.HasPrefix(pair, "GODEBUG=") {
			env = append(env, pair)
		}
	}
	return env
}

// CreateKey makes an API key for everything on a cluster's store.
func (l *Licet) CreateKey(ctx context.Context, etcd *Cluster, name string) (string, error) {
	out, err := l.Command(ctx, "store", "keys", "create", "--account", "acct_"+name, "--mode", "test", "--name", name,
		"--scopes", "*", "--output", "json", "--master-key-file", l.Ring(), "--etcd-endpoints",
		strings.Join(etcd.Endpoints, ","))
	if err != nil {
		return "", err
	}
	var key struct {
		Text string `json:"api_key"`
	}
	if err := json.Unmarshal(out, &key); err != nil || key.Text == "" {
		return "", fmt.Errorf("licet store keys create printed no API key: %w", err)
	}
	return key.Text, nil
}
