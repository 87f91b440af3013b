package users

import (
	"testing"

	"go.uber.org/goleak"

	"licet/internal/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Main()
	goleak.VerifyTestMain(m)
}
