package embedded

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestWithAdvice: the advice names the directory and what to do, on one line.
func TestWithAdvice(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.ENOSPC:              "the disk of /data is full: make 200 MiB of space free there",
		syscall.EDQUOT:              "the disk of /data is full: make 200 MiB of space free there",
		syscall.EFBIG:               "a file in /data has reached the limit on the size of files: raise the limit",
		fmt.Errorf("crc\nmismatch"): "the etcd in /data has failed: start licet again",
	} {
		got := WithAdvice(NewFailure(fmt.Errorf("open: %w", cause)), "/data").Error()
		if !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%v: %s", cause, got)
		}
	}
}
