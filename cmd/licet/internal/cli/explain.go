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

	"github.com/spf13/pflag"

	"licet/client"
	"licet/licensing"
)

// changes reports whether the command may have changed something.
func (c explainer) changes() bool {
	return !c.is.resumes && !strings.HasSuffix(c.is.scope, ":read") && !strings.HasPrefix(c.is.route, "GET ") &&
		c.is.route != "POST /v1/licenses/validate"
}

// unreachable reports whether an error means that no service is at the address.
func unreachable(err error) bool {
	var name *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &name)
}

// explain returns an error whose message says what failed and what to do next.
func (c *session) explain(err error) error { return explainer{c}.of(err) }

// explainer writes the messages about the errors of a session.
type explainer struct{ *session }

// of returns the message about an error.
func (c explainer) of(err error) error {
	var call callError
	var refused *client.Error
	switch {
	case !errors.As(err, &call), errors.Is(err, client.ErrSecretLost):
		return err
	case c.ctx.Err() != nil && c.is.resumeHint != "":
		return errors.New("interrupted: " + c.is.resumeHint)
	case c.ctx.Err() != nil && c.changes():
		return errors.New("interrupted: the outcome is unknown; check the current state before you retry")
	case c.ctx.Err() != nil:
		return errors.New("interrupted")
	case errors.As(err, &refused):
		return c.refusal(refused)
	}
	return c.unanswered(call.error)
}

// unanswered explains a missing response.
func (c explainer) unanswered(err error) error {
	var name *net.DNSError
	var trust *tls.CertificateVerificationError
	var timeout net.Error
	at := fmt.Sprintf("%s (from %s)", c.target.url, c.target.urlFrom)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no service listens at %s: start one on this machine with licet dev, or set --url, "+
			"--profile or LICET_URL", at)
	case errors.As(err, &name):
		return fmt.Errorf("the host of %s does not exist (%s): check its spelling", at, name.Err)
	case errors.As(err, &trust):
		return fmt.Errorf("the certificate of %s is not trusted: %w; if your own CA signed it, set SSL_CERT_FILE to "+
			"the file of the CA", at, trust.Err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%s speaks HTTP without TLS: write http://", at)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s did not respond in time: %w%s", at, err, c.inDoubt())
	}
	return fmt.Errorf("%w, at %s%s", err, at, c.inDoubt())
}

// inDoubt returns the hint to append after a change without acknowledgment.
func (c explainer) inDoubt() string {
	switch {
	case c.is.resumeHint != "":
		return "; " + c.is.resumeHint
	case !c.changes():
		return ""
	}
	return "; the outcome is unknown: check the current state before you retry"
}

// refusal explains an error response.
func (c explainer) refusal(e *client.Error) error {
	if e.Code == 0 {
		return fmt.Errorf("%s (from %s) is not a Licet service: it returned HTTP %d; check the URL", c.target.url,
			c.target.urlFrom, e.Status)
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
		text = fmt.Sprintf("the service at %s refused the API key from %s%s: the key belongs to another service, or "+
			"is expired or revoked; set LICET_API_KEY, --api-key-file or --profile, or change the profile (licet "+
			"profile set --help)", c.target.url, c.target.keyFrom, code)
	case client.ReasonInvalidSignature:
		text += fmt.Sprintf("; the secret is from %s, and the signature is for %s, which must be the public URL of "+
			"the service", c.target.keyFrom, c.target.url)
	case client.ReasonForbidden:
		text += fmt.Sprintf("; %s needs the %s; the API key is from %s; licet keys create creates another",
			c.cmd.CommandPath(), c.is.scopes(), c.target.keyFrom)
	case client.ReasonPaymentNotConfigured:
		if c.cmd.Flags().Lookup("payment-provider") != nil {
			text += "; that is --payment-provider outside, and then licet orders record-payment"
		}
	case client.ReasonLicenseNotFound, client.ReasonOrderNotFound, client.ReasonProductNotFound:
		text += c.elsewhere(e.Reason)
		if e.Reason == client.ReasonLicenseNotFound {
			text += c.externalKeyHint(false)
		}
	case client.ReasonInvalidOrderState:
		if strings.HasSuffix(c.is.route, "/refund") && strings.Contains(text, "unpaid") {
			text += "; licet orders cancel ends an unpaid order"
		}
	case client.ReasonNotFound, client.ReasonMethodNotAllowed:
		text += fmt.Sprintf("; the service at %s may be older than this licet, or its URL (from %s) may have an "+
			"extra path", c.target.url, c.target.urlFrom)
	case client.ReasonInvalidLicenseKey:
		if strings.HasPrefix(c.is.route, "POST /v1/receipts/batch") {
			text += "; make another request with the right key (licet offline request)"
			break
		}
		text += c.externalKeyHint(true)
	case client.ReasonOutcomeUnknown:
		if c.is.resumes {
			text += c.inDoubt()
		} else {
			text += "; check the current state before you retry"
		}
	default:
		text += nextStep(e.Reason)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Details)) {
		text += fmt.Sprintf("; %s: %d", strings.ReplaceAll(name, "_", " "), e.Details[name])
	}
	text = plain(c.commandsFor(text)) // the text may come from any server
	if mine {
		return BadUsage("%s", text)
	}
	return errors.New(text)
}

