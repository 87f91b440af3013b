package offline

import (
	"testing"
	"time"

	"licet/client"
)

// leasedTrial starts a trial that holds a lease of 30 seconds.
func (w *world) leasedTrial(t *testing.T) *person {
	t.Helper()
	must[*client.Product](t)(w.api.Products.Put(t.Context(), "leased", client.ProductTerms{Name: "Leased",
		MaxDevices: new(1), DeviceMode: "leased", LeaseSeconds: 30,
		Trial: &client.TrialTerms{Validity: "P14D", Per: "device"}}))
	p := w.person(t, "leased")
	p.try(t)
	return p
}

// try starts the trial of the device. What the shop does then is for the trial's license.
func (p *person) try(t *testing.T) {
	t.Helper()
	if got := p.does("trial"); got != good {
		t.Fatalf("trial: %+v", got)
	}
	p.key = p.state(t)["license_key"].(string)
}

// trials starts trials again that were started before, as programs do that start the trial at each start. leased is a
// trial with a lease.
func (w *world) trials(t *testing.T, leased *person) {
	refused := func(code int, reason string) outcome { return outcome{Code: code, Reason: reason} }
	for name, c := range map[string]struct {
		shop func(*person, *testing.T)
		want outcome
	}{
		"given back": {(*person).deactivate, good},
		"removed":    {(*person).removeDevice, good},
		"ended":      {(*person).expire, refused(40303, client.ReasonLicenseExpired)},
		"suspended":  {(*person).suspend, refused(40302, client.ReasonLicenseSuspended)},
		"revoked":    {(*person).revoke, refused(40301, client.ReasonLicenseRevoked)},
		"given back, then taken by another device": {(*person).handOver,
			refused(40901, client.ReasonDeviceLimitReached)},
	} {
		p := w.person(t, "editor")
		p.try(t)
		c.shop(p, t)
		if got := p.does("trial"); got != c.want {
			t.Errorf("a trial that is %s: %+v, want %+v", name, got, c.want)
		}
		got := p.does("activate", func(c *call) { c.LicenseKey = "" })
		if got != c.want {
			t.Errorf("the stored license of a trial that is %s: %+v, want %+v", name, got, c.want)
		}
		if c.want == good && !p.runs() {
			t.Errorf("after a trial that is %s, the program does not run without a network", name)
		}
	}
	w.keepsPaid(t)
	w.reinstated(t)

	for { // until the lease has lapsed
		l := must[*client.License](t)(w.api.Licenses.Get(t.Context(), leased.key))
		if l.CurrentDevices == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if leased.runs() {
		t.Error("the program runs after its lease")
	}
	if got := leased.does("trial"); got != good || !leased.runs() {
		t.Errorf("a trial whose lease has lapsed: %+v", got)
	}
}

// reinstated: a trial that is not usable leaves its license key, so that the program can go on later.
func (w *world) reinstated(t *testing.T) {
	p := w.person(t, "editor")
	p.try(t)
	p.deactivate(t)
	p.suspend(t)
	want := outcome{Code: 40302, Reason: client.ReasonLicenseSuspended}
	if got := p.does("trial"); got != want || p.runs() {
		t.Errorf("a trial that was given back, and is suspended: %+v, want %+v", got, want)
	}
	if got := p.does("refresh"); got.OK || got.Reason != client.ReasonLicenseSuspended {
		t.Errorf("refresh: %+v", got)
	}
	must[*client.License](t)(p.api.Licenses.Reinstate(t.Context(), p.key, ""))
	if got := p.does("activate", func(c *call) { c.LicenseKey = "" }); got != good || !p.runs() {
		t.Errorf("the stored license, reinstated: %+v", got)
	}
}

// keepsPaid: a trial that has ended or was given back does not replace a license that was bought beside it.
func (w *world) keepsPaid(t *testing.T) {
	for name, shop := range map[string]func(*person, *testing.T){
		"has ended": (*person).expire, "was given back": (*person).deactivate,
	} {
		p := w.person(t, "editor")
		paid := p.key
		p.try(t)
		shop(p, t)
		if got := p.does("activate", func(c *call) { c.LicenseKey = paid }); got != good {
			t.Fatalf("activate: %+v", got)
		}
		if got := p.does("trial"); got.OK || p.state(t)["license_key"] != paid || !p.runs() {
			t.Errorf("a trial that %s, beside a paid license: %+v", name, got)
		}
	}
}

// handOver gives the license back, and activates it on another device.
func (p *person) handOver(t *testing.T) {
	p.deactivate(t)
	must[*client.Activated](t)(p.api.Activate(t.Context(),
		client.Activation{LicenseKey: p.key, DeviceID: "another"}))
}
