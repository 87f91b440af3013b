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
	text, limit := "x", 1
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
		{UpdateLicense{MaxDevices: &limit, Metadata: "{}"}, OrdinaryGrowth},
		{ExpireLicense{}, BoundedGrowth},
		{PayOrder{}, RequiredGrowth},
		{CancelOrder{}, NoGrowth},
		{ExpireOrder{}, BoundedGrowth},
		{RequestRefund{}, RequiredGrowth},
		{TryRefund{}, RequiredGrowth},
		{WithdrawRefund{}, RequiredGrowth},
		{RefundOrder{}, RequiredGrowth},
		{RedactOrder{}, NoGrowth},
		{RedactLicense{}, NoGrowth},
		{PutProduct{}, OrdinaryGrowth},
		{DeleteProduct{}, NoGrowth},
		{CreateEndpoint{}, OrdinaryGrowth},
		{UpdateEndpoint{Enabled: new(bool)}, NoGrowth},
		{UpdateEndpoint{URL: &text}, OrdinaryGrowth},
		{UpdateEndpoint{Description: &text}, OrdinaryGrowth},
		{UpdateEndpoint{Types: new([]EventType)}, OrdinaryGrowth},
		{DeleteEndpoint{}, NoGrowth},
		{RotateEndpointSecret{}, NoGrowth},
		{DisableEndpoint{}, NoGrowth},
		{AddUsage{}, NoGrowth},
		{SetUsage{}, NoGrowth},
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
	const key = LicenseKey("LIC-A")
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
