package etcd

import (
	"context"
	"time"

	"licet/internal/backoff"
)

// PauseBeforeResend waits before a request whose outcome is unknown is sent again.
func PauseBeforeResend(ctx context.Context, attempt int) {
	backoff.Exponential{First: 10 * time.Millisecond, Longest: 200 * time.Millisecond}.Wait(ctx, attempt)
}
