package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"licet/client"
	"licet/cmd/licet/internal/terminal"
)

// Service contains the settings that select a service.
type Service struct {
	URL        string
	APIKeyFile string
	Profile    string
	Sign       bool
}

// AddFlags adds the flags of s.
func (s *Service) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.URL, "url", "", "`URL` of the service ($LICET_URL)")
	fs.StringVar(&s.APIKeyFile, "api-key-file", "",
		"`file` with the API key; only $LICET_API_KEY takes the API key itself ($LICET_API_KEY_FILE)")
	fs.StringVar(&s.Profile, "profile", "",
		"`name` of a profile with URL and API key, see licet profile ($LICET_PROFILE)")
	fs.BoolVar(&s.Sign, "sign", false, "sign requests with the API secret ($LICET_SIGN)")
}

// target is a service with the credentials to call it.
type target struct {
	url, apiKey, keyID, secret string
	sign                       bool
	urlFrom, keyFrom           string // where URL and API key come from, for messages
}

// find returns the target. Flags take precedence over the environment, and the environment over a profile. URL and API
// key come from the same place, so that an API key never goes to a foreign URL, unless the command line says so.
func (s Setup) find(settings *Service, fs *pflag.FlagSet) (target, error) {
	t, err := s.base(settings, fs)
	if err != nil {
		return t, err
	}
	if fs.Changed("url") {
		t.url, t.urlFrom = settings.URL, "--url"
	}
	if fs.Changed("api-key-file") {
		if t, err = t.withKeyFile(settings.APIKeyFile, "--api-key-file"); err != nil {
			return t, err
		}
	}
	switch variable := s.env("LICET_SIGN"); {
	case fs.Changed("sign"):
		t.sign = settings.Sign
	case variable == "true" || variable == "1":
		t.sign = true
	case variable == "false" || variable == "0":
		t.sign = false
	case variable != "":
		return t, BadUsage("environment variable LICET_SIGN is %q: write true or false", variable)
	}
	return t, nil
}

// base returns the target of the environment or of a profile.
func (s Setup) base(settings *Service, fs *pflag.FlagSet) (target, error) {
	if fs.Changed("profile") {
		return s.profile(settings.Profile, "--profile")
	}
	t := target{
		url: s.env("LICET_URL"), urlFrom: "$LICET_URL",
		apiKey: s.env("LICET_API_KEY"), keyFrom: "$LICET_API_KEY",
		keyID: s.env("LICET_API_KEY_ID"), secret: s.env("LICET_API_SECRET"),
	}
	file := s.env("LICET_API_KEY_FILE")
	if t.url != "" || t.apiKey != "" || file != "" {
		if t.apiKey == "" && file != "" && !fs.Changed("api-key-file") {
			return t.withKeyFile(file, "$LICET_API_KEY_FILE")
		}
		return t, nil
	}
	if fs.Changed("url") {
		return target{}, nil // the API key of a profile is not for another URL
	}
	if name := s.env("LICET_PROFILE"); name != "" {
		return s.profile(name, "$LICET_PROFILE")
	}
	t, err := s.profile("", "")
	if err != nil || t.url != "" {
		return t, err
	}
	return s.devService()
}

// devService returns the target of a licet dev that runs in the working directory, if any. Only addresses of this
// machine count, so that a foreign directory does not lead to a foreign service.
func (s Setup) devService() (target, error) {
	text, err := os.ReadFile(s.DevEnv)
	if s.DevEnv == "" || errors.Is(err, fs.ErrNotExist) {
		return target{}, nil
	}
	if err != nil {
		return target{}, fmt.Errorf("the service of licet dev in this directory: %w", err)
	}
	var p profile
	p.fromEnv(string(text))
	t := p.target(s.DevEnv)
	at, err := url.Parse(t.url)
	if err != nil {
		return target{}, nil
	}
	if ip, err := netip.ParseAddr(at.Hostname()); at.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()) {
		return target{}, nil
	}
	return t, nil
}

// withKeyFile returns t with the API key in a file. It drops the id and the secret, which belong to another API key.
func (t target) withKeyFile(path, from string) (target, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return t, fmt.Errorf("%s: %w", from, err)
	}
	t.apiKey, t.keyFrom = strings.TrimSpace(string(text)), from+" "+path
	t.keyID, t.secret = "", ""
	if t.apiKey == "" || strings.ContainsAny(t.apiKey, " \t\n") {
		return t, fmt.Errorf("%s %s must contain one API key and nothing else", from, path)
	}
	return t, nil
}

