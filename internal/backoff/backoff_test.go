package backoff

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestExponential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pause := Exponential{First: time.Second, Longest: time.Minute}
		for attempt, bound := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			for range 100 {
				began := time.Now()
				if !pause.Wait(t.Context(), attempt) {
					t.Fatal("Wait reports the end of a context that goes on")
				}
				if took := time.Since(began); took >= bound*time.Second {
					t.Errorf("attempt %d waited %v, want less than %v", attempt, took, bound*time.Second)
				}
			}
		}
		if !pause.Wait(t.Context(), 1_000_000) {
			t.Error("a late attempt did not wait")
		}
	})
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		for _, d := range []time.Duration{time.Second, 0, -time.Second} {
			if !Sleep(ctx, d) {
				t.Errorf("Sleep for %v reports the end of ctx", d)
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("slept %v, want 1s", took)
		}
		if Sleep(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("Sleep returned after %v, want the end of ctx after 1m", time.Since(began))
		}
		woken := make(chan struct{}, 1)
		woken <- struct{}{}
		for _, want := range []time.Duration{0, time.Hour} {
			began := time.Now()
			if !SleepUnless(t.Context(), time.Hour, woken) || time.Since(began) != want {
				t.Errorf("SleepUnless took %v, want %v", time.Since(began), want)
			}
		}
		if Sleep(ctx, 0) {
			t.Error("Sleep reports that an ended context goes on")
		}
	})
}

func TestAround(t *testing.T) {
	for range 1000 {
		if d := Around(time.Second, 4); d < 750*time.Millisecond || d >= 1250*time.Millisecond {
			t.Fatalf("a quarter around 1s is %v", d)
		}
	}
}
