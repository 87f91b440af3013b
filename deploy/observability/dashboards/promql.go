package dashboards

import (
	"fmt"
	"strings"
)

// The labels that a dashboard's variables select by. Only series from Kubernetes have a namespace and a pod: the "All"
// of these variables also matches series without them.
const (
	ofLicet    = `job=~"$job", namespace=~"$namespace", pod=~"$pod", instance=~"$instance"`
	ofEtcd     = `job=~"$etcd_job", namespace=~"$etcd_namespace", instance=~"$etcd_instance"`
	ofRecorded = `job=~"$job", namespace=~"$namespace"`
)

// Legends of metrics of each process.
const (
	node   = "{{pod}} {{instance}}"
	member = "{{instance}}"
)

func selector(metric, labels string, more []string) string {
	return metric + "{" + strings.Join(append([]string{labels}, more...), ", ") + "}"
}

// licet selects series of the nodes.
func licet(metric string, more ...string) string { return selector(metric, ofLicet, more) }

// etcd selects series of etcd's members.
func etcd(metric string, more ...string) string { return selector(metric, ofEtcd, more) }

// recorded selects series that a rule has recorded for a job in a namespace.
func recorded(metric string, more ...string) string { return selector(metric, ofRecorded, more) }

// ofNode and ofMember limit series that every Go program has to nodes and to members.
// Otherwise "All" would mean whatever Prometheus scrapes.
func ofNode(series string) string {
	return series + " and on (job, instance) " + licet(build)
}

func ofMember(series string) string {
	return series + " and on (job, instance) " + etcd(leading)
}

// rate returns how much a counter grows in a second.
func rate(series string) string { return "rate(" + series + "[$__rate_interval])" }

// grown returns how much a counter has grown in the time that the dashboard shows.
func grown(series string) string { return "increase(" + series + "[$__range])" }

// by returns an aggregate by labels such as "method, route", or by none.
func by(aggregate, labels, of string) string {
	if labels == "" {
		return aggregate + "(" + of + ")"
	}
	return fmt.Sprintf("%s by (%s) (%s)", aggregate, labels, of)
}

func sum(labels, of string) string { return by("sum", labels, of) }

func highest(labels, of string) string { return by("max", labels, of) }

// quantile returns a quantile of the histogram whose buckets the selector selects.
func quantile(q string, labels, buckets string) string {
	le := "le"
	if labels != "" {
		le += ", " + labels
	}
	return fmt.Sprintf("histogram_quantile(%s, %s)", q, sum(le, rate(buckets)))
}

// mean returns the mean of a histogram, given the selectors of its sum and its count.
func mean(labels, total, count string) string {
	return sum(labels, rate(total)) + " / (" + sum(labels, rate(count)) + " > 0)"
}

// orNone returns part, or 0 if part has no series and whole has one: not every metric has a series for what never
// happened.
func orNone(part, whole string) string { return part + " or 0 * " + whole }

// share returns part as a share of whole; no value if whole is 0.
func share(part, whole string) string {
	return "(" + orNone(part, whole) + ") / (" + whole + " > 0)"
}

// since returns the age of a moment in Unix time. A moment of 0 means never, and has no age.
func since(labels, moment string) string {
	return "time() - " + highest(labels, moment+" > 0")
}
