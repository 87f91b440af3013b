package doctor

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"licet/kv/survey"
	"licet/node/clocks"
)

const (
	// A put on a good disk in one region takes a few milliseconds. Activations wait for one.
	slowPut = 50 * time.Millisecond
	badPut  = 500 * time.Millisecond
	slowGet = 20 * time.Millisecond
	badGet  = 200 * time.Millisecond

	// Shares of etcd's quota.
	fillingShare = 0.8
	fullShare    = 0.95
	// freeShare is the share of a database's file that compaction has freed, from which on defragmentation is worth it.
	freeShare = 0.5
	// worthBytes is how large a file must be for that.
	worthBytes = 256 << 20
	// smallQuota is etcd's default.
	smallQuota = 2 << 30

	// renewBefore is how long before its end a certificate should be renewed.
	renewBefore = 30 * 24 * time.Hour
)

// Etcd checks the members of an etcd cluster. single says that the cluster is the embedded one of licet dev.
func (r *Report) Etcd(facts *survey.Facts, single bool, now time.Time) {
	answering := r.members(facts, single, now)
	if len(answering) == 0 {
		return
	}
	r.versions(answering)
	r.alarms(answering)
	r.quota(answering, single)
	r.latency("etcd put", facts.Put, facts.PutErr, slowPut, badPut)
	r.latency("etcd get", facts.Get, facts.GetErr, slowGet, badGet)
	for _, m := range answering {
		r.clock("etcd clock", "the clock of "+m.Endpoint, m.Clock)
		r.certificates("etcd certificate", "the certificate of "+m.Endpoint, m.Certificates, now)
	}
	r.access(facts)
}

// members checks which members answer, and returns them.
func (r *Report) members(facts *survey.Facts, single bool, now time.Time) (answering []survey.Member) {
	const check = "etcd members"
	before := len(r.Findings)
	clusters := map[uint64]string{}
	seen := map[uint64]string{}
	for _, m := range facts.Members {
		switch {
		case m.Untrusted != nil:
			r.untrusted("etcd certificate", "the certificate of "+m.Endpoint, "set --etcd-ca to the certificate of "+
				"the authority, or issue another certificate", m.Untrusted, now)
			continue
		case m.Err != nil:
			r.add(Problem, check, "start the member, or correct --etcd-endpoints and the TLS files; licet serves as "+
				"long as most members answer", "%s does not answer: %v", m.Endpoint, m.Err)
			continue
		case seen[m.ID] != "":
			r.add(Warning, check, "name each member once in --etcd-endpoints", "%s and %s are the same member",
				seen[m.ID], m.Endpoint)
		case !m.HasLeader:
			r.add(Problem, check, "start the other members, and check the network between them",
				"%s knows no leader: etcd accepts no writes", m.Endpoint)
		case m.Learner:
			r.add(Warning, check, "promote the member with etcdctl member promote", "%s is a learner: it has no vote",
				m.Endpoint)
		}
		seen[m.ID], clusters[m.Cluster] = m.Endpoint, m.Endpoint
		answering = append(answering, m)
	}
	if len(clusters) > 1 {
		r.add(Problem, check, "name the members of one cluster in --etcd-endpoints",
			"the endpoints lead to %d clusters", len(clusters))
	}
	if len(facts.Unnamed) > 0 {
		r.add(Warning, check, "name every member in --etcd-endpoints: nodes use no others",
			"no endpoint leads to the members %s", strings.Join(facts.Unnamed, ", "))
	}
	switch n := len(facts.Members) + len(facts.Unnamed); {
	case single:
	case n == 1:
		r.add(Warning, check, "use three members in production: docs/guides/operations.md",
			"the cluster has one member: its failure stops the service")
	case n%2 == 0:
		r.add(Warning, check, "use three or five members", "the cluster has %d members: it survives no more failures "+
			"than with %d", n, n-1)
	}
	if len(r.Findings) == before {
		r.ok(check, "%d of %d answer", len(answering), len(facts.Members))
	}
	return answering
}

func (r *Report) versions(members []survey.Member) {
	const check = "etcd versions"
	before := len(r.Findings)
	versions := map[string]bool{}
	for _, m := range members {
		versions[m.Version] = true
		if !m.Supported {
			r.add(Problem, check, "upgrade etcd to "+survey.NeededVersions,
				"%s has the version %s, which Licet does not support", m.Endpoint, m.Version)
		}
	}
	if len(versions) > 1 {
		r.add(Warning, check, "finish the upgrade: run one version on all members", "the members have %d versions",
			len(versions))
	}
	if len(r.Findings) == before {
		r.ok(check, "%s", members[0].Version)
	}
}

func (r *Report) alarms(members []survey.Member) {
	const check = "etcd alarms"
	seen := map[string]bool{}
	for _, m := range members {
		for _, alarm := range m.Alarms {
			if seen[alarm] {
				continue
			}
			seen[alarm] = true
			advice := "a member's data is damaged: find the member with etcdctl endpoint hashkv --cluster, and " +
				"replace it with etcdctl member remove and etcdctl member add: docs/runbooks/LicetEtcdAlarm.md"
			if alarm == "NOSPACE" {
				advice = "run etcdctl compact and etcdctl defrag, or raise --quota-backend-bytes; then run etcdctl " +
					"alarm disarm: " +
					"docs/runbooks/LicetEtcdAlarm.md"
			}
			r.add(Problem, check, advice, "etcd has the alarm %s", alarm)
		}
	}
	if len(seen) == 0 {
		r.ok(check, "none")
	}
}

