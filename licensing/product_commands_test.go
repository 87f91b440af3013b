package licensing_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
)

var described = licensing.PutProduct{
	ID: app, Owner: shop, Name: "The App",
	Terms: licensing.Terms{
		KeyPrefix: "APP", MaxDevices: 5, Validity: licensing.Period{Years: 1}, FromActivation: true,
		SelfService: licensing.SelfService{Allowed: true, RemovalsPerMonth: 2},
	},
	Metadata: `{"sku":7}`,
}

func TestPutProduct(t *testing.T) {
	var r licensing.Record
	want := &licensing.Product{
		ID: app, Owner: shop, Name: "The App", Terms: described.Terms, Metadata: `{"sku":7}`, CreatedAt: noon,
	}
	check := func(what string, c licensing.PutProduct, now time.Time, created, changed bool) {
		t.Helper()
		result := must(t, &r, c, now)
		if diff := cmp.Diff(want, r.Product); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(want, result.Product); diff != "" || result.Created != created || r.Changed != changed {
			t.Errorf("%s: created %v, changed %v; answered (-want +got):\n%s", what, result.Created, r.Changed, diff)
		}
	}
	check("the first time", described, noon, true, true)
	check("the same again", described, noon.Add(day), false, false)

	other := licensing.PutProduct{ID: app, Owner: shop, Terms: licensing.DefaultTerms()}
	want = &licensing.Product{ID: app, Owner: shop, Terms: licensing.DefaultTerms(), CreatedAt: noon}
	check("something else, which replaces all of it", other, noon.Add(day), false, true)

	must(t, &r, licensing.DeleteProduct{}, noon.Add(2*day))
	want.CreatedAt = noon.Add(3 * day)
	check("after it was removed", other, noon.Add(3*day), true, true)
}

func TestDeleteProduct(t *testing.T) {
	var r licensing.Record
	refuses(t, &r, licensing.DeleteProduct{}, noon, licensing.ReasonProductNotFound)
	put := must(t, &r, described, noon)
	gone := must(t, &r, licensing.DeleteProduct{}, noon.Add(day))
	if r.Product != nil || !r.Changed || gone.Product == nil || gone.Product.Name != put.Product.Name {
		t.Errorf("left %+v, changed %v, answered %+v", r.Product, r.Changed, gone.Product)
	}
	refuses(t, &r, licensing.DeleteProduct{}, noon.Add(day), licensing.ReasonProductNotFound)
}

// TestProductAnswersStay: commands that are folded after a command do not change the answer of that command.
func TestProductAnswersStay(t *testing.T) {
	var r licensing.Record
	first, err := licensing.Apply(&r, described, noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []licensing.Command{licensing.PutProduct{ID: app, Owner: shop, Name: "Renamed"},
		licensing.DeleteProduct{}} {
		if _, err := licensing.Apply(&r, c, noon.Add(day)); err != nil {
			t.Fatal(err)
		}
	}
	if first.Product.Name != "The App" || !first.Created {
		t.Errorf("answered %+v", first.Product)
	}
}

// TestLaterLicensesOnly: a license keeps the terms it was issued with.
func TestLaterLicensesOnly(t *testing.T) {
	var r licensing.Record
	must(t, &r, described, noon)
	l := r.Product.Terms.Issue(shopKey, shop, app, "", noon)
	before := *l
	must(t, &r, licensing.PutProduct{ID: app, Owner: shop, Terms: licensing.DefaultTerms()}, noon)
	if diff := cmp.Diff(before, *l); diff != "" {
		t.Errorf("the license changed (-before +after):\n%s", diff)
	}
	if later := r.Product.Terms.Issue(otherKey, shop, app, "", noon); later.MaxDevices != 3 ||
		later.SelfService.Allowed {
		t.Errorf("a later license is %+v", later)
	}
}
