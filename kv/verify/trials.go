package verify

import (
	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// checkTrial checks a trial: its license must name it.
func (v *licenseChecks) checkTrial(e entry) {
	ref, bad, ok := v.named(e, "trial", keyspace.TrialsFamily, keyspace.ReadTrialKey)
	if !ok {
		return
	}
	stored, err := layout.DecodeTrial(e.value)
	if err != nil {
		bad("value", "the value can't be read: %v", err)
		return
	}
	checkWriters(e.value, layout.TrialWriter, bad)
	id := stored.Trial.License.ID()
	v.want(keyspace.LicenseKey(id), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("license_missing", "its license %s does not exist", id)
			return
		}
		license, err := layout.DecodeLicense(id, kv.Value)
		if err != nil {
			return // reported with the licenses
		}
		if l := &license.License; l.Key != stored.Trial.License || l.Trial.IsZero() || l.TrialRef() != ref {
			bad("license_other", "its license %s does not name it", id)
		}
	})
}

// checkLicenseTrial checks that the trial of a license leads back to the license.
func (v *licenseChecks) checkLicenseTrial(l *licensing.License, bad func(rule, format string, args ...any)) {
	if l.Trial.IsZero() {
		return
	}
	if l.IsTrial() == (l.OrderNo != "") {
		bad("trial_order", "it is a trial and has an order, or was upgraded and has none")
	}
	v.want(keyspace.TrialKey(l.TrialRef()), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("trial_missing", "the trial that it names does not exist, so another one can be started")
			return
		}
		if stored, err := layout.DecodeTrial(kv.Value); err == nil && stored.Trial.License != l.Key {
			bad("trial_other", "the trial that it names is another license's")
		}
	})
}
