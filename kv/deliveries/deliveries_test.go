package deliveries

import (
	"fmt"
	"testing"

	"licet/internal/depth"
	"licet/kv/deliveries/deliveriestest"
	"licet/kv/internal/kvtest"
	"licet/node/store/storetest"
)

func TestDeliveriesConformance(t *testing.T) {
	t.Parallel()
	storetest.RunDeliveries(t, func(t *testing.T) storetest.DeliveryStore { return openDeliveries(t) },
		deliveriestest.PutEndpoints(own.Client))
}

// TestDeliveriesConformanceUnderFaults runs the suite while every second write fails.
func TestDeliveriesConformanceUnderFaults(t *testing.T) {
	for seed := range depth.Of[uint64](1, 3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			storetest.RunDeliveries(t, func(t *testing.T) storetest.DeliveryStore {
				return faultyDeliveries(t,
					kvtest.Storm(seed))
			}, deliveriestest.PutEndpoints(own.Client))
		})
	}
}
