package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// Config says where things are.
type Config struct {
	// Repository is the folder of the service's module, which is built.
	Repository string
	// Programs is the folder with prometheus, as install-prometheus prints it.
	Programs string
}

// Lab is a service under load, and the Prometheus servers that scrape the service.
type Lab struct {
	Stage *stage.Stage
	// Prometheus scrapes everything. Native scrapes one node with native histograms switched on. This version of
	// Prometheus then keeps no classic buckets, which rules and dashboards read.
	Prometheus, Native *Prometheus

	dir     string
	shop    *shop
	stop    context.CancelFunc
	working sync.WaitGroup
}

const (
	members = 3
	nodes   = 2
)

// Start starts everything. The caller must close the lab, and must run under [rig.Main].
func Start(ctx context.Context, cfg Config) (l *Lab, err error) {
	l = &Lab{stop: func() {}}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	if l.dir, err = os.MkdirTemp("", "licet-lab-"); err != nil {
		return l, err
	}
	l.Stage, err = stage.New(ctx, &stage.Config{
		Setup: rig.Setup{Dir: l.dir, Source: cfg.Repository, NodeLogLevel: "warn"},
		Name:  "lab", Members: members, Nodes: nodes,
		Flags: append(stage.BehindBalancer(),
			"--webhook-allow-networks", "127.0.0.0/8", "--record-activations",
			"--rate-limit-address", "5/m", // low, so that it refuses requests soon
			"--test-order-lifetime", "5s",
		),
	})
	if err != nil {
		return l, err
	}
	apiKey, err := l.Stage.Licet.CreateKey(ctx, l.Stage.Etcd, "lab")
	if err != nil {
		return l, err
	}
	if l.shop, err = openShop(ctx, l.Stage, apiKey); err != nil {
		return l, err
	}
	loading, stop := context.WithCancel(ctx)
	l.stop = stop
	l.shop.work(loading, &l.working)
	if out, err := l.Stage.Licet.Command(ctx, "store", "backup", filepath.Join(l.dir, "store.db"), "--etcd-endpoints",
		l.Stage.Endpoints()); err != nil {
		return l, fmt.Errorf("back the store up: %w: %s", err, out)
	}
	if err := raiseAlarm(ctx, l.Stage.Etcd.Admin); err != nil {
		return l, err
	}
	program := filepath.Join(cfg.Programs, "prometheus")
	rules := filepath.Join(cfg.Repository, "deploy", "prometheus", "rules", "*.yml")
	if rules, err = filepath.Abs(rules); err != nil {
		return l, err
	}
	if l.Prometheus, err = startPrometheus(ctx, program, filepath.Join(l.dir, "prometheus"),
		scrapeConfig(rules, l.Stage)); err != nil {
		return l, err
	}
	l.Native, err = startPrometheus(ctx, program, filepath.Join(l.dir, "native"), scrapeConfig("", l.Stage),
		"--enable-feature=native-histograms")
	return l, err
}

// Close ends everything, and removes all files.
func (l *Lab) Close() {
	l.stop()
	l.working.Wait()
	for _, p := range []*Prometheus{l.Prometheus, l.Native} {
		if p != nil {
			p.Kill()
		}
	}
	if l.shop != nil {
		l.shop.close()
	}
	if l.Stage != nil {
		l.Stage.Stop()
	}
	_ = os.RemoveAll(l.dir)
}

// Errors returns how many answers the load did not expect, and the latest of them.
func (l *Lab) Errors() (int, error) { return l.shop.trouble() }

// raiseAlarm raises an alarm of a member that no cluster has, and takes the alarm back: etcd has the metric of alarms
// only after the first alarm. While an alarm is raised, etcd writes nothing.
func raiseAlarm(ctx context.Context, client *clientv3.Client) error {
	alarm := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: 1,
		Alarm: etcdserverpb.AlarmType_NOSPACE}
	maintenance := etcdserverpb.NewMaintenanceClient(client.ActiveConnection())
	_, err := maintenance.Alarm(ctx, alarm)
	alarm.Action = etcdserverpb.AlarmRequest_DEACTIVATE
	_, disarmed := maintenance.Alarm(ctx, alarm)
	if err = errors.Join(err, disarmed); err != nil {
		return fmt.Errorf("raise an alarm of etcd, and take it back: %w", err)
	}
	return nil
}

// scrapeConfig is deploy/prometheus/prometheus.yml with this lab's addresses, once a
// second. It adds the labels that a scrape in Kubernetes adds.
func scrapeConfig(rules string, s *stage.Stage) string {
	var b strings.Builder
	b.WriteString("global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  evaluation_interval: 1s\n")
	if rules != "" {
		fmt.Fprintf(&b, "rule_files:\n  - %q\n", rules)
	}
	b.WriteString("scrape_configs:\n")
	job := func(name, pod string, targets []string) {
		fmt.Fprintf(&b, "  - job_name: %s\n    static_configs:\n", name)
		for i, target := range targets {
			fmt.Fprintf(&b, "      - targets: [%q]\n        labels: {namespace: shop, pod: %s-%d}\n", target, pod, i)
		}
	}
	host := func(url string) string {
		_, rest, _ := strings.Cut(url, "://")
		rest, _, _ = strings.Cut(rest, "/")
		return rest
	}
	var targets []string
	for _, n := range s.Nodes {
		targets = append(targets, host(n.Metrics))
	}
	job("licet", "licet", targets)
	targets = nil
	for _, endpoint := range s.Etcd.Endpoints {
		targets = append(targets, host(endpoint))
	}
	job("etcd", "etcd", targets)
	return b.String()
}
