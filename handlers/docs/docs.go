package docs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"licet/handlers/paypage"
)

// The paths of the pages, below the public URL.
const (
	HomePath      = "/"
	ReferencePath = "/docs"
	ErrorsPath    = "/docs/errors"
	ViewerPath    = "/docs/viewer.js"
	IconPath      = "/favicon.ico"
	RobotsPath    = "/robots.txt"
)

// ViewerVersion is the version of openapi-explorer.
const ViewerVersion = "2.4.820"

// Page is a page and the Content-Security-Policy that it needs.
type Page struct {
	HTML   []byte
	Policy string
}

// Home is what the page at / says.
type Home struct {
	Version    string
	URL        string // of the service
	EnvFile    string // with the URL and an API key; empty: the page does not name the file
	ReadEnv    string // the command that reads EnvFile; empty: the page says how to get an API key
	Steps      []Step
	MetricsURL string // empty: no metrics
	Order      string // the number of the latest order that waits for payment; empty: none
	PayURL     string // of Order
}

// Step is a step of the main job as a shell command.
type Step struct{ Title, Command string }

//go:embed page.html.tmpl home.html.tmpl errors.html.tmpl reference.html.tmpl
var templateFiles embed.FS

//go:embed style.css
var ownStyle string

//go:embed reference.css
var referenceStyle string

//go:embed viewer.css
var viewerStyle string

//go:embed copy.js
var copyScript string

//go:embed reference.js
var referenceScript string

//go:embed viewer/openapi-explorer.min.js
var viewer []byte

//go:embed favicon.ico
var icon []byte

//go:embed robots.txt
var robots []byte

// Viewer returns the script that draws the reference. Callers must not change the bytes.
func Viewer() []byte { return viewer }

// Icon returns the icon of all pages. Callers must not change the bytes.
func Icon() []byte { return icon }

// Robots returns the rules for crawlers. Callers must not change the bytes.
func Robots() []byte { return robots }

// Renderer writes pages. Make it with [New]. It is safe for concurrent use.
type Renderer struct {
	templates *template.Template
	base      string
}

// New returns a Renderer for pages below base, the path of the public URL without a slash at its end.
func New(base string) *Renderer {
	return &Renderer{templates: template.Must(
		template.New("").Funcs(template.FuncMap{"place": placeInReference}).ParseFS(templateFiles, "*.tmpl")),
		base: base}
}

// view is the data of the templates.
type view struct {
	Base    string
	Title   string
	Style   template.CSS
	Script  template.JS
	Version string        // of the viewer
	Inner   template.HTML // the style inside the viewer
	Home    *Home
	Errors  []group
}

// Home returns the page at /.
func (r *Renderer) Home(h Home) (Page, error) {
	return r.page("home", view{Title: "Licet development server", Style: pageStyle(), Script: template.JS(copyScript),
		Home: &h})
}

// Errors returns the page about the error codes.
func (r *Renderer) Errors() (Page, error) {
	all, err := groups()
	if err != nil {
		return Page{}, err
	}
	return r.page("errors", view{Title: "Licet error codes", Style: pageStyle(), Errors: all})
}

// Reference returns the page of the API reference. The viewer writes style elements, so the policy allows inline
// styles.
func (r *Renderer) Reference() (Page, error) {
	p, err := r.page("reference", view{
		Title: "Licet API reference", Style: template.CSS(paypage.Palette() + referenceStyle),
		Script:  template.JS(referenceScript),
		Version: ViewerVersion, Inner: template.HTML(viewerStyle),
	})
	p.Policy = policy("'self' "+hashOf(referenceScript), "'unsafe-inline'", "connect-src 'self'; ")
	return p, err
}

func pageStyle() template.CSS { return template.CSS(paypage.Palette() + ownStyle) }

// page renders a page.
func (r *Renderer) page(name string, v view) (Page, error) {
	v.Base = r.base
	var text bytes.Buffer
	if err := r.templates.ExecuteTemplate(&text, name, v); err != nil {
		return Page{}, fmt.Errorf("docs: %w", err)
	}
	scripts := "'none'"
	if v.Script != "" {
		scripts = hashOf(string(v.Script))
	}
	return Page{text.Bytes(), policy(scripts, hashOf(string(v.Style)), "")}, nil
}

// policy returns the Content-Security-Policy of a page with its own icon.
func policy(scripts, styles, more string) string {
	return strings.Join([]string{
		"default-src 'none'", "script-src " + scripts, "style-src " + styles, more + "img-src 'self' data:",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; ")
}

// hashOf returns the source that allows an inline script or style.
func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}
