package rig

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are the metrics of a node at one moment, by name.
type Metrics map[string]*dto.MetricFamily

// Scrape reads the metrics of a node.
func (n *Node) Scrape(ctx context.Context) (Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.Metrics, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of a node: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the metrics of a node: HTTP %d", response.StatusCode)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// Value returns the value of a metric without labels.
func (m Metrics) Value(name string) (float64, error) {
	if m[name] == nil {
		return 0, fmt.Errorf("the node has no metric %s", name)
	}
	return m.Sum(name), nil
}

// Sum adds up the series of a metric that have these labels, given as names and values. Of
// a histogram it adds up the counts. A metric without series is 0.
func (m Metrics) Sum(name string, labels ...string) (sum float64) {
	for _, series := range m[name].GetMetric() {
		if !has(series, labels) {
			continue
		}
		sum += series.GetCounter().GetValue() + series.GetGauge().GetValue() + series.GetUntyped().GetValue() +
			float64(series.GetHistogram().GetSampleCount())
	}
	return sum
}

// has reports whether a series has labels, given as names and values.
func has(series *dto.Metric, labels []string) bool {
	have := map[string]string{}
	for _, pair := range series.GetLabel() {
		have[pair.GetName()] = pair.GetValue()
	}
	for i := 0; i < len(labels); i += 2 {
		if have[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}
