package check

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeFile = "../../compose/compose.yaml"

// composed reads the compose file as docker compose does: by its schema, strictly.
func composed(t *testing.T, file string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

// TestComposeFile: it has what it is to have, and every setting is one of a program's.
func TestComposeFile(t *testing.T) {
	project, err := composed(t, composeFile)
	if err != nil {
		t.Fatal(err)
	}
	of := func(image string) []string {
		var names []string
		for name, s := range project.Services {
			if strings.Contains(s.Image, image) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	nodes, members := of("licet"), of("/etcd:")
	if len(nodes) != 2 || len(members) != 3 || len(of("prometheus")) != 1 || len(of("grafana")) != 1 {
		t.Errorf("nodes %v, members %v, %d services", nodes, members, len(project.Services))
	}
	said := help(t, program(t, "licet"), "serve")
	for _, name := range nodes {
		s := project.Services[name]
		for variable := range s.Environment {
			if !strings.Contains(said, "($"+variable+")") {
				t.Errorf("%s: licet serve has no flag for %s", name, variable)
			}
		}
		env := map[string]string{}
		for variable, value := range s.Environment {
			env[variable] = *value
		}
		if code, text := serve(t, env); code != 1 ||
			!strings.Contains(text, "master keys: open /run/secrets/master_keys") {
			t.Errorf("%s: exit code %d: %s", name, code, text)
		}
		for _, member := range members {
			if !strings.Contains(env["LICET_ETCD_ENDPOINTS"], member+":2379") {
				t.Errorf("%s does not know %s", name, member)
			}
		}
		if grace := time.Duration(*s.StopGracePeriod); grace < 30*time.Second {
			t.Errorf("%s is killed after %v, and a stop may take 25 s", name, grace)
		}
		if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") {
			t.Errorf("%s may do more than it needs", name)
		}
		// docker compose refuses to start what has both a read-only root and a secret or a
		// config that is no file, since it would have to write it there.
		for _, secret := range s.Secrets {
			if project.Secrets[secret.Source].File == "" {
				t.Errorf("%s has a read-only root, and its secret %s is no file", name, secret.Source)
			}
			if env["LICET_MASTER_KEY_FILE"] != secret.Target {
				t.Errorf("%s reads its master keys from %s, and the secret is at %s", name,
					env["LICET_MASTER_KEY_FILE"], secret.Target)
			}
		}
		if len(s.Secrets) != 1 || len(s.Configs) != 0 {
			t.Errorf("%s has %d secrets and %d configs", name, len(s.Secrets), len(s.Configs))
		}
	}
	etcd := help(t, kube(t, "etcd"))
	for _, name := range members {
		for variable, value := range project.Services[name].Environment {
			flag := "--" + strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, "ETCD_")), "_", "-")
			if !strings.Contains(etcd, flag+" ") {
				t.Errorf("%s: etcd has no flag %s", name, flag)
			}
			if variable == "ETCD_INITIAL_CLUSTER" && strings.Count(*value, "=") != len(members) {
				t.Errorf("%s knows the members %s", name, *value)
			}
		}
	}
	for name, s := range project.Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s lets others than this machine in at port %s", name, p.Published)
			}
		}
	}
}

// TestComposeRefuses: a wrong file is refused, or silence would tell nothing.
func TestComposeRefuses(t *testing.T) {
	text, err := os.ReadFile(composeFile)
	if err != nil {
		t.Fatal(err)
	}
	f := func(old, broken, want string) {
		t.Helper()
		file := t.TempDir() + "/compose.yaml"
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), old, broken, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := composed(t, file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", broken, err, want)
		}
	}
	f("    restart: unless-stopped\n", "    restrat: unless-stopped\n", "restrat")
	f("retries: 30", "retries: often", "retries")
	f("depends_on: [prometheus]", "depends_on: [prometheus, loki]", "loki")
	f("networks: [front]\n", "networks: [back]\n", "back")
}
