package main

import (
	"strings"
	"testing"

	"licet/client"
)

// The journal of a small run in which all went well: license A has room for
// three, B for one; one device came and went, one came to a full license; an
// order was paid; and an answer was lost.
const goodJournal = `bind A one 7 100 110 ok
bind A guest 7 120 130 ok
remove A guest 7 140 150 ok
bind B one 7 100 110 ok
bind B two 7 120 130 full
bind A maybe 7 160 170 unknown
order k1 7 200 210 ok O1 0
order k2 7 200 210 ok O2 0
pay O1 7 220 230 unknown
pay O1 7 240 250 ok
paid O1 L
bind L one 7 260 270 ok
`

// goodStore is what is stored after it.
func goodStore() *stored {
	license := func(order string, most int, devices ...string) *storedLicense {
		l := &storedLicense{
			License: client.License{OrderNo: order, MaxDevices: most,
				CurrentDevices: len(devices)}, devices: map[string]bool{},
		}
		for _, d := range devices {
			l.devices[d] = true
		}
		return l
	}
	st := &stored{
		licenses: map[string]*storedLicense{
			"A": license("", 3, "seed-0", "one"), "B": license("", 1, "one"), "L": license("O1", 3, "one"),
		},
		orders: map[string]*client.Order{
			"O1": {OrderNo: "O1", Status: "paid", LicenseKey: "L", BuyerEmail: "Anna@example.com"},
			"O2": {OrderNo: "O2", Status: "unpaid"},
		},
		totals: map[string]int{"license": 3, "order": 2},
	}
	st.list()
	return st
}

// list makes the lists of a store: of everything, of the unpaid orders, and of the licenses of a buyer.
func (st *stored) list() {
	l := lists{map[client.OrderFilter][]client.Order{}, map[client.LicenseFilter][]client.License{}}
	for _, o := range st.orders {
		l.orders[client.OrderFilter{}] = append(l.orders[client.OrderFilter{}], *o)
	}
	for key, found := range st.licenses {
		found.LicenseKey = key
		l.licenses[client.LicenseFilter{}] = append(l.licenses[client.LicenseFilter{}], found.License)
	}
	l.orders[unpaid()] = []client.Order{*st.orders["O2"]}
	l.licenses[annas()] = []client.License{st.licenses["L"].License}
	st.lists = []lists{l}
}

func unpaid() client.OrderFilter { return client.OrderFilter{Status: "unpaid"} }

func annas() client.LicenseFilter { return client.LicenseFilter{BuyerEmail: "ANNA@EXAMPLE.COM"} }

func proofOf(t *testing.T, text string, st *stored) *proof {
	t.Helper()
	j := newJournal()
	j.seed([]*seeded{{group: &group{}, key: "A", bound: []string{"seed-0"}}, {group: &group{}, key: "B"}})
	if err := j.read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return compare(j, st)
}

func TestProofOfAGoodRun(t *testing.T) {
	p := proofOf(t, goodJournal, goodStore())
	if len(p.Problems) > 0 {
		t.Fatal(p.Problems)
	}
	want := []fact{
		{"bound devices", 4, 4, 1},
		{"orders", 2, 2, 0},
		{"paid orders, each with its license", 1, 1, 0},
		{"orders and licenses in lists", 5, 5, 0},
		{"licenses in the whole store", 3, 3, 0},
		{"orders in the whole store", 2, 2, 0},
	}
	for i, f := range want {
		if i >= len(p.Facts) || p.Facts[i] != f {
			t.Fatalf("got %+v, want %+v", p.Facts, want)
		}
	}
}

// TestUncertainResultsMayGoEitherWay has the lost answer turn out to be a
// binding after all.
func TestUncertainResultsMayGoEitherWay(t *testing.T) {
	st := goodStore()
	st.licenses["A"].devices["maybe"] = true
	st.licenses["A"].CurrentDevices++
	st.list()
	if p := proofOf(t, goodJournal, st); len(p.Problems) > 0 {
		t.Fatal(p.Problems)
	}
	// An order whose number no client has got.
	st.totals["order"]++
	if p := proofOf(t, goodJournal+"order k3 7 300 310 unknown - 0\n", st); len(p.Problems) > 0 {
		t.Fatal(p.Problems)
	}
}

