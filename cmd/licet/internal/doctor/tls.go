package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// untrusted checks a certificate that this machine does not accept. which names the certificate, and authority says
// what to do if this machine does not know who has signed the certificate.
func (r *Report) untrusted(
	check, which, authority string, refused *tls.CertificateVerificationError, now time.Time,
) {
	chain := refused.UnverifiedCertificates
	var name x509.HostnameError
	var signer x509.UnknownAuthorityError
	switch {
	case errors.As(refused, &name):
		r.add(Problem, check, "use a name of the certificate in the address, or issue a certificate for "+name.Host,
			"%s is for %s, and not for %s", which, namesOf(name.Certificate), name.Host)
	case len(chain) > 0 && (now.After(chain[0].NotAfter) || now.Before(chain[0].NotBefore)):
		r.certificates(check, which, chain[:1], now)
	case errors.As(refused, &signer) && len(chain) > 0:
		r.add(Problem, check, authority, "this machine does not know the authority that has signed %s: %s", which,
			chain[len(chain)-1].Issuer)
	default:
		r.add(Problem, check, "issue another certificate", "%s is not accepted: %v", which, refused.Err)
	}
}

// namesOf returns the first names and addresses that a certificate is for.
func namesOf(c *x509.Certificate) string {
	const most = 5
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	switch more := len(names) - most; {
	case len(names) == 0:
		return "no name"
	case more > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
