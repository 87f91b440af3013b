package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// source is a Prometheus, with the time that is shown.
type source struct {
	base        string
	from, until time.Time
	step        time.Duration
	variables   *strings.Replacer
}

// series is one line, cell column or table row.
type series struct {
	name   string
	labels map[string]string
	points []point // none of them NaN
}

type point struct{ at, value float64 }

func (s series) last() float64 { return s.points[len(s.points)-1].value }

var placeholder = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// fill asks for a panel's series.
func (s *source) fill(ctx context.Context, p *panel) error {
	for _, t := range p.Targets {
		from := s.from
		if t.Instant {
			from = s.until
		}
		found, err := s.ask(ctx, s.variables.Replace(t.Expr), from)
		if err != nil {
			return err
		}
		for _, one := range found {
			one.name = strings.TrimSpace(placeholder.ReplaceAllStringFunc(t.LegendFormat, func(m string) string {
				return one.labels[placeholder.FindStringSubmatch(m)[1]]
			}))
			p.series = append(p.series, one)
		}
	}
	return nil
}

func (s *source) ask(ctx context.Context, expr string, from time.Time) ([]series, error) {
	seconds := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	query := url.Values{
		"query": {expr}, "start": {seconds(from)}, "end": {seconds(s.until)},
		"step": {strconv.FormatFloat(s.step.Seconds(), 'f', 3, 64)},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/api/v1/query_range?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("%s: %w", response.Status, err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	var all []series
	for _, r := range answer.Data.Result {
		one := series{labels: r.Metric}
		for _, v := range r.Values {
			at, _ := v[0].(float64)
			text, _ := v[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", expr, err)
			}
			if !math.IsNaN(value) && !math.IsInf(value, 0) {
				one.points = append(one.points, point{at, value})
			}
		}
		if len(one.points) > 0 {
			all = append(all, one)
		}
	}
	return all, nil
}
