package dashboards

// Query is one expression that a dashboard sends to Prometheus.
type Query struct {
	Dashboard string // its title
	Panel     string // the panel's title, or "variable NAME"
	Expr      string // PromQL, each variable replaced by what "All" stands for
	Label     string // of a variable: the label whose values are wanted
}

// Queries gives every expression of every panel and variable, with
// $__rate_interval replaced by rateInterval, such as "1m".
func Queries(rateInterval string) ([]Query, error) {
	return nil, nil
}
