package licensing

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGrowthOfCommands lists the growth of every command, so that the author of a new command has to decide.
func TestGrowthOfCommands(t *testing.T) {
	limit := 1
	want := []struct {
		command Command
		growth  Growth
	}{
		{Seen{}, NoGrowth},
		{RemoveDevice{}, NoGrowth},
		{ValidateLicense{}, NoGrowth},
		{DeactivateDevice{}, NoGrowth},
		{SuspendLicense{}, NoGrowth},
		{ReinstateLicense{}, NoGrowth},
		{RevokeLicense{}, NoGrowth},
		{RenewLicense{}, RequiredGrowth},
		{UpdateLicense{MaxDevices: &limit}, NoGrowth},
		{ExpireLicense{}, BoundedGrowth},
		{GiveNotice{}, BoundedGrowth},
		{LapseLeases{}, NoGrowth},
		{PayOrder{}, RequiredGrowth},
		{PayOutside{}, RequiredGrowth},
		{AddPayment{}, RequiredGrowth},
		{AddInvoice{}, RequiredGrowth},
		{CountInvoice{}, RequiredGrowth},
		{NoteSubscription{}, RequiredGrowth},
		{EndSubscription{}, RequiredGrowth},
		{ChangeSubscription{}, RequiredGrowth},
		{ExtendLicense{}, RequiredGrowth},
		{NoteInvoiceRefund{}, RequiredGrowth},
		{RefundInvoice{}, RequiredGrowth},
		{CountInvoiceRefund{}, RequiredGrowth},
		{ReturnPeriod{}, RequiredGrowth},
		{AddSecond{}, RequiredGrowth},
		{AddUnmatched{}, RequiredGrowth},
		{CountSecond{}, RequiredGrowth},
		{AddFee{}, RequiredGrowth},
		{CountFee{}, RequiredGrowth},
		{RequestReturn{}, RequiredGrowth},
		{TryReturn{}, RequiredGrowth},
		{WithdrawReturn{}, RequiredGrowth},
		{StartCheckout{}, BoundedGrowth},
		{NoteCheckout{}, RequiredGrowth},
		{NoteAnswer{}, RequiredGrowth},
		{PutOffAsk{}, RequiredGrowth},
		{PlayCheckout{}, BoundedGrowth},
		{FailNextRefund{}, BoundedGrowth},
		{PlaySubscription{}, BoundedGrowth},
		{PlayRefund{}, BoundedGrowth},
		{CancelOrder{}, NoGrowth},
		{ExpireOrder{}, BoundedGrowth},
		{RequestRefund{}, NoGrowth},
		{TryRefund{}, RequiredGrowth},
		{WithdrawRefund{}, RequiredGrowth},
		{IssueLicenses{}, RequiredGrowth},
		{ChangeOthers{}, RequiredGrowth},
		{NotePendingRefund{}, RequiredGrowth},
		{RefundOrder{}, RequiredGrowth},
		{NoteRefund{}, RequiredGrowth},
		{TakeBackRefund{}, RequiredGrowth},
		{PutRefund{}, RequiredGrowth},
		{NoteDispute{}, RequiredGrowth},
		{PutDispute{}, RequiredGrowth},
		{PlanDisputes{}, RequiredGrowth},
		{EndDisputes{}, RequiredGrowth},
		{SuspendForDispute{}, RequiredGrowth},
		{RedactOrder{}, NoGrowth},
		{RedactLicense{}, NoGrowth},
		{PutProduct{}, OrdinaryGrowth},
		{DeleteProduct{}, NoGrowth},
		{BeginRollout{}, NoGrowth},
		{AdvanceRollout{}, NoGrowth},
		{CancelRollout{}, NoGrowth},
		{ApplyTerms{}, NoGrowth},
		{CreateEndpoint{}, OrdinaryGrowth},
		{UpdateEndpoint{Enabled: new(bool)}, NoGrowth},
		{DeleteEndpoint{}, NoGrowth},
		{RotateEndpointSecret{}, NoGrowth},
		{DisableEndpoint{}, NoGrowth},
		{AddUsage{}, NoGrowth},
		{ChangeSettings{}, OrdinaryGrowth},
		{FixKeyMatching{}, OrdinaryGrowth},
		{MakeReceiptKeys{}, RequiredGrowth},
		{RotateReceiptKeys{}, NoGrowth},
		{SealReceiptKeys{}, NoGrowth},
		{ReissueLicense{}, NoGrowth},
		{SetUsage{}, NoGrowth},
		{StartTrial{}, OrdinaryGrowth},
		{UpgradeTrial{}, RequiredGrowth},
		{ForgetTrial{}, NoGrowth},
		{DropTrial{}, NoGrowth},
	}
	tested := map[string]bool{"Activate": true} // by TestGrowthOfActivations
	for _, test := range want {
		tested[reflect.TypeOf(test.command).Name()] = true
		if growth := GrowthOf(test.command, &Record{}, time.Now()); growth != test.growth {
			t.Errorf("%#v: growth %d, want %d", test.command, growth, test.growth)
		}
	}
	if all := commandsOfPackage(t); !maps.Equal(all, tested) {
		t.Errorf("commands of the package: %v\ntested: %v", slices.Sorted(maps.Keys(all)),
			slices.Sorted(maps.Keys(tested)))
	}
}