// profile returns the target of the named profile, or without a name that of the profile in use, if any.
func (s Setup) profile(name, from string) (target, error) {
	file, err := s.loadProfiles()
	if err != nil {
		return target{}, err
	}
	if name == "" {
		if name = file.Current; name == "" {
			return target{}, nil
		}
		from = "licet profile use"
	}
	p, found := file.Profiles[name]
	if !found {
		return target{}, BadUsage("%s: there is no profile %q%s; see licet profile list and licet profile set", from,
			name, DidYouMean(name, file.names()))
	}
	return p.target(fmt.Sprintf("the profile %q", name)), nil
}

// ProfileInUse reports whether a profile is in use. It comes before DevEnv.
func (s Setup) ProfileInUse() bool {
	file, err := s.loadProfiles()
	return err == nil && file.Current != ""
}

// target returns the target that a profile describes, and where the profile comes from.
func (p *profile) target(source string) target {
	return target{
		url: p.URL, urlFrom: source, apiKey: p.APIKey, keyFrom: source, keyID: p.APIKeyID, secret: p.APISecret,
		sign: p.Sign,
	}
}

// Located is a service that the command line, the environment or a profile names, with the credentials to call it.
type Located struct {
	URL, URLFrom    string // URLFrom and KeyFrom say what names them, for messages
	APIKey, KeyFrom string
	Options         []client.Option
}

// Locate returns the service that commands would call. Without one, the URL is empty.
func (s Setup) Locate(settings *Service, fs *pflag.FlagSet) (Located, error) {
	t, err := s.find(settings, fs)
	if err != nil || t.url == "" {
		return Located{}, err
	}
	if err := t.check(true); err != nil {
		return Located{}, err
	}
	l := Located{URL: t.url, URLFrom: t.urlFrom, APIKey: t.apiKey, KeyFrom: t.keyFrom, Options: s.identity()}
	if t.sign {
		l.Options = append(l.Options, client.WithSigning(t.keyID, t.secret))
	}
	return l, nil
}

// identity returns the option that names this program to the service.
func (s Setup) identity() []client.Option {
	return []client.Option{client.WithUserAgent("licet/" + s.Version)}
}

// check refuses an incomplete target.
func (t target) check(open bool) error {
	switch {
	case t.url == "":
		return BadUsage("no service: start licet dev, and run the command in the same directory, or after: " +
			". licet-data/dev.env; for another service, set --url or --profile, or LICET_URL and LICET_API_KEY, " +
			"or save a profile (licet profile set --help)")
	case t.apiKey == "" && !open:
		return BadUsage("no API key for %s (from %s): set LICET_API_KEY, --api-key-file or --profile, or save a "+
			"profile (licet profile set --help)", t.url, t.urlFrom)
	case t.sign && !t.canSign() && t.apiKey != "":
		return BadUsage("signing needs the id and the secret of the API key, and %s does not have both: set "+
			"LICET_API_KEY_ID and LICET_API_SECRET, or save them in a profile", t.keyFrom)
	}
	return nil
}

func (t target) canSign() bool { return t.apiKey != "" && t.keyID != "" && t.secret != "" }

// outputs are the output formats.
var outputs = []string{"table", "json"}

// addOutput adds the flags for the output: the format, and tables that are wider than the terminal.
func addOutput(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVarP(into, "output", "o", "table", "output `format`: table or json ($LICET_OUTPUT)")
	AddWide(cmd)
	Complete(cmd, "output", outputs...)
}

// AddWide adds the flag for tables that are wider than the terminal.
func AddWide(cmd *cobra.Command) {
	cmd.Flags().Bool("wide", false, "show tables with all columns and whole values, wider than the terminal")
}

// look returns how tables and objects look on the standard output of a command.
func (s Setup) look(cmd *cobra.Command) look {
	stdout := cmd.OutOrStdout()
	l := look{color: terminal.Colors(stdout, s.env)}
	if wide, _ := cmd.Flags().GetBool("wide"); !wide {
		l.width = terminal.Width(stdout, s.env)
	}
	return l
}

// valuesNote is the annotation with the values of a flag, for suggestions.
const valuesNote = "values"

// Complete lets shells complete a flag's values.
func Complete(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.Flags().SetAnnotation(flag, valuesNote, values)
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeProfiles lets shells complete the names of profiles.
func (s Setup) completeProfiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	file, err := s.loadProfiles()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return file.names(), cobra.ShellCompDirectiveNoFileComp
}
