package webhook

import (
	"testing"
	"time"
)

// TestTheTimeIsFifteenSeconds checks the default timeout without waiting for it. Other tests check shorter timeouts.
func TestTheTimeIsFifteenSeconds(t *testing.T) {
	if s := NewSender(Config{Clock: time.Now}); s.timeout != 15*time.Second {
		t.Errorf("an attempt may take %v", s.timeout)
	}
}