// commandsOfPackage returns the names of the types that have the method apply of a Command.
func commandsOfPackage(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	commands := make(map[string]bool)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			method, ok := declared.(*ast.FuncDecl)
			if ok && method.Name.Name == "apply" && method.Recv != nil {
				commands[method.Recv.List[0].Type.(*ast.Ident).Name] = true
			}
		}
	}
	return commands
}

// TestGrowthOfActivations: the record decides whether an activation binds a new device, and whether the license
// bounds the number of its devices.
func TestGrowthOfActivations(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	key := LicenseID{1}.Key("LIC")
	command := Activate{Target: Target{Key: key}, Device: "laptop", Name: "new name", Named: true}
	other := command
	other.ProductID = "lite"
	bound := Devices{"laptop": {Device: Device{ID: "laptop"}, Bound: true}}
	free := Devices{"laptop": {}}
	for name, test := range map[string]struct {
		command Activate
		record  Record
		growth  Growth
	}{
		"no such license": {command, Record{Devices: free}, NoGrowth},
		"another product": {other, Record{License: &License{Key: key, ProductID: "pro"}, Devices: free}, NoGrowth},
		"a revoked license": {command,
			Record{License: &License{Key: key, RevokedAt: now.Add(-time.Hour)}, Devices: free}, NoGrowth},
		"a bound device":    {command, Record{License: &License{Key: key}, Devices: bound}, NoGrowth},
		"unlimited devices": {command, Record{License: &License{Key: key}, Devices: free}, OrdinaryGrowth},
		"a free slot": {command,
			Record{License: &License{Key: key, MaxDevices: 2, CurrentDevices: 1}, Devices: free}, BoundedGrowth},
		"no free slot": {command,
			Record{License: &License{Key: key, MaxDevices: 2, CurrentDevices: 2}, Devices: free}, NoGrowth},
	} {
		record := test.record.Clone() // the rows share their devices
		if growth := GrowthOf(test.command, &record, now); growth != test.growth {
			t.Errorf("%s: growth %d, want %d", name, growth, test.growth)
		}
		if !reflect.DeepEqual(record, test.record) {
			t.Errorf("%s: GrowthOf changed the record", name)
		}
		result, err := Apply(&record, test.command, now)
		if binds := err == nil && result.Bound; binds != (test.growth != NoGrowth) {
			t.Errorf("%s: growth %d, but Apply binds a device: %v, %v", name, test.growth, binds, err)
		}
	}
}

