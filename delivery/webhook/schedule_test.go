package webhook_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"licet/delivery/webhook"
)

// TestDelayFollowsTheSchedule: with random 0.5, Delay returns the regular pauses.
func TestDelayFollowsTheSchedule(t *testing.T) {
	const middle = 0.5
	want := []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	var all time.Duration
	for i, pause := range want {
		got, again := webhook.Delay(i+1, 0, middle)
		if got != pause || !again {
			t.Errorf("after %d failed: %v, %v, want %v", i+1, got, again, pause)
		}
		all += got
	}
	if want := 75*time.Hour + 35*time.Minute + 5*time.Second; all != want {
		t.Errorf("%v in all, want %v", all, want)
	}
	if webhook.Attempts != len(want)+1 {
		t.Errorf("%d attempts with %d pauses", webhook.Attempts, len(want))
	}
}

func TestDelayEnds(t *testing.T) {
	for _, failed := range []int{-1, 0, webhook.Attempts, webhook.Attempts + 1, 1 << 40} {
		if got, again := webhook.Delay(failed, time.Hour, 0.5); again || got != 0 {
			t.Errorf("after %d failed: %v, %v", failed, got, again)
		}
	}
}

func TestDelayWaitsAsLongAsAsked(t *testing.T) {
	f := func(failed int, asked time.Duration, random float64, want time.Duration) {
		t.Helper()
		if got, again := webhook.Delay(failed, asked, random); got != want || !again {
			t.Errorf("after %d failed, asked for %v, drawn %v: %v, %v, want %v", failed, asked, random, got, again,
				want)
		}
	}
	f(1, 0, 0, 4*time.Second)
	f(1, -time.Hour, 0, 4*time.Second)
	f(1, time.Minute, 0, time.Minute)
	f(1, time.Minute, 0.5, 66*time.Second)
	f(3, time.Minute, 0.5, 30*time.Minute)
	f(1, 1000*time.Hour, 0, webhook.MaxRetryAfter)
	f(9, 1000*time.Hour, 0.5, 26*time.Hour+24*time.Minute)
}

func TestDelayProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		failed := rapid.IntRange(-2, 2*webhook.Attempts).Draw(t, "failed")
		asked := time.Duration(rapid.Int64().Draw(t, "asked"))
		random := rapid.Float64Range(0, 0.999999999).Draw(t, "random")
		got, again := webhook.Delay(failed, asked, random)
		if again != (failed >= 1 && failed < webhook.Attempts) {
			t.Fatalf("again is %v after %d", again, failed)
		}
		if !again {
			if got != 0 {
				t.Fatalf("%v although there is no next one", got)
			}
			return
		}
		if asked = min(asked, webhook.MaxRetryAfter); got < asked {
			t.Fatalf("%v is less than the %v that was asked for", got, asked)
		}
		if got < 4*time.Second || got > webhook.LongestDelay {
			t.Fatalf("%v", got)
		}
		if least, _ := webhook.Delay(failed, asked, 0); got < least {
			t.Fatalf("%v is less than with nothing drawn, %v", got, least)
		}
		if before, more := webhook.Delay(failed-1, asked, random); more && before > got {
			t.Fatalf("%v after %v: the pauses grow", got, before)
		}
	})
}
