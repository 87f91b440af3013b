package main

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"licet/kv"
)

// etcdConfig is the settings that every command has that works on an etcd
// cluster.
type etcdConfig struct {
	Endpoints []string
	CAFile    string
	CertFile  string
	KeyFile   string
}

func (c *etcdConfig) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.Endpoints, "etcd-endpoints", nil, "`addresses` of all members of the etcd cluster, with commas between")
	fs.StringVar(&c.CAFile, "etcd-ca", "", "`file` with the CA of etcd's certificates, in PEM; it turns TLS on")
	fs.StringVar(&c.CertFile, "etcd-cert", "", "`file` with the certificate to show to etcd, in PEM; it may be replaced at any time")
	fs.StringVar(&c.KeyFile, "etcd-key", "", "`file` with the key of that certificate, in PEM")
}

// validate also completes the endpoints: those without a scheme get the one
// that the other settings mean.
func (c *etcdConfig) validate() error {
	if len(c.Endpoints) == 0 {
		return badUsage("--etcd-endpoints must name every etcd member, like 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379")
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return badUsage("--etcd-cert and --etcd-key go together")
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
			return badUsage("--etcd-endpoints has %q: it must be like 10.0.0.1:2379 or https://etcd-0.example.com:2379", c.Endpoints[i])
		}
		// etcd's client takes the first one's scheme for all, and drops
		// certificates that the scheme has no use for.
		if first, _, _ := strings.Cut(endpoints[0], "://"); u.Scheme != first {
			return badUsage("--etcd-endpoints mixes %s:// and %s://: the members must be reached in one way", first, u.Scheme)
		}
		if secured && u.Scheme == "http" {
			return badUsage("--etcd-endpoints has %q, which is without TLS, and TLS files are set", c.Endpoints[i])
		}
	}
	c.Endpoints = endpoints
	return nil
}

func addressesEtcd(u *url.URL) bool {
	switch u.Scheme {
	case "http", "https":
		_, port, err := net.SplitHostPort(u.Host)
		return err == nil && port != "" && u.Hostname() != "" && strings.Trim(u.Path, "/") == "" && u.User == nil && u.RawQuery == ""
	case "unix":
		return u.Host == "" && len(u.Path) > 1
	}
	return false
}

// store is what the store is opened with.
func (c *etcdConfig) store() kv.Config {
	return kv.Config{
		Endpoints: c.Endpoints,
		TLS:       kv.TLS{CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile},
	}
}
