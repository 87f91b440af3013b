package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"

	"licet/licensing"
)

// TrialOf returns the name of the trial of an owner's product by a device, or, if the product may be tried once for an
// address, by an e-mail address. Without the id key, the name can neither be computed nor be used to guess either.
func (k LicenseKeys) TrialOf(
	owner licensing.Owner, product string, terms licensing.TrialTerms, device, email string,
) licensing.TrialName {
	if terms.PerEmail {
		email = licensing.FoldEmail(email)
		return licensing.TrialName(k.ofTrial("email", owner.AccountID, string(owner.Mode), product, email))
	}
	return licensing.TrialName(k.ofTrial("device", owner.AccountID, string(owner.Mode), product, device))
}

// TrialDeviceOf returns what stands for a device in a trial.
func (k LicenseKeys) TrialDeviceOf(name licensing.TrialName, device string) licensing.TrialDevice {
	return licensing.TrialDevice(k.ofTrial("of", string(name[:]), device))
}

// ofTrial returns an HMAC of parts. Only the last part and a trial's name, which has a fixed length, may contain a
// zero.
func (k LicenseKeys) ofTrial(parts ...string) []byte {
	mac := hmac.New(sha256.New, k.trials)
	mac.Write([]byte(strings.Join(parts, "\x00")))
	return mac.Sum(nil)[:len(licensing.TrialName{})]
}
