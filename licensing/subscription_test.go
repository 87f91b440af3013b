package licensing_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/licensing"
)

// TestSubscriptionProperties applies random invoices and answers, twice and in any order, and compares the records with
// a simple model: the sum of the invoices, the latest paid end, and the newest answer.
func TestSubscriptionProperties(t *testing.T) {
	depth.NotRaced(t)
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		order := &licensing.Order{OrderNo: "ord_1", Owner: shop, ProductID: app,
			OrderPayment: licensing.OrderPayment{Amount: 900, Currency: "USD"},
			CreatedAt:    noon, ExpiresAt: noon.Add(day)}
		order.Interval, order.BillingGrace = licensing.Period{Months: 1}, licensing.Period{Days: 3}
		order.Provider, order.Attempt, order.AskAt = licensing.ProviderStripe, 1, noon
		record := licensing.Record{Order: order}
		end := noon.AddDate(0, 1, 0)
		must(t, &record, licensing.PayOrder{
			Key: shopKey, Provider: licensing.ProviderStripe, Payment: "pi_0", Terms: licensing.DefaultTerms(),
			Subscription: "sub_1", PaidEnd: end,
		}, noon)
		license := licensing.Record{License: record.Issued[0]}
		record.Issued = nil
		payments := map[string]*licensing.Record{}
		var sum int64
		answers, status, open := 0, licensing.SubscriptionActive, licensing.SubscriptionChange{}
		expires := end.AddDate(0, 0, 3)
		for step := range 60 {
			now := noon.Add(time.Duration(step) * time.Hour)
			if random.IntN(8) == 0 {
				kinds := []licensing.ChangeKind{licensing.ChangeEnd, licensing.ChangeResume}
				change := licensing.SubscriptionChange{Kind: kinds[random.IntN(2)]}
				_, err := licensing.Apply(&record, licensing.ChangeSubscription{Change: change}, now)
				over := status == licensing.SubscriptionCanceled
				another := open.Kind != "" && open.Kind != change.Kind
				if (err != nil) != (over && change.Kind == licensing.ChangeResume || another) {
					t.Fatalf("seed %d: %s of a subscription that is %s: %v", seed, change.Kind, status, err)
				}
				if !over && open.Kind == "" {
					answers, open = answers+1, change
				}
			} else if random.IntN(3) == 0 {
				after, next := random.IntN(answers+1), licensing.SubscriptionStatuses()[random.IntN(3)]
				ended := random.IntN(2) == 0
				noted := must(t, &record,
					licensing.NoteSubscription{After: after, Status: next, ChangeEnded: ended}, now).Created
				if noted != (after == answers) {
					t.Fatalf("seed %d: an answer after %d of %d answers is recorded: %t", seed, after, answers, noted)
				}
				if noted {
					answers, status = answers+1, next
					if ended || next == licensing.SubscriptionCanceled {
						open = licensing.SubscriptionChange{}
					}
				}
			} else {
				n := random.IntN(8)
				invoice := licensing.Payment{
					OrderNo: order.OrderNo, Provider: licensing.ProviderStripe, Reference: string(rune('a' + n)),
					ProviderID: "pi", Amount: int64(n), Currency: "USD", ProductID: app,
				}
				if n%3 != 0 { // the others are prorations
					invoice.PeriodEnd = noon.AddDate(0, 1+n, 0)
				}
				known := payments[invoice.Reference] != nil
				if !known {
					payments[invoice.Reference] = &licensing.Record{}
				}
				added := must(t, payments[invoice.Reference], licensing.AddInvoice{Invoice: invoice}, now)
				must(t, &record, licensing.CountInvoice{New: added.Created, Invoice: invoice}, now)
				if added.Created {
					must(t, &license, licensing.ExtendLicense{End: order.PaidUntil(invoice.PeriodEnd)}, now)
				}
				if added.Created == known {
					t.Fatalf("seed %d: the invoice %s is new: %t", seed, invoice.Reference, added.Created)
				}
				if !known {
					sum += invoice.Amount
				}
				if invoice.PeriodEnd.After(end) {
					end, expires = invoice.PeriodEnd, invoice.PeriodEnd.AddDate(0, 0, 3)
				}
			}
			o, l := record.Order, license.License
			if o.Invoiced != sum || o.Invoices != len(payments) || !o.PaidEnd.Equal(end) || o.Answers != answers ||
				o.SubscriptionStatus != status || o.Change != open || !l.ExpiresAt.Equal(expires) {
				t.Fatalf("seed %d, step %d: %+v, license until %s; want %d of %d invoices until %s, %d answers, %s, "+
					"%+v", seed, step, o, l.ExpiresAt, sum, len(payments), end, answers, status, open)
			}
			if o.AskAt.IsZero() != (status == licensing.SubscriptionCanceled) {
				t.Fatalf("seed %d: a subscription that is %s is asked about at %s", seed, status, o.AskAt)
			}
		}
	}
}
