package licensing

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"
)

// TrialOf returns the name of the trial of an owner's product by a device, or, if the product may be tried once for an
// address, by an e-mail address. Without the id key, the name can neither be computed nor be used to guess either.
func (k LicenseKeys) TrialOf(owner Owner, product string, terms TrialTerms, device, email string) TrialName {
	if terms.PerEmail {
		return TrialName(k.ofTrial("email", owner.AccountID, string(owner.Mode), product, FoldEmail(email)))
	}
	return TrialName(k.ofTrial("device", owner.AccountID, string(owner.Mode), product, device))
}

// TrialDeviceOf returns what stands for a device in a trial.
func (k LicenseKeys) TrialDeviceOf(name TrialName, device string) TrialDevice {
	return TrialDevice(k.ofTrial("of", string(name[:]), device))
}

// ofTrial returns an HMAC of parts. Only the last part and a trial's name, which has a fixed length, may contain a
// zero.
func (k LicenseKeys) ofTrial(parts ...string) []byte {
	mac := hmac.New(sha256.New, k.trials)
	mac.Write([]byte(strings.Join(parts, "\x00")))
	return mac.Sum(nil)[:len(TrialName{})]
}
