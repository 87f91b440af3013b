package embedded

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"go.uber.org/zap/zapcore"
)

// spaceNeeded is the free space that a start needs: etcd allocates two segments of its log, of 64 MiB each, in advance.
const spaceNeeded = "200 MiB"

// failure receives the reason when etcd gives up. etcd reports a full disk and damaged data as fatal log entries or
// panics through its logger, and expects the logger to end the process.
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

// WithAdvice adds to an error of a data directory what the user can do. It recognizes a full disk.
func WithAdvice(err error, dir string) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	detail := strings.ReplaceAll(err.Error(), "\n", "; ")
	return fmt.Errorf("the disk of %s is full: make %s of space free there and start licet again; the stored data is "+
		"intact (%s)", dir, spaceNeeded, detail)
}