// nextStep returns what the user can do after a refusal, whatever the command was; empty if the message says that.
func nextStep(reason string) string {
	return map[string]string{
		client.ReasonSignatureRequired: "; set LICET_API_KEY_ID and LICET_API_SECRET, or save them in a profile " +
			"(licet profile set --help)",
		client.ReasonDeviceLimitReached: "; remove a device (licet licenses remove-device), or raise the limit " +
			"(licet licenses update --max-devices); a lease of a floating license also ends by itself",
		client.ReasonLicenseRevoked:     "; a revocation is final: licet licenses grant issues another license",
		client.ReasonProductMismatch:    "; licet licenses get shows the product of the license",
		client.ReasonLicenseKeyReplaced: "; licet licenses get with the id of the license shows the new key",
		client.ReasonTrialUsed: "; activate the license key of the trial (licet licenses activate); licet orders " +
			"create --upgrade-of KEY sells its license, once",
		client.ReasonLicenseSuspended:      "; licet licenses reinstate ends a suspension",
		client.ReasonLicenseExpired:        "; licet licenses renew sets a later end",
		client.ReasonDeviceNotFound:        "; licet licenses devices lists the devices that are bound",
		client.ReasonTrialNotOffered:       "; licet products put --trial-validity P14D offers one",
		client.ReasonSelfServiceNotAllowed: "; licet licenses remove-device removes one with an API key",
		client.ReasonRolloutInProgress: "; licet products rollout-status shows it, and licet products cancel-rollout " +
			"ends it",
		client.ReasonInternal:             "; this is a fault of the service, see its log",
		client.ReasonIdempotencyKeyReused: "; use another --idempotency-key for another change",
	}[reason]
}

// commandsFor names the command of each route that a message names.
func (c explainer) commandsFor(text string) string {
	for _, group := range c.cmd.Root().Commands() {
		for _, cmd := range group.Commands() {
			for route := range strings.SplitSeq(cmd.Annotations[routeNote], " and ") {
				if route != "" {
					text = strings.ReplaceAll(text, route+" ", cmd.CommandPath()+" ")
				}
			}
		}
	}
	return text
}

// externalKeyHint says how to name a license by its key of another service. malformed reports whether the text that was
// sent is not a license key.
func (c explainer) externalKeyHint(malformed bool) string {
	account, mode := c.cmd.Flags().Lookup("account-id"), c.cmd.Flags().Lookup("mode")
	switch {
	case account != nil && mode != nil && account.Changed && !mode.Changed:
		return "; if this is a key of another service in test mode, add --mode test"
	case !malformed:
		return ""
	case account != nil:
		return "; if this is a key of another service, add --account-id, and in test mode --mode test"
	}
	return "; if this is a key of another service, licet licenses list --external-key KEY finds the license and its id"
}

// elsewhere returns the hint to append if the service does not find a license, an order or a product.
func (c explainer) elsewhere(reason string) string {
	noun, _ := strings.CutSuffix(reason, "_not_found")
	switch {
	case c.target.apiKey != "":
		where := "account and mode"
		if mode := modeOf(c.target.apiKey); mode != "" {
			where = "account in " + mode + " mode"
		}
		return fmt.Sprintf("; the API key from %s finds only %ss of its %s: licet %ss list shows them",
			c.target.keyFrom, noun, where, noun)
	case reason == client.ReasonProductNotFound:
		return "; compare the product's id, the account's id and the mode: with an API key, licet products list and " +
			"licet account show print them"
	}
	return "; compare the license key with the one in the order, and check that " + c.target.url +
		" is the service that issued it"
}

// modeOf returns the mode that an API key names; empty if it names none.
func modeOf(apiKey string) string {
	for _, mode := range []licensing.Mode{licensing.Test, licensing.Live} {
		if strings.HasPrefix(apiKey, "lk_"+string(mode)+"_") {
			return string(mode)
		}
	}
	return ""
}

// fields returns the problems of invalid members, under the names of their flags or arguments. mine reports whether
// each of them is a flag or an argument.
func (c explainer) fields(bad []client.FieldError) (text string, mine bool) {
	mine = true
	var all []string
	for _, f := range bad {
		name := f.Field
		if name == "url" {
			name = "endpoint_url" // --url names the service
		}
		flag := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		switch {
		case c.cmd.Flags().Lookup(flag) != nil:
			name = "--" + flag
			f.Problem += valueSuggestion(c.cmd.Flags().Lookup(flag))
		case strings.Contains(c.cmd.Use, strings.ToUpper(name)):
			name = strings.ToUpper(name)
		default:
			mine = false
		}
		all = append(all, name+" "+f.Problem)
	}
	return strings.Join(all, "; "), mine
}

// valueSuggestion returns the suggestion for the first value of a flag that is not among the flag's known values.
func valueSuggestion(f *pflag.Flag) string {
	known := f.Annotations[valuesNote]
	for value := range strings.SplitSeq(strings.Trim(f.Value.String(), "[]"), ",") {
		if !slices.Contains(known, value) {
			return DidYouMean(value, known)
		}
	}
	return ""
}
