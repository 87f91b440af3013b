package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"licet/client"
)

// changes tells whether the command may have changed something.
func (c *session) changes() bool {
	return !c.is.goesOn && !strings.HasSuffix(c.is.scope, ":read") && !strings.HasPrefix(c.is.route, "GET ") && c.is.route != "POST /v1/licenses/validate"
}

// unreachable tells whether an error means that there is no service at all.
func unreachable(err error) bool {
	var name *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &name)
}

// explain puts into words what went wrong, and what to do next.
func (c *session) explain(err error) error {
	var call callError
	var refused *client.Error
	switch {
	case !errors.As(err, &call), errors.Is(err, client.ErrSecretLost):
		return err
	case c.ctx.Err() != nil && c.is.rest != "":
		return errors.New("interrupted: " + c.is.rest)
	case c.ctx.Err() != nil && c.changes():
		return errors.New("interrupted: what was asked for may have been done or not, so look before you ask again")
	case c.ctx.Err() != nil:
		return errors.New("interrupted")
	case errors.As(err, &refused):
		return c.refusal(refused)
	}
	return c.unanswered(call.error)
}

// unanswered explains why no answer came.
func (c *session) unanswered(err error) error {
	var name *net.DNSError
	var trust *tls.CertificateVerificationError
	var timeout net.Error
	at := fmt.Sprintf("%s (from %s)", c.target.url, c.target.urlFrom)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s: is the service running? licet dev starts one on this machine. Else say --url or --profile, or set LICET_URL", at)
	case errors.As(err, &name):
		return fmt.Errorf("nobody knows the host of %s (%s): is it written right?", at, name.Err)
	case errors.As(err, &trust):
		return fmt.Errorf("the certificate of %s is not trusted: %w. If a CA of your own has made it, name its file in SSL_CERT_FILE", at, trust.Err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%s speaks HTTP without TLS: write http:// if that is meant", at)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s does not answer in time: %w%s", at, err, c.inDoubt())
	}
	return fmt.Errorf("%w, at %s%s", err, at, c.inDoubt())
}

// inDoubt says what is so after a change that nobody has acknowledged.
func (c *session) inDoubt() string {
	switch {
	case c.is.rest != "":
		return "; " + c.is.rest
	case !c.changes():
		return ""
	}
	return "; what was asked for may have been done or not, so look before you ask again"
}

// refusal explains an answer that is no success.
func (c *session) refusal(e *client.Error) error {
	if e.Code == 0 {
		return fmt.Errorf("%s (from %s) is no Licet service: it answered HTTP %d. Is the address right?", c.target.url, c.target.urlFrom, e.Status)
	}
	text := e.Message
	mine := false
	if len(e.Fields) > 0 {
		text, mine = c.fields(e.Fields)
	}
	code := fmt.Sprintf(" (%d %s, request %s)", e.Code, e.Reason, e.RequestID)
	text += code
	switch e.Reason {
	case client.ReasonUnauthenticated:
		text = fmt.Sprintf("the service at %s does not take the API key from %s%s: it is another service's, expired or revoked. Set LICET_API_KEY, say --api-key-file or --profile, or change the profile: licet profile set --help", c.target.url, c.target.keyFrom, code)
	case client.ReasonInvalidSignature:
		text += fmt.Sprintf("; the secret is that of %s, and requests are signed for %s, which must be the service's public URL", c.target.keyFrom, c.target.url)
	case client.ReasonSignatureRequired:
		text += "; set LICET_API_KEY_ID and LICET_API_SECRET, or put them into a profile: licet profile set --help"
	case client.ReasonForbidden:
		text += fmt.Sprintf("; %s needs the %s, and the API key came from %s. licet keys create makes another", c.cmd.CommandPath(), c.is.scopes(), c.target.keyFrom)
	case client.ReasonNotFound, client.ReasonMethodNotAllowed:
		text += fmt.Sprintf("; is the service at %s older than this licet, or is there a path too much in its address (from %s)?", c.target.url, c.target.urlFrom)
	case client.ReasonInternal:
		text += "; that is a fault of the service, whose log has the rest"
	case client.ReasonIdempotencyKeyReused:
		text += "; say another --idempotency-key for another thing"
	case client.ReasonOutcomeUnknown:
		if c.is.goesOn {
			text += c.inDoubt()
		} else {
			text += "; look before you ask again"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Details)) {
		text += fmt.Sprintf("; %s: %d", strings.ReplaceAll(name, "_", " "), e.Details[name])
	}
	text = plain(text) // whoever may have sent it
	if mine {
		return BadUsage("%s", text)
	}
	return errors.New(text)
}

// fields names the flag or the argument of each bad member. mine tells whether
// all of them stand on the command line.
func (c *session) fields(bad []client.FieldError) (text string, mine bool) {
	mine = true
	var all []string
	for _, f := range bad {
		name := f.Field
		if name == "url" {
			name = "endpoint_url" // --url is the service's
		}
		flag := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		switch {
		case c.cmd.Flags().Lookup(flag) != nil:
			name = "--" + flag
		case strings.Contains(c.cmd.Use, strings.ToUpper(name)):
			name = strings.ToUpper(name)
		default:
			mine = false
		}
		all = append(all, name+" "+f.Problem)
	}
	return strings.Join(all, "; "), mine
}
