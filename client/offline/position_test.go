package offline

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestPosition: a program asks for what came since its whole list, and for the whole list if it has none, or if the
// increment has become long.
func TestPosition(t *testing.T) {
	whole := "h." + base64.RawURLEncoding.EncodeToString([]byte(`{"epoch":7}`)) + ".s"
	for name, c := range map[string]struct {
		stored []string
		want   int64
	}{
		"nothing":           {nil, 0},
		"a whole list":      {[]string{whole}, 7},
		"a short increment": {[]string{whole, "h.e30.s"}, 7},
		"a long increment":  {[]string{whole, strings.Repeat("x", longIncrement+1)}, 0},
	} {
		if got := position(c.stored); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
