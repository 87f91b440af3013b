package depth

import "testing"

func TestOf(t *testing.T) {
	for text, want := range map[string]int{"": 1, "full": 2, "1": 1, "FULL": 1} {
		t.Setenv(variable, text)
		if got := Of(1, 2); got != want || Full() != (want == 2) {
			t.Errorf("%s=%q: got %d, want %d", variable, text, got, want)
		}
	}
}
