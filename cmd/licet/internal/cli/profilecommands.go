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
	return group("profile", "Save services with their API keys", `  licet profile set dev --from-env licet-data/dev.env
  licet profile set shop --url https://licenses.example.com    asks for the API key
  licet profile use shop
  licet orders list --profile dev`,
		s.profileSet(), s.profileList(), s.profileUse(), s.profileRemove())
}

// oneProfile makes a command take the name of a profile, and complete it.
func (s Setup) oneProfile(cmd *cobra.Command) *cobra.Command {
	cmd.Args = Arguments
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
		Short: "Save a service with its API key under a name",
		Long: `Save a service with its API key under a name, in a file that only you can read. The first
profile becomes the profile in use.

On a terminal the command asks for the API key without showing it. Otherwise the command reads
standard input: the API key from the first line, and the API secret, for signed requests,
from the second line.`,
		Example: `  licet profile set dev --from-env licet-data/dev.env
  licet profile set shop --url https://licenses.example.com
  licet profile set shop --url https://licenses.example.com --api-key-id key_01… --sign < key-and-secret.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !profileName.MatchString(args[0]) {
				return BadUsage("NAME is %q: write 1 to 63 of A-Z a-z 0-9 . _ -, starting with a letter or digit",
					args[0])
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
	fs.StringVar(&p.APIKeyID, "api-key-id", "", "`id` of the API key, key_…, for signed requests")
	fs.BoolVar(&p.Sign, "sign", false, "sign all requests, not only requests that need a signature")
	fs.StringVar(&envFile, "from-env", "", "read all values from a `file` such as the dev.env of licet dev")
	return cmd
}

// fill completes a profile from a file, the terminal or standard input.
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
		return BadUsage("no service: set --url, or --from-env to a file with LICET_URL")
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

// fromEnv reads variables from the text of a shell file. Values of the command line take precedence.
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

// check refuses an incomplete or invalid profile.
func (p *profile) check() error {
	switch {
	case p.URL == "":
		return BadUsage("the file of --from-env has no LICET_URL: set --url")
	case !strings.HasPrefix(p.APIKey, "lk_"):
		return BadUsage("the API key must start with lk_test_ or lk_live_")
	case p.APISecret != "" && !strings.HasPrefix(p.APISecret, "lks_"):
		return BadUsage("the API secret must start with lks_test_ or lks_live_")
	case p.APISecret != "" && p.APIKeyID == "":
		return BadUsage("signing needs the id of the API key: set --api-key-id")
	case p.Sign && p.APISecret == "":
		return BadUsage("signing needs the API secret: write it on the second line of standard input")
	}
	if _, err := client.New(p.URL, p.APIKey); err != nil {
		return BadUsage("%s", strings.TrimPrefix(err.Error(), "client: "))
	}
	return nil
}

// tellUse prints where a profile was saved, and whether commands use it.
func (s Setup) tellUse(stderr io.Writer, file *profiles, name string) {
	path, _ := s.profilePath()
	fmt.Fprintf(stderr, "saved the profile %q in %s\n", name, path)
	switch {
	case file.Current != name:
		fmt.Fprintf(stderr, "the profile in use is %q; to change that, run: licet profile use %s\n", file.Current, name)
	case s.env("LICET_URL") != "" || s.env("LICET_API_KEY") != "" || s.env("LICET_API_KEY_FILE") != "":
		fmt.Fprintln(stderr, "the environment takes precedence over profiles: to use a profile, unset LICET_URL, "+
			"LICET_API_KEY and LICET_API_KEY_FILE")
	}
}

func (s Setup) profileUse() *cobra.Command {
	return s.oneProfile(&cobra.Command{
		Use:   "use NAME",
		Short: "Select the profile in use",
		Long: "Select the profile in use: commands call its service if neither the command line nor the " +
			"environment names a service.",
		Example: `  licet profile use shop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.changeProfile(cmd, args[0], func(file *profiles) { file.Current = args[0] })
		},
	})
}

func (s Setup) profileRemove() *cobra.Command {
	return s.oneProfile(&cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a profile with its API key",
		Long:    "Remove a profile with its API key. The API key stays valid: licet keys revoke revokes it.",
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
		return BadUsage("there is no profile %q%s; see licet profile list", name, DidYouMean(name, file.names()))
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
		Short:   "List profiles without their API keys",
		Long:    "List profiles without their API keys, and show the profile in use.",
		Example: `  licet profile list`,
		Args:    Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return BadUsage("--output is %q: write table or json", output)
			}
			file, err := s.loadProfiles()
			if err != nil {
				return err
			}
			if len(file.Profiles) == 0 && output == "table" {
				fmt.Fprintln(cmd.ErrOrStderr(), "no profiles yet: licet profile set NAME --url URL saves a service")
				return nil
			}
			return file.print(cmd, s.look(cmd), output == "json")
		},
	}
	addOutput(cmd, &output)
	return cmd
}

// listedProfile is the output for a profile.
type listedProfile struct {
	Name     string `json:"name"`
	InUse    bool   `json:"in_use"`
	URL      string `json:"url"`
	APIKey   string `json:"api_key"`
	APIKeyID string `json:"api_key_id"`
	Sign     bool   `json:"sign"`
}

func (f *profiles) print(cmd *cobra.Command, look look, asJSON bool) error {
	listed := []listedProfile{}
	t := newTable(cmd.OutOrStdout(), []string{"name", "in_use", "url", "api_key", "api_key_id", "sign"}, look)
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
		return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"profiles": listed})
	}
	if err := t.flush(); err != nil {
		return err
	}
	sayDropped(cmd.ErrOrStderr(), t.dropped)
	return nil
}

// masked returns the prefix of an API key, which shows its mode.
func masked(key string) string {
	for _, prefix := range []string{"lk_test_", "lk_live_"} {
		if strings.HasPrefix(key, prefix) {
			return prefix + "…"
		}
	}
	return "…"
}
