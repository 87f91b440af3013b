package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/cmd/licet/internal/terminal"
)

func (s Setup) profileCommands() *cobra.Command {
	return group("profile", "Keep services with the API keys to call them with", `  licet profile set dev --from-env licet-data/dev.env
  licet profile set shop --url https://licenses.example.com    and type the API key
  licet profile use shop
  licet orders list --profile dev`,
		s.profileSet(), s.profileList(), s.profileUse(), s.profileRemove())
}

// oneProfile wants the name of a profile.
func (s Setup) oneProfile(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.completeProfiles(cmd, args, typed)
	}
	return cmd
}

func (s Setup) profileSet() *cobra.Command {
	var p profile
	var envFile string
	cmd := s.oneProfile(&cobra.Command{
		Use:   "set NAME",
		Short: "Keep a service with its API key under a name",
		Long: `Keep a service with its API key under a name, in a file that only you can read. The
first profile is the one in use.

The API key is asked for on a terminal, and not shown. Elsewhere it is read from
standard input: the API key on the first line, and the API secret, if requests are
to be signed, on the second.`,
		Example: `  licet profile set dev --from-env licet-data/dev.env
  licet profile set shop --url https://licenses.example.com
  licet profile set shop --url https://licenses.example.com --api-key-id key_01… --sign < key-and-secret.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !profileName.MatchString(args[0]) {
				return BadUsage("the name is %q: it must be 1 to 63 of A-Z a-z 0-9 . _ -, and begin with a letter or digit", args[0])
			}
			if err := p.fill(cmd, envFile); err != nil {
				return err
			}
			if err := p.check(); err != nil {
				return err
			}
			file, err := s.loadProfiles()
			if err != nil {
				return err
			}
			file.Profiles[args[0]] = p
			if file.Current == "" {
				file.Current = args[0]
			}
			if err := s.saveProfiles(file); err != nil {
				return err
			}
			s.tellUse(cmd.ErrOrStderr(), file, args[0])
			return nil
		},
	})
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&p.URL, "url", "", "`URL` of the service")
	fs.StringVar(&p.APIKeyID, "api-key-id", "", "`id` of the API key, key_…, if requests are to be signed")
	fs.BoolVar(&p.Sign, "sign", false, "sign all requests; otherwise those that must be")
	fs.StringVar(&envFile, "from-env", "", "take what there is from a `file` such as the dev.env of licet dev, and ask for nothing")
	return cmd
}

// fill completes a profile from a file, or from whoever sits at the terminal.
func (p *profile) fill(cmd *cobra.Command, envFile string) error {
	if envFile != "" {
		text, err := os.ReadFile(envFile)
		if err != nil {
			return fmt.Errorf("--from-env: %w", err)
		}
		p.fromEnv(string(text))
		return nil
	}
	if p.URL == "" {
		return BadUsage("--url must say where the service is, or --from-env name a file that does")
	}
	in := cmd.InOrStdin()
	if file, isFile := in.(*os.File); isFile && terminal.Is(file) {
		return p.ask(cmd.Context(), file, cmd.ErrOrStderr())
	}
	lines := bufio.NewScanner(io.LimitReader(in, 64<<10))
	for _, into := range []*string{&p.APIKey, &p.APISecret} {
		if lines.Scan() {
			*into = strings.TrimSpace(lines.Text())
		}
	}
	return lines.Err()
}

func (p *profile) ask(ctx context.Context, in *os.File, stderr io.Writer) (err error) {
	if p.APIKey, err = terminal.Secret(ctx, in, stderr, "API key (not shown): "); err != nil {
		return err
	}
	if p.APIKeyID != "" || p.Sign {
		p.APISecret, err = terminal.Secret(ctx, in, stderr, "API secret (not shown): ")
	}
	return err
}

// fromEnv takes variables from a file that a shell would read. What the command
// line says stays.
func (p *profile) fromEnv(text string) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		value = strings.Trim(value, `"'`)
		switch {
		case name == "LICET_URL" && p.URL == "":
			p.URL = value
		case name == "LICET_API_KEY":
			p.APIKey = value
		case name == "LICET_API_KEY_ID" && p.APIKeyID == "":
			p.APIKeyID = value
		case name == "LICET_API_SECRET":
			p.APISecret = value
		}
	}
}

// check refuses what no service could be called with.
func (p *profile) check() error {
	switch {
	case p.URL == "":
		return BadUsage("there is no LICET_URL in that file; say --url")
	case !strings.HasPrefix(p.APIKey, "lk_"):
		return BadUsage("the API key must begin with lk_test_ or lk_live_")
	case p.APISecret != "" && !strings.HasPrefix(p.APISecret, "lks_"):
		return BadUsage("the API secret must begin with lks_test_ or lks_live_")
	case p.APISecret != "" && p.APIKeyID == "":
		return BadUsage("signing needs the API key's id too: --api-key-id")
	case p.Sign && p.APISecret == "":
		return BadUsage("signing needs the API secret, and there is none")
	}
	if _, err := client.New(p.URL, p.APIKey); err != nil {
		return BadUsage("%s", strings.TrimPrefix(err.Error(), "client: "))
	}
	return nil
}

// tellUse says where a profile went, and whether it is what will be called.
func (s Setup) tellUse(stderr io.Writer, file *profiles, name string) {
	path, _ := s.profilePath()
	fmt.Fprintf(stderr, "the profile %q is kept in %s\n", name, path)
	switch {
	case file.Current != name:
		fmt.Fprintf(stderr, "in use is %q: licet profile use %s changes that\n", file.Current, name)
	case s.env("LICET_URL") != "" || s.env("LICET_API_KEY") != "" || s.env("LICET_API_KEY_FILE") != "":
		fmt.Fprintln(stderr, "the environment names a service as well, and wins: unset LICET_URL, LICET_API_KEY and LICET_API_KEY_FILE to use profiles")
	}
}

func (s Setup) profileUse() *cobra.Command {
	return s.oneProfile(&cobra.Command{
		Use:     "use NAME",
		Short:   "Take a profile where nothing else is said",
		Long:    "Take a profile where neither the command line nor the environment says which service is meant.",
		Example: `  licet profile use shop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.changeProfile(cmd, args[0], func(file *profiles) { file.Current = args[0] })
		},
	})
}

func (s Setup) profileRemove() *cobra.Command {
	return s.oneProfile(&cobra.Command{
		Use:     "remove NAME",
		Short:   "Forget a profile, and its API key with it",
		Long:    "Forget a profile, and its API key with it. The key itself stays good: licet keys revoke ends it.",
		Example: `  licet profile remove dev`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.changeProfile(cmd, args[0], func(file *profiles) {
				delete(file.Profiles, args[0])
				if file.Current == args[0] {
					file.Current = ""
				}
			})
		},
	})
}

func (s Setup) changeProfile(cmd *cobra.Command, name string, change func(*profiles)) error {
	file, err := s.loadProfiles()
	if err != nil {
		return err
	}
	if _, found := file.Profiles[name]; !found {
		return BadUsage("there is no profile %q: licet profile list has them", name)
	}
	change(file)
	if err := s.saveProfiles(file); err != nil {
		return err
	}
	if _, kept := file.Profiles[name]; kept {
		s.tellUse(cmd.ErrOrStderr(), file, name)
	}
	return nil
}

func (s Setup) profileList() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List profiles, without their API keys",
		Long:    "List profiles, without their API keys, and which one is in use.",
		Example: `  licet profile list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return BadUsage("--output is %q: write table or json", output)
			}
			file, err := s.loadProfiles()
			if err != nil {
				return err
			}
			return file.print(cmd.OutOrStdout(), output == "json")
		},
	}
	addOutput(cmd, &output)
	return cmd
}

// listedProfile is what is shown of a profile.
type listedProfile struct {
	Name     string `json:"name"`
	InUse    bool   `json:"in_use"`
	URL      string `json:"url"`
	APIKey   string `json:"api_key"`
	APIKeyID string `json:"api_key_id"`
	Sign     bool   `json:"sign"`
}

func (f *profiles) print(stdout io.Writer, asJSON bool) error {
	listed := []listedProfile{}
	t := newTable(stdout, []string{"name", "in_use", "url", "api_key", "api_key_id", "sign"}, false)
	for _, name := range f.names() {
		p := f.Profiles[name]
		one := listedProfile{name, name == f.Current, p.URL, masked(p.APIKey), p.APIKeyID, p.Sign}
		listed = append(listed, one)
		text, err := json.Marshal(one)
		if err != nil {
			return err
		}
		o, err := parseObject(text)
		if err != nil {
			return err
		}
		t.add(o)
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(map[string]any{"profiles": listed})
	}
	return t.flush()
}

// masked tells of an API key no more than its mode.
func masked(key string) string {
	for _, prefix := range []string{"lk_test_", "lk_live_"} {
		if strings.HasPrefix(key, prefix) {
			return prefix + "…"
		}
	}
	return "…"
}
