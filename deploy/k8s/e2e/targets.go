package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// slice is the part of an EndpointSlice that is needed here.
type slice struct {
	Metadata struct{ Labels map[string]string }
	Ports    []struct {
		Name string
		Port int
	}
	Endpoints []struct {
		Addresses []string
		TargetRef struct{ Name string }
	}
}

// targets is a group of Prometheus' file of targets.
type targets struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// findTargets keeps the file of targets as the operator would, by the ServiceMonitors: the
// port called metrics of each endpoint, with the Service's name as the job, and the pod.
func (c *cluster) findTargets(file string) {
	for range time.Tick(2 * time.Second) {
		select {
		case <-c.over:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		out, err := c.in(ctx, "get", "endpointslices", "--output", "json")
		cancel()
		var list struct{ Items []slice }
		if err != nil || json.Unmarshal([]byte(out), &list) != nil {
			continue // it is asked again
		}
		text, err := json.Marshal(targetsOf(list.Items))
		if err != nil {
			continue
		}
		// Prometheus must not read half a file.
		if os.WriteFile(file+".new", text, 0o600) == nil {
			_ = os.Rename(file+".new", file)
		}
	}
}

func targetsOf(slices []slice) []targets {
	list := []targets{}
	for _, s := range slices {
		for _, port := range s.Ports {
			if port.Name != "metrics" {
				continue
			}
			for _, e := range s.Endpoints {
				for _, address := range e.Addresses {
					list = append(list, targets{
						Targets: []string{fmt.Sprintf("%s:%d", address, port.Port)},
						Labels: map[string]string{"job": s.Metadata.Labels["app.kubernetes.io/name"],
							"namespace": namespace, "pod": e.TargetRef.Name},
					})
				}
			}
		}
	}
	return list
}
