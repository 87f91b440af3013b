package terminal

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestMeter(t *testing.T) {
	var out bytes.Buffer
	quiet := NewMeter(&out, "verify", false)
	quiet.Set(1, 2)
	quiet.Clear()
	if quiet.Shown() || out.Len() > 0 {
		t.Errorf("a meter without a terminal shows %q", out.String())
	}
	m := &Meter{terminal: &out, what: "verify"}
	for _, total := range []int64{100, 100, 50} { // an estimate, and too low at last
		m.Set(90, total)
	}
	m.Set(100, 50)
	m.Clear()
	asked := 0
	count := func(err error) func() (int64, error) {
		return func() (int64, error) { asked++; return 7, err }
	}
	if got := []int64{quiet.Total(count(nil)), m.Total(count(nil)),
		m.Total(count(errors.New("too many")))}; asked != 2 || !slices.Equal(got, []int64{0, 7, 0}) {
		t.Errorf("asked %d times, the totals are %v", asked, got)
	}
	if text := out.String(); !strings.Contains(text, "verify  89%") || !strings.Contains(text, "(90/101)") ||
		!strings.HasSuffix(text, "\r") {
		t.Errorf("it shows %q", text)
	}
}

func TestOnTerminal(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, stream := range []any{null, strings.NewReader("y"), new(bytes.Buffer)} {
		if Is(stream) {
			t.Errorf("%T counts as a terminal", stream)
		}
	}
}
