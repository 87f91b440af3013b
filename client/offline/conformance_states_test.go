package offline

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"licet/client"
)

// stored is a state as all clients keep it, as far as they have the same members.
type stored struct {
	AccountID  string         `json:"account_id,omitempty"`
	Mode       string         `json:"mode,omitempty"`
	LicenseKey any            `json:"license_key"`
	Documents  map[string]any `json:"documents"`
	Seen       map[string]any `json:"seen"`
	Lists      map[string]any `json:"lists,omitempty"`
}

// states puts other states into the file of a device: of other devices, from before, altered, cut off, and no states. A
// program that reads such a state does not run, and does not fail either: another activation is enough. With a state of
// a later version, which has further members, the program runs.
func (w *world) states(t *testing.T) {
	p, other := w.listed(t), w.listed(t)
	w.list(t, w.suspended(t))
	before := p.read(t)
	must[*client.License](t)(w.api.Licenses.Update(t.Context(), p.key, client.LicenseUpdate{MaxDevices: new(7)}))
	if got := p.does("validate"); got != good {
		t.Fatalf("validate: %+v", got)
	}
	if got, asked := p.refresh(); got != good || len(asked) != 1 {
		t.Fatalf("the first list: %+v with %+v, want one list", got, asked)
	}
	text := p.read(t)
	alter := func(from string, change func(*stored)) string {
		var s stored
		if err := json.Unmarshal([]byte(from), &s); err != nil {
			t.Fatal(err)
		}
		change(&s)
		return string(must[[]byte](t)(json.Marshal(s)))
	}
	var now stored
	if err := json.Unmarshal([]byte(text), &now); err != nil {
		t.Fatal(err)
	}
	document := receiptIn(t, text)
	if !p.runs() {
		t.Fatal("the program does not run with its own state")
	}

	later := alter(text, func(s *stored) {
		for _, members := range []map[string]any{s.Documents, s.Seen, s.Lists} {
			members["later"] = map[string]any{"version": 2}
		}
	})
	later = strings.Replace(later, "{", `{"later":[2],`, 1)
	if p.write(t, later); !p.runs() {
		t.Error("the program does not run with a state that a later version has stored")
	}

	for name, state := range map[string]string{
		"of another device":         other.read(t),
		"cut off":                   text[:len(text)/2],
		"without its last brace":    strings.TrimRight(text, "}\n"),
		"empty":                     "",
		"null":                      "null",
		"a list":                    "[]",
		"an object":                 "{}",
		"no UTF-8":                  "\xff\xfe" + text,
		"bytes":                     strings.Repeat("\x00", 100),
		"deep":                      strings.Repeat("[", 200_000),
		"deep within":               `{"a":` + strings.Repeat("[", 200_000),
		"documents null":            alter(text, func(s *stored) { s.Documents = nil }),
		"a receipt null":            alter(text, func(s *stored) { s.Documents["receipt"] = nil }),
		"a receipt 7":               alter(text, func(s *stored) { s.Documents["receipt"] = 7 }),
		"a receipt altered":         alter(text, func(s *stored) { s.Documents["receipt"] = "e30" + document[3:] }),
		"a receipt from before":     alter(text, func(s *stored) { s.Documents["receipt"] = receiptIn(t, before) }),
		"the documents from before": alter(before, func(s *stored) { s.Seen = now.Seen }),
		"keys null":                 alter(text, func(s *stored) { s.Documents["keys"] = nil }),
		"no keys":                   alter(text, func(s *stored) { s.Documents["keys"] = "" }),
		"a receipt as keys":         alter(text, func(s *stored) { s.Documents["keys"] = document }),
		"no lists":                  alter(text, func(s *stored) { s.Documents["revocations"] = []string{} }),
		"lists null":                alter(text, func(s *stored) { s.Documents["revocations"] = nil }),
		"lists 7":                   alter(text, func(s *stored) { s.Documents["revocations"] = []int{7} }),
		"a receipt as a list":       alter(text, func(s *stored) { s.Documents["revocations"] = []any{document} }),
		"a time of the service in a year": alter(text, func(s *stored) {
			s.Seen["time"] = s.Seen["time"].(float64) + 365*86400
		}),
	} {
		p.write(t, state)
		if p.runs() {
			t.Errorf("the program runs with a state that is %s", name)
		}
		if name == "a time of the service in a year" {
			continue // the clock is set back, as far as the program knows: no activation helps
		}
		if got := p.does("activate"); got != good || !p.runs() {
			t.Errorf("after a state that is %s, an activation ends with %+v and does not help", name, got)
		}
	}
}

// switched: a program that gets another account or mode with the same state needs nothing but an activation. Times and
// positions of the other mode do not count, although they are later.
func (w *world) switched(t *testing.T) {
	w.list(t, w.suspended(t))
	p := w.listed(t)
	if got, asked := p.refresh(); got != good || len(asked) != 1 {
		t.Fatalf("the first list: %+v with %+v, want one list", got, asked)
	}
	for name, change := range map[string]func(*stored){
		"another mode":    func(s *stored) { s.Mode = "live" },
		"another account": func(s *stored) { s.AccountID = "acct_other" },
	} {
		var s stored
		if err := json.Unmarshal([]byte(p.read(t)), &s); err != nil {
			t.Fatal(err)
		}
		if s.AccountID != w.keys.AccountID || s.Mode != w.keys.Mode {
			t.Fatalf("the state is of %q, %q", s.AccountID, s.Mode)
		}
		for _, member := range []string{"time", "keys", "epoch", "as_of", "revision"} {
			s.Seen[member] = s.Seen[member].(float64) + 1e9
		}
		later := s
		change(&later)
		for _, c := range []struct {
			state stored
			runs  bool
		}{{s, false}, {later, true}} {
			p.write(t, string(must[[]byte](t)(json.Marshal(c.state))))
			if got := p.does("activate"); got.OK != c.runs || p.runs() != c.runs {
				t.Errorf("with times of %s: %+v, want %v", name, got, c.runs)
			}
		}
	}
}

// receiptIn returns the receipt of a state.
func receiptIn(t *testing.T, text string) string {
	t.Helper()
	var s stored
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s.Documents["receipt"].(string)
}

// write stores a state in the file of the device.
func (p *listed) write(t *testing.T, state string) {
	t.Helper()
	if err := os.WriteFile(p.device.State, []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns the state of the device as it stands in its file.
func (p *listed) read(t *testing.T) string {
	t.Helper()
	return string(must[[]byte](t)(os.ReadFile(p.device.State)))
}

// afterVerdict: a device whose license was suspended, and reinstated since, still has the license, but no receipt.
func (w *world) afterVerdict(t *testing.T) {
	p := w.person(t, "editor")
	if got := p.does("activate"); got != good {
		t.Fatalf("activate: %+v", got)
	}
	p.suspend(t)
	if got, want := p.does("validate"), (outcome{Reason: client.ReasonLicenseSuspended}); got != want {
		t.Fatalf("validate: %+v, want %+v", got, want)
	}
	must[*client.License](t)(p.api.Licenses.Reinstate(t.Context(), p.key, ""))
	p.network.tell(func(f *failures) { f.away = true })
	got := p.does("check", func(c *call) { c.RetryFor = 0 })
	p.network.tell(func(f *failures) { f.away = false })
	if want := (outcome{Reason: unreachable}); got != want {
		t.Errorf("check without a network: %+v, want %+v", got, want)
	}
	if got := p.does("refresh"); got != good {
		t.Errorf("refresh: %+v", got)
	}
}
