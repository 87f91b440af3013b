package webhook

import (
	"testing"
	"time"
)

// TestTheTimeIsFifteenSeconds looks at the setting, and does not wait for it: that
// attempts keep to it is shown with a shorter one.
func TestTheTimeIsFifteenSeconds(t *testing.T) {
	if s := NewSender(Config{Clock: time.Now}); s.timeout != 15*time.Second {
		t.Errorf("an attempt may take %v", s.timeout)
	}
}