// quota checks how full the databases are.
func (r *Report) quota(members []survey.Member, single bool) {
	const check = "etcd quota"
	before := len(r.Findings)
	fullest := 0.0
	for _, m := range members {
		if m.Quota > 0 {
			share := float64(m.Size) / float64(m.Quota)
			fullest = max(fullest, share)
			if level := fillLevel(share); level != OK {
				r.add(level, check, "run licet store defragment, raise --quota-backend-bytes, or delete data: "+
					"docs/runbooks/LicetEtcdDatabaseFilling.md",
					"%s uses %.0f %% of its quota of %s, and %s are in use",
					m.Endpoint, 100*share, mebibytes(m.Quota), mebibytes(m.InUse))
			}
		}
		if free := m.Size - m.InUse; m.Size >= worthBytes && float64(free) >= freeShare*float64(m.Size) {
			r.add(Warning, check, "run licet store defragment", "%s has %s free in a file of %s", m.Endpoint,
				mebibytes(free), mebibytes(m.Size))
		}
	}
	quota := members[0].Quota
	if quota > 0 && quota <= smallQuota && !single {
		r.add(Warning, check, "set --quota-backend-bytes=8589934592 on all members",
			"the quota is %s, etcd's small default", mebibytes(quota))
	}
	if len(r.Findings) == before {
		r.ok(check, "%.0f %% used", 100*fullest)
	}
}

func fillLevel(share float64) Level {
	switch {
	case share >= fullShare:
		return Problem
	case share >= fillingShare:
		return Warning
	}
	return OK
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// latency checks measured latencies, which are sorted.
func (r *Report) latency(check string, took []time.Duration, err error, slow, bad time.Duration) {
	if err != nil {
		r.add(Problem, check, "correct what the error names: the service can't work", "failed: %v", err)
		return
	}
	median, most := took[len(took)/2], took[len(took)-1]
	text := fmt.Sprintf("%s median, %s maximum of %d", round(median), round(most), len(took))
	level := OK
	switch {
	case median >= bad:
		level = Problem
	case median >= slow:
		level = Warning
	default:
		r.ok(check, "%s", text)
		return
	}
	r.add(level, check, "use a local SSD for etcd, put nodes and members into one region, and look for other load on "+
		"their machines", "slow: %s", text)
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// clock checks a clock that an answer showed.
func (r *Report) clock(check, whose string, c survey.Clock) {
	ahead := c.Ahead()
	if c.Date.IsZero() {
		return
	}
	if ahead.Abs() <= clocks.DefaultTolerance {
		r.ok(check, "%s agrees with that of this machine", whose)
		return
	}
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	r.add(Warning, check, "set both clocks with NTP, such as chrony: a node whose clock differs from most nodes' "+
		"clocks refuses requests", "%s is %v %s that of this machine", whose, ahead.Abs().Round(time.Second), direction)
}

// certificates checks the first end of a chain of certificates.
func (r *Report) certificates(check, which string, chain []*x509.Certificate, now time.Time) {
	if len(chain) == 0 {
		return
	}
	first := chain[0]
	for _, c := range chain {
		if c.NotAfter.Before(first.NotAfter) {
			first = c
		}
	}
	const advice = "renew the certificate; Licet and etcd read replaced files by themselves"
	end := first.NotAfter.UTC().Format("2006-01-02 15:04Z")
	switch left := first.NotAfter.Sub(now); {
	case now.Before(chain[0].NotBefore):
		r.add(Problem, check, "check the clock of this machine, or issue another certificate",
			"%s starts to be valid at %s", which, chain[0].NotBefore.UTC().Format("2006-01-02 15:04Z"))
	case left <= 0:
		r.add(Problem, check, advice, "%s expired at %s", which, end)
	case left < renewBefore:
		r.add(Warning, check, advice, "%s expires at %s, in %d days", which, end, int(left.Hours()/24))
	default:
		r.ok(check, "%s is valid until %s", which, end)
	}
}

// access checks who can read and change the data of etcd.
func (r *Report) access(facts *survey.Facts) {
	const check = "etcd access"
	for _, m := range facts.Members {
		if remote(m.Endpoint) && strings.HasPrefix(m.Endpoint, "http://") {
			r.add(Warning, check, "create certificates for etcd and its clients with etcdcerts (etcdcerts --help), "+
				"and set --etcd-ca, --etcd-cert and --etcd-key: docs/guides/operations.md",
				"%s is without TLS: anyone on the network can read all data", m.Endpoint)
			return
		}
	}
	switch {
	case facts.UsersErr != nil:
		r.add(Warning, check, "run etcdctl auth status", "whether etcd demands users is unknown: %v",
			facts.UsersErr)
	case !facts.Secured && remote(facts.Members[0].Endpoint):
		r.add(Warning, check, "run licet store users",
			"etcd demands no users: every client that reaches etcd can change all data")
	default:
		r.ok(check, "guarded")
	}
}

// remote reports whether an address may be of another machine.
func remote(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "unix" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}
