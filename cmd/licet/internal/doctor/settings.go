package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"licet/cmd/licet/internal/cli"
)

// kubernetes matches the variables that Kubernetes sets for a Service whose name begins with licet.
var kubernetes = regexp.MustCompile(`_SERVICE_(HOST|PORT)|_PORT(_\d|$)`)

// Environment checks variables whose names begin with LICET_. known are the names that licet reads.
func (r *Report) Environment(environ, known []string) {
	const check = "environment"
	before := len(r.Findings)
	values := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "LICET_") || value == "" || kubernetes.MatchString(name) {
			continue
		}
		values[name] = value
		if !slices.Contains(known, name) {
			r.add(Warning, check, "correct its name or unset it", "no command reads %s%s", name,
				cli.DidYouMean(name, known))
		}
	}
	r.both(values, "LICET_ETCD_ENDPOINTS", "LICET_DATA_DIR", "licet store refuses two stores: unset one of them")
	r.both(values, "LICET_API_KEY", "LICET_API_KEY_FILE", "LICET_API_KEY wins: unset one of them")
	r.both(values, "LICET_URL", "LICET_PROFILE", "LICET_URL wins: unset one of them")
	if url, public := values["LICET_URL"], values["LICET_PUBLIC_URL"]; url != "" && public != "" &&
		strings.TrimSuffix(url, "/") != strings.TrimSuffix(public, "/") && values["LICET_SIGN"] != "" {
		r.add(Warning, check, "set LICET_URL to the public URL: a signature is for this URL",
			"LICET_URL is %s, and LICET_PUBLIC_URL is %s", url, public)
	}
	if len(r.Findings) == before {
		r.ok(check, "%d variables of Licet, without contradictions", len(values))
	}
}

// both adds a finding if two variables are set that contradict each other.
func (r *Report) both(values map[string]string, a, b, advice string) {
	if values[a] != "" && values[b] != "" {
		r.add(Warning, "environment", advice, "%s and %s are both set", a, b)
	}
}

// Node contains the settings of licet serve that people forget.
type Node struct {
	PublicURL, MetricsListen, TLSCertFile string
	TrustedProxies                        []string
}

// Node checks the settings of licet serve in the environment.
func (r *Report) Node(n Node) {
	const check = "settings of licet serve"
	before := len(r.Findings)
	switch {
	case n.PublicURL == "":
		r.add(Warning, check, "set LICET_PUBLIC_URL",
			"there is no public URL: pay links lead to an address of this machine")
	case strings.HasPrefix(n.PublicURL, "http://") && remote(n.PublicURL):
		r.add(Warning, check, "write https:// in LICET_PUBLIC_URL", "the public URL %s is without TLS", n.PublicURL)
	}
	if n.MetricsListen == "" {
		r.add(Warning, check, "set LICET_METRICS_LISTEN, such as :9090, and let Prometheus scrape it",
			"no metrics are served: no alert can fire")
	}
	if n.TLSCertFile == "" && len(n.TrustedProxies) == 0 {
		r.add(Warning, check, "set LICET_TRUSTED_PROXIES to the network of the proxy that ends TLS, or LICET_TLS_CERT",
			"there is neither a TLS certificate nor a trusted proxy: behind a proxy, the rate limits by client "+
				"address would count all clients as one")
	}
	if len(r.Findings) == before {
		r.ok(check, "complete")
	}
}

// CertificateFile checks the certificates in a PEM file.
func (r *Report) CertificateFile(setting, path string, now time.Time) {
	if path == "" {
		return
	}
	const check = "certificate file"
	text, err := os.ReadFile(path)
	if err != nil {
		r.Fail(check, err, "correct the path in "+setting)
		return
	}
	var chain []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			chain = append(chain, c)
		}
	}
	if len(chain) == 0 {
		r.add(Problem, check, "write a PEM certificate to the file", "%s in %s has no certificate", path, setting)
	}
	r.certificates(check, path, chain, now)
}
