package node_test

import (
	"testing"

	"licet/internal/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m) }
