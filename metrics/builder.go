//go:build !nometrics

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// builder makes instruments and registers them. With the build tag nometrics it makes
// such as do nothing, for whoever measures what metrics cost: see loadtest/compare.
type builder = promauto.Factory

func newBuilder(reg prometheus.Registerer) builder { return promauto.With(reg) }

// silent: nothing is counted.
const silent = false
