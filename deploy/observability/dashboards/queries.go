package dashboards

import "strings"

// Query is one expression that a dashboard sends to Prometheus.
type Query struct {
	Dashboard string // its title
	Panel     string // the panel's title, or "variable NAME"
	Expr      string // PromQL, each variable replaced by what "All" stands for
	Label     string // of a variable: the label whose values are wanted
}

// Queries returns every expression of every panel and variable, with $__rate_interval and
// $__range replaced by rateInterval, such as "1m".
func Queries(rateInterval string) []Query {
	var queries []Query
	for _, p := range pages() {
		replaced := []string{"$__rate_interval", rateInterval, "$__range", rateInterval}
		for _, v := range p.variables {
			replaced = append(replaced, `"$`+v.name+`"`, `"`+v.all+`"`)
		}
		all := strings.NewReplacer(replaced...)
		for _, v := range p.variables {
			queries = append(queries, Query{p.Title, "variable " + v.name, all.Replace(v.selector), v.label})
		}
		for _, panel := range p.all() {
			for _, q := range panel.Queries {
				queries = append(queries, Query{Dashboard: p.Title, Panel: panel.Title, Expr: all.Replace(q.Expr)})
			}
		}
	}
	return queries
}