// TestGrowthOfReplacements: the record decides whether new metadata, a product or an endpoint takes more than before.
func TestGrowthOfReplacements(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	key := LicenseID{1}.Key("LIC")
	owner, other := Owner{AccountID: "acct_1", Mode: Live}, Owner{AccountID: "acct_2", Mode: Live}
	metadata := func(patch string) UpdateLicense {
		return UpdateLicense{Target: Target{Key: key, Caller: owner}, Metadata: patch, MaxDevices: new(7)}
	}
	with := func(object string) Record {
		return Record{License: &License{Key: key, Owner: owner, MaxDevices: 9}, Metadata: &Metadata{Object: object}}
	}
	product := func(name, metadata string) PutProduct {
		return PutProduct{ID: "pro", Owner: owner, Name: name, Metadata: metadata, Terms: Terms{MaxDevices: 1000}}
	}
	pro := Record{Product: &Product{ID: "pro", Owner: owner, Name: "Pro", Metadata: `{"a":1}`}}
	activations := []EventType{EventDeviceBound, EventDeviceRemoved}
	hooks := Record{Webhooks: &Webhooks{Owner: owner, Endpoints: []Endpoint{
		{ID: "we_1", URL: "https://shop.example/", Description: "the shop", Types: activations}}}}
	for name, test := range map[string]struct {
		command Command
		record  Record
		growth  Growth
	}{
		"the first metadata":        {metadata(`{"a":1}`), with(""), OrdinaryGrowth},
		"longer metadata":           {metadata(`{"b":1}`), with(`{"a":1}`), OrdinaryGrowth},
		"metadata of the same size": {metadata(`{"a":2}`), with(`{"a":1}`), Replacement},
		"shorter metadata":          {metadata(`{"a":"x"}`), with(`{"a":"long"}`), Replacement},
		"a member for a longer one": {metadata(`{"a":null,"b":1}`), with(`{"a":"long"}`), Replacement},
		"no metadata":               {metadata(`{"a":null}`), with(`{"a":1}`), Replacement},
		"shorter metadata, and more devices": {UpdateLicense{Target: Target{Key: key}, MaxDevices: new(10),
			Metadata: `{"a":null}`}, with(`{"a":1}`), OrdinaryGrowth},
		"metadata as it is":         {metadata(`{"a":1}`), with(`{"a":1}`), NoGrowth},
		"metadata that is too long": {metadata(`{"a":"` + strings.Repeat("x", MaxMetadataBytes) + `"}`), with(""), NoGrowth},
		"metadata of a foreign license": {metadata(`{"a":1}`),
			Record{License: &License{Key: key, Owner: other}, Metadata: &Metadata{}}, NoGrowth},
		"metadata of no license": {metadata(`{"a":1}`), Record{}, NoGrowth},

		"a new product":    {product("", ""), Record{}, OrdinaryGrowth},
		"a longer product": {product("Prof", `{"a":1}`), pro, OrdinaryGrowth},
		"other terms":      {product("Pro", `{"a":1}`), pro, Replacement},
		"a shorter product": {product("Professional", ""),
			Record{Product: &Product{Name: "Pro", Metadata: `{"a":"long"}`}}, Replacement},
		"product with metadata": {product("", `{"a":"long"}`), pro, OrdinaryGrowth},

		"a longer URL":  {UpdateEndpoint{ID: "we_1", URL: new("https://shop.example/hook")}, hooks, OrdinaryGrowth},
		"a shorter URL": {UpdateEndpoint{ID: "we_1", URL: new("https://a.example/")}, hooks, Replacement},
		"a longer description": {UpdateEndpoint{ID: "we_1", Description: new("the second shop")}, hooks,
			OrdinaryGrowth},
		"no description, and a longer URL": {UpdateEndpoint{ID: "we_1", Description: new(""),
			URL: new("https://shop.example/a")}, hooks, Replacement},
		"one type of two": {UpdateEndpoint{ID: "we_1", Types: new(activations[:1])}, hooks, Replacement},
		"all types":       {UpdateEndpoint{ID: "we_1", Types: new([]EventType)}, hooks, Replacement},
		"another type": {UpdateEndpoint{ID: "we_1", Types: new(append(activations, EventLicenseActivated))},
			hooks, OrdinaryGrowth},
		"a disabled endpoint": {UpdateEndpoint{ID: "we_1", Enabled: new(bool)}, hooks, NoGrowth},
		"no endpoint":         {UpdateEndpoint{ID: "we_2", URL: new("https://shop.example/hook")}, hooks, NoGrowth},
	} {
		record := test.record.Clone()
		if growth := GrowthOf(test.command, &record, now); growth != test.growth {
			t.Errorf("%s: growth %d, want %d", name, growth, test.growth)
		}
		if !reflect.DeepEqual(record, test.record) {
			t.Errorf("%s: GrowthOf changed the record", name)
		}
		if _, err := Apply(&record, test.command, now); err != nil && test.growth != NoGrowth {
			t.Errorf("%s: %v, but growth %d", name, err, test.growth)
		}
	}
	unread := Record{License: &License{Key: key, Owner: owner}}
	if growth := GrowthOf(metadata(`{"a":1}`), &unread, now); growth != OrdinaryGrowth {
		t.Errorf("metadata that was not read: growth %d", growth)
	}
}