// TestFalsifiedJournal adds lines that no answer of the service explains: the
// proof must fail, and say why.
func TestFalsifiedJournal(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		p := proofOf(t, goodJournal+line+"\n", goodStore())
		if len(p.Problems) == 0 || !strings.Contains(strings.Join(p.Problems, "\n"), want) {
			t.Errorf("%s: got %q, want %q", line, p.Problems, want)
		}
	}
	f("bind A lost 7 300 310 ok", "device lost was acknowledged as bound, and is not")
	f("bind A guest 7 300 310 ok", "device guest was acknowledged as bound, and is not")
	f("remove A one 7 300 310 ok", "device one is bound, although its removal was acknowledged")
	f("bind L late 7 300 310 full", "refused a device as full, and has 1 of 3")
	f("bind C one 7 300 310 ok", "license C was used, and is not there")
	f("order k4 7 300 310 ok O4 0", "order O4 was acknowledged, and is not there")
	f("pay O2 7 300 310 ok", "order O2 was acknowledged as paid, and is unpaid")
	f("paid O1 M", "order O1 showed license M, and has L")
	f("cancel O2 7 300 310 ok", "order O2 was acknowledged as canceled, and is unpaid")
	f("wrong 0 {}", "a wrong answer")
}

// leasedJournal is the journal of a license with one slot, whose leases last 30 seconds: a device took a lease and
// renewed it, another was refused, and the other took the slot once the lease had lapsed.
const leasedJournal = `lease S one 7 1000 1010 ok 30
lease S one 7 11000 11010 ok 30
lease S two 8 20000 20010 full 0
lease S two 8 41500 41510 full 0
lease S three 8 49000 49010 ok 30
lease S four 8 60000 60010 unknown 0
`

