package service_test

import (
	"testing"
	"time"

	"licet/node/service"
)

// TestListLife: a list that takes long to read is read less often, and lists of every life are young enough.
func TestListLife(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 250 * time.Millisecond: 5 * time.Second, 400 * time.Millisecond: 10 * time.Second,
		time.Second: 20 * time.Second, time.Minute: 20 * time.Second, -time.Hour: 5 * time.Second,
	} {
		if life := service.ListLife(took); life != want {
			t.Errorf("a list whose reading took %v lives for %v, want %v", took, life, want)
		}
	}
}