// TestGrowthOfReasons: a long reason is urgent growth where the command stores it, and a change without one is not.
func TestGrowthOfReasons(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	target := Target{Key: LicenseID{1}.Key("LIC")}
	small, long := strings.Repeat("x", MaxSmallReason), strings.Repeat("x", MaxSmallReason+1)
	license := func(l License) Record { l.Key = target.Key; return Record{License: &l, Metadata: &Metadata{}} }
	usable := license(License{})
	suspended, revoked := license(License{SuspendedAt: now}), license(License{RevokedAt: now})
	unpaid := Record{Order: &Order{ExpiresAt: now.Add(time.Hour)}}
	paid := Record{Order: &Order{OrderPayment: OrderPayment{PaidAt: now}}}
	due := Record{Order: &Order{OrderPayment: OrderPayment{PaidAt: now, RefundDue: true}}}
	canceled := Record{Order: &Order{CanceledAt: now}}
	back := Record{Order: &Order{OrderPayment: OrderPayment{PaidAt: now, RefundedAt: now, Paid: 100}}}
	for name, test := range map[string]struct {
		command func(reason string) Command
		record  Record
		growth  Growth // with a small reason
		stores  bool   // the reason
	}{
		"suspend":           {func(r string) Command { return SuspendLicense{target, r} }, usable, NoGrowth, true},
		"suspend suspended": {func(r string) Command { return SuspendLicense{target, r} }, suspended, NoGrowth, false},
		"suspend revoked":   {func(r string) Command { return SuspendLicense{target, r} }, revoked, NoGrowth, false},
		"revoke":            {func(r string) Command { return RevokeLicense{target, r} }, suspended, NoGrowth, true},
		"revoke revoked":    {func(r string) Command { return RevokeLicense{target, r} }, revoked, NoGrowth, false},
		"revoke nothing":    {func(r string) Command { return RevokeLicense{target, r} }, Record{}, NoGrowth, false},
		"cancel":            {func(r string) Command { return CancelOrder{Reason: r} }, unpaid, NoGrowth, true},
		"cancel canceled":   {func(r string) Command { return CancelOrder{Reason: r} }, canceled, NoGrowth, false},
		"refund":            {func(r string) Command { return RequestRefund{Reason: r} }, paid, RequiredGrowth, true},
		"refund again":      {func(r string) Command { return RequestRefund{Reason: r} }, due, NoGrowth, false},
		"refund refunded":   {func(r string) Command { return RequestRefund{Reason: r} }, back, NoGrowth, false},
		"refund unpaid":     {func(r string) Command { return RequestRefund{Reason: r} }, unpaid, NoGrowth, false},
	} {
		if growth := GrowthOf(test.command(small), &test.record, now); growth != test.growth {
			t.Errorf("%s: growth %d, want %d", name, growth, test.growth)
		}
		want := test.growth
		if test.stores {
			want = UrgentGrowth
		}
		record := test.record.Clone()
		if growth := GrowthOf(test.command(long), &record, now); growth != want {
			t.Errorf("%s with a long reason: growth %d, want %d", name, growth, want)
		}
		_, _ = Apply(&record, test.command(long), now)
		stored := record.License != nil && record.License.StateReason == long ||
			record.Order != nil && record.Order.StateReason == long
		if stored != test.stores {
			t.Errorf("%s: stores its reason: %v", name, stored)
		}
	}
	if growth := GrowthOf(ReissueLicense{Target: target}, &usable, now); growth != UrgentGrowth {
		t.Errorf("a new key: growth %d", growth)
	}
}

// TestGrowthOfDeviceLimits: a device limit that lets more devices be bound within it is urgent growth.
func TestGrowthOfDeviceLimits(t *testing.T) {
	key := LicenseID{1}.Key("LIC")
	for _, test := range []struct {
		from, devices, to int
		growth            Growth
	}{
		{3, 1, 4, UrgentGrowth},
		{3, 1, 2, NoGrowth},
		{3, 1, 3, NoGrowth},
		{3, 1, 0, NoGrowth}, // devices of an unlimited license are ordinary growth themselves
		{0, 5, 5, NoGrowth},
		{0, 5, 6, UrgentGrowth},
		{0, 0, 1_000_000, UrgentGrowth},
		{3, 5, 5, NoGrowth},
		{3, 5, 6, UrgentGrowth},
	} {
		record := Record{License: &License{Key: key, MaxDevices: test.from, CurrentDevices: test.devices}}
		command := UpdateLicense{Target: Target{Key: key}, MaxDevices: &test.to}
		if growth := GrowthOf(command, &record, time.Now()); growth != test.growth {
			t.Errorf("%+v: growth %d", test, growth)
		}
	}
}