// TestProofOfLeases adds lines about leases that no service may answer.
func TestProofOfLeases(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		st := goodStore()
		st.licenses["S"] = &storedLicense{License: client.License{MaxDevices: 1}, devices: map[string]bool{}}
		st.totals["license"]++
		if line == "device" {
			st.licenses["S"].devices["one"], st.licenses["S"].CurrentDevices, line = true, 1, ""
		}
		st.list()
		p := proofOf(t, goodJournal+leasedJournal+line, st)
		if got := strings.Join(p.Problems, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	f("", "")
	f("lease S five 9 90000 90010 full 0\n", "") // by the device whose answer was lost
	f("lease S two 9 40000 40010 ok 30\n", "had 2 leases at once, and allows 1")
	f("lease S two 9 500 510 full 0\n", "refused device two as full, and at most 0 of 1 slots were taken")
	f("lease S two 9 48100 48200 full 0\n", "refused device two as full, and at most 0 of 1 slots were taken")
	f("device", "device one still has its lease")
}

// TestDamagedStore removes acknowledged changes from the store, or adds changes without a request.
func TestDamagedStore(t *testing.T) {
	f := func(want string, damage func(*stored)) {
		t.Helper()
		st := goodStore()
		damage(st)
		p := proofOf(t, goodJournal, st)
		if len(p.Problems) == 0 || !strings.Contains(strings.Join(p.Problems, "\n"), want) {
			t.Errorf("got %q, want %q", p.Problems, want)
		}
	}
	f("device seed-0 was acknowledged as bound, and is not", func(st *stored) {
		delete(st.licenses["A"].devices, "seed-0")
		st.licenses["A"].CurrentDevices--
	})
	f("counts 1 devices and lists 2", func(st *stored) { st.licenses["A"].CurrentDevices = 1 })
	f("device guest is bound, although its removal", func(st *stored) { st.licenses["A"].devices["guest"] = true })
	f("device strange is bound, and no request bound it",
		func(st *stored) { st.licenses["A"].devices["strange"] = true })
	f("has 2 devices and allows 1", func(st *stored) { st.licenses["B"].devices["two"] = true })
	f("license B was used, and is not there", func(st *stored) { delete(st.licenses, "B") })
	f("its license is not there", func(st *stored) { delete(st.licenses, "L") })
	f("names another order", func(st *stored) { st.licenses["L"].OrderNo = "" })
	f("order O2 is paid, and no request paid it",
		func(st *stored) { *st.orders["O2"] = client.Order{Status: "paid", LicenseKey: "A"} })
	f("order O2 is canceled, and no request canceled it", func(st *stored) { st.orders["O2"].Status = "canceled" })
	f("have the same license", func(st *stored) { *st.orders["O2"] = client.Order{Status: "paid", LicenseKey: "L"} })
	f("and has a license", func(st *stored) { st.orders["O2"].LicenseKey = "L" })
	f("the store has 4 licenses", func(st *stored) { st.totals["license"] = 4 })
	f("the store has 3 orders", func(st *stored) { st.totals["order"] = 3 })
	f("order O3 is in no list", func(st *stored) { st.orders["O3"] = &client.Order{OrderNo: "O3", Status: "unpaid"} })
	f("order O2 is listed twice", func(st *stored) {
		all := st.lists[0].orders
		all[client.OrderFilter{}] = append(all[client.OrderFilter{}], *st.orders["O2"])
	})
	f("license B is listed as", func(st *stored) { st.licenses["B"].Status = "revoked" })
	f("has 0 records, and 1 match", func(st *stored) { st.lists[0].orders[unpaid()] = nil })
	f("has 2 records, and 1 match", func(st *stored) {
		st.lists[0].licenses[annas()] = append(st.lists[0].licenses[annas()], st.licenses["A"].License)
	})
}

// TestConcurrentEffects is about what may have come first.
func TestConcurrentEffects(t *testing.T) {
	f := func(bound, free bool, lines ...string) {
		t.Helper()
		j := newJournal()
		if err := j.read(strings.NewReader(strings.Join(lines, "\n"))); err != nil {
			t.Fatal(err)
		}
		d := j.license("A").device("x")
		if d.mayBeBound() != bound || d.mayBeFree() != free {
			t.Errorf("%q: may be bound %v, may be free %v", lines, d.mayBeBound(), d.mayBeFree())
		}
	}
	f(false, true)
	f(true, false, "bind A x 7 10 20 ok")
	f(true, true, "bind A x 7 10 20 unknown")
	f(false, true, "bind A x 7 10 20 ok", "remove A x 7 30 40 ok")
	f(true, true, "bind A x 7 10 20 ok", "remove A x 7 30 40 unknown")
	f(true, true, "bind A x 7 10 20 ok", "remove A x 8 15 25 ok")
	f(true, true, "bind A x 7 10 20 ok", "remove A x 8 20 25 ok")
	// Within a millisecond the clock does not tell, but the client does.
	f(false, true, "bind A x 7 10 20 ok", "remove A x 7 20 25 ok")
	f(true, false, "remove A x 7 10 20 ok", "bind A x 7 20 25 ok")
	f(true, false, "remove A x 7 10 20 ok", "bind A x 7 30 40 ok")
	// A removal whose answer was lost may come after everything else.
	f(true, true, "remove A x 7 10 20 unknown", "bind A x 7 30 40 ok")
	// So may a lost binding.
	f(true, true, "bind A x 7 10 20 unknown", "remove A x 7 30 40 ok")
}

func TestBrokenJournal(t *testing.T) {
	for _, line := range []string{
		"", "bind A x 7 10 20", "bind A x 7 ten 20 ok", "bind A x 7 10 twenty ok", "bind A x 7 10 20 perhaps",
		"grant A", "pay O1 7 10 20",
	} {
		if err := newJournal().read(strings.NewReader(line + "\n")); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}
