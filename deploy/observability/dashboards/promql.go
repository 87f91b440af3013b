package dashboards

import (
	"fmt"
	"strings"
)

// The labels that a dashboard's variables select by. A namespace and a pod are there
// in Kubernetes only: what "All" stands for matches series without them, too.
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

// rate is how much a counter grows in a second.
func rate(series string) string { return "rate(" + series + "[$__rate_interval])" }

// grown is how much a counter has grown in the time that the dashboard shows.
func grown(series string) string { return "increase(" + series + "[$__range])" }

// by aggregates, with labels such as "method, route" or with none.
func by(aggregate, labels, of string) string {
	if labels == "" {
		return aggregate + "(" + of + ")"
	}
	return fmt.Sprintf("%s by (%s) (%s)", aggregate, labels, of)
}

func sum(labels, of string) string { return by("sum", labels, of) }

func highest(labels, of string) string { return by("max", labels, of) }

// quantile is of the histogram whose buckets' selector is given.
func quantile(q string, labels, buckets string) string {
	le := "le"
	if labels != "" {
		le += ", " + labels
	}
	return fmt.Sprintf("histogram_quantile(%s, %s)", q, sum(le, rate(buckets)))
}

// mean is of a histogram, of which the selectors of sum and count are given.
func mean(labels, total, count string) string {
	return sum(labels, rate(total)) + " / (" + sum(labels, rate(count)) + " > 0)"
}

// orNone is 0 where part has no series and whole has one: not every metric has a series
// for what never happened.
func orNone(part, whole string) string { return part + " or 0 * " + whole }

// share is the share of a part in the whole, without a value where the whole is 0.
func share(part, whole string) string {
	return "(" + orNone(part, whole) + ") / (" + whole + " > 0)"
}

// since is the age of a moment in Unix time. 0 means never, and has no age.
func since(labels, moment string) string {
	return "time() - " + highest(labels, moment+" > 0")
}
