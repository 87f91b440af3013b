package check

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"licet/deploy/k8s/check/manifests"
)

// Servers take all of what is tried here in any form. That it is so is what keeps the
// service up, and its data.

// TestBudgets: of nodes and of members one at a time may be asked to go.
func TestBudgets(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		for _, w := range workloads(set) {
			if w.selector == nil {
				continue
			}
			var found []*policyv1.PodDisruptionBudget
			for _, p := range manifests.All[policyv1.PodDisruptionBudget](set) {
				if matches(p.Spec.Selector, w.template.Labels) {
					found = append(found, p)
				}
			}
			if len(found) != 1 {
				t.Errorf("%s has %d budgets", w.name, len(found))
				continue
			}
			if most := found[0].Spec.MaxUnavailable; most == nil || most.String() != "1" {
				t.Errorf("of %s %s may be asked to go at a time", w.name, most)
			}
		}
	})
}

// TestRollouts: a new node is ready, and for some seconds, before an old one goes, and it is
// the same with members, of which none is added.
func TestRollouts(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		nodes := set.Find("Deployment/licet").Typed.(*appsv1.Deployment).Spec
		if r := nodes.Strategy.RollingUpdate; r == nil || r.MaxUnavailable.String() != "0" ||
			nodes.MinReadySeconds < 1 {
			t.Errorf("an old node goes before a new one is there: %v", nodes.Strategy)
		}
		members := set.Find("StatefulSet/etcd").Typed.(*appsv1.StatefulSet).Spec
		if members.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType ||
			members.UpdateStrategy.RollingUpdate != nil || members.MinReadySeconds < 1 {
			t.Errorf("members are not updated one by one: %v", members.UpdateStrategy)
		}
		if members.PodManagementPolicy != appsv1.ParallelPodManagement {
			t.Error("the first member waits to be ready, for which it needs the others, which wait for it")
		}
		if keep := members.PersistentVolumeClaimRetentionPolicy; keep == nil ||
			keep.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType ||
			keep.WhenScaled != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
			t.Errorf("what is stored goes with the StatefulSet, or with a member: %v", keep)
		}
	})
}

// TestMachines: one machine lost is not all of the nodes, nor the majority of the members.
// The weak form of either rule may put all of them on one.
func TestMachines(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		strict := slices.ContainsFunc(find(t, set, "Deployment/licet").template.Spec.TopologySpreadConstraints,
			func(c corev1.TopologySpreadConstraint) bool {
				return c.TopologyKey == corev1.LabelHostname && c.WhenUnsatisfiable == corev1.DoNotSchedule &&
					c.MaxSkew == 1 &&
					c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor &&
					slices.Contains(c.MatchLabelKeys, appsv1.DefaultDeploymentUniqueLabelKey)
			})
		if !strict {
			t.Error("nodes may all be on one machine, or those of an old version and drained machines keep new ones " +
				"away")
		}
		affinity := find(t, set, "StatefulSet/etcd").template.Spec.Affinity
		if affinity == nil || affinity.PodAntiAffinity == nil {
			t.Fatal("two members may be on one machine")
		}
		terms := affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if len(terms) != 1 || terms[0].TopologyKey != corev1.LabelHostname {
			t.Error("two members may be on one machine")
		}
	})
}

// TestStore: a member's disk has room for its file at the quota and as much again, history
// goes, and both sides of every connection show a certificate.
func TestStore(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		etcd := set.Find("StatefulSet/etcd").Typed.(*appsv1.StatefulSet)
		env := environment(t, set, etcd.Spec.Template.Spec.Containers[0])
		quota, err := resource.ParseQuantity(env["ETCD_QUOTA_BACKEND_BYTES"])
		if err != nil {
			t.Fatalf("ETCD_QUOTA_BACKEND_BYTES: %v", err)
		}
		disk := etcd.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage()
		if disk.Value() < 2*quota.Value()+(1<<30) {
			t.Errorf("the disk of a member is %s, and its quota %s", disk, &quota)
		}
		for name, want := range map[string]string{
			"ETCD_AUTO_COMPACTION_MODE": "periodic", "ETCD_AUTO_COMPACTION_RETENTION": "1h",
			"ETCD_CLIENT_CERT_AUTH": "true", "ETCD_PEER_CLIENT_CERT_AUTH": "true",
			// Each side has an authority of its own, so that no client can pass for a member.
			"ETCD_CERT_FILE": "/etc/etcd/server/tls.crt", "ETCD_PEER_CERT_FILE": "/etc/etcd/peer/tls.crt",
			"ETCD_KEY_FILE": "/etc/etcd/server/tls.key", "ETCD_PEER_KEY_FILE": "/etc/etcd/peer/tls.key",
			"ETCD_TRUSTED_CA_FILE": "/etc/etcd/server/ca.crt", "ETCD_PEER_TRUSTED_CA_FILE": "/etc/etcd/peer/ca.crt",
		} {
			if env[name] != want {
				t.Errorf("%s is %q, want %q", name, env[name], want)
			}
		}
	})
}

// TestSchedules: a CronJob runs one job at a time, each job ends before the next is due, and a job that is slightly
// late still runs.
func TestSchedules(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		jobs := manifests.All[batchv1.CronJob](set)
		if len(jobs) != 4 {
			t.Errorf("%d CronJobs", len(jobs))
		}
		for _, job := range jobs {
			spec := job.Spec
			if spec.ConcurrencyPolicy != batchv1.ForbidConcurrent || spec.TimeZone == nil ||
				*spec.TimeZone != "Etc/UTC" {
				t.Errorf("CronJob/%s: two may run at once, or it depends on where it runs", job.Name)
			}
			deadline, active := spec.StartingDeadlineSeconds, spec.JobTemplate.Spec.ActiveDeadlineSeconds
			if deadline == nil || *deadline < 600 || active == nil || *active > 3600 {
				t.Errorf("CronJob/%s is not made up for, or may hang", job.Name)
			}
			if spec.Suspend != nil && *spec.Suspend {
				t.Errorf("CronJob/%s does not run", job.Name)
			}
		}
		// A Job can't be changed. One whose image can't be pulled never ends by itself, and
		// stands in the way of every later apply.
		job := set.Find("Job/etcd-certificates").Typed.(*batchv1.Job).Spec
		if job.ActiveDeadlineSeconds == nil || job.TTLSecondsAfterFinished == nil ||
			*job.ActiveDeadlineSeconds+int64(*job.TTLSecondsAfterFinished) > 900 {
			t.Error("Job/etcd-certificates stays")
		}
		if every := set.Find("CronJob/licet-backup").Typed.(*batchv1.CronJob).Spec.Schedule; !strings.HasSuffix(every,
			" * * * *") {
			t.Errorf("backups are made at %q, not each hour", every)
		}
	})
}

// TestNamespaces: Kubernetes itself refuses what breaks the restricted Pod Security Standard.
func TestNamespaces(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		labels := set[0].Raw.GetLabels()
		for _, mode := range []string{"enforce", "audit", "warn"} {
			if level := labels["pod-security.kubernetes.io/"+mode]; level != "restricted" {
				t.Errorf("%s: %s is %q", set[0], mode, level)
			}
		}
		for _, account := range manifests.All[corev1.ServiceAccount](set) {
			if mount := account.AutomountServiceAccountToken; mount == nil || *mount {
				t.Errorf("ServiceAccount/%s: pods get a token that did not ask for one", account.Name)
			}
		}
	})
}
