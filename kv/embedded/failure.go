package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"go.uber.org/zap/zapcore"
)

// spaceNeeded is the free space that a start needs: etcd allocates two segments of its log, of 64 MiB each, in advance.
const spaceNeeded = "200 MiB"

// failure receives the reason when etcd stops for good. etcd reports a full disk and damaged data as fatal log entries
// or panics through its logger, and expects the logger to end the process.
type failure struct{ reason chan error }

func newFailure() *failure { return &failure{reason: make(chan error, 1)} }

// OnWrite implements zapcore.CheckWriteHook: zap calls it after a fatal entry or a panic, in etcd's goroutine. OnWrite
// never returns, so etcd does nothing after its failure, and no panic hides the reason. The process must end.
func (f *failure) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(entry.Message)
	for _, field := range fields {
		if cause, isError := field.Interface.(error); isError {
			err = fmt.Errorf("%s: %w", entry.Message, cause)
		}
	}
	f.report(err)
	select {}
}

func (f *failure) report(err error) {
	select {
	case f.reason <- err:
	default: // the first failure is the cause of the later ones
	}
}

// Failure is an error of the embedded etcd, or of its files.
type Failure struct{ cause error }

// NewFailure wraps an error in a Failure. A canceled context is no failure, since the caller asked for the end:
// NewFailure returns that error as it is.
func NewFailure(cause error) error {
	if errors.Is(cause, context.Canceled) {
		return cause
	}
	return &Failure{cause}
}

func (f *Failure) Error() string { return "embedded etcd: " + f.cause.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.cause }

// WithAdvice turns an error of a data directory into one line that names the directory and says what the user can do.
// It recognizes a full disk, a limit on the size of files and a [Failure], and returns other errors as they are.
func WithAdvice(err error, dir string) error {
	var failed *Failure
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk of %s is full: make %s of space free there and start licet again; the stored "+
			"data is intact (%s)", dir, spaceNeeded, oneLine(err))
	case errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("a file in %s has reached the limit on the size of files: raise the limit (ulimit -f) and "+
			"start licet again; the stored data is intact (%s)", dir, oneLine(err))
	case errors.As(err, &failed):
		return fmt.Errorf("the etcd in %s has failed: start licet again; if that fails, move %s away and restore a "+
			"backup (licet store restore --help); its files are as etcd left them (%s)", dir, dir,
			oneLine(failed.cause))
	}
	return err
}

// oneLine returns the text of an error without line breaks.
func oneLine(err error) string { return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ") }
