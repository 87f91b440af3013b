package licensing

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// smallGrowth is the most bytes that a change which no budget refuses adds to its records, its events aside:
	// a reason of MaxSmallReason bytes, and some facts.
	smallGrowth = 320
	// paidGrowth is how many bytes a payment may add: also a license with all its facts, and a provider's reference.
	paidGrowth = 1024
	// longName is the longest id and name of a device in bytes, and longReason the longest reason.
	longName, longReason = 4 * 255, 4 * 1000
)

// TestUnbudgetedGrowthIsSmall runs every command with its largest inputs. Either a budget refuses the command, or the
// command adds only a few bytes to its records.
func TestUnbudgetedGrowthIsSmall(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	owner := Owner{AccountID: "acct_1", Mode: Live}
	key := LicenseID{1}.Key("LIC")
	target := Target{Key: key, Caller: owner, By: Actor(strings.Repeat("k", 32))}
	small, long := strings.Repeat("x", MaxSmallReason), strings.Repeat("x", longReason)
	name, master := strings.Repeat("x", longName), strings.Repeat("m", 64)
	reissued := key.WithBy(strings.Repeat("b", LicenseBlockSize))
	licenseOf := func(change func(*License)) func() Record {
		return func() Record {
			l := License{Key: key, Owner: owner, MaxDevices: 2, CurrentDevices: 1, CreatedAt: now,
				SelfService: SelfService{Allowed: true, RemovalsPerMonth: 3}}
			change(&l)
			devices := Devices{"pc": {Device: Device{ID: "pc", BoundAt: now}, Bound: true},
				name: {Device: Device{ID: name}}}
			return Record{License: &l, Devices: devices, Metadata: &Metadata{}}
		}
	}
	license := licenseOf(func(*License) {})
	trial := licenseOf(func(l *License) { l.Trial, l.ExpiresAt = TrialName{1}, now.Add(-TrialMemory) })
	leased := func() Record {
		r := licenseOf(func(l *License) {
			l.Lease, l.LeasesUntil = LeaseTerms{Length: time.Minute, Longest: time.Minute}, now.Add(-time.Hour)
		})()
		r.Devices["pc"].Device.LeaseEnd = r.License.LeasesUntil
		r.Leases.All, r.ActsByTime = true, true
		return r
	}
	orderOf := func(o Order) func() Record {
		o.Owner, o.CreatedAt = owner, now
		return func() Record { o := o; return Record{Order: &o} }
	}
	unpaid := orderOf(Order{ExpiresAt: now.Add(time.Hour)})
	paidWith := func(p OrderPayment) func() Record {
		p.PaidAt = now
		return orderOf(Order{OrderPayment: p})
	}
	paid, due := paidWith(OrderPayment{}), paidWith(OrderPayment{RefundDue: true})
	subscribed := orderOf(Order{OrderSubscription: OrderSubscription{Subscription: "sub_1"}})
	returning := orderOf(Order{OrderReturns: OrderReturns{Returns: &[]Return{{Number: "ref_1"}}}})
	hooks := func() Record {
		return Record{Webhooks: &Webhooks{Owner: owner, Endpoints: []Endpoint{{ID: "we_1", URL: "https://a.example/"}}}}
	}
	signing := func() Record {
		keys := []ReceiptKey{{Number: 1, CreatedAt: now}}
		return Record{ActsByTime: true, ReceiptKeys: &ReceiptKeys{Owner: owner, Keys: keys}}
	}
	nothing := func() Record { return Record{} }
	rolledOut := func() Record {
		return Record{Product: &Product{ID: "pro", Owner: owner, Rollout: Rollout{StartedAt: now}}}
	}
	terms := Terms{KeyPrefix: "LICENSES", MaxDevices: 1_000_000, Validity: Period{Months: 1200, Days: 30_000}}
	tested := make(map[string]bool)
	for _, test := range []struct {
		record  func() Record
		command Command
		most    int // bytes; 0: smallGrowth
	}{
		{license, Activate{Target: target, Device: "pc", Name: name, Named: true}, longName + smallGrowth},
		{license, Activate{Target: target, Device: name, Name: name, Named: true}, 2*longName + smallGrowth},
		{license, Seen{Key: key, Device: "pc", At: now.Add(time.Hour)}, 0},
		{license, RemoveDevice{Target: target, Device: "pc"}, 0},
		{license, ValidateLicense{Target: target, Device: "pc", SeenStep: time.Second}, 0},
		{license, DeactivateDevice{Target: Target{Key: key}, Device: "pc"}, 0},
		{license, SuspendLicense{target, small}, 0},
		{license, SuspendLicense{target, long}, 0},
		{licenseOf(func(l *License) { l.SuspendedAt = now }), ReinstateLicense{target}, 0},
		{license, RevokeLicense{target, small}, 0},
		{license, RevokeLicense{target, long}, 0},
		{license, RenewLicense{Target: target, ExpiresAt: now.Add(time.Hour)}, 0},
		{license, UpdateLicense{Target: target, MaxDevices: new(1)}, 0},
		{license, UpdateLicense{Target: target, MaxDevices: new(1_000_000)}, 0},
		{license, UpdateLicense{Target: target, Metadata: `{"a":"` + long + `"}`}, 0},
		{license, UpdateLicense{Target: target, BuyerEmail: &long, CustomerReference: &long}, 0},
		{licenseOf(func(l *License) { l.ExpiresAt = now }), ExpireLicense{Before: now}, 0},
		{licenseOf(func(l *License) { l.ExpiresAt = now.Add(day) }), GiveNotice{Now: now, Days: "\x01"}, 0},
		{leased, Activate{Target: target, Device: "pc"}, 0},
		{leased, Activate{Target: target, Device: name}, longName + smallGrowth},
		{leased, LapseLeases{}, 0},
		{license, ReissueLicense{Target: target, New: reissued, Reason: long}, 0},
		{license, RedactLicense{Target: target}, 0},
		{unpaid, PayOrder{Payment: strings.Repeat("p", 255), Terms: terms, Key: key}, paidGrowth},
		{unpaid, PayOutside{PayOrder: PayOrder{Payment: strings.Repeat("p", 255), Terms: terms, Key: key}}, paidGrowth},
		{nothing, AddInvoice{Invoice: Payment{OrderNo: strings.Repeat("o", 34), Provider: ProviderStripe,
			Reference: strings.Repeat("i", 40), ProviderID: strings.Repeat("p", 40), Currency: "EUR", ProductID: "pro",
			Amount: MaxAmount, PaidAt: now, PeriodEnd: now}}, 640},
		{orderOf(Order{}), CountInvoice{New: true, Invoice: Payment{Amount: MaxAmount, PeriodEnd: now}}, 640},
		{subscribed, NoteSubscription{Status: SubscriptionPastDue, CancelAt: now}, 640},
		{subscribed, EndSubscription{}, 640},
		{subscribed, ChangeSubscription{SubscriptionChange{Kind: ChangeResume}}, 0},
		{license, ExtendLicense{End: now.Add(day)}, 640},
		{nothing, NoteInvoiceRefund{Refund: Payment{OrderNo: strings.Repeat("o", 34), Provider: ProviderStripe,
			Reference: strings.Repeat("r", 40), ProviderID: strings.Repeat("r", 40), Refunds: strings.Repeat("i", 40),
			Currency: "EUR", ProductID: "pro", Amount: MaxAmount, PaidAt: now, By: Provider}}, 640},
		{func() Record { return Record{Payment: &Payment{Kind: KindOfInvoice, Amount: 900}} },
			RefundInvoice{Back: 900, Uncounted: 900}, 640},
		{subscribed, CountInvoiceRefund{Back: 900, PaidEnd: now}, 640},
		{nothing, AddUnmatched{Payment{OrderNo: strings.Repeat("o", 34), Provider: ProviderStripe,
			Reference: strings.Repeat("p", 40), Currency: "EUR", ProductID: "pro", Amount: MaxAmount,
			PaidAt: now}}, 640},
		{nothing, AddSecond{Payment{OrderNo: strings.Repeat("o", 34), Provider: ProviderStripe,
			Reference: strings.Repeat("p", 40), Currency: "EUR", ProductID: "pro", Amount: MaxAmount,
			PaidAt: now}}, 640},
		{paidWith(OrderPayment{Payment: "pi_1"}), CountSecond{New: true,
			Payment: Payment{Reference: strings.Repeat("p", 40), Amount: MaxAmount}}, 640},
		{func() Record { return Record{Payment: &Payment{OrderNo: "ord_1"}} },
			AddFee{OrderNo: "ord_1", Fee: MaxAmount}, 0},
		{paid, CountFee{New: true, Fee: MaxAmount}, 0},
		{paid, RequestReturn{By: target.By, Number: strings.Repeat("r", 34), Amount: 900,
			Invoice: Payment{Reference: strings.Repeat("i", 40), Amount: 900}}, 640},
		{returning, TryReturn{Number: "ref_1"}, 640},
		{returning, WithdrawReturn{Return: Return{Number: "ref_1"}}, 640},
		{licenseOf(func(l *License) { l.ExpiresAt = now.Add(day) }),
			ReturnPeriod{From: now.Add(day), To: now}, 640},
		{nothing, AddPayment{Order: Order{OrderNo: strings.Repeat("o", 34),
			OrderPayment: OrderPayment{Payment: strings.Repeat("p", 255)}}, By: target.By}, paidGrowth},
		{unpaid, StartCheckout{Provider: ProviderStripe}, 0},
		{orderOf(Order{Attempt: 1, AskAt: now}), NoteCheckout{Attempt: 1, Checkout: strings.Repeat("c", 255),
			EndsAt: now}, paidGrowth},
		{orderOf(Order{Attempt: 1, AskAt: now}), NoteAnswer{Attempt: 1}, 0},
		{orderOf(Order{Attempt: 1, AskAt: now}), PutOffAsk{Asked: now}, 0},
		{nothing, PlayCheckout{Attempt: 1 << 40, Outcome: SandboxPending}, 0},
		{func() Record { return Record{Sandbox: &SandboxOrder{Attempt: 1, Outcome: SandboxPending}} },
			PlayCheckout{Attempt: 1, Outcome: SandboxPaid}, 0},
		{nothing, FailNextRefund{}, 0},
		{nothing, PlaySubscription{
			Order: Order{OrderPayment: OrderPayment{PaidAt: now},
				OrderSubscription: OrderSubscription{Interval: Period{Years: 1}}},
			Play: PlayEndNow,
		}, 0},
		{func() Record { return Record{Sandbox: &SandboxOrder{RefundFails: true}} },
			PlayRefund{Number: strings.Repeat("r", 34), Ends: now}, 0},
		{orderOf(Order{OrderPayment: OrderPayment{PaidAt: now}, LicenseKey: key, Quantity: 2, LicensesIssued: 1,
			Terms: terms}),
			IssueLicenses{From: 1, Keys: []LicenseKey{key}}, paidGrowth},
		{unpaid, CancelOrder{By: target.By, Reason: small}, 0},
		{unpaid, CancelOrder{By: target.By, Reason: long}, 0},
		{orderOf(Order{ExpiresAt: now}), ExpireOrder{Before: now}, 0},
		{unpaid, PayOrder{Payment: strings.Repeat("p", 255), Terms: terms, Key: key, Upgrades: true}, paidGrowth},
		{nothing, StartTrial{Owner: owner, Terms: Terms{MaxDevices: MaxTrialDevices, Validity: Period{Days: 14}},
			Key: key, Device: name, DeviceName: name, Named: true, By: target.By}, 0},
		{trial, UpgradeTrial{Key: key, Terms: terms, By: target.By,
			Order: Order{Owner: owner, OrderNo: strings.Repeat("o", 34), LicenseKey: key}}, 0},
		{trial, ForgetTrial{Before: now}, 0},
		{func() Record { return Record{Trial: &Trial{License: key}} }, DropTrial{License: key, Drop: true}, 0},
		{paid, RequestRefund{By: target.By, Reason: small}, 0},
		{paid, RequestRefund{By: target.By, Reason: long}, 0},
		{due, TryRefund{}, 0},
		{due, WithdrawRefund{}, 0},
		{due, WithdrawRefund{Failed: strings.Repeat("r", 255)}, 0},
		{due, NotePendingRefund{}, 0},
		{due, RefundOrder{}, 0},
		{paidWith(OrderPayment{Amount: 1, Paid: 1}),
			NoteRefund{ProviderID: strings.Repeat("r", 255), Amount: 1}, paidGrowth},
		{paidWith(OrderPayment{Amount: 1, Paid: 1, Refunds: 1, Refunded: 1}),
			TakeBackRefund{Refund: Payment{Reference: "ref_1", Amount: 1}}, 0},
		{nothing, PutRefund{Refund: Payment{Reference: name}}, 0},
		{paidWith(OrderPayment{Amount: 1, Paid: 1}), NoteDispute{Dispute: Payment{
			Reference: strings.Repeat("d", 255), State: PaymentOpen, Amount: 1}}, paidGrowth},
		{subscribed, NoteDispute{Dispute: Payment{
			Reference: strings.Repeat("d", 40), State: PaymentLost, Amount: 900},
			Further: &FurtherDisputed{Payment: Payment{Kind: KindOfInvoice, Amount: 900}, PaidEnd: now}}, 640},
		{nothing, PutDispute{Dispute: Payment{Reference: name, Answers: 1}}, 0},
		{orderOf(Order{OrderDisputes: OrderDisputes{"du_1", now}}), PlanDisputes{}, 0},
		{orderOf(Order{OrderDisputes: OrderDisputes{DisputeAskAt: now}}), EndDisputes{Planned: now}, 0},
		{orderOf(Order{OrderOthers: OrderOthers{OthersSuspend, 1}}),
			ChangeOthers{Now: OrderOthers{OthersSuspend, 1}, To: 2}, 0},
		{license, SuspendForDispute{Target: target, Begin: true}, 0},
		{licenseOf(func(l *License) { l.ExpiresAt = now.Add(day) }),
			SuspendForDispute{Target: target, Begin: true, Period: ReturnPeriod{From: now.Add(day), To: now}}, 640},
		{orderOf(Order{BuyerEmail: "a@shop.example"}), RedactOrder{BuyerEmail: "a@shop.example"}, 0},
		{nothing, PutProduct{ID: "pro", Owner: owner, Name: name, Terms: terms, Metadata: long}, 0},
		{func() Record { return Record{Product: &Product{ID: "pro", Owner: owner, Name: name}} },
			PutProduct{ID: "pro", Owner: owner, Name: name, Terms: terms}, 0},
		{func() Record { return Record{Product: &Product{ID: "pro", Owner: owner}} }, DeleteProduct{}, 0},
		{func() Record { return Record{Product: &Product{ID: "pro", Owner: owner}, ActsByTime: true} },
			BeginRollout{Applies: RolloutMaxDevices, By: target.By}, 0},
		{rolledOut, AdvanceRollout{StartedAt: now, Next: strings.Repeat("c", 64),
			Counts: RolloutCounts{1 << 40, 1 << 40, 1 << 40, 1 << 40}}, 0},
		{rolledOut, CancelRollout{}, 0},
		{license, ApplyTerms{Target: target, StartedAt: now, Terms: Terms{MaxDevices: 1_000_000, Version: 1 << 63},
			Applies: 15}, 0},
		{license, ApplyTerms{Target: target, StartedAt: now, Terms: Terms{Version: 1 << 63},
			Applies: RolloutEntitlements}, 0},
		{hooks, CreateEndpoint{Owner: owner, Endpoint: Endpoint{ID: "we_2", URL: long}}, 0},
		{hooks, UpdateEndpoint{ID: "we_1", Enabled: new(bool)}, 0},
		{hooks, UpdateEndpoint{ID: "we_1", URL: &long}, 0},
		{hooks, DeleteEndpoint{ID: "we_1"}, 0},
		{hooks, RotateEndpointSecret{ID: "we_1", MasterID: master, Overlap: time.Hour}, 0},
		{hooks, DisableEndpoint{ID: "we_1", Because: DisabledByUser}, 0},
		{nothing, AddUsage{Owner: owner, Changes: []SizeChange{{1, Size{1 << 40, 1 << 40, 1 << 40}}}}, 0},
		{nothing, SetUsage{Owner: owner, Counted: Size{1 << 40, 1 << 40, 1 << 40}}, 0},
		{nothing, MakeReceiptKeys{Owner: owner, Root: SealedRoot{MasterID: master}}, 0},
		{signing, RotateReceiptKeys{}, 0},
		{signing, SealReceiptKeys{To: SealedRoot{MasterID: master}}, 0},
		{nothing, ChangeSettings{Owner: owner, ExternalKeys: MatchCompact}, 0},
		{func() Record { return Record{Settings: &Settings{Owner: owner}} },
			ChangeSettings{Owner: owner, ExternalKeys: MatchCompact}, 0},
		{func() Record { return Record{Settings: &Settings{Owner: owner}} }, FixKeyMatching{Owner: owner}, 0},
	} {
		tested[reflect.TypeOf(test.command).Name()] = true
		record := test.record()
		growth, before := GrowthOf(test.command, &record, now), storedSize(&record)
		if _, err := Apply(&record, test.command, now); err != nil {
			t.Errorf("%T: %v", test.command, err)
		}
		most := max(test.most, smallGrowth)
		if added := storedSize(&record) - before; !growth.Budgeted() && added > most {
			t.Errorf("%T adds %d bytes, which no budget refuses (growth %d); at most %d are small", test.command, added,
				growth, most)
		}
	}
	if all := commandsOfPackage(t); !maps.Equal(all, tested) {
		t.Errorf("commands of the package: %v\ntested: %v", slices.Sorted(maps.Keys(all)),
			slices.Sorted(maps.Keys(tested)))
	}
}

// storedSize returns about how many bytes a record takes, without its events. An alias is a key of its own.
func storedSize(r *Record) int {
	size := 0
	for _, part := range []any{r.License, r.Metadata, r.Devices, r.Order, r.Product, r.Webhooks, r.Usage, r.Settings,
		r.ReceiptKeys, r.Sandbox,
		r.NewAliases, r.Issued} {
		size += sizeOfValue(reflect.ValueOf(part))
	}
	return size + 64*len(r.NewAliases)
}

// sizeOfValue returns about how many bytes a value takes: those of its texts, and at most eight for each other fact.
func sizeOfValue(v reflect.Value) (size int) {
	if !v.IsValid() || v.IsZero() {
		return 0
	}
	switch v.Kind() {
	case reflect.Pointer:
		return sizeOfValue(v.Elem())
	case reflect.String:
		return v.Len()
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			size += sizeOfValue(v.Index(i))
		}
	case reflect.Map:
		for _, at := range v.MapKeys() {
			size += sizeOfValue(v.MapIndex(at))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 8
		}
		for i := range v.NumField() {
			size += sizeOfValue(v.Field(i))
		}
	case reflect.Uint8, reflect.Bool:
		return 1
	default:
		return 8
	}
	return size
}
