package main

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"licet/kv"
)

// etcdConfig contains the settings of every command that connects to an etcd cluster.
type etcdConfig struct {
	Endpoints []string
	CAFile    string
	CertFile  string
	KeyFile   string
}

func (c *etcdConfig) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.Endpoints, "etcd-endpoints", nil,
		"`addresses` of all members of the etcd cluster, separated by commas")
	fs.StringVar(&c.CAFile, "etcd-ca", "", "PEM `file` with the CA that signed etcd's certificates; turns TLS on")
	fs.StringVar(&c.CertFile, "etcd-cert", "",
		"PEM `file` with the client certificate for etcd; you may replace the file at any time")
	fs.StringVar(&c.KeyFile, "etcd-key", "", "PEM `file` with the private key of --etcd-cert")
}

// validate checks the settings, and completes endpoints without a scheme: with https if a TLS file is set, else with
// http.
func (c *etcdConfig) validate() error {
	if len(c.Endpoints) == 0 {
		return badUsage("--etcd-endpoints must name every etcd member, such as " +
			"10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379")
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return badUsage("--etcd-cert and --etcd-key go together: set both or neither")
	}
	secured := c.CAFile != "" || c.CertFile != ""
	endpoints := slices.Clone(c.Endpoints)
	for i, endpoint := range endpoints {
		if !strings.Contains(endpoint, "://") {
			endpoint = "http://" + endpoint
			if secured {
				endpoint = "https://" + strings.TrimPrefix(endpoint, "http://")
			}
			endpoints[i] = endpoint
		}
		u, err := url.Parse(endpoint)
		if err != nil || !addressesEtcd(u) {
			return badUsage("--etcd-endpoints has %q: write an address such as 10.0.0.1:2379 or "+
				"https://etcd-0.example.com:2379", c.Endpoints[i])
		}
		// The client of etcd applies the scheme of the first endpoint to all endpoints, and silently drops
		// certificates if that scheme is http.
		if first, _, _ := strings.Cut(endpoints[0], "://"); u.Scheme != first {
			return badUsage("--etcd-endpoints mixes %s:// and %s://: use one scheme for all members", first, u.Scheme)
		}
		if secured && u.Scheme == "http" {
			return badUsage("--etcd-endpoints has %q, which is without TLS, but TLS files are set: write https://, "+
				"or remove --etcd-ca and --etcd-cert", c.Endpoints[i])
		}
	}
	c.Endpoints = endpoints
	return nil
}

// addressesEtcd reports whether u can be the address of an etcd member.
func addressesEtcd(u *url.URL) bool {
	switch u.Scheme {
	case "http", "https":
		_, port, err := net.SplitHostPort(u.Host)
		return err == nil && port != "" && u.Hostname() != "" && strings.Trim(u.Path, "/") == "" && u.User == nil &&
			u.RawQuery == ""
	case "unix":
		return u.Host == "" && len(u.Path) > 1
	}
	return false
}

// store returns the configuration to open the store with.
func (c *etcdConfig) store() kv.Config {
	return kv.Config{
		Endpoints: c.Endpoints,
		TLS:       kv.TLS{CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile},
	}
}
